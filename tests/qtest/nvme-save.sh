#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: an NVMe drive that nobody uses can be saved and loaded; one in use refuses
# tags: qtest nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

head -c 4096 /dev/zero | tr '\0' A >disk.img
truncate -s 1M disk.img
drive_args="-drive if=none,id=disk,file=disk.img,format=raw -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0"
CC=$((REGS + 0x14))

# QEMU's migration keeps its description of the machine for good when a save fails
leaks=$ASAN_OPTIONS
ASAN_OPTIONS=$leaks:detect_leaks=0
sw_start $drive_args
check "a drive is enabled" nvme_setup
check_fails "in use, it is not saved" 'failed' qt_saved
check "QEMU says which drive, and what to do" grep -q 'nvme: controller nvme0 is in use: reset it' qemu.log

# A reset of the controller keeps what Set Features has changed: 0xb, asynchronous events
check "it has queues" nvme_queues
nsid=0
nvme 0 9 0 0 0xb 1 0
check_eq "a feature is changed" 0 "$r"
writel $CC 0x00460000
check_fails "disabled, with a feature changed, it is not saved" 'failed' qt_saved
writel $CC 0x00460001
nvme_setup
nsid=0
nvme 0 9 0 0 0xb 0 0
nsid=1
check_eq "the feature is changed back" 0 "$r"
writel $CC 0x00460000
qmp stop
check "disabled, it is saved" qt_saved
qt_stop

ASAN_OPTIONS=$leaks
sw_boot $drive_args -incoming "file:$OUT/vmstate"
check "it is loaded" qt_loaded
rm -f "$OUT/vmstate"
qmp cont
cfg_readl $NVME 0x10
check_eq "its registers are where they were" $((REGS)) $((r & 0xfffffff0))
cfg_readl $NVME 4
check_eq "and can be reached" 6 $((r & 7))
readl $((REGS + 0x1c))
check_eq "it is not enabled" 0 $((r & 1))
check "it is enabled" nvme_setup
check "it has queues again" nvme_queues
drive read 0 8 $BUF
check_eq "it reads" 0 "$r"
pattern 65
want=$r
two_ends $BUF 4096
check_eq "the data" "$want" "$r"
qt_finish

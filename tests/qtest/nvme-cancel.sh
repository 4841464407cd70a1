#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a queue of a drive is deleted while one of its reads waits for memory to copy through: QEMU goes on
# tags: qtest quick switch nvme
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/switch/lib.sh"
. "$(dirname "$0")/switch/nvme.sh"

sw_start -blockdev driver=null-co,node-name=disk,size=1048576,read-zeroes=on,latency-ns=5000000000 \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bar1_of 0
HOLE=$((r + 0x110000000))

# What is no memory is copied through a buffer, of which the drive has one. The first read has it for five seconds.
submit 1 2 $HOLE 0 0 0 7
first=$co_c
submit 1 2 $HOLE 0 8 0 7
second=$co_c
nvme 0 0 0 0 1 0 0
check_eq "their submission queue is deleted" 0 "$r"
readl $((first + 12))
check_eq "the first read was under way, and ends: Aborted due to SQ Deletion" $((8 << 1 | 1)) $((r >> 16))
readl $((second + 12))
check_eq "the second one, which has not begun: Unrecovered Read Error" $((0x281 << 1 | 1)) $((r >> 16))
nvme 0 1 $IO 0 0x000f0001 0x00010001 0
check_eq "another queue is made" 0 "$r"
qt_finish

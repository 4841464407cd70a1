#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a transfer that QEMU makes shorter after it has mapped the memory counts, and where it went
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

# The drive can map RAM only. GPU 9, with a coherent window, is not below the switch.
sw_start -blockdev null-co,node-name=disk,size=1048576,read-zeroes=on \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0,x-max-bounce-buffer-size=0 \
    -device peerlane-gpu,id=gpu9,addr=5,vram-size=4M,bar1-size=1M,coherent=on
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
gpu_setup 9 0x28
use 9
snap dp3
snap sw0

# 1,024 bytes: 700 into the window, and the others where BAR1 has nothing mapped, which the drive cannot reach. QEMU maps
# the 700. Its dma_blk_cb() means to keep the 512 that are whole blocks, but discards that many from the end: 188 are moved.
memset $WIN 4096 0x5a
submit 1 2 $((WIN + 4096 - 700)) $B1 0 0 1
moved=188
n=0
while qom_counter gpu9 coherent-dma-write && [ "$r" = 0 ] && more $n; do
    n=$((n + 1))
done
check_eq "part of it is counted by the window" $moved "$r"
rdhex $((WIN + 4096 - 700)) 700
check_eq "so much was written" "$moved" "$(($(echo "${r#0x}" | sed 's/\(..\)/\1 /g' | tr ' ' '\n' | grep -c '^00$')))"
qom_counter gpu9 bar1-dma-write
check_eq "BAR1 counts nothing" 0 "$r"
for port in dp3 sw0; do
    counted $port
    check_eq "$port counts it" "upstream-peer-write=$moved" "$(echo "$r" | tr ' ' '\n' | grep peer)"
done
qt_finish

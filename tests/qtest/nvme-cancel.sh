#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: reads are cancelled, under way and while they wait for memory to copy through: QEMU goes on, and counts what landed
# tags: qtest switch nvme
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

sw_start -blockdev driver=null-co,node-name=disk,size=1048576,read-zeroes=on,latency-ns=5000000000 \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bar1_of 0
P=$r
HOLE=$((P + 0x110000000))

THREES=$((0x3333333333333333))
# What GPU 0 and the ports have counted since the last time, and what lies in two pages of the GPU; these are filled again
counts() {
    qom_counter gpu0 bar1-dma-write
    cn=$((r - ${cn_gpu:-0}))
    cn_gpu=$r
    for cn_p in dp3 dp0; do
        counted $cn_p
        cn="$cn, $cn_p:"
        for cn_w in $r; do
            case $cn_w in host-*) ;; *) cn="$cn $cn_w" ;; esac
        done
    done
    readq $P
    cn="$cn, $r"
    readq $((P + 4096))
    cn="$cn $r"
    memset $P 8192 0x33
    r=$cn
}
memset $P 8192 0x33
snap dp3
snap dp0

# What is no memory is copied through a buffer, of which the drive has one. The first read has it for five seconds.
submit 1 2 $HOLE 0 0 0 7
first=$co_c
submit 1 2 $HOLE 0 8 0 7
second=$co_c
submit 1 2 $HOLE $((P + 4096)) 16 0 15
third=$co_c
nvme 0 0 0 0 1 0 0
check_eq "their submission queue is deleted" 0 "$r"
readl $((first + 12))
check_eq "the first read was under way, and ends: Aborted due to SQ Deletion" $((8 << 1 | 1)) $((r >> 16))
for waited in $second $third; do
    readl $((waited + 12))
    check_eq "one that has not begun: Unrecovered Read Error" $((0x281 << 1 | 1)) $((r >> 16))
done
counts
check_eq "what has not begun is not counted" "0, dp3: other=4096, dp0:, $THREES $THREES" "$r"

# queue: another one in its place
queue() {
    slot_1=0
    nvme 0 1 $IO 0 0x000f0001 0x00010001 0
    check_eq "another queue is made" 0 "$r"
}
queue
cancelled=$((IO + 0x1000 + 16 * 3))
submit 1 2 $P 0 0 0 7
nvme 0 0 0 0 1 0 0
check_eq "it is deleted, too" 0 "$r"
readl $((cancelled + 12))
check_eq "a read into the GPU was under way: Aborted due to SQ Deletion" $((8 << 1 | 1)) $((r >> 16))
counts
check_eq "it has landed, and is counted" "4096, dp3: peer-write=4096, dp0: target-write=4096, 0 $THREES" "$r"

# The drive is reset. QEMU waits until nothing is under way, and then cancels what waits for the buffer; so what has the
# buffer ends last, or the third read would begin meanwhile.
queue
submit 1 2 $P 0 8 0 7
submit 1 2 $HOLE 0 0 0 7
submit 1 2 $HOLE $((P + 4096)) 16 0 15
writel $((REGS + 0x14)) 0x00460000
readl $((REGS + 0x1c))
check_eq "the drive is disabled" 0 $((r & 1))
counts
check_eq "what was under way has landed, and is counted; what has not begun is neither" \
    "4096, dp3: peer-write=4096 other=4096, dp0: target-write=4096, 0 $THREES" "$r"
qt_finish

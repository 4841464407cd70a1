#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: engine operations on memory that a drive writes meanwhile: no result is out of bounds, QEMU stays whole
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/switch/lib.sh"
. "$(dirname "$0")/switch/nvme.sh"

# Drives read in a thread of their own, straight into the GPU's memory
LEN=0x40000
{
    head -c 4096 /dev/zero | tr '\0' A
    head -c 2044480 /dev/zero
} >disk.img
sw_start -drive if=none,id=disk,file=disk.img,format=raw \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bar1_of 0
LAST=$((r + LEN - 4096))
use 0
queue_setup 0
LIST=0x200000

# beside PAGES OPERATION…: the drive reads PAGES to host memory, the last of them to
# the last page of what the engine works on; both begin at once
beside() {
    bs_pages=$1
    shift
    i=0
    while [ $i -lt $((bs_pages - 2)) ]; do
        writeq $((LIST + 8 * i)) $((0x300000 + 4096 * i))
        i=$((i + 1))
    done
    writeq $((LIST + 8 * i)) $LAST
    desc 0 "$@"
    submit 1 2 0x2f0000 $LIST 64 0 $((bs_pages * 8 - 1)) "writel $((B0 + 0x1000 + PLN_Q_TAIL)) $tail_0"
    settle 0
    bs_tries=0
    while ! completed && more $bs_tries; do
        bs_tries=$((bs_tries + 1))
    done
    writel $((REGS + 0x100c)) $((slot_1 % 16))
}

rounds=${ROUNDS:-600}
[ "$TIER" != nightly ] || rounds=6000
n=0
wrong=
same=0
while [ $n -lt $rounds ]; do
    pages=$((8 + n * 7 % 120))
    # all is equal but for what the drive takes away
    drive read 0 8 $LAST
    beside $pages op=$PLN_OP_COMPARE src=0 dst=0x200000 len=$LEN
    readq $((COMP + 24))
    bytes=$r
    readq $((COMP + 16))
    result=$r
    case $bytes in
    $((LEN))) same=$((same + 1)) ;;
    *) [ "$bytes" -ge $((LEN - 4096)) ] && [ "$bytes" -lt $((LEN)) ] && [ "$result" = "$bytes" ] ||
        wrong="$wrong $pages:$bytes:$result" ;;
    esac
    n=$((n + 1))
done
check_eq "COMPARE: each result is within the memory" "" "$wrong"
diag "of $rounds comparisons $same saw no difference"
# The last three on one word of what the drive writes. These are smoke tests: any result is right, QEMU and the queue go
# on. SEM_WAIT is over at once, whatever the drive has written.
word=$((LEN - 8))
for job in "COPY src=0 dst=0x200000 len=$LEN" "CRC32C src=0 len=$LEN" \
    "ADD src=0 dst=0x200000 arg=$PLN_ADD_INT32 len=$LEN" "ADD src=0x200000 dst=0 arg=$PLN_ADD_INT32 len=$LEN" \
    "FILL dst=0 arg=8 imm=0 len=$LEN" "SEM_WAIT src=$word imm=0" "SEM_WRITE dst=$word imm=0" \
    "IMM_WRITE dst=$word arg=8 imm=0"; do
    name=${job%% *}
    eval "code=\$PLN_OP_$name"
    for pages in 8 24 48 96; do
        # shellcheck disable=SC2086 # words
        beside $pages op=$code ${job#* }
    done
    qreg 0 $PLN_Q_STATUS
    check_eq "$job: goes on" $PLN_Q_IDLE $r
done
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: engine operations on memory that a drive writes meanwhile: no result is out of bounds, QEMU stays whole
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

# Drives read in a thread of their own, straight into the GPU's memory. Blocks 0 to 7 hold 'A', and the eight before
# A_END; the others are zeros.
LEN=0x40000
A_END=4096
{
    head -c 4096 /dev/zero | tr '\0' A
    head -c $((A_END * 512 - 8192)) /dev/zero
    head -c 4096 /dev/zero | tr '\0' A
} >disk.img
sw_start -drive if=none,id=disk,file=disk.img,format=raw \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0,mdts=9
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bar1_of 0
LAST=$((r + LEN - 4096))
use 0
queue_setup 0
LIST=0x200000

# beside PAGES BLOCK JOBS COMMAND: the drive reads PAGES from BLOCK on to host memory, the last of them to the last page of
# what the engine works on. The engine begins at once with the next JOBS of its ring, and COMMAND gives it more until the
# drive has ended: $met is how often it was through with that before the drive was. $ended is the drive's status, or none.
beside() {
    # The list is kept from one time to the next
    if [ $1 != "${listed-}" ]; then
        listed=$1
        i=0
        while [ $i -lt $(($1 - 2)) ]; do
            writeq $((LIST + 8 * i)) $((0x300000 + 4096 * i))
            i=$((i + 1))
        done
        writeq $((LIST + 8 * i)) $LAST
    fi
    tail_0=$(((tail_0 + $3) % RING_SIZE))
    submit 1 2 0x2f0000 $LIST $2 0 $(($1 * 8 - 1)) "writel $((B0 + 0x1000 + PLN_Q_TAIL)) $tail_0"
    shift 3
    looks=0
    ended=none
    while ! completed; do
        more $looks || return
        "$@"
        looks=$((looks + 1))
    done
    met=$((looks > 1 ? looks - 1 : 0))
    ended=$((r >> 17 & 0x7ff))
    writel $((REGS + 0x100c)) $((slot_1 % 16))
}
# again JOBS: the next of the ring, until they are done; poll: the engine looks at what it waits for
again() {
    settle 0
    tail_0=$(((tail_0 + $1) % RING_SIZE))
    ring 0
    settle 0
}
poll() {
    qt clock_step 100000
    idle gpu0
}
# put OPERATION…: in each place of the ring
put() {
    for _ in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        desc 0 "$@"
    done
}

rounds=${ROUNDS:-600}
[ "$TIER" != nightly ] || rounds=6000
n=0
wrong=
unread=
same=0
put op=$PLN_OP_COMPARE src=0 dst=0x200000 len=$LEN
while [ $n -lt $rounds ] && [ -z "$unread" ]; do
    pages=$((8 + n * 7 % 120))
    # all is equal but for what the drive takes away
    drive read 0 8 $LAST
    [ "$r" = 0 ] || unread="$n:A:$r"
    beside $pages 64 1 :
    settle 0
    [ $ended = 0 ] || unread="$n:$pages:$ended"
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
check_eq "COMPARE: each of the drive's reads ends" "" "$unread"
check_eq "COMPARE: each result is within the memory" "" "$wrong"
diag "of $n comparisons $same saw no difference"

# Any result is right, QEMU and the queue go on
word=$((LEN - 8))
MANY=500
B8=0x4242424242424242
for job in "COPY src=0 dst=0x200000 len=$LEN" "CRC32C src=0 len=$LEN" \
    "ADD src=0 dst=0x200000 arg=$PLN_ADD_INT32 len=$LEN" "ADD src=0x200000 dst=0 arg=$PLN_ADD_INT32 len=$LEN" \
    "FILL dst=0 arg=8 imm=0 len=$LEN"; do
    eval "code=\$PLN_OP_${job%% *}"
    put op=$code ${job#* }
    unread=
    for pages in 8 24 48 96; do
        beside $pages 64 1 again 1
        settle 0
        [ $ended = 0 ] || unread="$unread $pages:$ended"
    done
    check_eq "$job: each of the drive's reads ends" "" "$unread"
    qreg 0 $PLN_Q_STATUS
    check_eq "$job: goes on" $PLN_Q_IDLE $r
done

# One word of what the drive writes with a long read: such an operation is over at once, and is done until it was beside a
# read that goes on
for job in "SEM_WRITE dst=$word imm=$B8" "IMM_WRITE dst=$word arg=8 imm=$B8"; do
    name=${job%% *}
    eval "code=\$PLN_OP_$name"
    put op=$code ${job#* }
    unread=
    wrong=
    all=0
    n=0
    while { [ $n -lt 20 ] || [ $all = 0 ]; } && [ -z "$unread" ] && more $n; do
        beside $MANY $((A_END - MANY * 8)) 1 again 15
        [ $ended = 0 ] || unread=$ended
        settle 0
        all=$((all + met))
        rdhex $((LAST + 4088)) 8
        # Each byte is of one of them
        [ -z "$(echo "${r#0x}" | sed 's/4[12]//g')" ] || wrong="$wrong $r"
        n=$((n + 1))
    done
    check_eq "$name: each of the drive's reads ends" "" "$unread"
    check "$name: beside a read that goes on" test $all -gt 0
    diag "$name: $n reads, $((all * 15)) writes beside them"
    check_eq "$name: the word is what one of them has written" "" "$wrong"
    qreg 0 $PLN_Q_STATUS
    check_eq "$name: goes on" $PLN_Q_IDLE $r
done

# A wait that has begun ends by what the drive writes
A8=0x4141414141414141
wrong=
n=0
while [ $n -lt 20 ] && [ -z "$wrong" ]; do
    writeq $((LAST + 4088)) 0
    memset $COMP 32 0xee
    desc 0 op=$PLN_OP_SEM_WAIT src=$word imm=$A8 arg=$PLN_SEM_MAX_WAIT_US
    ring 0
    idle gpu0
    beside $MANY $((A_END - MANY * 8)) 0 poll
    [ $ended = 0 ] || wrong="the read: $ended"
    qt clock_step 100000
    settle 0
    rdhex $((COMP + 16)) 8
    [ "$r" = $A8 ] || wrong="$wrong the wait: $r"
    n=$((n + 1))
done
check_eq "SEM_WAIT: each ends by what the drive has written" "" "$wrong"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the ConnectX frees what its objects had: the emulator's heap does not grow when they are made and destroyed again
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # for lib.sh; numbers; variables of lib.sh

# heap.so tells of the heap of the C library, which a QEMU with sanitizers does not use
QEMU=${BUILD:-$TOP/build}/qemu/qemu-system-x86_64
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
need_file "$BUILD/scenarios/heap.so"

mkfifo heap.ask heap.say
# What a thread keeps for itself after it was freed would count as used
export HEAP_ASK="$PWD/heap.ask" HEAP_SAY="$PWD/heap.say" GLIBC_TUNABLES=glibc.malloc.tcache_count=0
export LD_PRELOAD="$BUILD/scenarios/heap.so"
cx_start
unset LD_PRELOAD
heap() { r=$(timeout 20 sh -c 'echo >"$HEAP_ASK" && cat "$HEAP_SAY"'); }

short 0104; cmd $r 12
short 0102; says "INIT_HCA" 0 $r 8
short 0802; cmd $r 16; id; UAR=$r

# gone OPCODE ID…
gone() {
    go_op=$1
    shift
    for go_id in "$@"; do
        short $go_op 00$go_id; cmd $r 8
        [ "$r" = 0 ] || fail "$go_op destroys $go_id" "$r"
    done
}
QPS=16
KEYS=64
# round: objects of each kind, which depend on one another, and all of them away again
round() {
    short 0800; create $r; PD=$r
    eq_new; create $r; EQ=$r
    cq_new; create $r; CQ=$r
    rmp_new; create $r; RMP=$r
    qp_new
    QP_IN=$r qps='' keys=''
    while [ ${#qps} -lt $((7 * QPS)) ]; do
        create $QP_IN; qps="$qps $r"
        to_itself $r
    done
    key_new
    KEY_IN=$r
    while [ ${#keys} -lt $((7 * KEYS)) ]; do
        create $KEY_IN; keys="$keys $r"
    done
    heap; most=$r
    gone 0501 $qps; gone 0202 $keys; gone 090e $RMP; gone 0401 $CQ; gone 0302 $EQ; gone 0801 $PD
    heap
}
round
first=$r
check "the objects need memory ($((most - first)) bytes)" test $((most - first)) -gt $((32 * (QPS + KEYS)))
# What the start of the machine left to RCU may be freed after the first round only: the heap may
# shrink. What a round leaks is seen in the third at the latest, which has no such garbage before it.
round
second=$r
check "made and destroyed again: the heap is no larger ($first, then $second bytes)" test "$second" -le "$first"
round
check "and once more ($r bytes)" test "$r" -le "$second"
qt_finish

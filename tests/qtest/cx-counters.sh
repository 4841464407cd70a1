#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the ConnectX counts for a queue pair in the set that it is bound to, and nowhere else; sets that are none are refused; congestion is counted
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # for lib-cx.sh; numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"

need_tool cc
w=$qt_work/w
mkdir "$w"

# new_set: its number in $r
new_set() { short 0771; cmd $r 16; id; r=${r#????}; }
# in_set SET BYTE: one of its counters
in_set() { SET_0=$1; counted 0 $2; }
# bound: the set that the queue pair names
bound() { short 050b 00$QP; cmd $r 256; rdhex $((OUT_BOX + 0x24 - 16)) 1; r=${r#0x}; }
# move OPCODE SET [OPTION]: a transition that names it
move() { fixed $1 00$QP 00000000 256; at "$r" 36 $2 16 "${3:-00}"; }
# writes N: so many by the queue pair, to itself
writes() {
    wr_n=$1
    while [ $wr_n -gt 0 ]; do
        go 8 0x200000 $KEY 0x100000 64
        wr_n=$((wr_n - 1))
    done
    done_is "$2"
}

qt_start -device peerlane-cx,id=cx0,addr=4
device 0
posted_all=0
FIRST=$SET
new_set; SECOND=$r
new_set; GONE=$r
short 0772; at "$r" 11 $GONE; says "a set that nobody uses goes" 0 "$r" 8

# What is no set
move 0502 $GONE; says "to INIT with a set that is gone" 5 "$r" 8
move 0502 ff; says "with one that never was" 5 "$r" 8
move 0504 00; says "it is as it was: not in INIT" 16 "$r" 8
ready 0 0001 $QP 0 7 7
value_is "it counts in its set" "0x$FIRST" eval 'bound; r=$((0x$r))'
move 0505 $GONE 02; says "RTS2RTS with a set that is gone" 5 "$r" 8
move 0505 ff 02; says "with one that never was" 5 "$r" 8
value_is "none of these has changed it" "0x$FIRST" eval 'bound; r=$((0x$r))'
move 0505 ff 01; says "without that option it does not matter" 0 "$r" 8
value_is "nor change anything" "0x$FIRST" eval 'bound; r=$((0x$r))'

# From one set to another, while it is in use
writes 3 "three in the first set"
move 0505 $SECOND 02; says "RTS2RTS with another set" 0 "$r" 8
writes 5 "five in the second"
value_is "the first has the first three" 3 in_set $FIRST 0x10
value_is "the second has the next five" 5 in_set $SECOND 0x10
move 0505 00 02; says "RTS2RTS with none" 0 "$r" 8
writes 2 "two in none"
value_is "the first is as it was" 3 in_set $FIRST 0x10
value_is "so is the second" 5 in_set $SECOND 0x10
zeros 32; at "$r" 0 0773 24 80 31 $SECOND; says "a query that clears" 0 "$r" 256
value_is "and it is clear" 0 in_set $SECOND 0x10
zeros 32; at "$r" 0 0773 8 80 31 $SECOND; says "a query of another function's" 3 "$r" 256
zeros 32; at "$r" 0 0773 24 40 31 $SECOND; says "a query of the sum of all" 3 "$r" 256
zeros 32; at "$r" 0 0773 31 $GONE; says "a query of one that is gone" 5 "$r" 256

# A set that goes takes its number along: who gets that next counts nothing of the old users
move 0505 $SECOND 02; says "RTS2RTS with the second again" 0 "$r" 8
short 0772; at "$r" 11 $SECOND; says "a set in use goes" 0 "$r" 8
value_is "and its user has none" 0 eval 'bound; r=$((0x$r))'
n=0 again=
while [ $n -lt 255 ] && [ "$again" != $SECOND ]; do
    new_set; again=$r
    n=$((n + 1))
done
check_eq "its number is given again" $SECOND "$again"
writes 4 "four by the old user"
value_is "and not counted by the new one" 0 in_set $SECOND 0x10
move 0505 $SECOND 02; says "which can be named" 0 "$r" 8
writes 1 "one more"
value_is "and then counts" 1 in_set $SECOND 0x10

# A queue pair that is reset takes the set that it is told next; what it counted stays
short 050a 00$QP; says "the queue pair is reset" 0 $r 8
SET_0=$FIRST
ready 0 0001 $QP 0 7 7
writes 1 "one after a reset"
value_is "the first set has it" 4 in_set $FIRST 0x10
value_is "the other one has not" 1 in_set $SECOND 0x10

# All sets go with the function
cfg_cap $DEVFN 0x10
cfg_writew $DEVFN $((r + 8)) 0x8000
device 0
for old in $FIRST $SECOND; do
    # The first one of all has been made again
    [ $old != $SET ] || continue
    zeros 32; at "$r" 0 0773 31 $old; says "after a reset there is no set $old" 5 "$r" 256
done
ready 0 0001 $QP 0 7 7
writes 1 "the device works"
value_is "and counts from 0" 1 in_set $SET 0x10
qt_stop

# Congestion, on a port of Ethernet: a packet that has come with a mark for a connection to 10.0.0.2
qt_build cx-frames
qt_start -netdev "dgram,id=na,local.type=unix,local.path=$w/a.host,remote.type=unix,remote.path=$w/a" \
    -device peerlane-cx,id=cx0,addr=4,link-layer=ethernet,netdev=na,mac=52:54:00:00:00:01
device 0
posted=0
zeros 512; at "$r" 0 0755 15 02 259 01; says "RoCE" 0 "$r" 8
zeros 48; at "$r" 0 0761 26 ffff0a000001 34 525400000001 43 02; says "an address" 0 "$r" 8
fixed 0502 00$QP 00000000 256; at "$r" 36 $SET 170 e0; cmd $r 8
fixed 0503 00$QP 00000000 256; at "$r" 32 a0 44 00$QP
at "$r" 64 00000000000000000000ffff0a000002 86 525400000002; says "a connection" 0 "$r" 8
fixed 0504 00$QP 00000000 256; says "it is ready" 0 $r 8
# cong FIELD: of QUERY_CONG_STATISTICS
cong() { short 0826; cmd $r 272; rdhex $((OUT_BOX + $1 - 16)) 8; r=$((r)); }
short 0826; at "$r" 8 80; says "counters of congestion are not cleared" 3 "$r" 272
short 0826; says "their answer is too short" 81 $r 271
for at in 0x18 0x20 0x54 0x5c; do
    value_is "at first nothing is counted at $at" 0 cong $at
done
check "a packet without a mark is sent" "$qt_work/cx-frames" "$w/a" "$w/a.host" write 2 0x$QP 0x$KEY 64
becomes "it has come" 1 qom_counter cx0 packets-in
value_is "and counted by its queue pair" 1 in_set $SET 0x10
value_is "not as congestion" 0 cong 0x54
check "a packet with a mark is sent" "$qt_work/cx-frames" "$w/a" "$w/a.host" marked 2 0x$QP 0x$KEY 64
becomes "it has come" 2 qom_counter cx0 packets-in
value_is "it is counted" 1 cong 0x54
value_is "and its sender told" 1 cong 0x5c
check "so is this port" "$qt_work/cx-frames" "$w/a" "$w/a.host" cnp 2 0x$QP 0x$KEY 0
becomes "by a notification, which has come" 3 qom_counter cx0 packets-in
value_is "it is ignored" 1 cong 0x18
value_is "and not obeyed" 0 cong 0x20
qt_stop
cx_start
short 0104; cmd $r 12
short 0102; cmd $r 8
short 0826; says "with InfiniBand there is no such command" 2 $r 272
qt_finish

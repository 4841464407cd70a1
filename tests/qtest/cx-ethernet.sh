#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the ConnectX's port of Ethernet: commands with what is wrong in them, frames by flow tables, checksums, segments, tags, RoCE addresses
# tags: qtest
# tier: check
# timeout: 400
# shellcheck disable=SC2034,SC2086,SC2154  # for lib-cx.sh; numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"

w=$qt_work/w
mkdir "$w"

# side N: commands go to cxN, which has memory of its own from $mem on
side() {
    side=$1
    DEVFN=$((0x20 + 8 * $1))
    BAR=$((0x800000000 + 0x100000000 * $1))
    mem=$((0x400000 * $1))
    SLOT=$((mem + 0x10000)) IN=$((mem + 0x20000)) OUT_BOX=$((mem + 0x40000))
    eval "UAR=\${UAR_$1-} PD=\${PD_$1-} KEY=\${KEY_$1-} CQ=\${CQ_$1-} TD=\${TD_$1-} SQ=\${SQ_$1-} RQ=\${RQ_$1-} TIR=\${TIR_$1-} QC=\${QC_$1-}"
}
here() { hex 16:mem+$1; }

# device N: all that queues need; ids in variables with _N
device() {
    side $1
    cx_bar
    short 0104; cmd $r 12
    short 0102; cmd $r 8
    short 0802; cmd $r 16; id; UAR=$r
    short 0800; cmd $r 16; id; PD=$r
    short 0816; cmd $r 16; id; TD=$r
    short 0771; cmd $r 16; id; QC=${r#????}
    here 0x50000; dv_at=$r
    zeros 280; at "$r" 0 0301 28 01$UAR 272 $dv_at; cmd "$r" 16; id; EQ=$r
    here 0x60000; dv_dbr=$r; here 0x51000; dv_at=$r
    zeros 280; at "$r" 0 0400 16 00020000 28 04$UAR 36 00$EQ
    at "$r" 72 $dv_dbr 272 $dv_at; cmd "$r" 16; id; CQ=$r
    zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
    cmd $r 16; id; KEY=${r}00
    eval "UAR_$1=$UAR PD_$1=$PD KEY_$1=$KEY CQ_$1=$CQ TD_$1=$TD QC_$1=$QC"
}
# Both kinds of queues: 16 entries at 0x52000 and at 0x53000, records at 0x60040 and 0x60080
sq_in() {
    here 0x60040; qi_dbr=$r; here 0x52000; qi_at=$r
    zeros 280; at "$r" 0 0904 41 $CQ 64 0001 77 $TIS 80 10 89 $PD 93 $UAR
    at "$r" 96 $qi_dbr 113 06 115 04 272 $qi_at
}
rq_in() {
    here 0x60080; qi_dbr=$r; here 0x53000; qi_at=$r
    zeros 280; at "$r" 0 0908 41 $CQ 44 $QC 80 10 89 $PD
    at "$r" 96 $qi_dbr 113 05 115 04 272 $qi_at
}
# queue_to OPCODE ID FROM TO: MODIFY_SQ or MODIFY_RQ
queue_to() { zeros 272; at "$r" 0 $1 8 ${3}0$2 33 ${4}0; }

# port A B: of cxA, which sends to cxB
qt_start -trace peerlane_cx_slice -trace peerlane_cx_wqe -netdev dgram,id=n0,local.type=unix,"local.path=$w/0,remote.type=unix,remote.path=$w/1" \
    -netdev dgram,id=n1,local.type=unix,"local.path=$w/1,remote.type=unix,remote.path=$w/0" \
    -device peerlane-cx,id=cx0,addr=4,link-layer=ethernet,netdev=n0,mac=52:54:00:00:00:01 \
    -device peerlane-cx,id=cx1,addr=5,link-layer=ethernet,netdev=n1,mac=52:54:00:00:00:02
device 0
device 1

cfg_readl 0x20 8
check_eq "an Ethernet controller" $((0x0200)) $((r >> 16))
# What does not exist, and what is too short
side 0
for op in 0901 0902 0903 0905 0906 0907 0909 090a 090b 0913 0914 0915 0917 0918 0919; do
    for which in 00000000 00000001 00ffffff; do
        zeros 272; at "$r" 0 $op 8 $which
        cmd "$r" 272
        [ "$r" = 5 ] || fail "$op of $which, which does not exist" "$r"
    done
done
pass "what does not exist is not destroyed, asked for or changed"
while read -r op in_bytes out_bytes; do
    zeros $((in_bytes - 1)); at "$r" 0 $op; cmd "$r" $out_bytes
    [ "$r" = 80 ] || fail "input of $op is too short by one" "$r"
    [ $out_bytes -gt 8 ] || continue
    zeros $in_bytes; at "$r" 0 $op; cmd "$r" $((out_bytes - 1))
    [ "$r" = 81 ] || fail "output of $op is too short by one" "$r"
done <<'TABLE'
0750 16 16
0754 16 272
0755 512 8
0760 16 48
0761 48 8
0900 272 12
0901 272 8
0902 12 8
0903 12 272
0904 272 12
0905 272 8
0906 12 8
0907 12 272
0908 272 12
0909 272 8
090a 12 8
090b 12 272
0912 192 12
0913 192 8
0914 12 8
0915 12 192
0916 272 12
0917 272 8
0918 12 8
0919 12 272
092f 32 8
0930 64 16
0931 24 8
0933 576 16
0934 32 8
0936 832 8
0938 36 8
093c 64 8
TABLE
pass "inputs and outputs that are too short are refused"

# The port
short 0754; says "the port's context" 0 $r 272
rdhex $((OUT_BOX + 0x10 + 0xe6 - 16)) 8
rdhex $((OUT_BOX + 0x10 + 0xf6 - 16)) 6
check_eq "has its MAC address" 0x525400000001 "$r"
zeros 512; at "$r" 0 0755; NIC=$r
says_at "the port: a MAC address is not set" 3 $NIC 15 08
says_at "the port: an MTU that is too large" 3 $NIC 15 40 294 2400
says_at "the port: an MTU" 0 $NIC 15 40 294 05f2
says_at "the port: a list that is none" 3 $NIC 15 04 496 03
says_at "the port: a list that is too long" 8 $NIC 15 04 498 0081
says_at "the port: a list that did not come" 80 $NIC 15 04 498 0001
short 0750; at "$r" 8 80; says "another function's port" 3 "$r" 16
short 0750; says "the port's state" 0 $r 16
rdhex $((SLOT + 0x2f)) 1
check_eq "it is up" 0x11 "$r"
fixed 0805 00005006 00000000 32; at "$r" 6 0000 17 01 18 03 20 80
says "the port is neither up nor down" 3 "$r" 32
fixed 0805 00005006 00000000 32; at "$r" 6 0000 17 01 18 02 20 80
says "the port may be wanted down" 0 "$r" 32
fixed 0805 00005003 00000000 32; at "$r" 6 0000 17 01 24 2400; says "a register's MTU that is too large" 3 "$r" 32
fixed 0805 0000500f 00000000 32; at "$r" 6 0001 17 01; says "virtual lanes are InfiniBand's" 3 "$r" 32

# RoCE addresses
zeros 48; at "$r" 0 0761 26 ffff0a000001 34 525400000001 43 02; ROCE=$r
says_at "RoCE address: a number that is too large" 3 $ROCE 8 0010
says_at "RoCE address: of version 1" 3 $ROCE 43 00
says_at "RoCE address: in a VLAN" 3 $ROCE 32 1005
says_at "RoCE address: of many" 3 $ROCE 34 01
says_at "RoCE address: IPv4 that says IPv6" 3 $ROCE 42 01
says_at "RoCE address: IPv6 that says IPv4" 3 $ROCE 16 fe80
says_at "RoCE address" 0 $ROCE 8 0003
short 0760 00030000; says "is there" 0 "$r" 48
rdhex $((OUT_BOX + 8)) 8
check_eq "as it was set" 0x0000ffff0a000001 "$r"

# Queues and what leads to them
zeros 192; at "$r" 0 0912 69 $TD; TIS_IN=$r
says_at "TIS: transport domain that is none" 5 $TIS_IN 69 00ffff
says_at "TIS: TLS" 3 $TIS_IN 32 40
says "TIS" 0 $TIS_IN 16
id; TIS=$r
sq_in; SQ_IN=$r
says_at "send queue: TIS that is none" 5 $SQ_IN 77 00ffff
says_at "send queue: page of doorbells that nobody has" 5 $SQ_IN 93 001fff
says_at "send queue: completion queue that is none" 5 $SQ_IN 41 00ffff
says_at "send queue: protection domain that is none" 5 $SQ_IN 89 00ffff
says_at "send queue: too large" 8 $SQ_IN 115 0e
says_at "send queue: pages missing" 80 $SQ_IN 115 0d
says_at "send queue: a list" 3 $SQ_IN 80 00
says_at "send queue: entries of 32 bytes" 3 $SQ_IN 113 05
says_at "send queue: a hairpin" 3 $SQ_IN 33 02
says_at "send queue: of several packets" 3 $SQ_IN 32 08
says_at "send queue: ready at once" 3 $SQ_IN 33 10
says "send queue" 0 $SQ_IN 16
id; SQ=$r SQ_0=$r
zeros 64; at "$r" 0 0a04; UCTX=$r
says_at "user: a right that there is not" 3 $UCTX 16 00000002
says "user" 0 $UCTX 16; id; USER=${r#??}
says_at "send queue: of a user who may not send frames" 3 $SQ_IN 2 $USER
says_at "user: who may send frames" 0 $UCTX 16 00000001; id; USER=${r#??}
says_at "send queue: of a user, with what is another's" 5 $SQ_IN 2 $USER
short 0914 00$TIS; says "a TIS that is in use stays" 6 $r 8
short 0801 00$PD; says "a protection domain that is in use stays" 6 $r 8
short 0817 00$TD; says "so does a transport domain" 6 $r 8
queue_to 0905 $SQ 1 1; says "send queue: it is not ready yet" 9 "$r" 8
queue_to 0905 $SQ 0 2; says "send queue: to a state that is none" 3 "$r" 8
queue_to 0905 $SQ 0 1; TO_READY=$r; at "$r" 23 01; says "send queue: with a rate" 3 "$r" 8
says "send queue: ready" 0 "$TO_READY" 8

side 1
rq_in; RQ_IN=$r
says_at "receive queue: completion queue that is none" 5 $RQ_IN 41 00ffff
says_at "receive queue: entries of 1 KiB" 8 $RQ_IN 113 0a
says_at "receive queue: entries of 8 bytes" 3 $RQ_IN 113 03
says_at "receive queue: striding" 3 $RQ_IN 80 30
says_at "receive queue: frames with checksums" 3 $RQ_IN 32 20
says_at "receive queue: a set of counters that is none" 5 $RQ_IN 44 ff
says "receive queue" 0 $RQ_IN 16
id; RQ=$r RQ_1=$r
queue_to 0909 $RQ 0 1; at "$r" 23 08 44 ff; says "receive queue: a change to a set that is none" 5 "$r" 8
queue_to 0909 $RQ 0 1; at "$r" 23 08; says "receive queue: ready, with no set" 0 "$r" 8
queue_to 0909 $RQ 1 1; at "$r" 23 08 44 $QC; says "receive queue: and with the set again" 0 "$r" 8
zeros 276; at "$r" 0 0916 54 0001 58 0001 273 $RQ; RQT_IN=$r
says_at "list of queues: empty" 3 $RQT_IN 58 0000
says_at "list of queues: more than there may be" 3 $RQT_IN 58 0002
says_at "list of queues: too long" 8 $RQT_IN 54 0101
says_at "list of queues: one that is none" 5 $RQT_IN 273 00ffff
says "list of queues" 0 $RQT_IN 16
id; RQT=$r
zeros 272; at "$r" 0 0900 61 $RQ 69 $TD; TIR_IN=$r
says_at "TIR: receive queue that is none" 5 $TIR_IN 61 00ffff
says_at "TIR: list that is none" 5 $TIR_IN 36 10 65 00ffff
says_at "TIR: of another kind" 3 $TIR_IN 36 20
says_at "TIR: merging" 3 $TIR_IN 50 08
says_at "TIR: a hash that is none" 3 $TIR_IN 68 30
says_at "TIR" 0 $TIR_IN 36 10 65 $RQT 68 20 112 0000000f 72 6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa
id; TIR=$r TIR_1=$r
short 0918 00$RQT; says "a list that is in use stays" 6 $r 8
short 090a 00$RQ; says "a receive queue that is in use stays" 6 $r 8
# Tables: 16 entries each, one after the other
zeros 64; at "$r" 0 0930 25 02 27 04; TABLE_IN=$r
says_at "table: for sending" 3 $TABLE_IN 16 01
says_at "table: too large" 8 $TABLE_IN 27 11
says_at "table: of a level that is too high" 8 $TABLE_IN 25 81
says_at "table: behind it comes one that is none" 5 $TABLE_IN 24 01 29 0000ff
says_at "table: for a user" 3 $TABLE_IN 2 0001
says "table" 0 $TABLE_IN 16
id; SECOND=$r
says_at "table: before another one of its level" 3 $TABLE_IN 24 01 29 $SECOND
says_at "table: before that" 0 $TABLE_IN 25 01 24 01 29 $SECOND
id; FIRST=$r
# Groups: in the first table the destination's MAC address, in the second nothing
zeros 576; at "$r" 0 0933 21 $FIRST 39 03 63 01 72 ffffffffffff; GROUP_IN=$r
says_at "group: in no table" 5 $GROUP_IN 21 00ffff
says_at "group: over the end of the table" 64 $GROUP_IN 39 10
says_at "group: it ends before it begins" 3 $GROUP_IN 31 04
says_at "group: of what is not looked at" 3 $GROUP_IN 63 02
says_at "group: and its mask" 3 $GROUP_IN 128 01
says "group" 0 $GROUP_IN 16
id; MACS=$r
says_at "group: where there is one" 3 $GROUP_IN 31 03 39 05
zeros 576; at "$r" 0 0933 21 $SECOND; says "group of all" 0 "$r" 16
id; ALL=$r
zeros 840; at "$r" 0 0936 21 $FIRST 69 $MACS 73 0000a5 79 04 83 01
at "$r" 136 525400000002 832 02$TIR; FLOW_IN=$r
says_at "entry: in no table" 5 $FLOW_IN 21 00ffff
says_at "entry: in another table's group" 5 $FLOW_IN 69 $ALL
says_at "entry: outside of its group" 5 $FLOW_IN 35 04
says_at "entry: to a TIR that is none" 5 $FLOW_IN 833 00ffff
says_at "entry: to its own table" 3 $FLOW_IN 832 01$FIRST
says_at "entry: to a port" 3 $FLOW_IN 832 00
says_at "entry: to two" 3 $FLOW_IN 83 02
says_at "entry: with a counter" 3 $FLOW_IN 87 01
says_at "entry: nothing" 3 $FLOW_IN 79 00
says_at "entry: change one that is none" 5 $FLOW_IN 7 01
says "entry" 0 $FLOW_IN 16
says "entry: where there is one" 9 $FLOW_IN 16
short 0902 00$TIR; says "a TIR that is in use stays" 6 $r 8
short 0934; at "${r}00000000000000000000000000000000" 21 $FIRST; at "$r" 25 $MACS; says "a group that is in use stays" 6 "$r" 8
short 0931; at "${r}0000000000000000" 21 $FIRST; says "a table that is in use stays" 6 "$r" 8
zeros 32; at "$r" 0 092f 21 $FIRST; ROOT=$r
says_at "the first table: none" 5 $ROOT 21 00ffff
says_at "the first table: of a queue pair" 3 $ROOT 25 000001
says "the first table" 0 $ROOT 8

# Frames: two receives of 2048 bytes at first, and completions of both sides
sent=0 posted=0
# send PARTS DS: an entry of that many segments behind its control segment
send() {
    side 0
    wr $((mem + 0x52000 + 64 * (sent % 16))) 00 4:$sent ${3:-0a}${SQ} 2:$2 0000000800000000 $1
    sent=$((sent + ($2 + 3) / 4))
    wr $((mem + 0x60044)) 8:$sent
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000000${SQ}00"
}
# receive LENGTH: one more is posted, for that many bytes at 0x90000, then 0x90800, ...
receive() {
    side 1
    wr $((mem + 0x53000 + 32 * (posted % 16))) 8 7:$1 $KEY 16:$((mem + 0x90000 + 0x800 * posted)) 00000000000001000000000000000000
    posted=$((posted + 1))
    wr $((mem + 0x60080)) 8:$posted
}
# data N HEX: what is at 0x80000 of cx0, and a segment that names it, in $SEG
data() {
    side 0
    wrhex $((mem + 0x80000)) "0x$1"
    hex 8:$((${#1} / 2)) $KEY 16:mem+0x80000
    SEG=$r
}
# cqe N OFFSET LENGTH: of what the receiving side has got, in $r
cqe() { rdhex $((0x400000 + 0x51000 + 64 * $1 + $2)) $3; }

# UDP from 10.0.0.1:1000 to 10.0.0.2:2000 with 8 bytes.  Checksums as RFC 1071 says: IPv4 adds up 4500 + 24 + 1 +
# 4011 + a00 + 1 + a00 + 2 = 9939; UDP a00 + 1 + a00 + 2 + 11 + 10 + 3e8 + 7d0 + 10 + 7065 + 6572 +
# 6561 + 6c6e
ETH=525400000002525400000001
UDP=4500002400010000401100000a0000010a00000203e807d0001000007065657265616c6e
receive 2048
data "${ETH}0800$UDP"
send "00000000c00000000000000000000000$SEG" 3
becomes "a frame: it has come" 1 qom_counter cx1 eth-frames-in
bytes_are "a frame: as it was sent, and padded" 0x490000 0x${ETH}080045000024000100004011
rdhex 0x490018 2
ip_sum=$r
rdhex 0x490028 2
udp_sum=$r
check_eq "a frame: IPv4's checksum" 0x66c6 "$ip_sum"
check_eq "a frame: UDP's checksum" 0x386c "$udp_sum"
cqe 0 0x2c 4; check_eq "its completion: 60 bytes" 0x0000003c "$r"
cqe 0 0x1c 2; check_eq "its completion: IPv4 and UDP, both right" 0x0728 "$r"
cqe 0 0x38 4; check_eq "its completion: the entry's tag" 0x000000a5 "$r"
cqe 0 0x10 1; check_eq "its completion: hashed by addresses and ports" 0x84 "$r"
value_is "its sender has a completion, too" 1 qom_counter cx0 cqes

# A wrong checksum is told; without a receive it is dropped and counted
receive 2048
data "${ETH}0800$(printf %s "$UDP" | cut -c1-20)12340a0000010a00000203e807d0001056787065657265616c6e"
send "00000000000000000000000000000000$SEG" 3
becomes "wrong checksums: the frame has come" 2 qom_counter cx1 eth-frames-in
cqe 1 0x1c 2; check_eq "wrong checksums: they are told" 0x0128 "$r"
send "00000000000000000000000000000000$SEG" 3
becomes "no receive: it is dropped" 1 qom_counter cx1 eth-frames-dropped
side 1
zeros 32; at "$r" 0 0773 31 $QC; cmd "$r" 256
rdhex $((OUT_BOX + 0x30 - 16)) 4
check_eq "no receive: and counted" 0x00000001 "$r"
# For another MAC address there is no entry, and nothing behind the second table
receive 2048
data "525400000003525400000001${ETH#????????????????????????}0800$UDP"
send "00000000c00000000000000000000000$SEG" 3
becomes "for nobody: it is dropped" 2 qom_counter cx1 eth-frames-dropped

# A tag of a VLAN is put in, and taken out
data "${ETH}0800$UDP"
send "00000000c0000000000000008000a123$SEG" 3
becomes "a tag: the frame has come" 3 qom_counter cx1 eth-frames-in
cqe 2 0x1d 3; check_eq "a tag: is told" 0x29a123 "$r"
bytes_are "a tag: and not in the frame" $((0x490000 + 0x1000)) 0x${ETH}08004500

# Segments: 250 bytes by 100, TCP with FIN, PSH and CWR; headers in the entry
for n in 1 2 3; do
    receive 2048
done
side 0
memset $((mem + 0x80000)) 250 0x61
TCP=4500002800050000400600000a0000010a00000203e807d0000000640000000050990400
HEAD=${ETH}0800${TCP}00000000
zeros 12; hex 00000000c00000640000000000 2:$((${#HEAD} / 2)) $HEAD$r 8:250 $KEY 16:mem+0x80000
send $r 7 0e
becomes "segments: three have come" 6 qom_counter cx1 eth-frames-in
n=3
for want in "0000009a 00050000 00000064 90" "0000009a 00060000 000000c8 10" "00000068 00070000 0000012c 19"; do
    # shellcheck disable=SC2086
    set -- $want
    cqe $n 0x2c 4; check_eq "segment $((n - 2)): its length" 0x$1 "$r"
    cqe $n 0x1c 1; check_eq "segment $((n - 2)): its checksums are right" 0x07 "$r"
    bytes_are "segment $((n - 2)): its identification" $((0x490000 + 0x800 * n + 18)) 0x$2
    bytes_are "segment $((n - 2)): its sequence number" $((0x490000 + 0x800 * n + 38)) 0x$3
    bytes_are "segment $((n - 2)): its flags" $((0x490000 + 0x800 * n + 47)) 0x$4
    n=$((n + 1))
done

# What is longer than the MTU is dropped, and ends no queue, until the driver says that it may come
receive 2048
data "${ETH}0800$UDP"
SEG=${SEG#????????}
send "00000000000000000000000000000000 8:1519 $SEG" 3
becomes "above the MTU: it is dropped" 1 qom_counter cx1 frames-dropped
send "00000000000000000000000000000000 8:1518 $SEG" 3
becomes "as long as the MTU: it has come" 7 qom_counter cx1 eth-frames-in
cqe 6 0x2c 4; check_eq "as long as the MTU: all of it" 0x000005ee "$r"
receive 2048
fixed 0805 00005003 00000000 32; at "$r" 6 0000 17 01 24 233e; says "another MTU" 0 "$r" 32
send "00000000000000000000000000000000 8:1519 $SEG" 3
becomes "another MTU: it has come" 8 qom_counter cx1 eth-frames-in

# A packet that says that it is longer than its frame: what its headers say counts all the same, but nothing in it is right
receive 2048
ADDRESSES=fd000000000000000000000000000001fd000000000000000000000000000002
data "${ETH}86dd6000000000381140${ADDRESSES}03e807d0001000007065657265616c6e"
send "00000000c00000000000000000000000$SEG" 3
becomes "longer than its frame: it has come" 9 qom_counter cx1 eth-frames-in
cqe 8 0x1c 2; check_eq "longer than its frame: IPv6 and UDP, neither right" 0x0124 "$r"
cqe 8 0x10 1; check_eq "longer than its frame: hashed by addresses and ports" 0x88 "$r"
bytes_are "longer than its frame: no checksum was filled in" $((0x490000 + 0x800 * 8 + 60)) 0x00007065

# What a queue cannot do ends it: a receive that is too small, an entry that is malformed
receive 32
data "${ETH}0800$UDP"
send "00000000c00000000000000000000000$SEG" 3
becomes "too small: the receive has failed" 1 qom_counter cx1 wqe-errors
cqe 9 0x36 2; check_eq "too small: it says so" 0x0001 "$r"
side 1
short 090b 00$RQ; cmd $r 272
rdhex $((OUT_BOX + 0x21 - 16)) 1
check_eq "too small: the queue is in error" 0x30 "$r"
queue_to 0909 $RQ 3 1; says "too small: from there it does not get ready" 9 "$r" 8
queue_to 0909 $RQ 3 0; says "too small: but can be reset" 0 "$r" 8
qom_counter cx0 cqes
n=$r
zeros 32; send $r 1
becomes "malformed: an entry without its segment fails" $((n + 1)) qom_counter cx0 cqes
zeros 32; send $r 3
becomes "malformed: the next is flushed" $((n + 2)) qom_counter cx0 cqes
rdhex $((0x51000 + 64 * n + 0x36)) 2
check_eq "a malformed entry: the syndrome of a queue pair's operation" 0x6802 "$r"
rdhex $((0x51000 + 64 * (n + 1) + 0x36)) 2
check_eq "malformed: flushed" 0xf905 "$r"

# A completion queue of two entries that runs over: what completes there fails, each with an event that says what it is
side 0
zeros 280; at "$r" 0 0301 28 02$UAR 88 0000000000000030 272 0000000000059000
says "overrun: a queue for its events" 0 "$r" 16; id; EQ2=$r
zeros 280; at "$r" 0 0400 28 01$UAR 36 00$EQ2 72 00000000000600c0 272 000000000005a000
says "overrun: a completion queue" 0 "$r" 16; id; CQ2=$r
says_at "overrun: a send queue" 0 $SQ_IN 41 $CQ2 96 0000000000060100 272 0000000000058000; id; SQ2=$r
says_at "overrun: another one, which sends nothing" 0 $SQ_IN 41 $CQ2 96 0000000000060140 272 0000000000058000; id; SQ3=$r
CQ=$CQ2; rq_in; at "$r" 96 0000000000060180; says "overrun: a receive queue" 0 "$r" 16; id; RQ2=$r
# shellcheck disable=SC2153 # of the side
CQ=$CQ_0
memset 0x59000 0x100 0xff
memset 0x60100 8 0
queue_to 0905 $SQ2 0 1; says "overrun: the send queue is ready" 0 "$r" 8
queue_to 0909 $RQ2 0 1; says "overrun: so is the receive queue" 0 "$r" 8
for n in 0 1 2 3; do
    wrhex $((0x58000 + 64 * n)) "0x00000${n}00${SQ2}010000000800000000"
done
wrhex 0x60104 0x00000004
qom_counter cx0 cqes
cqes=$r
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000000${SQ2}00"
becomes "overrun: three events" 0x05 eval 'rdhex 0x59081 1'
check "overrun: and nothing more to do" idle cx0
value_is "overrun: two completions" $((cqes + 2)) qom_counter cx0 cqes
bytes_are "overrun: the first event: an error of the completion queue" 0x59001 0x04
bytes_are "overrun: of this one" 0x59020 0x00$CQ2
bytes_are "overrun: the second: fatal" 0x59041 0x05
bytes_are "overrun: a send queue" 0x59074 0x02
bytes_are "overrun: this one" 0x59078 0x00$SQ2
bytes_are "overrun: the third: a receive queue" 0x590b4 0x01
bytes_are "overrun: this one" 0x590b8 0x00$RQ2
bytes_are "overrun: and no fourth" 0x590c1 0xff
for what in "0907 $SQ2 30 send queue: in error" "090b $RQ2 30 receive queue: in error" "0907 $SQ3 00 queue that is not ready: not in error"; do
    # shellcheck disable=SC2086
    set -- $what
    short $1 00$2; cmd $r 272
    rdhex $((OUT_BOX + 0x21 - 16)) 1
    shift 3
    check_eq "overrun: the $*" "0x$(echo "$what" | cut -d' ' -f3)" "$r"
done

# The search in the list of an indirect key is work of a slice: eight frames from the end of 1024 pieces of 4 bytes
side 0
hex 00000004$KEY 16:0x80000; repeat 1024 $r; pieces=$r
zeros 272; at "$r" 0 0200 16 00003e00 20 ffffff00 28 00$PD 40 0000000000001000 75 0c 96 00000400
says "pieces: a key of 1024" 0 "$r$pieces" 16; id; PIECES=$r
at "$SQ_IN" 41 $CQ 96 0000000000060200 272 000000000005b000; says "pieces: a send queue" 0 "$r" 16; id; SQ4=$r
queue_to 0905 $SQ4 0 1; says "pieces: it is ready" 0 "$r" 8
n=0
while [ $n -lt 8 ]; do
    wr $((0x5b000 + 64 * n)) 00 4:n 0a${SQ4}030000000800000000 16:0 16:0 0000003c${PIECES}00 16:0xfc4
    n=$((n + 1))
done
qom_counter cx0 wqes; wqes=$r
qom_counter cx0 wqe-errors; wqe_errors=$r
wr 0x60204 8:8
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000000${SQ4}00"
becomes "pieces: the frames are sent" $((wqes + 8)) qom_counter cx0 wqes
value_is "pieces: without error" $wqe_errors qom_counter cx0 wqe-errors
check_eq "pieces: frames in one slice at most, and in all" "2 8" "$(awk -v queue=$((0x$SQ4)) '
    /peerlane_cx_slice cx0/ { n = 0 }
    /peerlane_cx_wqe cx0/ && index($0, " " queue " ") { all++; if (++n > most) most = n }
    END { print most + 0, all + 0 }' "$OUT/qemu.log")"

# What was made goes, in order, and all of it by a reset
side 1
zeros 36; at "$r" 0 0938 21 $FIRST; DELETE=$r
says "the entry goes" 0 $DELETE 8
says "once" 5 $DELETE 8
short 0902 00$TIR; says "the TIR goes" 0 $r 8
short 0918 00$RQT; says "the list goes" 0 $r 8
short 090a 00$RQ; says "the receive queue goes" 0 $r 8
cfg_cap $DEVFN 0x10
cfg_writew $DEVFN $((r + 8)) 0x8000
cx_bar
short 0104; cmd $r 12
short 0102; says "after a reset the device works" 0 $r 8
short 0906 00$SQ; says "and nothing is left" 5 $r 8
qt_stop

# An InfiniBand port has none of all this
side 0
cx_start link-layer=infiniband
short 0104; cmd $r 12
short 0102; cmd $r 8
for op in 0750 0754 0755 0760 0761 0900 0904 0908 0912 0916 092f 0930 0933 0936 0938 093c; do
    zeros 840; at "$r" 0 $op; cmd "$r" 272
    [ "$r" = 2 ] || fail "$op with InfiniBand" "$r"
done
pass "with InfiniBand commands of Ethernet do not exist"
qt_stop
check_fails "a link layer that is none" 'link-layer must be infiniband or ethernet' \
    "$QEMU" -L "$BUILD/qemu/firmware" -machine q35 -nodefaults -display none -device peerlane-cx,link-layer=token-ring
qt_finish

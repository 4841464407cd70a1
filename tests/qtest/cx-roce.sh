#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the transport on a ConnectX's port of Ethernet: a datagram from an address that is gone, packets from one of the port's addresses to another, QP1 after an entry that failed
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # for lib-cx.sh; numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"

MAC_0=525400000001 IP_0=0a000001
MAC_1=525400000002 IP_1=0a000002
Q_KEY=11223344
FROM=0x100000
TO=0x200000

# address N: the port has address N of these
address() {
    eval "ad_mac=\$MAC_$1 ad_ip=\$IP_$1"
    zeros 48; at "$r" 0 0761 8 4:$1 26 ffff$ad_ip 34 $ad_mac 43 02
    says "address $1" 0 "$r" 8
}
# another N KIND: one more queue pair, with entries at 0x52000 + 0x1000 * N; its number in $r
another() {
    zeros 280; at "$r" 0 0500 25 $2 28 00$PD 33 10 34 18 36 00$UAR 148 00$CQ 180 00$CQ \
        184 16:0x60040+0x40*$1 272 16:0x52000+0x1000*$1
    says "another queue pair" 0 "$r" 16
    id
}
# connect QP PEER FROM TO: by addresses of those numbers
connect() {
    eval "co_mac=\$MAC_$4 co_ip=\$IP_$4"
    fixed 0502 00$1 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$1 00000000 256
    at "$r" 32 60 44 00$2 57 2:$3 59 40 74 ffff$co_ip 86 $co_mac; cmd "$r" 8
    fixed 0504 00$1 00000000 256; says "from address $3 to $4" 0 $r 8
}

qt_start -netdev user,id=n0,restrict=on \
    -device peerlane-cx,id=cx0,addr=4,link-layer=ethernet,netdev=n0,mac=52:54:00:00:00:01
device 0
zeros 512; at "$r" 0 0755 15 02 259 01; says "RoCE is on" 0 "$r" 8
address 0
address 1
posted=0 posted_all=0

# The driver takes an address away while it still has entries that name it: they go nowhere
another 1 02
UD=$r
fixed 0502 00$UD 00000000 256; at "$r" 192 $Q_KEY; cmd $r 8
fixed 0503 00$UD 00000000 256; at "$r" 32 a0; cmd $r 8
fixed 0504 00$UD 00000000 256; says "datagrams: ready" 0 $r 8
memset 0x51000 1024 0x77
for n in 0 2; do
    hex 00 4:n 0a${UD}05
    ctrl=$r
    hex $Q_KEY 8:0 80000099 8:0 8:0 525400000099 00 40 8:0x40000000+0x100000*$n 00000000000000000000ffff0a000063
    wr $((0x53040 + 64 * n)) ${ctrl}0000000800000000 $r 00000004$KEY 16:FROM
    wr 0x60084 8:n+2
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) 0x$ctrl
    idle cx0
    bytes_are "a datagram from address $n: it is done" $((0x51000 + 32 * n + 0x3f)) 0x00
    value_is "a datagram from address $n: it leaves or is dropped" $((n / 2)) qom_counter cx0 packets-dropped
    value_is "a datagram from address $n: frames" 1 qom_counter cx0 frames-out
done
short 050b 00$UD; cmd $r 256
bytes_are "the queue pair is as it was" $((OUT_BOX + 8)) 0x30

# From one of the port's addresses to another, with another MAC address, and back
another 2 00
PEER=$r
connect $PEER $QP 1 0
connect $QP $PEER 0 1
qom_counter cx0 frames-out
frames=$r
qom_counter cx0 loopback-messages
messages=$r
wrhex $FROM 0x0123456789abcdef
go 8 $TO $KEY $FROM 8
idle cx0
value_is "WRITE from one address to another: frames" $frames qom_counter cx0 frames-out
bytes_are "WRITE from one address to another: the data" $TO 0x0123456789abcdef
value_is "WRITE from one address to another: it is loopback" $((messages + 1)) qom_counter cx0 loopback-messages

# The port's other MAC address with an IP address that is not the port's: nobody here gets it
qom_counter cx0 packets-in
packets=$r
hex 00 4:4 0a${UD}05
ctrl=$r
hex $Q_KEY 8:0 80$UD 8:0 8:0 $MAC_1 00 40 40000000 00000000000000000000ffff0a000063
wr $((0x53040 + 64 * 4)) ${ctrl}0000000800000000 $r 00000004$KEY 16:FROM
wr 0x60084 8:6
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) 0x$ctrl
until_is "a datagram to an IP address of others is sent" $((posted_all + 3)) wqes cx0
value_is "a datagram to an IP address of others: nobody here gets it" $packets qom_counter cx0 packets-in

# The queue pair of management datagrams: an entry that fails ends sending, until the driver says otherwise
another 3 08
GSI=$r
fixed 0502 00$GSI 00000000 256; at "$r" 192 80010000; cmd $r 8
fixed 0503 00$GSI 00000000 256; at "$r" 32 20; cmd $r 8
fixed 0504 00$GSI 00000000 256; says "QP1: ready" 0 $r 8
# gsi_state DESC STATE
gsi_state() {
    short 050b 00$GSI; cmd $r 256
    bytes_are "$1" $((OUT_BOX + 8)) 0x${2}0
}
wr 0x55040 0000007f${GSI}01 0000000800000000
wr 0x60104 8:1
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x0000007f${GSI}01"
idle cx0
gsi_state "QP1: an opcode that is none: sending has failed" 4
fixed 0506 00$GSI 00000000 256; says "QP1: to send again" 0 "$r" 8
gsi_state "QP1: sending again" 3

qt_finish

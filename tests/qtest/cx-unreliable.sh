#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a ConnectX's connections without acknowledges and its datagrams: a message that is too long is dropped and ends nothing, a bad entry ends sending only
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # for lib-cx.sh; numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"

need_tool cc
w=$qt_work/w
mkdir "$w"
Q_KEY=11223344
RECEIVED=0x200000
MIDDLE=1024

# fresh KIND: another queue pair, of UC (01) or UD (02), which is ready; what has come and ended is counted from here
fresh() {
    device 0 $1
    ready 0 0002 000041 0 7 7
    [ $1 = 01 ] || datagrams_ready
    qom_counter cx0 packets-in
    said=$r
    qom_counter cx0 packets-out
    heard=$r
    qom_counter cx0 wqes
    posted_all=$r
    qom_counter cx0 packets-dropped
    dropped=$r
    # Its completions, from the first of its own queue on
    memset 0x51000 1024 0x77
    ended=0
}
datagrams_ready() {
    short 050a 00$QP; cmd $r 8
    fixed 0502 00$QP 00000000 256; at "$r" 192 $Q_KEY; cmd $r 8
    fixed 0503 00$QP 00000000 256; at "$r" 32 a0; cmd $r 8
    fixed 0504 00$QP 00000000 256; at "$r" 145 fffff8; says "datagrams: ready" 0 "$r" 8
}
# receives LENGTH...: they are posted, each for 4 KiB more of RECEIVED
receives() {
    re_n=0
    for re_len in "$@"; do
        wr $((0x52000 + 16 * re_n)) 8:$re_len $KEY 16:RECEIVED+0x1000*re_n
        re_n=$((re_n + 1))
    done
    wr 0x60040 8:$re_n
}
# datagram LENGTH: one comes, of so many bytes
datagram() { repeat $1 5a; say 64 0 ${Q_KEY}00000099$r; }
# drops DESC: what came was, and nothing has completed
drops() {
    dropped=$((dropped + 1))
    value_is "$1: it is dropped" $dropped qom_counter cx0 packets-dropped
    bytes_are "$1: nothing completes" $((0x51000 + 64 * ended + 0x3f)) 0x77
    state_is "$1" 3
}
# completes DESC INDEX BYTES: the next completion is of that receive
completes() {
    rdhex $((0x51000 + 64 * ended + 0x3f)) 1
    check_eq "$1: it completes" 0x2 "${r%?}"
    bytes_are "$1: its length" $((0x51000 + 64 * ended + 0x2c)) "0x$(printf %08x $3)"
    bytes_are "$1: the first receive is used" $((0x51000 + 64 * ended + 0x3c)) "0x$(printf %04x $2)"
    ended=$((ended + 1))
}
state_is() {
    short 050b 00$QP; cmd $r 256
    rdhex $((OUT_BOX + 8)) 1
    check_eq "$1: state" 0x${2}0 "$r"
}
# ends DESC SYNDROME: the next completion is of an entry with that
ends() {
    bytes_are "$1: it fails" $((0x51000 + 64 * ended + 0x3f)) 0xd0
    bytes_are "$1: with" $((0x51000 + 64 * ended + 0x37)) $2
    ended=$((ended + 1))
}

peer_start

# Datagrams for a receive with room for 256 bytes behind the place of a route header
fresh 02
receives 296 296
datagram 260
drops "a datagram of 260 bytes for a receive of 256"
datagram 256
completes "a datagram that fits" 0 296
bytes_are "a datagram that fits: it is there" $((RECEIVED + 292)) 0x5a5a5a5a
datagram 4
completes "a datagram for the other receive" 1 44

# Messages of a connection for a receive of 1100 bytes
fresh 01
receives 1100 1100
repeat 1104 5a; say 24 0 $r
drops "a message of one packet that is too long for its receive, and for the MTU"
repeat $MIDDLE 5a; say 20 1 $r
repeat 100 5a; say 22 2 $r
drops "a message of 1124 bytes for a receive of 1100"
repeat 100 a5; say 24 3 $r
completes "a message that fits" 0 100
bytes_are "a message that fits: it is there" $RECEIVED 0xa5a5a5a5
repeat $MIDDLE 5a; say 20 4 $r
repeat 76 5a; say 22 5 $r
completes "a message of 1100 bytes" 1 1100

# An entry that fails ends sending only: what is posted is flushed, and what comes is received, until the driver says otherwise
# datagram_put [OPCODE]: an entry for a datagram of 4 bytes to the peer; datagram_out [OPCODE]: and its doorbell
datagram_put() {
    hex 00 4:$posted ${1:-0a}${QP}05
    put_ctrl=$r
    zeros 32
    wr $((0x52040 + 64 * (posted % 8))) ${put_ctrl}0000000800000000 ${Q_KEY}0000000080000041 8:2 ${r}00000004$KEY 16:RECEIVED
    posted=$((posted + 2))
    posted_all=$((posted_all + 1))
}
datagram_out() {
    datagram_put "$@"
    ring
    idle cx0
}
# resume STATUS [BYTE NEW...]: SQERR2RTS_QP
resume() {
    re_want=$1
    shift
    fixed 0506 00$QP 00000000 256; at "$r" "$@"; says "to send again" $re_want "$r" 8
}
# sent DESC OPCODE OFFSET: the next completion is good, and this packet was sent
sent() {
    bytes_are "$1: it is done" $((0x51000 + 64 * ended + 0x3f)) 0x00
    hears "$1: it is sent" $2 $3
    ended=$((ended + 1))
}
# failed: a queue pair of UD with one receive, an entry of which has failed
failed() {
    fresh 02
    receives 296
    datagram_out 7f
    ends "datagrams: an opcode that is none" 0x02
    state_is "datagrams: sending has failed" 4
}
fresh 02
receives 296 296
datagram_out 7f
ends "datagrams: an opcode that is none" 0x02
state_is "datagrams: sending has failed" 4
datagram 256
completes "datagrams: what comes after that" 0 296
datagram_out
datagram_out
ends "datagrams: what is posted after that" 0x05
ends "datagrams: all of it" 0x05
datagram 4
completes "datagrams: what comes after that, too" 1 44
resume 0
state_is "datagrams: sending again" 3
datagram_out
sent "datagrams: sending again" 64 0
resume 16
datagram_out 7f
ends "datagrams: an opcode that is none" 0x02
resume 0
datagram_out
sent "datagrams: once more" 64 1
datagram_out 7f
ends "datagrams: an opcode that is none" 0x02
resume 0 16 00000020 192 55667788
datagram 4
drops "datagrams: with another Q_Key now, one of the old"

# Other ways out of that state: to error, where the receive is flushed, and to reset
failed
short 0507 00$QP; says "datagrams: to error" 0 $r 8
idle cx0
bytes_are "datagrams: the receive fails" $((0x51000 + 64 * ended + 0x3f)) 0xe0
bytes_are "datagrams: it is flushed" $((0x51000 + 64 * ended + 0x37)) 0x05
state_is "datagrams: in error" 6
failed
short 050a 00$QP; says "datagrams: to reset" 0 $r 8
wrhex 0x60040 0x0000000000000000
posted=0
datagrams_ready
datagram_out
sent "datagrams: anew" 64 0

# What was posted and not yet flushed is sent: the adapter stands still meanwhile, and does the command first
failed
qmp stop
datagram_put
ring
fixed 0506 00$QP 00000000 256; give "$r" 8
qmp cont
answer
check_eq "datagrams: to send again, before the entry is flushed" 0 "$r"
idle cx0
sent "datagrams: what was posted before that" 64 0

fresh 01
receives 1100 1100
go 8 0x600000 $KEY 0x100000 64
idle cx0
sent "UC: WRITE" 2a 0
go 16 0x600000 $KEY 0x100000 64
idle cx0
ends "UC: READ" 0x02
state_is "UC: sending has failed" 4
repeat 100 5a; say 24 0 $r
completes "UC: what comes after that" 0 100
go 8 0x600000 $KEY 0x100000 64
idle cx0
ends "UC: what is posted after that" 0x05
resume 0
go 8 0x600000 $KEY 0x100000 64
idle cx0
sent "UC: WRITE after that" 2a 1
short 0507 00$QP; says "to error" 0 $r 8
resume 16
state_is "error is another state" 6

# With acknowledges it is an error of all
device 0
ready 0 0002 000041 0 7 7
put 0
wrhex 0x52043 0x7f
ring
idle cx0
state_is "RC: an opcode that is none" 6
resume 16

qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each error that a completion of the ConnectX can tell of comes with the vendor's syndrome that the specification names, at the requester and at the responder
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
NO_KEY=00000000
seen=

# begin [TIMEOUT RETRIES RNR-RETRIES]: a queue pair that is as new
begin() {
    met ${1:-18} ${2:-7} ${3:-7}
    qom_counter cx0 cqes
    cqes=$r
}
# ends DESC SYNDROME: an entry of $side_is, as in a completion: d, the requester, or e, the responder
ends() {
    fails_with "$1" $2 $side_is
    seen="$seen
$2 $side_is"
}
# refused DESC PSN-AND-SYNDROME SYNDROME: the other end refuses a WRITE
refused() {
    begin
    go 8 0x600000 $KEY 0x100000 64
    say 11 0 $2
    ends "$1" $3
}
# receive KEY LENGTH: for one message; arrives: a SEND of 64 bytes for it
receive() {
    wr $((mem + 0x52000)) 8:$2 ${1}0000000000200000
    wrhex $((mem + 0x60040)) 0x00000001
}
arrives() { zeros 64; say 04 0 $r; }

peer_start

# The requester
side_is=d
begin; go 8 0x600000 $KEY 0x100000 64 "$(printf %08x%s%016x 8 $NO_KEY 0)"
ends "a key of its own that is none" 0x04
begin; go 18 0x600000 $KEY 0x100000 16 00000000000000010000000000000000
ends "an atomic of 16 bytes" 0x01
begin; put 0; wrhex $((mem + 0x52043)) 0x7f; ring
ends "an opcode that is none" 0x02
begin; short 0507 00$QP; says "the queue pair is in error" 0 $r 8; go 8 0x600000 $KEY 0x100000 64
ends "what is posted to a queue pair in error" 0x05
refused "an invalid request" 61000000 0x12
refused "an access" 62000000 0x13
refused "an operation" 63000000 0x14
begin 18 7 0; go 8 0x600000 $KEY 0x100000 64; say 11 0 20000000
ends "there is no receive, and it is not sent again" 0x16
begin 4 1 7; go 8 0x600000 $KEY 0x100000 64
ends "nobody answers" 0x15
begin; go 16 0x600000 $KEY 0x100000 64; say 10 0 1f00000000000000
ends "the answer to a READ of 64 bytes has 4" 0x10
# Memory windows are bound by changing an indirect key, which this one does not permit
zeros 272; at "$r" 0 0200 16 00003e00 20 ffffff00 28 00$PD 40 0000000000000040
at "$r" 96 00000004; in=$r; zeros 48; says "an indirect key" 0 "${in}00000040${KEY}0000000000100000$r" 16; id; WINDOW=${r}00
begin; put_ctrl=00000025${QP}08; zeros 112; wrhex $((mem + 0x52040)) "0x${put_ctrl}00000008$WINDOW$r"; posted=2; ring
ends "a memory window is bound" 0x06

# The responder
side_is=e
begin; receive $KEY 63; arrives
ends "a receive is too small" 0x01
begin; receive $NO_KEY 64; arrives
ends "its key is none" 0x04
begin; receive $KEY 0x80000000; arrives
ends "a receive with data in it" 0x02
begin; receive $KEY 64; short 0507 00$QP; says "the queue pair is in error" 0 $r 8
ends "a receive that nothing came for" 0x05
begin; receive $KEY 64; zeros 64; say 17 0 $NO_KEY$r
ends "a message that invalidates a key that is none" 0x12

check_eq "the specification has no others" "$(errors_specified | cut -d' ' -f1,2)" "$(echo "$seen" | sort -u | sed 1d)"
qt_finish

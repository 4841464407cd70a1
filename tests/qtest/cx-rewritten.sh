#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a message of the ConnectX that overwrites its own queue entry goes on as it began
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"

# The first packet falls on the queues: the receives, 16 bytes each, and behind them the blocks to send. What it leaves there
# are entries as good as the first, from OTHER to ELSEWHERE. The engine looks at packets that have come between those that it
# sends.
QUEUE=0x52000
LEN=0x40000
DATA=0x400000
ELSEWHERE=0x800000
OTHER=0xc00000
# entry OPCODE ADDR-OF-THE-OTHER-END ADDR: for LEN bytes, as $r
entry() { hex 6:0 $1${QP}030000000800000000 16:$2 ${PA_KEY}0000000000 8:$LEN ${PA_KEY}00 16:$3; }
# one OPCODE: it needs no address of the other end
one() { hex 6:0 $1${QP}020000000800000000 8:$LEN ${PA_KEY}00 16:$2; }

# overwrites DESC ENTRY OTHER-ENTRY [RECEIVE OTHER-RECEIVE]: begins with ENTRY and RECEIVE; the data has the others where these
# two are
overwrites() {
    receives=$(($# == 5))
    memset $DATA $LEN 0x5a
    memset $ELSEWHERE $LEN 0x77
    memset 0x51000 256 0x77
    wrhex $QUEUE 0x${4-00}
    wrhex $((QUEUE + 64)) 0x$2
    wrhex $DATA 0x${5-00}
    wrhex $((DATA + 64)) 0x$3
    # The doorbell records are within, too
    for records in $((DATA + 0x60040 - QUEUE)) 0x60040; do
        wr $records 8:$receives 8:1
    done
    qom_counter cx0 data-host-read
    read_before=$r
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x${2%"${2#????????????????}"}"
    becomes "$1: it is done" $((receives + 1)) qom_counter cx0 cqes
    bytes_are "$1: the entry was overwritten" $((QUEUE + 64)) 0x${3%"${3#????????????????}"}
    for packet in 0 1 7 8 9 15 16 31 32 33 47 63; do
        bytes_are "$1: packet $packet has come" $((QUEUE + 4096 * packet + 4088)) 0x5a5a5a5a5a5a5a5a
    done
    bytes_are "$1: nothing has come to where the other entry says" $ELSEWHERE 0x7777777777777777
    bytes_are "$1: nor behind" $((ELSEWHERE + LEN - 8)) 0x7777777777777777
    qom_counter cx0 data-host-read
    check_eq "$1: and was read once" $((LEN)) $((r - read_before))
    value_is "$1: without an error" 0 qom_counter cx0 wqe-errors
    qt_stop
}

cx_start; self_pair
entry 08 $QUEUE $DATA; this=$r
entry 08 $ELSEWHERE $OTHER; overwrites WRITE $this $r
cx_start; self_pair
entry 10 $DATA $QUEUE; this=$r
entry 10 $OTHER $ELSEWHERE; overwrites READ $this $r
cx_start; self_pair
one 0a $DATA; this=$r
hex 8:$LEN ${PA_KEY}00 16:$QUEUE; receive=$r
hex 8:$LEN ${PA_KEY}00 16:$ELSEWHERE; other=$r
one 0a $OTHER; overwrites SEND $this $r $receive $other
finish

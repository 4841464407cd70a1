#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: events of a ConnectX: what an event queue has no place for comes when the driver has read one, in order; the first packet of a connection
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"

need_tool cc
qt_start -netdev user,id=n0,restrict=on -device peerlane-cx,id=cx0,addr=4,netdev=n0,mac=52:54:00:12:34:56
cx_bar
self_pair

PAGE=$((BAR + 0x1000 * 0x$UAR))
# queue_of EVENTS ADDR: an event queue of one entry, which has been written to nowhere; its number in $r
queue_of() {
    memset $2 64 0x77
    eq_new; at "$r" 28 00$UAR 88 $1 272 16:$2
    create "$r"
    r=${r#????}
}
# read_one EQ N: the driver has read so many in all
read_one() { wrhex $((PAGE + 0x48)) 0x${1}00000$2; }

# Two completion queues, one of each kind of a queue pair, tell one event queue
queue_of 0000000000000000 0x58000; EVENTS=$r
cq_new; at "$r" 36 000000$EVENTS 72 0000000000060100 272 0000000000059000; create "$r"; SENDS=$r
cq_new; at "$r" 36 000000$EVENTS 72 0000000000060140 272 000000000005a000; create "$r"; RECEIVES=$r
qp_new; at "$r" 148 00$SENDS 180 00$RECEIVES 184 0000000000060180 272 000000000005b000; create "$r"; QP=$r
to_itself $QP
memset 0x60100 0x100 0
for n in $SENDS $RECEIVES; do
    wrhex $((PAGE + 0x20)) 0x0000000000$n
done
wr 0x5b000 00000040${PA_KEY}00 16:DATA+0x1000
wr 0x5b040 0000000a${QP}020000000800000000 00000040${PA_KEY}00 16:DATA
wr 0x60180 8:1 8:1
wrhex $((PAGE + 0x800)) "0x0000000a${QP}02"
idle cx0
value_is "SEND to itself: both sides complete" 2 qom_counter cx0 cqes
value_is "an event queue of one entry: one event" 1 qom_counter cx0 eqes
bytes_are "it is of the receive" 0x58038 0x00$RECEIVES
read_one $EVENTS 1
idle cx0
value_is "it is read: another event" 2 qom_counter cx0 eqes
bytes_are "it is of the other queue" 0x58038 0x00$SENDS
bytes_are "in the next round" 0x5803f 0x01
read_one $EVENTS 2
idle cx0
value_is "that is all" 2 qom_counter cx0 eqes

# The state of the port: of what changes while there is no place, the last is told
queue_of 0000000000000200 0x5c000; EVENTS=$r
for up in false true; do
    qmp set_link '{"name":"cx0","up":'$up'}'
    idle cx0
done
value_is "the link went down and up: one event" 3 qom_counter cx0 eqes
bytes_are "it is of the port" 0x5c001 0x0900
bytes_are "which is down" 0x5c003 0x01
read_one $EVENTS 1
idle cx0
value_is "it is read: another event" 4 qom_counter cx0 eqes
bytes_are "the port is active" 0x5c003 0x04

# That somebody talks to a queue pair which is ready to receive only is told once, each time that it becomes so
queue_of 0000000000000004 0x5d000; EVENTS=$r
cq_new; at "$r" 16 00020000 72 0000000000060240 272 0000000000057000; create "$r"; CQ=$r
# established KIND: a queue pair of RC (00) or UC (01) in RTR, and QP as its other end
established() {
    qp_new; at "$r" 25 $1 184 00000000000601c0 272 000000000005e000; create "$r"; PEER=$r
    qp_new; at "$r" 25 $1 184 0000000000060200 272 000000000005f000; create "$r"; QP=$r
    at_peer
    fixed 0502 00$QP 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$QP 00000000 256; at "$r" 32 a0 44 00$PEER 54 0001; cmd $r 8
    fixed 0504 00$QP 00000000 256; says "$1: the other end sends" 0 $r 8
    memset 0x601c0 0x80 0
    sent=0
}
at_peer() {
    short 050a 00$PEER; cmd $r 8
    fixed 0502 00$PEER 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$PEER 00000000 256; at "$r" 32 a0 44 00$QP 54 0001; says "ready to receive" 0 "$r" 8
}
# talk: QP sends a WRITE
talk() {
    wr $((0x5f040 + 64 * (sent % 4))) 6:$sent 08${QP}030000000800000000 16:0x90000 ${PA_KEY}0000000000 8:8 ${PA_KEY}00 16:DATA
    sent=$((sent + 1))
    wr 0x60204 8:$sent
    wrhex $((PAGE + 0x800)) "0x00000008${QP}03"
    idle cx0
}
told=0
# told_is DESC PEER: one more event, of that queue pair
told_is() {
    qom_counter cx0 eqes
    told=$((told + 1))
    check_eq "$1: events" $((eqes + told)) "$r"
    bytes_are "$1: its kind" 0x5d001 0x02
    bytes_are "$1: its queue pair" 0x5d038 0x00$2
    read_one $EVENTS $told
}
qom_counter cx0 eqes
eqes=$r
established 00
value_is "ready to receive: no event yet" $eqes qom_counter cx0 eqes
talk
told_is "RC: the first packet" $PEER
talk
value_is "RC: no event more" $((eqes + told)) qom_counter cx0 eqes
short 050a 00$QP; cmd $r 8
established 01
talk
told_is "UC: the first packet" $PEER
talk
fixed 0504 00$PEER 00000000 256; says "UC: it sends, too" 0 $r 8
talk
value_is "UC: no event more" $((eqes + told)) qom_counter cx0 eqes
at_peer
fixed 0504 00$PEER 00000000 256; says "UC: ready anew, and sends" 0 $r 8
talk
value_is "UC: no event for who sends, too" $((eqes + told)) qom_counter cx0 eqes
at_peer
talk
told_is "UC: ready anew" $PEER

# Who was denied a place comes before those that ask later: no queue waits for as long as others have completions
queue_of 0000000000000000 0x62000; EVENTS=$r
# sender N: a queue pair, connected to itself, and its completion queue, which is armed, as QP_N and CQ_N; all in the page at 0xN0000
sender() {
    at_n=$((0x100000 * $1))
    cq_new; at "$r" 16 00020000 28 04$UAR 36 000000$EVENTS 72 16:$at_n 272 16:$((at_n + 0x1000)); create "$r"; CQ=$r
    qp_new; at "$r" 148 00$CQ 180 00$CQ 184 16:$((at_n + 0x40)) 272 16:$((at_n + 0x2000)); create "$r"; QP=$r
    to_itself $QP
    memset $at_n 0x100 0
    eval "QP_$1=$QP CQ_$1=$CQ"
    arm $1 0
}
# arm N SEEN: the queue is armed, by who has seen so many completions
arm() {
    eval "CQ=\$CQ_$1"
    wrhex $((PAGE + 0x20)) "0x0000000${2}00$CQ"
}
# completes N INDEX: that queue pair ends a WRITE, its so manieth
completes() {
    eval "QP=\$QP_$1"
    at_n=$((0x100000 * $1))
    wr $((at_n + 0x2040 + 64 * $2)) 6:$2 08${QP}030000000800000000 16:0x90000 ${PA_KEY}0000000000 8:8 ${PA_KEY}00 16:$DATA
    wr $((at_n + 0x44)) 8:$(($2 + 1))
    wrhex $((PAGE + 0x800)) "0x00000008${QP}03"
    idle cx0
}
for n in 1 2 3; do sender $n; done
for n in 1 2 3; do completes $n 0; done
bytes_are "three queues: the first is told" 0x62038 0x00$CQ_1
arm 1 1
completes 1 1
n=0
for queue in $CQ_2 $CQ_3 $CQ_1; do
    n=$((n + 1))
    read_one $EVENTS $n
    idle cx0
    bytes_are "it is armed and completes again, but queue $queue is next" 0x62038 0x00$queue
done
# One that was denied a place, goes
completes 2 1
arm 2 1
arm 3 1
completes 3 1
idle cx0
short 0501 00$QP_2; says "a queue pair goes" 0 "$r" 8
short 0401 00$CQ_2; says "and its queue, which waits" 0 "$r" 8
read_one $EVENTS 4
idle cx0
bytes_are "the next one is told" 0x62038 0x00$CQ_3
read_one $EVENTS 5
idle cx0

# Whether an arm fires, by the model's own functions: 2^23 completions would take too long here
cat >"$qt_work/due.c" <<'C'
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define PLC_CQ_INDEX 0xffffff
static int32_t sextract32(uint32_t value, int start, int length)
{
	return (int32_t)(value << (32 - length - start)) >> (32 - length);
}
C
for n in index far due; do
    sed -n "/^static .* plc_cq_$n(/,/^}/p" "$TOP/hw-model/peerlane/peerlane-cx-cq.c" >>"$qt_work/due.c"
done
cat >>"$qt_work/due.c" <<'C'
int main(int argc, char **argv)
{
	uint32_t n[4] = { 0 };

	for (int i = 1; i < argc && i <= 4; i++)
		n[i - 1] = strtoul(argv[i], 0, 0);
	if (argc == 5) {
		puts(plc_cq_due(n[0], n[1], n[2], n[3]) ? "yes" : "no");
	} else if (argc == 3) {
		printf("0x%x\n", plc_cq_index(n[0], n[1]));
	} else {
		/* 2^33 completions after an arm at 0 (the first), and after a solicited one at 0 (the second) */
		bool first = true, second = false;

		for (uint32_t i = 1, arm = 0, solicited = 0; i <= 1024; i++) {
			arm = plc_cq_far(i << 23, arm);
			solicited = plc_cq_far(i << 23, solicited);
			first = first && plc_cq_due(i << 23, 0, arm, false);
			second = second || plc_cq_due(i << 23, solicited, (i << 23) - 1, true);
		}
		printf("%d %d\n", first, second);
	}
	return 0;
}
C
cc -O1 -Wall -Wextra -Werror -o "$qt_work/due" "$qt_work/due.c" || fail "it compiles"
# due DESC yes|no WRITTEN SOLICITED INDEX ONLY-SOLICITED
due() {
    du_desc=$1 du_want=$2
    shift 2
    check_eq "armed: $du_desc" "$du_want" "$("$qt_work/due" "$@")"
}
due "one more" yes 5 0 4 0
due "none more" no 5 0 5 0
due "ahead of all" no 5 0 6 0
due "one more, over the end of 24 bits" yes 0x1000000 0 0xffffff 0
due "one more, solicited" yes 5 5 4 1
due "one more, none solicited since" no 5 4 4 1
due "ahead of all, solicited" no 5 5 6 1
due "solicited, over the end of 24 bits" yes 0x1000001 0x1000000 0xffffff 1
due "solicited, over the end of 32 bits" yes 1 0 0xffffffff 1
due "the last solicited one is 2^23 back" no 0x800010 0 0x80000f 1
due "solicited, 2^23 after the arm" yes 0x800001 0x800001 0 1
due "2^23 after the arm" yes 0x800001 0 0 0
# Of the index that the driver arms with, 24 bits are told: it is near what was written
due "told: all that was written" 0x1000005 0x1000005 5
due "told: before the end of 24 bits" 0xffffff 0x1000005 0xffffff
due "told: ahead" 0x1000006 0x1000005 6
due "told: before the end of 32 bits" 0xffffffff 5 0xffffff
due "stays, and no solicited one comes back, for 2^33 completions" "1 0"
qt_finish

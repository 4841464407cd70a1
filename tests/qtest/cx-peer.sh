#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what a ConnectX sends and answers to a peer that repeats requests, loses answers and refuses, packet by packet
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
EQ_AT=0x74000
DATA=0x100000
WORD=0x180000

# Packets
ACK=11 READ=0c FETCH_ADD=14 WRITE_FIRST=06 WRITE_MIDDLE=07 WRITE_LAST=08 WRITE_ONLY=0a
READ_FIRST=0d READ_MIDDLE=0e READ_LAST=0f READ_ONLY=10 ATOMIC_ACK=12
# What an acknowledge says, with the number of the message; a wait of 655.36 ms
GOOD=1f000000 NOT_READY=20000000 NAK_SEQUENCE=60000000 NAK_ACCESS=62000000
# read_of ADDRESS LENGTH [KEY], add_to ADDRESS N: bodies of requests, in $r
read_of() { hex 16:$1 ${3:-$KEY} 8:$2; }
add_to() { hex 16:$1 $KEY 16:$2 16:0; }
# ask OFFSET ADDRESS LENGTH [KEY], add OFFSET N
ask() { read_of $2 $3 ${4-}; say $READ $1 $r; }
add() { add_to $WORD $2; say $FETCH_ADD $1 $r; }
# answers DESC OPCODE OFFSET MESSAGES ADDRESS LENGTH: a piece of the answer to a READ, as memory is there; -: no header
answers() {
    rdhex $5 $6
    an_data=${r#0x}
    case $4 in
    -) hears "$1" $2 $3 $an_data ;;
    *) hex 1f 6:$4 $an_data; hears "$1" $2 $3 $r ;;
    esac
}
# found DESC OFFSET MESSAGES VALUE: the answer to an atomic
found() { hex 1f 6:$3 16:$4; hears "$1" $ATOMIC_ACK $2 $r; }
word_is() { writeq $WORD $1; }

peer_start
wrhex $DATA "0x$(awk 'BEGIN { for (i = 0; i < 4096; i++) printf "%04x", i }')"
# A key whose only page is absent, and the queue that is told, of one entry
zeros 304; at "$r" 0 0200 12 80 16 00003d00 20 ffffff00 28 00$PD
at "$r" 40 0000000000001000 75 0c 96 00000001 272 0000000000190000
says "a key whose page is absent" 0 "$r" 16; id; ABSENT=${r}00
zeros 280; at "$r" 0 0301 28 00$UAR 88 0000000000001000 272 16:$EQ_AT
says "an event queue of one entry, for page faults" 0 $r 16; id; FAULTS=${r#????}
# faults_are DESC N: so many page faults were told
faults=0
faults_are() {
    idle cx0
    rdhex $((EQ_AT + 0x28)) 4
    check_eq "$1" $2 $((r))
}

# Repeated requests.  The answer to a READ that is repeated with the absent page waits, and so do all that come behind it
met 0 7 7
ask 0 $DATA 4
answers "READ: the answer" $READ_ONLY 0 1 $DATA 4
word_is 5
ask 0 0 4 $ABSENT
faults_are "repeated with a page that is absent, it waits for that" 1
silent "and is not answered"
ask 1 $DATA 2048
add 3 2
ask 4 $((DATA + 0x1000)) 2050
silent "nor is what comes behind it"
# The first from its second packet on, then all of the others
ask 2 $((DATA + 1024)) 1024
add 3 2
ask 4 $((DATA + 0x1000)) 2050
silent "repeated, these wait, too"
ask 0 $DATA 4
found "the answer to the atomic, which was not queued twice for the READ before it" 3 3 5
answers "the READ from where it was asked for" $READ_ONLY 2 4 $((DATA + 1024)) 1024
found "the atomic again, as it was the first time" 3 4 5
answers "the READ behind it, once: its first packet" $READ_FIRST 4 4 $((DATA + 0x1000)) 1024
answers "its second" $READ_MIDDLE 5 - $((DATA + 0x1400)) 1024
rdhex $((DATA + 0x1800)) 2
hears "its third, of 2 bytes, padded" $READ_LAST 6 1f000004${r#0x}0000
answers "and at the end what waited" $READ_ONLY 0 4 $DATA 4
silent "that is all"
bytes_are "the atomic was done once" $WORD 0x0700000000000000

# A READ whose key has gone is refused when it is repeated: who has lost the answer need not ask again and again.  It may be a late
# copy, though, so the queue pair goes on
zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
says "a key of its own" 0 "$r" 16; id; gone=$r
met 0 7 7
ask 0 $DATA 4 ${gone}00
answers "READ: the answer" $READ_ONLY 0 1 $DATA 4
short 0202 00$gone; says "its key goes" 0 $r 8
counted 0 0xac; refused=$r
ask 0 $DATA 4 ${gone}00
hears "repeated, it is refused" $ACK 0 62000001
counted 0 0xac
check_eq "which is counted" $((refused + 1)) $r
ask 1 $DATA 4
answers "the next READ" $READ_ONLY 1 2 $DATA 4
silent "that is all"

# That the other end talks to who is ready to receive only is told by its first request, and later if there is no place for the event
memset 0x59000 64 0x77
zeros 280; at "$r" 0 0301 28 00$UAR 88 0000000000000004 272 0000000000059000
says "an event queue of one entry, for what a connection tells" 0 "$r" 16; id; TOLD=${r#????}
# to_rtr: ready to receive, from 0xfffff8 on
to_rtr() {
    short 050a 00$QP; cmd $r 8
    fixed 0502 00$QP 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$QP 00000000 256; at "$r" 32 60 44 00000041 54 0002 172 01fffff8; says "ready to receive" 0 "$r" 8
    qom_counter cx0 packets-in
    said=$r
}
read_of 0x1a0000 4; write_body=${r}00000000
qom_counter cx0 eqes
eqes=$r
to_rtr
say $ACK 0 $GOOD
say $WRITE_ONLY 1 $write_body
value_is "neither an acknowledge nor a request after a gap is told" $eqes qom_counter cx0 eqes
say $WRITE_ONLY 0 $write_body
value_is "the first request is" $((eqes + 1)) qom_counter cx0 eqes
bytes_are "its event" 0x59001 0x02
to_rtr
say $WRITE_ONLY 0 $write_body
value_is "no place for the event" $((eqes + 1)) qom_counter cx0 eqes
wrhex $((BAR + 0x1000 * 0x$UAR + 0x48)) "0x${TOLD}000001"
say $WRITE_ONLY 1 $write_body
value_is "the next request is told" $((eqes + 2)) qom_counter cx0 eqes
wrhex $((BAR + 0x1000 * 0x$UAR + 0x48)) "0x${TOLD}000002"
say $WRITE_ONLY 2 $write_body
value_is "and no more" $((eqes + 2)) qom_counter cx0 eqes
short 050a 00$QP; cmd $r 8

# Sequence numbers go round between two atomics with the same one: 16 READs of a GiB, of which each is then repeated for its
# last 4 bytes only, while nothing is answered
met 0 7 7
ask 0 $DATA 4
answers "READ: the answer" $READ_ONLY 0 1 $DATA 4
ask 0 0 4 $ABSENT
word_is 10
add 1 1
n=0 at=2
while [ $n -lt 16 ]; do
    packets=$((1 << 20))
    [ $n -lt 15 ] || packets=$((packets - 2))
    ask $at 0 $((packets * 1024))
    at=$((at + packets))
    ask $((at - 1)) $DATA 4
    n=$((n + 1))
done
check_eq "numbers have gone round" $((1 << 24)) $at
# What waits has this number, too: a READ would take its place
read_of 0x1a0000 4; say $WRITE_ONLY 0 ${r}00000000
add 1 3
add 1 3
silent "nothing was answered meanwhile"
ask 0 $DATA 4
found "the first atomic" 1 2 10
at=1
while [ $n -gt 0 ]; do
    n=$((n - 1))
    at=$((at + (1 << 20) - 2 * (n == 0)))
    answers "the last packet of a READ" $READ_ONLY $at $((18 - n)) $DATA 4
done
found "the second atomic" 1 20 11
found "which is the one that is repeated" 1 20 11
answers "what waited" $READ_ONLY 0 20 $DATA 4
bytes_are "both were done once" $WORD 0x0e00000000000000

# Who asks for an acknowledge: the last packet of a message, and each that has a number before a multiple of 32
met 18 7 7
go 8 0x600000 $KEY $DATA $((80 * 1024))
n=0 asked=
while [ $n -lt 80 ]; do
    case $n in
    0) hears "WRITE of 80 packets" $WRITE_FIRST 0 ;;
    79) hears "its last packet" $WRITE_LAST 79 ;;
    *) hears "packet $n" $WRITE_MIDDLE $n ;;
    esac
    [ "$he_ask" != ask ] || asked="$asked $n"
    n=$((n + 1))
done
check_eq "these ask for an acknowledge" " 7 39 71 79" "$asked"
say $ACK 71 $GOOD
silent "those before are acknowledged: nothing is sent again"
say $ACK 79 $GOOD
done_is "with the last it is done"
# write_at OFFSET [ASKS]: a WRITE of 4 bytes, which asks for an acknowledge
write_at() {
    read_of 0x1a0000 4
    wr_body=${r}00000000
    idle cx0
    psn $1
    echo "say $WRITE_ONLY $QP ${2-80}$r $wr_body" >&7
    said=$((said + 1))
    becomes "WRITE $1 has come" $said qom_counter cx0 packets-in
}
write_at 0 00
silent "a WRITE that does not ask for an acknowledge gets none"
write_at 1
hears "one that asks gets it, for both" $ACK 1 1f000002
ask 2 $DATA 4
answers "READ: the answer" $READ_ONLY 2 3 $DATA 4
ask 2 0 4 $ABSENT
for n in 3 4 5; do write_at $n; done
silent "acknowledges wait behind a READ whose page is absent"
ask 2 $DATA 4
hears "three of them are one" $ACK 5 1f000006
answers "READ again" $READ_ONLY 2 6 $DATA 4
silent "and that is all"

# How long it waits for an acknowledge: 4 times 4.096 us << ack_timeout
for n in 1 14 18; do
    met $n 7 7
    go 8 0x600000 $KEY $DATA 64
    hears "timeout $n: WRITE" $WRITE_ONLY 0
    qt clock_step $(((4 * 4096 << n) - 1))
    silent "timeout $n: one nanosecond before its end"
    qt clock_step 1
    hears "timeout $n: at its end it is sent again" $WRITE_ONLY 0
done

# A request is refused for good while the requester waits to repeat it: another copy of it had more luck
qom_counter cx0 cqes
cqes=$r
met 18 7 7
go 8 0x600000 $KEY $DATA 64
hears "WRITE" $WRITE_ONLY 0
say $ACK 0 $NOT_READY
say $ACK 0 $NAK_ACCESS
silent "while it waits nothing is sent"
fails_with "WRITE that is refused meanwhile" 0x13

# The requester waits for one thing and the responder for another, neither at the other's expense: here a receive, and room
# in the queue of page faults.  That room is looked for each millisecond.
met 18 7 7
ask 0 $DATA 4
answers "READ: the answer" $READ_ONLY 0 1 $DATA 4
ask 0 0 4 $ABSENT
go 8 0x600000 $KEY $DATA 64
hears "WRITE" $WRITE_ONLY 0
say $ACK 0 $NOT_READY
qt clock_step 2000000
faults_are "the queue is full" 1
silent "the responder's wait does not end that of the requester"
wrhex $((BAR + 0x1000 * 0x$UAR + 0x48)) "0x${FAULTS}000001"
qt clock_step 1100000
faults_are "the requester's wait does not keep the responder from asking" 2
silent "and goes on"
qt clock_step 650000000
silent "until 655.36 ms are over"
qt clock_step 3000000
hears "then it is sent again" $WRITE_ONLY 0

# A requester that waits for room in the queue of page faults hears that the other end has no receive
met 18 7 7
put 8 0x600000 $KEY $DATA 64
key=$KEY KEY=$ABSENT
put 8 0x600000 $key 0 64
KEY=$key
ring
hears "WRITE before one whose page is absent" $WRITE_ONLY 0
silent "which waits, since the queue is full"
say $ACK 0 $NOT_READY
qt clock_step 2000000
silent "2 ms are not what the other end asks for"
qt clock_step 655000000
hears "after 655.36 ms the first is sent again" $WRITE_ONLY 0
say $ACK 0 $GOOD
until_is "it is done" $((posted_all - 1)) wqes cx0
wrhex $((BAR + 0x1000 * 0x$UAR + 0x48)) "0x${FAULTS}000002"
qt clock_step 1100000
faults_are "with room in the queue the page is asked for" 3

# Without a timeout nothing is counted when time runs out; what the other end asks for again is
begin() {
    met 0 $1 7
    qom_counter cx0 cqes
    cqes=$r
}
begin 2
go 8 0x600000 $KEY $DATA 64
hears "WRITE without a timeout" $WRITE_ONLY 0
for n in 1 2 3; do
    qt clock_step 1100000000
    hears "time runs out, time $n" $WRITE_ONLY 0
done
for n in 1 2; do
    say $ACK 0 $NAK_SEQUENCE
    hears "it is asked for again, time $n" $WRITE_ONLY 0
done
say $ACK 0 $NAK_SEQUENCE
silent "and no more than that"
fails_with "it is asked for again too often" 0x15
begin 0
put 16 0x600000 $KEY 0x200000 64
put 8 0x600000 $KEY $DATA 64
ring
hears "READ without retries" $READ 0
hears "and WRITE" $WRITE_ONLY 1
say $ACK 1 $GOOD
silent "the answer to the READ is missing, which is not asked for"
until_is "READ whose answer is missing fails, and WRITE is flushed" $((cqes + 2)) cqes cx0
bytes_are "READ: its status" $((0x51037 + 64 * (cqes % 16))) 0x15

# A READ whose answer is missing, and behind it a WRITE of eight packets
sends_all() { # DESC
    hears "$1: the READ" $READ 0
    hears "$1: the WRITE" $WRITE_FIRST 2
    for n in 3 4 5 6 7 8; do
        hears "$1: packet $n" $WRITE_MIDDLE $n
    done
    hears "$1: its last packet" $WRITE_LAST 9
}
# retried DESC NAKS MISSING: why, as counted by the queue pair from here on
counted 0 0x50; naks=$r
counted 0 0x58; missing=$r
retried() {
    counted 0 0x50
    check_eq "$1: NAKs" $((naks + $2)) $r
    counted 0 0x58
    check_eq "$1: missing answers" $((missing + $3)) $r
}
met 18 7 7
put 16 0x600000 $KEY 0x200000 2048
put 8 0x600000 $KEY $DATA 8192
ring
sends_all "at first"
say $ACK 5 $GOOD
sends_all "an answer is missing"
retried "once" 0 1
say $ACK 6 $GOOD
silent "that it is still missing is no reason to repeat all again"
say $ACK 6 $NAK_SEQUENCE
sends_all "a packet was lost, too"
retried "and once more" 1 1
repeat 1024 a5; say $READ_FIRST 0 $GOOD$r
repeat 1024 5a; say $READ_LAST 1 $GOOD$r
say $ACK 9 $GOOD
done_is "both are done"
bytes_are "with what came" 0x2003fe 0xa5a55a5a
silent "and nothing more"

# The same while the wire takes nothing more, since nobody hears: what was not sent again cannot have got lost again
qlen=$(cat /proc/sys/net/unix/max_dgram_qlen)
if [ "$qlen" -gt 20 ]; then
    skip_part "sockets of this host keep $qlen datagrams that nobody takes (net.unix.max_dgram_qlen), so the wire takes all"
    qt_finish
fi
met 18 7 7
put 16 0x600000 $KEY 0x200000 2048
put 8 0x600000 $KEY $DATA 65536
ring
idle cx0
qom_counter cx0 packets-out; sent=$r
say $ACK 5 $GOOD
retried "an answer is missing" 1 2
value_is "nothing is sent again" $sent qom_counter cx0 packets-out
say $ACK 6 $NAK_SEQUENCE
retried "and that is all" 1 2
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: work queue entries change the ConnectX's keys, or say why not; absent pages are asked for, and waited for
# tags: qtest
# tier: check
# timeout: 200
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-cx.sh"

CQ_AT=0x60000
UMR_AT=0x70000
RC_AT=0x72000
EQ_AT=0x74000
PEER_AT=0x75000
DBR=0x76000
LIST=0x78000
DATA=0x80000
PAGES=0x100000  # what keys point to, 4 KiB each

# make DESC HEX: it is made; its id in $r
make() { says "$1" 0 "$2" 16; id; }

qt_start -trace peerlane_cx_umr -trace peerlane_cx_slice -trace peerlane_cx_packet -device peerlane-cx,id=cx0,addr=4,mac=52:54:00:12:34:56
cx_bar
short 0104; cmd $r 12
short 0102; cmd $r 8
short 0802; cmd $r 16; id; UAR=$r
short 0800; cmd $r 16; id; PD=$r
short 0800; cmd $r 16; id; OTHER_PD=$r
# An event queue without events of its own, for completions
zeros 280; at "$r" 0 0301 28 01$UAR 272 0000000000050000
make "an event queue" $r; EQ=$r
# A completion queue of 64 entries that may be overrun
zeros 280; at "$r" 0 0400 16 00020000 28 06$UAR 36 00$EQ
at "$r" 72 16:$((DBR + 0x100)); at "$r" 272 16:$CQ_AT
make "a completion queue" $r; CQ=$r
memset $CQ_AT 4096 0x77
seen=0  # completions that were looked at

# queue_pair KIND FRE AT DBR: 8 blocks to send, and no receive
queue_pair() {
    zeros 280; at "$r" 0 0500 25 $1 28 00$PD 34 18 36 00$UAR
    at "$r" 138 $2 148 00$CQ 184 16:$4 196 03
    at "$r" 272 16:$3
}
# to_rts QP OTHER [MTU]: from reset, with packets of 4 KiB or as MTU says; its doorbell record begins anew
to_rts() {
    short 050a 00$1; cmd $r 8
    fixed 0502 00$1 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$1 00000000 256; at "$r" 32 ${3:-a0} 44 00$2 54 0001 172 01; cmd $r 8
    fixed 0504 00$1 00000000 256; at "$r" 138 e0; cmd $r 8
}
# connect QP: the reliable connection is one with another queue pair, since both its ends may fail
connect() {
    to_rts $1 ${PEER:-$1}
    [ $1 = $UMR ] || to_rts $PEER $1
}
queue_pair 0c 08 $UMR_AT $DBR; make "a queue pair for UMR" $r; UMR=$r
queue_pair 00 00 $RC_AT $((DBR + 8)); make "a reliable connection" $r; RC=$r
queue_pair 00 00 $PEER_AT $((DBR + 16)); make "its other end" $r; PEER=$r
connect $UMR
connect $RC

# A key for all of memory; in another domain than the one that UMR does not have
zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
make "a key for all of memory" $r; ALL=${r}00
# A free key with room for 8 pages, and one that entries must not change
zeros 272; at "$r" 0 0200 16 40008100 20 ffffff11 28 00$PD 68 00000004
at "$r" 75 0c
FREE_IN=$r
says_at "free, but not for UMR" 3 $FREE_IN 16 40000100
says_at "free, but physical" 3 $FREE_IN 16 40008000
says_at "physical, but for UMR" 3 $FREE_IN 16 00008000 40 0000000000001000
says_at "a list without end" 15 $FREE_IN 68 ffffffff
make "a free key" $FREE_IN; KEY=$r
zeros 304; at "$r" 0 0200 16 00003d00 20 ffffff00 28 00$PD
at "$r" 40 0000000000001000 75 0c 96 00000001 272 0000000000100000
make "a key of the plain kind" $r; PLAIN=$r

# completed: wait, bounded, for the next completion: 0, or the syndrome, in $r
completed() {
    co_at=$((CQ_AT + 64 * (seen & 63)))
    co_n=0
    co_want=$((seen >> 6 & 1))
    while :; do
        rdhex $((co_at + 0x3f)) 1
        case $r in
        0x[0de]"$co_want") break ;;
        esac
        # Who waits for a page tries again by the clock
        qt clock_step 100000
        co_n=$((co_n + 1))
        more $co_n || { r="no completion"; return; }
    done
    seen=$((seen + 1))
    case $r in
    0x0?) r=0 ;;
    *)
        rdhex $((co_at + 0x37)) 1
        r=$((r))
        ;;
    esac
}

# What an entry says unless a test changes it: the free key becomes one of two pages from 0x1800 on, whose low
# byte is 0x42; the list is in the entry
mask_all=00000000201e20c3
right() {
    flags=a0 octwords=0004 offset=0000 offset_hi=00000000 mask=$mask_all
    key=${KEY}42 free=00 rights=3d low=42 pd=$PD start=0000000000001800 len=0000000000001000 shift=0c all=00
    list=00000000001000030000000000102003000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
    segments='' qpn=$UMR who=ffffff opcode=25
}
right
# umr: post it as the first entry of the queue pair $qpn, whose status is in $r; then the queue pair is as new
umr() {
    zeros 128
    at "$r" 0 "$flags" 4 $octwords$offset 8 $mask 16 $offset_hi
    at "$r" 48 $free 50 $rights 52 $who$low 60 ${all}$pd
    at "$r" 64 $start$len 107 $shift
    first 224 "$r"
    um_hex=$r$list
    um_ds=${segments:-$((1 + ${#um_hex} / 32))}
    um_at=$UMR_AT um_dbr=$DBR
    [ $qpn = $UMR ] || um_at=$RC_AT um_dbr=$((DBR + 8))
    wr $um_at 000000$opcode$qpn 2:$um_ds 00000008$key$um_hex
    wr $((um_dbr + 4)) 8:$(((um_ds + 3) / 4))
    wr $((BAR + 0x1000 * 0x$UAR + 0x800)) 000000$opcode$qpn 2:$um_ds
    completed
    um_r=$r
    connect $qpn
    right
    r=$um_r
}
# umr_says DESC WANT
umr_says() { umr; check_eq "$1" "$2" "$r"; }
# context: that of the key, in $r
context() { short 0201 00$KEY; cmd $r 80; rdhex $((OUT_BOX)) 64; }

context; BEFORE=$r
segments=7; umr_says "shorter than its parts" 2
segments=9; umr_says "shorter than its list" 2
octwords=0003; umr_says "a list of no 64 bytes" 2
flags=b0 offset=0002; umr_says "a list at no 64 bytes" 2
offset=0004; umr_says "a list at a place, but it says there is none" 2
qpn=$RC; umr_says "by a queue pair without fast registration" 2
key=00000042; umr_says "of a key that is none" 6
key=${PLAIN}42; umr_says "of a key that is not for UMR" 6
mask=00000000201e00c3; umr_says "of a key with another low byte" 6
flags=c0; umr_says "of a key that must not be free, but is" 6
flags=b0 offset=0004; umr_says "pages behind the end" 6
flags=b0 offset_hi=00000001; umr_says "pages far behind the end" 6
flags=b0 offset_hi=80000000; umr_says "pages behind all ends" 6
octwords=0008 segments=16 list=$list$list; umr_says "more pages than there is room for" 6
mask=00000000201e30c3; umr_says "signatures" 6
mask=80000000201e20c3; umr_says "a field that nobody knows" 6
pd=ffffff; umr_says "of a domain that is none" 6
len=0000000000000000; umr_says "without bytes" 6
len=0000000000008801; umr_says "more bytes than there are pages" 6
start=fffffffffffff000 len=0000000000001001; umr_says "over the end of addresses" 6
shift=0b; umr_says "pages of 2 KiB" 6
# The list where the entry says
flags=20 list=00000040$ALL$(printf %016x $LIST) segments=8; umr_says "a list that is nowhere" 2
flags=20 list=0000003f$ALL$(printf %016x $LIST); umr_says "less memory than the list" 1
flags=20 list=00000040000000ff$(printf %016x $LIST); umr_says "a list by a key that is none" 4
flags=20 list=00000040${KEY}11$(printf %016x $LIST); umr_says "a list by a key that is free" 4
flags=20 list=00000040$ALL$NOWHERE; umr_says "a list that the bus refuses" 2
context
check_eq "none of these has changed the key" "$BEFORE" "$r"

# rdma OPCODE VA LEN KEY: from or to what is at DATA, on the reliable connection, as its first entry
rdma() {
    wr $RC_AT 000000$1${RC}030000000800000000 16:$2 ${4}00000000 8:$3 $ALL 16:$DATA
    wrhex $((DBR + 12)) 0x00000001
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x000000$1${RC}03"
}
# rdma_says DESC WANT OPCODE VA LEN KEY
rdma_says() {
    rs_d=$1 rs_w=$2
    shift 2
    rdma "$@"
    completed
    check_eq "$rs_d" "$rs_w" "$r"
    connect $RC
}
memset $DATA 4096 0x5a
memset $PAGES 0x8000 0
rdma_says "a key that is free is denied" 19 08 0x1800 4096 ${KEY}11
umr_says "the key gets pages, rights and a new low byte, and is not free any more" 0
rdma_says "then it can be used" 0 08 0x1800 4096 ${KEY}42
bytes_are "its first page has got the first half" $((PAGES + 0x7fe)) 0x00005a5a
bytes_are "its second page, which is elsewhere, the rest" $((PAGES + 0x27fe)) 0x5a5a0000
bytes_are "and not what is between them" $((PAGES + 0x1000)) 0x0000
rdma_says "by its old low byte it is denied" 19 08 0x1800 4096 ${KEY}11
rdma_says "behind its end it is denied" 19 08 0x1801 4096 ${KEY}42
umr_says "it is not free twice" 6
mask=00000000201e0000 free=40 flags=c0 octwords=0000 list='' rights=15; umr_says "rights go, and it is free" 0
rdma_says "now it is denied" 19 08 0x1800 4096 ${KEY}42
mask=0000000020000000 flags=a0 octwords=0000 list=''; umr_says "it is back" 0
rdma_says "READ is permitted" 0 10 0x1800 4096 ${KEY}42
rdma_says "WRITE is not" 19 08 0x1800 4096 ${KEY}42
wrhex $LIST 0x00000000001040030000000000106003000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
flags=50 mask=00000000001e0000 rights=3d list=00000040$ALL$(printf %016x $LIST); umr_says "new pages, by pointer, while it is in use" 0
rdma_says "WRITE is permitted again" 0 08 0x1800 4096 ${KEY}42
bytes_are "and goes to the new pages" $((PAGES + 0x4800)) 0x5a5a
# Keys that name keys.  indirect KIND LIST: a command for one from 0x5000 on, of $want bytes; KIND: 3e pieces, 3f pieces of 4 KiB each
indirect() {
    zeros 272; at "$r" 0 0200 16 0000${1}00 20 ffffff00 28 00$PD
    at "$r" 32 0000000000005000 40 16:$want 75 0c 96 8:$((${#2} / 32))
    r=$r$2
}
# piece BYTES KEY VA: one, in $r; alone: a list of that
piece() { hex 8:$1 $2 16:$3; }
alone() { piece "$@"; al_piece=$r; zeros 48; r=$al_piece$r; }
fresh() { memset $PAGES 0x8000 0; }
# 20 bytes at the end of the first page of the one, and 28 of the plain one
piece 20 ${KEY}42 0x1fec; PIECES=$r
piece 28 ${PLAIN}00 0x10; PIECES=$PIECES$r
zeros 32; PIECES=$PIECES$r
want=48
indirect 3e $PIECES; make "a key of two pieces of others" $r; LISTED=$r
indirect 3e $PIECES; LISTED_IN=$r
says_at "one with more pieces than there may be" 8 $LISTED_IN 68 00001001
says_at "one of pieces without an end" 3 $LISTED_IN 28 80$PD
says_at "one of a later kind" 3 $LISTED_IN 16 04003e00
want=0x3001; indirect 3f $PIECES; at "$r" 96 00000002; says "one whose pieces are of one size, and too few" 64 $r 16
memset $DATA 4096 0x5a
fresh
rdma_says "WRITE across its pieces" 0 08 0x5000 48 ${LISTED}00
repeat 20 5a; bytes_are "the first has got 20 bytes" $((PAGES + 0x4fe8)) 0x00000000${r}0000
repeat 28 5a; bytes_are "the second the rest" $((PAGES + 0x0c)) 0x00000000${r}0000
rdma_says "READ from the middle of it" 0 10 0x5012 30 ${LISTED}00
rdma_says "WRITE behind its end" 19 08 0x5001 48 ${LISTED}00
want=49; indirect 3e $PIECES; make "a key that says more than its pieces have" $r; LONG=$r
fresh
rdma_says "WRITE to where it has none" 19 08 0x5000 49 ${LONG}00
bytes_are "nothing was written before" $((PAGES + 0x4fec)) 0x0000
# Whose rights count: those of the key for others, and those of what it names for its owner
want=48; indirect 1e $PIECES; make "a key of pieces that others may read" $r; READ_ONLY=$r
rdma_says "READ" 0 10 0x5000 48 ${READ_ONLY}00
rdma_says "WRITE" 19 08 0x5000 48 ${READ_ONLY}00
zeros 280; at "$r" 0 0200 16 00000d00 20 ffffff00 28 00$PD
at "$r" 40 0000000000001000 75 0c 96 00000001 272 0000000000100000; zeros_8=$r; zeros 8; OWN_IN=$zeros_8$r
# says_through DESC WANT KEY [VA]: what a WRITE to a key of one piece of that says
says_through() {
    alone 48 $3 ${4:-0x20}; indirect 3e $r; make "a key of a piece of that" $r
    rdma_says "$1" $2 08 0x5000 48 ${r}00
}
make "a key that nobody else may use" $OWN_IN; OWN=$r
rdma_says "nobody does" 19 08 0x20 48 ${OWN}00
says_through "its owner gives a piece of it to others" 0 ${OWN}00
at $OWN_IN 16 00000500; make "a key that its owner may not write" $r
says_through "nor may others then" 19 ${r}00
at $OWN_IN 28 00$OTHER_PD; make "a key of another domain" $r; FOREIGN=$r
says_through "it is none of its pieces" 19 ${FOREIGN}00
short 0202 00$FOREIGN; says "that key goes" 0 $r 8
alone 48 ${OWN}00 0x20; indirect 3e $r; make "a key of pieces" $r; at "$LISTED_IN" 272 "00000030${r}000000000000005000"; DEEP_IN=$r
make "a key of that" "$DEEP_IN"
rdma_says "keys of keys of keys are not looked at" 19 08 0x5000 20 ${r}00
says_through "an old key of one that has another now" 19 ${KEY}41 0x1800
says_through "the key that it has" 0 ${KEY}42 0x1800
# Pieces of one size, each 4 KiB of what is named
piece 0 ${PLAIN}00 0; EVEN=$r
piece 0 ${KEY}42 0x1800; EVEN=$EVEN$r
memset $DATA 4096 0x5a
want=0x2000; indirect 3f $EVEN; EVEN_IN=$r; make "a key of two pieces of 4 KiB" $r; EVEN=$r
fresh
rdma_says "WRITE across them" 0 08 0x5ff0 32 ${EVEN}00
bytes_are "the end of the first" $((PAGES + 0xfee)) 0x00005a5a5a5a
repeat 16 5a; bytes_are "the beginning of the second" $((PAGES + 0x47fe)) 0x0000${r}0000
at "$EVEN_IN" 28 80$PD 40 0000000000000000; make "a key of pieces without an end" $r; EVEN=$r
rdma_says "as far as there are pieces" 0 08 0x6ff0 16 ${EVEN}00
rdma_says "and no further" 19 08 0x6ff0 17 ${EVEN}00
rdma_says "nor before them" 19 08 0x4ff0 16 ${EVEN}00
rdma_says "nor far away" 19 08 0xfffffffffffff000 16 ${EVEN}00
at $OWN_IN 16 00003d00 28 80$PD 32 00000000000050000000000000000000; make "a key of two pages without an end" $r; EVEN=$r
rdma_says "as far as there are pages" 0 08 0x5ff0 16 ${EVEN}00
rdma_says "and no further" 19 08 0x6ff0 17 ${EVEN}00
rdma_says "nor before it" 19 08 0x4ff0 16 ${EVEN}00
# The driver's key of pages that are never there, for all addresses
zeros 336; at "$r" 0 0200 16 00003d00 20 ffffff00 28 80$PD 75 3d 96 00000004
NULL_IN=$r
make "a key for all addresses, of eight pages" $NULL_IN; NULL_KEY=$r
rdma_says "all of it can be used" 0 10 0x100020 64 ${NULL_KEY}00
# Pieces that are repeated: 3 and 5 bytes, each time 16 and 32 bytes further, 4 times
zeros 16; hex 0000000800000400 8:4 8:2 4:16 4:3 ${PLAIN}00 16:0x100 4:32 4:5 ${KEY}42 16:0x1800 $r; repeat=$r
want=32; indirect 3e $repeat; make "a key of pieces that are repeated" $r; ROUNDS=$r
fresh
wrhex $DATA 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
rdma_says "WRITE from its second byte to its last but one" 0 08 0x5001 30 ${ROUNDS}00
repeat 13 00; bytes_are "the first pieces" $((PAGES + 0x100)) 0x000001${r}070809${r}0f1011${r}171819
repeat 27 00; bytes_are "the second pieces" $((PAGES + 0x4800)) 0x0203040506${r}0a0b0c0d0e${r}1213141516${r}1a1b1c1d00
rdma_says "READ of it" 0 10 0x5000 32 ${ROUNDS}00
bytes_are "gets them in order" $DATA 0x0000010203040506070809
want=33; indirect 3e $repeat; make "one that says more than its rounds have" $r
rdma_says "WRITE to where it has none" 19 08 0x5000 33 ${r}00
want=32
# rounds_say DESC AT NEW: nothing is written to one that is wrong so
rounds_say() {
    at "$repeat" $2 $3; indirect 3e $r; make "one with $1" $r; ROUNDS=$r
    rdma_says "WRITE to one with $1" 19 08 0x5000 32 ${ROUNDS}00
    rdma_says "READ of one with $1" 19 10 0x5000 32 ${ROUNDS}00
}
rounds_say "a piece of nothing" 18 0000
rounds_say "more pieces than its list" 14 0004
rounds_say "rounds of nothing" 0 00000000
rounds_say "rounds that have more than their pieces" 0 00000009
rounds_say "pieces that leave their key in a later round" 32 0600
# One byte of each round, 64 KiB apart: all that is between them is 4 GiB and more
zeros 32; hex 8:1 8:0x400 8:70000 8:1 ffff0001$ALL 16:$PAGES $r; far=$r
want=70000; indirect 3e $far; make "a key of pieces that are far from each other" $r; FAR=$r
rdma_says "READ of more than is looked at" 19 10 0x5000 70000 ${FAR}00
# A window: a free key that any connection may bind, for itself if it says so
zeros 272; at "$r" 0 0200 16 4000be00 20 ffffff11 28 00$PD 68 00000004
make "a window" $r; WINDOW=$r
window() {
    key=${WINDOW}11 qpn=$RC who=$RC flags=b0 mask=00000000201e6041 rights=3e low=12
    start=0000000000007000 len=0000000000000030 list=$PIECES
}
closed() { key=${WINDOW}12 who=ffffff flags=88 mask=0000000020002000 free=40 low=12 octwords=0000 list=''; }
window; mask=00000000201e60c1; umr_says "no connection gives it to a domain" 6
window; octwords=0008 segments=16 list=$PIECES$PIECES; umr_says "more pieces than it has room for" 6
memset $DATA 4096 0x5a
fresh
window; umr_says "it is bound by who may not change pages" 0
rdma_says "only its own connection gets through" 19 08 0x7000 48 ${WINDOW}12
window; umr_says "it is not bound twice" 6
closed; umr_says "nobody else closes it" 6
closed; qpn=$RC; umr_says "who has bound it does" 0
window; key=${WINDOW}12 who=ffffff mask=00000000201e6041; umr_says "it is bound anew, for all" 0
rdma_says "WRITE through it" 0 08 0x7000 48 ${WINDOW}12
repeat 20 5a; bytes_are "to where it says" $((PAGES + 0x4fec)) 0x${r}0000
closed; qpn=$RC; umr_says "who might use it closes it" 0
rdma_says "then nobody gets through" 19 08 0x7000 48 ${WINDOW}12
# A reliable connection with fast registration keeps to its own domain
short 0501 00$RC; says "the queue pair goes" 0 $r 8
queue_pair 00 08 $RC_AT $((DBR + 8)); make "one with fast registration" $r; RC=$r
connect $RC
qpn=$RC flags=c0 mask=0000000020000000 free=40 octwords=0000 list=''; umr_says "it invalidates a key of its domain" 0
rdma_says "which is denied" 19 08 0x1800 4096 ${KEY}42
qpn=$RC flags=a0 mask=0000000020000080 pd=$OTHER_PD octwords=0000 list=''; umr_says "it gives it to no other domain" 6
flags=a0 mask=0000000020000080 pd=$OTHER_PD octwords=0000 list=''; umr_says "the driver's does" 0
rdma_says "and then it is denied" 19 08 0x1800 4096 ${KEY}42
qpn=$RC flags=c0 mask=0000000020000000 free=40 octwords=0000 list=''; umr_says "nor does it change one of another domain" 6
short 0801 00$OTHER_PD; says "that domain is in use" 6 $r 8
flags=c0 mask=0000000000000080 octwords=0000 list=''; umr_says "it comes back" 0
short 0801 00$OTHER_PD; says "and the domain can go" 0 $r 8

# Page faults: the second page is taken away
take() {
    flags=c0 mask=0000000000000000
    list=00000000001040030000000000106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
    umr_says "a page is taken away" 0
}
put() {
    flags=c0 mask=0000000000000000
    list=00000000001040030000000000106003000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
    umr
    check_eq "the page is put back" 0 "$r"
}
take
rdma_says "without a queue for page faults it is denied" 19 08 0x1800 4096 ${KEY}42
zeros 280; at "$r" 0 0301 28 01$UAR 88 0000000000001000 272 16:$EQ_AT
make "an event queue of two entries, for page faults" $r; PF=$r
faults=0
# fault_is DESC VA PAGES: wait, bounded, for the next event; its token in $ticket
fault_is() {
    fi_at=$((EQ_AT + 64 * (faults & 1)))
    fi_own=$((faults >> 1 & 1))
    becomes "$1: is asked for" 0x0c00020$fi_own fault_head
    faults=$((faults + 1))
    rdhex $((fi_at + 0x28)) 4
    ticket=${r#0x}
    bytes_are "$1: the last of its fault" $((fi_at + 0x20)) 0x80
    hex 8:$(($3 << 12)) ${KEY}42 16:$2
    bytes_are "$1: so many pages, of this key, from there on" $((fi_at + 0x2c)) 0x$r
    wr $((BAR + 0x1000 * 0x$UAR + 0x48)) ${PF#????} 6:$faults
}
fault_head() {
    qt clock_step 100000
    rdhex $((fi_at + 1)) 3
    fh=$r
    rdhex $((fi_at + 0x3f)) 1
    r=$fh${r#0x}
}
# resume DESC WANT [TOKEN [HIGH]]: HIGH has the error in its top bit
resume() { short 0204 "${4:-00000000}" "${3:-$ticket}"; says "$1" "$2" $r 8; }

memset $((PAGES + 0x6000)) 4096 0
memset $((PAGES + 0x4000)) 4096 0
rdma 08 0x1800 4096 ${KEY}42
fault_is "an absent page at the responder" 0x2000 1
bytes_are "while it waits nothing has been moved" $((PAGES + 0x4800)) 0x0000
resume "a token that was never given" 3 ffffffff
resume "no token" 3 00000000
resume "a token that is too long" 3 $ticket 00000001
put
resume "resumed" 0
completed
check_eq "the entry ends well" 0 "$r"
connect $RC
bytes_are "all has been moved" $((PAGES + 0x6000)) 0x5a5a
resume "resumed once more, which nobody needs" 0
take
rdma 08 0x1800 4096 ${KEY}42
fault_is "again" 0x2000 1
old=$ticket
resume "resumed without a page" 0
fault_is "which is asked for anew" 0x2000 1
check "with another token" test "$ticket" != "$old"
resume "the driver has none" 0 $ticket 80000000
completed
check_eq "remote access error" 19 "$r"
connect $RC
# What is local: the list of a SEND would be, here the target of a READ
LOCAL=0x1ff0
wr $RC_AT 00000010${RC}030000000800000000 16:$DATA ${ALL}0000000000000020${KEY}42 16:$LOCAL
wrhex $((DBR + 12)) 0x00000001
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000010${RC}03"
fault_is "an absent page at the requester" 0x2000 1
resume "the driver has none" 0 $ticket 80000000
completed
check_eq "protection error of the own key" 4 "$r"
connect $RC
# Who waits goes to error, to reset, or away
rdma 08 0x1800 4096 ${KEY}42
fault_is "one that will not wait" 0x2000 1
short 0507 00$RC; says "its queue pair goes to error" 0 $r 8
completed
check_eq "the entry is flushed" 5 "$r"
resume "its token is still good" 0
connect $RC
rdma 08 0x1800 4096 ${KEY}42
fault_is "one whose key goes" 0x2000 1
short 0202 00$KEY; says "the key goes" 0 $r 8
resume "resumed" 0
completed
check_eq "it is denied" 19 "$r"
connect $RC
# Reading a list is work: after a list of a MiB the engine looks at what waits, before the next
at $FREE_IN 68 0000fffc; make "a free key for 131064 pages" "$r"; BIG=$r
queue_pair 0c 08 0x90000 $((DBR + 24)); at "$r" 34 28; make "a queue pair for eight such lists" "$r"; MANY=$r
to_rts $MANY $MANY
zeros 108
big=20000000fffc0000$r
first 224 $big; big=$r
n=0
while [ $n -lt 8 ]; do
    wr $((0x90000 + 192 * n)) 00 4:3*n 25${MANY}0900000008${BIG}11$big 8:0xfffc0 $ALL 16:0x400000
    n=$((n + 1))
done
wr $((DBR + 28)) 8:24
wr $((BAR + 0x1000 * 0x$UAR + 0x800)) 00 4:21 25${MANY}09
good=
while [ $n -gt 0 ]; do
    completed
    good="$good$r"
    n=$((n - 1))
done
check_eq "eight lists of a MiB: they are read" 00000000 "$good"
idle cx0
check_eq "eight lists of a MiB: how many in one slice at most, and in all" "1 8" "$(awk '
    /peerlane_cx_slice/ { n = 0 }
    /peerlane_cx_umr.* pages 131064 / { all++; if (++n > most) most = n }
    END { print most + 0, all + 0 }' "$OUT/qemu.log")"
# So is the search in the list of an indirect key: a READ of the end of 4096 pieces, in 8 packets
zeros 272; at "$r" 0 0200 16 4000be00 20 ffffff11 28 00$PD 68 00001000
make "a free key for 4096 pieces" "$r"; PIECES=$r
piece 8 $ALL $PAGES; repeat 4096 $r
wrhex 0x400000 0x$r
key=${PIECES}11 flags=20 octwords=1000 mask=00000000201e6041 rights=3e low=12 start=0000000000000000 len=0000000000008000
hex 8:0x10000 $ALL 16:0x400000; list=$r
umr_says "it gets them" 0
to_rts $RC $PEER 20
to_rts $PEER $RC 20
rdma 10 0x7800 2048 ${PIECES}12
completed
check_eq "READ by a key of 4096 pieces" 0 "$r"
idle cx0
check_eq "READ by a key of 4096 pieces: packets of the answer in one slice at most, and in all" "1 8" "$(awk '
    /peerlane_cx_umr.* pages 8192 / { on = 1 }
    /peerlane_cx_slice/ { n = 0 }
    on && /peerlane_cx_packet .* to .* opcode 0x[def] / { all++; if (++n > most) most = n }
    END { print most + 0, all + 0 }' "$OUT/qemu.log")"
# Capabilities
short 0100; at $r 6 0005; cmd $r 4112
rdhex $((OUT_BOX + 0xc0)) 4
check_eq "on-demand paging: by memory" 0x80000000 "$r"
short 0103; says "all goes with TEARDOWN_HCA" 0 $r 8
fixed 0109 00000000 00000000 4112; at "$r" 6 0004; says "on-demand paging is not to be had otherwise" 3 "$r" 8
qt_stop
qt_finish

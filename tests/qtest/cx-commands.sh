#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the ConnectX refuses bad commands with the right status, and random ones do not bring QEMU down
# tags: qtest
# tier: check
# timeout: 400
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"

# SEEDS and STEPS may be given; a failure is repeated with the seed it printed
SEEDS=${SEEDS:-1 2 3}
STEPS=${STEPS:-33000}

cx_start

# The ways in which a slot and its mailboxes can be wrong
short 0104; ENABLE=$r
type=06; says "slot of another kind" "delivery 16" $ENABLE 12
in_len=7; says "input of 7 bytes" "delivery 7" $ENABLE 12
in_len=$((0xffffffff)); says "input of 4 GiB" "delivery 7" $ENABLE 12
in_len=$((4 * 1048576 + 4097)); says "input a byte too long" "delivery 7" $ENABLE 12
says "output of 7 bytes" "delivery 8" $ENABLE 7
says "output of 4 GiB" "delivery 8" $ENABLE $((0xffffffff))
says "output a byte too long" "delivery 8" $ENABLE 65537
in_len=17 in_ptr=0000000000000000; says "no input mailbox" "delivery 5" $ENABLE 12
in_len=17 in_ptr=0000000000020100; says "input mailbox not aligned" "delivery 5" $ENABLE 12
in_len=17 in_ptr=$NOWHERE; says "input mailbox outside of memory" "delivery 6" $ENABLE 12
out_ptr=0000000000000000; says "no output mailbox" "delivery 4" $ENABLE 17
out_ptr=0000000000040010; says "output mailbox not aligned" "delivery 4" $ENABLE 17
out_ptr=$NOWHERE; says "output mailbox outside of memory" "delivery 6" $ENABLE 17
fixed 0104 00000000 00000000 64; LONG=$r
box_token=5b; says "another token" "delivery 2" $LONG 12
box_number=1; says "another block number" "delivery 3" $LONG 12
says "nothing of all this has enabled the device" 0 $ENABLE 12
says "which can be done once" 4 $ENABLE 12
wrhex $((SLOT + 0x3f)) 0x00
wrhex $((BAR + 0x18)) 0x00000001
qom_counter cx0 commands
n=$r
short 080d
says "a slot of the driver's is left alone" 0 $r 8
qom_counter cx0 commands
check_eq "and not counted" $((n + 1)) "$r"

# While the machine is stopped nothing is done, and QEMU sleeps
short 0fff
qmp stop
give $r 8
n=0
while [ $n -lt 200000 ] && read -r _ _ qemu_state _ <"/proc/$qt_pid/stat" && [ "$qemu_state" != S ]; do
    n=$((n + 1))
done
check_eq "a doorbell while the machine is stopped: QEMU sleeps" S "$qemu_state"
rdhex $((SLOT + 0x3f)) 1
check_eq "and has not touched the slot" 0x01 "$r"
qmp cont
answer
check_eq "it is done when the machine goes on" 2 "$r"

# Before its time, of no kind, too short
short 0800; says "ALLOC_PD before INIT_HCA" 4 $r 16
short 0fff; says "no such command" 2 $r 16
short 0000; says "command 0" 2 $r 16
short 0108 00000000 ffffffff; at $r 6 0001
says "more pages than there is room for" 8 $r 16
short 0108 00000000 00000003; at $r 6 0001
says "fewer addresses of pages than it says" 80 $r 16
short 0107 00000000; at $r 6 0004; says "pages for no purpose" 3 $r 16
short 010b 00000002; says "another interface sequence" 3 $r 8
short 0102
INIT=$r
says "INIT_HCA" 0 $INIT 8
says "INIT_HCA again" 4 $INIT 8
short 0103
TEARDOWN=$r

# opcode, shortest input, shortest output: peerlane-cx.rst, and the manual's structures
while read -r op in_bytes out_bytes; do
    # Fewer than 8 bytes are no command at all
    if [ $in_bytes -gt 8 ]; then
        zeros $((in_bytes - 1)); at "$r" 0 $op
        cmd "$r" $((out_bytes))
        [ "$r" = 80 ] || fail "input of $op is too short by one" "$r"
    fi
    [ $out_bytes -gt 8 ] || continue
    zeros $((in_bytes)); at "$r" 0 $op
    in_hex=$r
    cmd "$in_hex" $((out_bytes - 1))
    [ "$r" = 81 ] || fail "output of $op is too short by one" "$r"
done <<'TABLE'
0101 8 272
0203 8 16
0762 16 528
0764 16 32
0765 16 20
0770 32 528
0801 12 8
0803 12 8
080f 12 8
0817 12 8
0772 12 8
0773 32 256
0200 272 12
0202 12 8
0201 12 80
0204 16 8
0301 272 12
0302 12 8
0303 12 80
0400 272 12
0401 12 8
0402 12 80
0403 272 8
0705 272 12
0706 12 8
090c 272 12
090d 272 8
090e 12 8
090f 12 272
0707 12 80
0708 16 8
0500 272 12
0501 12 8
050b 12 256
0502 256 8
050e 256 8
0503 256 8
0504 256 8
0505 256 8
0506 256 8
0507 12 8
050a 12 8
0a04 64 16
0a06 16 8
0a08 48 12
0a0a 12 8
TABLE
pass "inputs and outputs that are too short are refused"

# What does not exist
for op in 0801 0803 080f 0817 0772 0202 0201 0302 0303 0401 0402 0706 0707 0708 090e 090f 0501 050b 0507 050a 0a06 0a0a; do
    for which in 00000000 00000001 00ffffff; do
        short $op $which
        cmd $r 272
        [ "$r" = 5 ] || fail "$op of $which, which does not exist" "$r"
    done
done
pass "what does not exist is not destroyed, asked for or changed"

# Things that depend on others
short 0802; cmd $r 16; id; UAR=$r
short 0800; cmd $r 16; id; PD=$r
eq_new; EQ_IN=$r
says_at "event queue: page of doorbells that nobody has" 5 $EQ_IN 28 01001fff
says_at "event queue: too large" 8 $EQ_IN 28 0f$UAR
says_at "event queue: vector that is none" 3 $EQ_IN 38 0008
says_at "event queue: pages missing" 80 $EQ_IN 28 07$UAR
says_at "event queue" 0 $EQ_IN
id; EQ=$r
cq_new; CQ_IN=$r
says_at "completion queue: event queue that is none" 5 $CQ_IN 36 00ffffff
says_at "completion queue: too large" 8 $CQ_IN 28 11$UAR
says_at "completion queue: collapsed, and may not be overrun" 3 $CQ_IN 16 00100000
says_at "completion queue: in user memory that is none" 5 $CQ_IN 92 80000000
says_at "completion queue: the largest, with one page" 80 $CQ_IN 28 10$UAR
says_at "completion queue" 0 $CQ_IN
id; CQ=$r
short 0302 00$EQ
says "an event queue that is in use stays" 6 "$r" 8
qp_new; QP_IN=$r
says_at "queue pair: kind that is none" 3 $QP_IN 25 04
says_at "queue pair: XRC with receives of its own" 3 $QP_IN 25 03
says_at "queue pair: XRC domain that is none" 5 $QP_IN 25 03 196 01 177 00003f
says_at "queue pair: shared receives that are none" 5 $QP_IN 196 01000000
says_at "queue pair: protection domain that is none" 5 $QP_IN 28 00ffffff
says_at "queue pair: completion queue that is none" 5 $QP_IN 148 00ffffff
says_at "queue pair: receives of 2 KiB" 8 $QP_IN 33 17
says_at "queue pair: pages missing" 80 $QP_IN 34 68
says_at "queue pair: the largest, with one page" 80 $QP_IN 34 78
says_at "queue pair" 0 $QP_IN
says_at "queue pair: reliable, that sends as if it were QP1" 3 $QP_IN 153 000001
says_at "queue pair: of UD, that sends as if it were QP2" 3 $QP_IN 25 02 153 000002
says_at "queue pair: of UD, that sends as if it were QP1" 0 $QP_IN 25 02 153 000001
says_at "queue pair: QP1" 0 $QP_IN 25 08; id
GSI=$r; says_at "queue pair: a second QP1" 6 $QP_IN 25 08
short 0501 00$GSI; says "QP1 goes" 0 $r 8
says_at "queue pair: QP1 again" 0 $QP_IN 25 08
id; QP=$r
short 0401 00$CQ; says "a completion queue that is in use stays" 6 $r 8
short 0801 00$PD; says "a protection domain that is in use stays" 6 $r 8
rmp_new; RMP_IN=$r
says_at "shared receives: not ready" 3 $RMP_IN 33 00
says_at "shared receives: of another kind" 3 $RMP_IN 36 80
says_at "shared receives: a ring" 3 $RMP_IN 80 10
says_at "shared receives: in user memory" 3 $RMP_IN 116 40
says_at "shared receives: a limit above their number" 3 $RMP_IN 86 0005
says_at "shared receives: entries of 8 bytes" 3 $RMP_IN 113 03
says_at "shared receives: entries of 1 KiB" 8 $RMP_IN 113 0a
says_at "shared receives: too many" 8 $RMP_IN 115 0e
says_at "shared receives: protection domain that is none" 5 $RMP_IN 89 ffffff
says_at "shared receives: pages missing" 80 $RMP_IN 115 0d
says_at "shared receives" 0 $RMP_IN
id; RMP=$r
short 0706 00$RMP; says "they are not those of XRC" 5 $r 8
says_at "queue pair: shared receives" 0 $QP_IN 196 01$RMP
id; SHARED=$r
short 090e 00$RMP; DESTROY=$r; says "shared receives that are in use stay" 6 $r 8
fixed 090d 10$RMP 00000000 272; at "$r" 23 01 33 10 86 0003
MODIFY=$r
says_at "their limit: they are to be reset" 3 $MODIFY 8 00
says_at "their limit: and more" 3 $MODIFY 23 03
says_at "their limit: above their number" 3 $MODIFY 86 0005
says_at "their limit" 0 $MODIFY
short 0501 00$SHARED; cmd $r 8
says "shared receives go" 0 $DESTROY 8
says "once" 5 $DESTROY 8
for op in 050e 0503 0504 0505 0506; do
    fixed $op 00$QP 00000000 272
    says "$op of a queue pair that is reset" 16 $r 8
done
short 0507 00$QP; says "a queue pair that is reset does not fail" 16 $r 8
fixed 0502 00$QP 00000000 272
TO_INIT=$r
says "to INIT" 0 $TO_INIT 8
says "again" 16 $TO_INIT 8
key_new; MKEY_IN=$r
says_at "key: protection domain that is none" 5 $MKEY_IN 28 00ffffff
says_at "key: of a later kind" 3 $MKEY_IN 16 04003d00
says_at "key: free" 3 $MKEY_IN 16 40003d00
says_at "key: pages of 2 KiB" 3 $MKEY_IN 72 0000000b
says_at "key: pages of 2^63 bytes" 3 $MKEY_IN 72 0000003f
says_at "key: fewer pages than bytes" 64 $MKEY_IN 96 00000001
says_at "key: the longest" 64 $MKEY_IN 32 0000000000000000 40 ffffffffffffffff
says_at "key: over the end of addresses" 3 $MKEY_IN 40 ffffffffffffffff
says_at "key: no bytes" 3 $MKEY_IN 40 0000000000000000
says_at "key: more pages than came" 80 $MKEY_IN 96 ffffffff
says_at "key: as long as its list" 0 $MKEY_IN 28 80$PD
says_at "key" 0 $MKEY_IN
id; MKEY=$r
short 0202 00$MKEY
DESTROY=$r
says "the key goes" 0 $DESTROY 8
says "once" 5 $DESTROY 8
fixed 0805 00005004 00000000 80; at "$r" 6 0000; says "a register is not written" 3 "$r" 80
fixed 0805 00005004 00000000 80; at "$r" 6 0001 17 02; says "a port that is none" 3 "$r" 80
fixed 0805 00005004 00000000 80; at "$r" 6 0001 17 01; says "a register" 0 "$r" 80
fixed 0805 00005008 00000000 272; at "$r" 6 0001 17 01; PPCNT=$r
at $PPCNT 19 20; says "counters of errors" 0 "$r" 272
at $PPCNT 19 20; says "counters of errors, too short" 81 "$r" 271
at $PPCNT 19 21; says "counters of another group" 3 "$r" 272
at $PPCNT 19 20 20 80; says "counters are not cleared" 3 "$r" 272
fixed 0805 00009999 00000000 80; at "$r" 6 0001; says "a register that is none" 3 "$r" 80
short 0764 00000000 00000008; says "an address that is none" 3 "$r" 32
says "all goes with TEARDOWN_HCA" 0 $TEARDOWN 8
short 0105; says "DISABLE_HCA" 0 $r 8
qt_stop

# What the engine writes may hit the function itself: through ECAM, at ECAM, and in its page of doorbells

new_pair() { # DESC
    echo "# $1"
    cx_start
    ecam_on
    self_pair
}
# A function that was reset decodes nothing
decodes() { cfg_readl $DEVFN 4; r=$((r & 7)); }
works() {
    cx_bar
    says "$1: the device works" 0 $ENABLE 12
    qt_stop
}

new_pair "WRITE that resets the function"
cfg_cap $DEVFN 0x10
DEVCTL=$((ECAM + (DEVFN << 12) + r + 8))
wrhex $DATA 0x0080
rdma_write $DEVCTL 2
becomes "WRITE that resets the function: it is reset" 0 decodes
bytes_are "WRITE that resets the function: no completion" 0x51000 0x7777777777777777
works "WRITE that resets the function"

new_pair "interrupt that resets the function"
cfg_writel $DEVFN 0x18 0xe0000000
cfg_cap $DEVFN 0x11
cfg_writew $DEVFN $((r + 2)) 0x8000
writel 0xe0000000 $DEVCTL
writel 0xe0000004 0
writel 0xe0000008 0x8000
writel 0xe000000c 0
wrhex $((BAR + 0x1000 * 0x$UAR + 0x40)) 0x${EQ#????}000000
wrhex $((BAR + 0x1000 * 0x$UAR + 0x20)) 0x0000000000$CQ
rdma_write 0x90000 64
becomes "interrupt that resets the function: it is reset" 0 decodes
works "interrupt that resets the function"

new_pair "WRITE to its own doorbell"
wrhex $DATA "0x00000008${QP}03"
rdma_write $((BAR + 0x1000 * 0x$UAR + 0x800)) 8
becomes "WRITE to its own doorbell: it is done" 1 qom_counter cx0 cqes
value_is "WRITE to its own doorbell: nothing has arrived" 1 qom_counter cx0 doorbells
qt_stop

new_pair "WRITE over configuration space"
memset $DATA 0x40000 0
rdma_write $((ECAM + (DEVFN << 12))) 0x40000
becomes "WRITE over configuration space: it is done" 1 qom_counter cx0 wqes
decodes
check_eq "WRITE over configuration space: and has arrived" 0 "$r"
cfg_cap $DEVFN 0x10
cfg_writew $DEVFN $((r + 8)) 0x8000
works "WRITE over configuration space"

# A completion queue of 4 entries gets another size with 3 of them in it, and is overrun then
new_pair "completion queue"
at $EQ_IN 88 0000000000000010; says "completion queue: a queue for its errors" 0 "$r" 16
cq_in() { # OP-MOD FIELDS CONTEXT...
    zeros 280; at "$r" 0 0403 6 $1 9 $CQ 12 $2 272 0000000000055000
}
wrhex 0x60000 0x00000000
memset 0x50000 128 0x77
memset 0x55000 512 0x77
# writes N: so many entries more; the index of the first is $written
written=0
writes() {
    wr_end=$((written + $1))
    while [ $written -lt $wr_end ]; do
        wr $((0x52040 + 64 * (written % 4))) 6:$written 08${QP}030000000800000000 16:0x90000 ${PA_KEY}0000000000 8:8 ${PA_KEY}00 16:$DATA
        written=$((written + 1))
    done
    wr 0x60044 8:$written
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000008${QP}03"
}
writes 3
becomes "completion queue: three entries" 3 qom_counter cx0 cqes
cq_in 0000 00000003; at "$r" 34 0005; says "completion queue: it is to tell of five" 0 "$r" 8
wrhex $((BAR + 0x1000 * 0x$UAR + 0x20)) 0x0000000000$CQ
cq_in 0000 00000004; says "completion queue: a field that is not modelled" 3 "$r" 8
value_is "completion queue: it does not tell of three" 0 qom_counter cx0 eqes
cq_in 0002 00000003; says "completion queue: changed in another way" 3 "$r" 8
cq_in 0001 00000007; RESIZE=$r
says_at "completion queue: other fields of a size" 3 $RESIZE 12 00000001
says_at "completion queue: a size of other entries" 3 $RESIZE 28 03 16 00200000
says_at "completion queue: too small for what is in it" 64 $RESIZE 28 01
says_at "completion queue: too large" 8 $RESIZE 28 11
says_at "completion queue: pages missing" 80 $RESIZE 28 10
says_at "completion queue: none" 5 $RESIZE 9 ffffff
bytes_are "completion queue: nothing of all this has changed it" 0x510c0 0x77777777
says_at "completion queue: twice the size" 0 $RESIZE 28 03
bytes_are "completion queue: the old one says so" 0x510ff 0x50
writes 4
becomes "completion queue: four entries more" 7 qom_counter cx0 cqes
value_is "completion queue: it tells of them" 1 qom_counter cx0 eqes
bytes_are "completion queue: they are in the new one, behind the place of that" 0x550c0 0x77777777
bytes_are "completion queue: the first of them" 0x5513c 0x0003
bytes_are "completion queue: the last of them" 0x551fc 0x0006
writes 1
becomes "completion queue: it is overrun" 2 qom_counter cx0 eqes
bytes_are "completion queue: an event tells" 0x50001 0x04
bytes_are "completion queue: and why" 0x5002b 0x01
bytes_are "completion queue: and of which" 0x50020 0x00$CQ
says_at "completion queue: it gets no other size now" 9 $RESIZE 28 04
short 050b 00$QP; cmd $r 256
rdhex $((OUT_BOX + 8)) 1
check_eq "completion queue: the queue pair that completes there has failed" 0x60 "$r"
qt_stop

# One that is collapsed has all completions in its first entry
new_pair "collapsed completion queue"
says_at "collapsed completion queue" 0 $CQ_IN 16 00120000 272 0000000000055000
id; CQ=$r
says_at "collapsed completion queue: a queue pair" 0 $QP_IN 148 00$CQ 180 00$CQ
id; QP=$r
to_itself $QP
memset 0x55000 256 0x77
written=0
writes 3
becomes "collapsed completion queue: three entries" 3 qom_counter cx0 cqes
bytes_are "collapsed completion queue: the last is in the first place" 0x5503c 0x0002
bytes_are "collapsed completion queue: and is good" 0x5503f 0x00
bytes_are "collapsed completion queue: nothing is behind it" 0x55040 0x7777777777777777
writes 2
becomes "collapsed completion queue: more than its entries" 5 qom_counter cx0 cqes
bytes_are "collapsed completion queue: the last of them" 0x5503c 0x0004
cq_in 0001 00000007; says "collapsed completion queue: its size stays" 3 "$r" 8
qt_stop

# A user makes queues in memory of its own, and a WRITE completes there.  What others have made it cannot name.
new_pair "user"
DRIVER_PD=$PD DRIVER_UAR=$UAR
at $EQ_IN 2 ffff; cmd "$r" 16; id; EQ=$r
zeros 64; at "$r" 0 0a04; UCTX_IN=$r
says_at "user: with rights" 3 $UCTX_IN 16 00000001
says_at "user" 0 $UCTX_IN
id; USER=${r#??}
says_at "user: another" 0 $UCTX_IN
id; OTHER=${r#??}
short 0800; at "$r" 2 $USER; cmd "$r" 16; id; PD=$r
short 0802; at "$r" 2 $USER; cmd "$r" 16; id; UAR=$r
short 0801 00$PD; at "$r" 2 $OTHER; says "user: a protection domain of another one's" 5 "$r" 8
short 0801 00$DRIVER_PD; at "$r" 2 $USER; says "user: one of the driver's" 5 "$r" 8
short 0800; at "$r" 2 0777; says "user: none" 5 "$r" 16
short 0302 00$EQ; at "$r" 2 $USER; says "user: a command of the driver's" 3 "$r" 8
# Two pages at 0x56000 and 0x57000, from byte 64 on
zeros 64; at "$r" 0 0a08 2 $USER 36 00000040 40 0000000000000002
at "$r" 48 00000000000560030000000000057003
UMEM_IN=$r
says_at "user memory: no pages" 3 $UMEM_IN 40 0000000000000000
says_at "user memory: it begins behind the first page" 3 $UMEM_IN 36 00001000
says_at "user memory: more pages than came" 80 $UMEM_IN 40 0000000000000003
says_at "user memory: of too many pages" 80 $UMEM_IN 40 ffffffffffffffff
says_at "user memory: to be read only" 0 $UMEM_IN 55 01
id; READ_ONLY=00$r
says_at "user memory" 0 $UMEM_IN
id; UMEM=00$r
at $CQ_IN 2 $USER 16 02 20 $UMEM 29 $UAR 36 00$EQ
at "$r" 72 0000000000000800 88 ${UMEM}80
USER_CQ=$r
says_at "user's completion queue: in memory that is only read" 3 $USER_CQ 88 $READ_ONLY
says_at "user's completion queue: in memory of another user's" 5 $USER_CQ 2 $OTHER
says_at "user's completion queue: doorbells of the driver's" 5 $USER_CQ 29 $DRIVER_UAR
says_at "user's completion queue: over the end of the memory" 64 $USER_CQ 80 0000000000001f00
says_at "user's completion queue: at half an entry" 64 $USER_CQ 80 0000000000000020
says_at "user's completion queue: its record behind the memory" 64 $USER_CQ 72 0000000000001fc0
says_at "user's completion queue: its record at a word" 64 $USER_CQ 72 0000000000000804
says_at "user's completion queue" 0 $USER_CQ
id; CQ=$r
short 0a0a $UMEM; UMEM_OUT=$r; says "user memory with a queue stays" 6 "$r" 8
at $QP_IN 2 $USER 28 00$PD 36 00$UAR 148 00$CQ 180 00$CQ
at "$r" 184 0000000000000840 232 10 252 $UMEM 256 0000000000000400${UMEM}80
USER_QP=$r
says_at "user's queue pair: one that changes the driver's keys" 3 $USER_QP 25 0c
says_at "user's queue pair: one for management" 3 $USER_QP 25 08
says_at "user's queue pair: one that sends as if it were that" 3 $USER_QP 25 02 153 000001
says_at "user's queue pair: the driver's domain" 5 $USER_QP 29 $DRIVER_PD
says_at "user's queue pair" 0 $USER_QP
id; QP=$r
zeros 64; piece=$r
zeros 272; at "$r" 0 0200 2 $USER 16 00003e00 20 ffffff00 28 00$PD
at "$r" 40 0000000000001000 96 00000004; KLM_IN=$r$piece
says_at "user's key of keys: the driver's domain" 5 $KLM_IN 29 $DRIVER_PD
says_at "user's key of keys: of pages instead" 3 $KLM_IN 18 3d
says_at "user's key of keys" 0 $KLM_IN; id
short 0202 00$r; at "$r" 2 $USER; says "user's key of keys: it goes" 0 "$r" 8
short 050b 00$QP; at "$r" 2 $OTHER; says "user's queue pair: not for another user" 5 "$r" 256
short 0771; at "$r" 2 $OTHER; says "user: counters of another one's" 0 "$r" 16; id; OTHER_SET=${r#????}
short 0771; at "$r" 2 ffff; says "user: counters that are for all" 0 "$r" 16; id; SHARED_SET=${r#????}
fixed 0502 00$QP 00000000 256; at "$r" 2 $USER 36 $OTHER_SET; says "user's queue pair: counted with another user's" 5 "$r" 8
for fields in "0502 36 $SHARED_SET 170 e0" "0503 32 a0 44 00$QP 54 0001" 0504; do
    set -- $fields
    fixed $1 00$QP 00000000 256
    shift
    at "$r" 2 $USER "$@"
    cmd "$r" 8
done
check_eq "user's queue pair: connected to itself" 0 "$r"
zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
PA_IN=$r
says_at "a key for all of memory is none for users" 3 $PA_IN 2 $USER
cmd $PA_IN 16; id; PA_KEY=$r
memset 0x56000 4096 0x77
wrhex 0x56840 0x0000000000000000
wrhex $DATA 0x0123456789abcdef
wr 0x56480 00000008${QP}030000000800000000 16:0x90000 ${PA_KEY}0000000000 8:8 ${PA_KEY}00 16:$DATA
wrhex 0x56880 0x0000000000000001
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000008${QP}03"
becomes "user's queue pair: its entry is done" 1 qom_counter cx0 cqes
bytes_are "user's queue pair: the data is there" 0x90000 0x0123456789abcdef
bytes_are "user's completion queue: the completion is in its memory" 0x56078 0x08${QP}000000
bytes_are "... and nothing before it" 0x56000 0x7777777777777777
short 0a06 0000$USER; says "a user who has something stays" 6 "$r" 8
short 0501 00$QP; at "$r" 2 $USER; cmd "$r" 8
short 0401 00$CQ; at "$r" 2 $USER; cmd "$r" 8
says "user memory without a queue goes" 0 $UMEM_OUT 8
qt_stop

# Shared receives whose list leads nowhere: a SEND takes the first, the second finds the end of it
new_pair "shared receives"
at $EQ_IN 88 00000000001c0000; says "shared receives: a queue for their events" 0 "$r" 16
says_at "shared receives: two of them" 0 $RMP_IN
id; RMP=$r
says_at "shared receives: a queue pair" 0 $QP_IN 196 01$RMP
id; QP=$r
fixed 0502 00$QP 00000000 256; at "$r" 170 e0; cmd $r 8
fixed 0503 00$QP 00000000 256; at "$r" 32 a0 44 00$QP 54 0001; cmd $r 8
fixed 0504 00$QP 00000000 256; cmd $r 8
memset 0x50000 128 0x77
# The third comes behind the first, and none behind that
wrhex 0x54000 "0x0000000200000000000000000000000000000040${PA_KEY}000000000000090000"
wrhex 0x54040 "0x0000000400000000000000000000000000000040${PA_KEY}000000000000090040"
wrhex 0x60080 0x00000002
wrhex $DATA 0x0123456789abcdef
for n in 0 1; do
    wr $((0x52000 + 64 * n)) 00000${n}0a${QP}020000000800000000 8:$((8 - n)) ${PA_KEY}00 16:$DATA
done
wrhex 0x60044 0x00000002
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x0000000a${QP}02"
becomes "shared receives: two events" 2 qom_counter cx0 eqes
bytes_are "shared receives: where the first names" 0x90000 0x0123456789abcdef
short 090f 00$RMP; cmd $r 272
rdhex $OUT_BOX 32
check_eq "shared receives: they have failed" 0x0030 "$(printf %s "$r" | cut -c1-2,35-38)"
says_at "shared receives: and get no limit" 9 "$MODIFY" 9 $RMP
bytes_are "shared receives: the events: that they have, and that the queue pair takes no more" 0x50001 0x12
bytes_are "shared receives: in this order" 0x50041 0x13
qt_stop

# Each step is one line for qtest: commands whose bytes are nearly right, in each slot, and doorbells
make_steps() { # SEED STEPS
    awk -v x=$(($1 * 7919 + 1)) -v steps="$2" -v uar=$((0x$UAR)) -v qp=$((0x$QP)) -v uc=$((0x$UC)) -v ud=$((0x$UD)) -v key=$((0x$PA_KEY)) -v free=$((0x$FREE_KEY)) -v pd=$((0x$PD)) -v eth=$ETH '
    function rnd(n) { x = (x * 16807) % 2147483647; return x % n }
    function pick(list,   a, n) { n = split(list, a, " "); return a[1 + rnd(n)] }
    function hex(n, v) { return sprintf("%0" n "x", v) }
    function size(list,   n) { n = pick(list); return n < 0 ? "ffffffff" : hex(8, n) }
    function noise(n,   h) { h = ""; while (n-- > 0) h = h hex(2, rnd(4) ? 0 : rnd(256)); return h }
    function w(a, h) { printf "write %.0f %d 0x%s\n", a, length(h) / 2, h; made++ }
    function boxes(base, n,   i, b) {
        for (i = 0; i < n; i++) {
            b = base + 1024 * i
            w(b + 560, hex(16, rnd(40) ? b + 1024 : rnd(2) ? 0 : base) hex(8, rnd(60) ? i : rnd(5)) "00" (rnd(60) ? "5a" : "00"))
        }
    }
    # Contexts with small numbers in the places of ids and sizes
    function context(   h, i) {
        h = ""
        for (i = 0; i < 64; i++)
            h = h (rnd(3) ? "00000000" : rnd(2) ? hex(8, rnd(80)) : rnd(2) ? hex(2, rnd(16)) hex(6, 16 + rnd(4)) : noise(4))
        return h
    }
    function any_key() { return rnd(12) ? hex(6, key) "00" : !rnd(3) ? hex(6, free) "11" : rnd(2) ? "00000100" : noise(4) }
    function place() {
        return rnd(8) ? hex(16, 1048576 + rnd(1048576)) : \
            pick("0000000600000000 0000000800010800 0000000800000018 0000000000052000 0000000000051000 fffffffffffffff0")
    }
    function bytes() { return hex(8, pick("0 1 8 8 8 64 4096 65536 262144 262145 1048576")) }
    function piece() { return bytes() any_key() place() }
    # An entry that changes the key for that, nearly right
    function umr(   h) {
        h = "000000" (rnd(12) ? "25" : hex(2, rnd(256))) hex(6, qp) (rnd(8) ? pick("0c 0c 0c 09 08") : hex(2, rnd(64))) "00000008"
        h = h (rnd(12) ? hex(6, free) "11" : noise(4)) pick("80 80 80 a0 c0 90 00 20 40 30") "000000" pick("0004 0004 0004 0000 0008 0003 ffff") (rnd(5) ? "0000" : pick("0004 0002 ffff")) "00000000"
        h = h pick("201e00c3 201e00c3 201e0000 20000000 00000002 00000003 001e0080 00000000 ffffffff") (rnd(20) ? "00000000" : noise(4)) hex(56, 0)
        h = h pick("00 00 00 00 40 ff") "00" pick("3d 3d 15 7d 00") "00ffffff11" hex(8, 0) (rnd(9) ? "00" : "80") (rnd(9) ? hex(6, pd) : noise(3)) place()
        h = h hex(16, pick("4096 8192 8192 28672 0 65536 4294967295")) hex(54, 0) pick("0c 0c 0c 0d 15 00 3f") hex(8, 0)
        return h bytes() any_key() place() noise(48)
    }
    function slot_of(op, len) {
        return "07000000" hex(8, len) "0000000000030000" op "000000000000" hex(8, q) "00000000" \
            "00000000000000000000000000000000" "0000000000040000" "000000105a000001"
    }
    # The engine has done what it was given
    function idle() { print "engine-idle cx0" }
    # A queue pair is connected to itself anew, and gets entries that are right or nearly right.  Not always is it idle
    # before the next thing.
    function post(   n, i, op, h, kind) {
        kind = pick("rc rc uc ud")
        q = kind == "rc" ? qp : kind == "uc" ? uc : ud
        w(196608 + 28, hex(8, q))
        w(65536 + 64 * 24, slot_of("050a", 16) slot_of("0502", 256) slot_of("0503", 256) slot_of("0504", 256))
        w(34359738368 + 24, "0f000000")
        idle()
        if (kind == "rc" && !rnd(4)) {
            w(335936, umr())
            w(393284, hex(8, 3))
            w(34359738368 + 4096 * uar + 2048, "00000000" hex(6, qp) "00")
            idle()
            return
        }
        n = 1 + rnd(4)
        for (i = 0; i < n; i++) {
            op = rnd(12) ? pick("8 8 9 10 11 16 17 18 0") : rnd(256)
            h = hex(4, rnd(40) ? i : rnd(9)) hex(4, op) hex(6, rnd(40) ? q : rnd(80)) hex(2, rnd(12) ? 3 + (op != 10 && op != 11) * rnd(2) : rnd(64))
            h = h "000000" (rnd(4) ? "08" : "00") noise(4)
            if (op != 10 && op != 11) h = h place() any_key() "00000000"
            else if (kind == "ud") h = h (rnd(12) ? "00000000" : "80000000") "00000000" (rnd(12) ? "00" : "80") hex(6, q) "0000" pick("0001 0001 0001 0002 0000 c001")
            if (op == 17 || op == 18) h = h noise(16)
            h = substr(h piece() piece() piece(), 1, 128)
            w(335936 + 64 * i, h)
        }
        for (h = ""; length(h) < 128;) h = h piece()
        w(335872, h)
        w(393280, (rnd(12) ? hex(8, rnd(5)) : noise(4)) (rnd(12) ? hex(8, n) : noise(4)))
        if (!rnd(3)) w(393216, noise(4))
        w(34359738368 + 4096 * uar + 2048, "00000000" hex(6, q) "00")
        if (rnd(4)) idle()
    }
    BEGIN {
        # The mailbox of the commands that connect
        h = sprintf("%0480d", 0)
        h = substr(h, 1, 32) "a0" substr(h, 35)
        h = substr(h, 1, 76) "0001" substr(h, 81)
        h = substr(h, 1, 308) "e0" substr(h, 311)
        if (eth) {
            # to itself, by an address
            h = substr(h, 1, 96) "00000000000000000000ffff0a000001" substr(h, 129)
            h = substr(h, 1, 140) "525400123456" substr(h, 153)
        }
        w(196608, h)
        w(196608 + 560, "0000000000000000" "00000000" "005a")
        while (made < steps / 6)
            post()
        ops = "0100 0100 0107 0108 0108 010a 0200 0200 0200 0201 0202 0204 0204 0203 0301 0301 0302 0303 0400 0400 0401 0402 0403 0403 " \
            "0500 0500 0500 0501 0502 0503 0504 0505 0506 0507 050a 050b 050e 0705 0706 0707 0708 090c 090d 090e 090f 0762 0764 0765 0770 0771 " \
            "0772 0773 0800 0800 0801 0802 0802 0803 0805 080d 080e 080f 0816 0817 0101 0109 0fff"
        if (eth) ops = ops " 0750 0754 0755 0755 0760 0761 0761 0826 0900 0900 0900 0901 0902 0903 0904 0904 0904 0905 0905 0906 0907 0908 0908 0908 " \
            "0909 0909 090a 090b 0912 0913 0914 0915 0916 0916 0916 0917 0917 0918 0919 092f 092f 0930 0930 0930 0931 0933 0933 0933 0934 " \
            "0936 0936 0936 0936 0938 093c"
        while (made < steps) {
            k = rnd(104)
            if (k >= 100) post()
            else if (k < 60) {
                slot = rnd(31)
                op = !rnd(5000) ? pick("0103 0105") : !rnd(12) ? pick("0104 0102") : pick(ops)
                boxes(131072, 2)
                w(131072, context() noise(64))
                boxes(262144, 9)
                w(65536 + 64 * slot, (rnd(60) ? "07" : "00") "000000" \
                    size("12 16 16 272 280 280 280 280 280 280 280 512 1040 4112 " pick("280 280 280 8 0 -1")) \
                    (rnd(40) ? "0000000000020000" : pick("0000000000000000 0000000000020001 0000000600000000 ffffffffffffffff")) \
                    op "00000000" hex(4, rnd(5)) (rnd(2) ? hex(8, rnd(80)) : noise(4)) (rnd(2) ? hex(8, rnd(10)) : noise(4)) \
                    "00000000000000000000000000000000" \
                    (rnd(40) ? "0000000000040000" : pick("0000000000000000 0000000000040001 0000000600000000 ffffffffffffffff")) \
                    size("16 16 80 80 272 528 528 4112 4112 4112 4112 4112 " pick("280 280 280 8 0 -1")) "5a000001")
                w(34359738368 + 24, hex(8, 2 ^ slot))
            }
            else if (k < 75) w(34359738368 + 4096 * (16 + rnd(6)) + 2048 + 256 * rnd(8), noise(4) hex(6, 64 + rnd(8)) hex(2, rnd(64)))
            else if (k < 83) w(34359738368 + 4096 * (16 + rnd(6)) + 32, hex(8, rnd(16) + 16777216 * rnd(2)) hex(8, rnd(8)))
            else if (k < 90) w(34359738368 + 4096 * (16 + rnd(6)) + 64 + 8 * rnd(2), hex(2, rnd(8)) hex(6, rnd(10)))
            else if (k < 94) w(34359738368 + 4 * rnd(2048), noise(4))
            else if (k < 97) { printf "read %.0f 4\n", 34359738368 + 4 * rnd(2048); made++ }
            else w(331776 + 16 * rnd(2000), noise(16))
        }
        idle()
    }'
}

# right_commands: how many have not been refused, in $r
right_commands() {
    qom_counter cx0 command-errors
    wrong=$r
    qom_counter cx0 commands
    r=$((r - wrong))
}

for seed in $SEEDS; do
    # Every other one is of a port of Ethernet
    ETH=$((seed % 2))
    echo "# seed $seed"
    if [ $ETH -eq 1 ]; then
        cx_start link-layer=ethernet
    else
        cx_start
    fi
    cmd $ENABLE 12
    cmd $INIT 8
    for n in 1 2 3 4; do
        short 0802; cmd $r 16
        short 0800; cmd $r 16
    done
    says "seed $seed: an event queue to begin with" 0 $EQ_IN 16
    says "seed $seed: a completion queue" 0 $CQ_IN 16
    # One queue ignores overruns, so that there are completions to the end
    at $CQ_IN 16 00020000; says "seed $seed: one that may be overrun" 0 "$r" 16
    id; at $QP_IN 148 00$r 184 0000000000060040 138 08
    FUZZ_IN=$r
    says "seed $seed: a queue pair" 0 "$r" 16
    id; QP=$r
    at "$FUZZ_IN" 25 01; says "seed $seed: one of UC" 0 "$r" 16
    id; UC=$r
    at "$FUZZ_IN" 25 02; says "seed $seed: one of UD" 0 "$r" 16
    id; UD=$r
    cmd $QP_IN 16
    zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
    says "seed $seed: a key for all of memory" 0 "$r" 16
    id; PA_KEY=$r
    zeros 272; at "$r" 0 0200 16 40008100 20 ffffff11 28 00$PD 68 00000004
    says "seed $seed: a free key" 0 "$r" 16
    id; FREE_KEY=$r
    if [ $ETH -eq 1 ]; then
        zeros 512; at "$r" 0 0755 15 02 259 01; says "seed $seed: RoCE" 0 "$r" 8
        zeros 48; at "$r" 0 0761 26 ffff0a000001 34 525400123456 43 02
        says "seed $seed: an address" 0 "$r" 8
    fi
    right_commands
    before=$r
    make_steps "$seed" "$STEPS" >"$OUT/steps"
    n=$(wc -l <"$OUT/steps")
    qt_feed <"$OUT/steps" >"$OUT/answers"
    check_eq "seed $seed: each step has its answer" "$n" "$(grep -c "^OK" "$OUT/answers")"
    right_commands
    check "seed $seed: some commands are right" test $((r - before)) -gt 60
    for of in wqes wqe-errors cqes loopback-messages; do
        qom_counter cx0 $of
        check "seed $seed: $of, of which there are $r" test "$r" -gt $((STEPS / 1000))
    done
    # Whatever has happened: after a reset of the function it works
    cfg_cap $DEVFN 0x10
    cfg_writew $DEVFN $((r + 8)) 0x8000
    cx_bar
    says "seed $seed: after $n steps and a reset the device works" 0 $ENABLE 12
    qt_stop
done
qt_finish

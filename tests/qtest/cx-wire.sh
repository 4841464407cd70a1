#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two ConnectX on a wire that drops, repeats and reorders frames move data whole, or lose what may be lost; failures have their status; bad frames do no harm
# tags: qtest
# tier: check
# timeout: 300
# shellcheck disable=SC2034,SC2086,SC2154  # for lib-cx.sh; numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"

# SEEDS and FRAMES may be given; a failure is repeated with the seed it printed
SEEDS=${SEEDS:-1 2 3 4}
FRAMES=${FRAMES:-2000}

WIRE=$BUILD/wire/peerlane-wire
need_tool cc
need_file "$WIRE"
w=$qt_work/w
mkdir "$w"
wire_pid=
at_exit wire_end
wire_end() {
    [ -z "$wire_pid" ] || kill "$wire_pid" 2>/dev/null
    wire_pid=
    qt_cleanup
}
wire_start() {
    mkfifo "$w/said"
    "$WIRE" --seed "$1" "$w" a b >"$w/said" 2>"$OUT/wire.log" &
    wire_pid=$!
    read -r wire_line <"$w/said"
    rm "$w/said"
    check_eq "seed $1: the wire is ready" ready "$wire_line"
}
wire() { "$WIRE" --ask "$w" "$@" >"$w/answer" || fail "wire $*" "$(cat "$w/answer")"; }

# 64 KiB that are the same nowhere, from a seed
pattern() {
    awk -v x=$((1000 + $1)) 'BEGIN { for (i = 0; i < 16384; i++) { x = (x * 16807) % 2147483647; printf "%08x", x } }'
}
# holds ADDR LENGTH [HEX]: so much of the pattern is there, and that behind it.  A shell takes a system call for each
# character that it reads
holds() {
    { printf 'OK 0x' && head -c $((2 * $2)) "$OUT/pattern" && echo "${3-}"; } >"$OUT/want"
    echo "read $(($1)) $(($2 + ${#3} / 2))" | qt_feed | cmp - "$OUT/want"
}

# two [KIND]
two() {
    qt_start -netdev "dgram,id=na,local.type=unix,local.path=$w/a.host,remote.type=unix,remote.path=$w/a" \
        -netdev "dgram,id=nb,local.type=unix,local.path=$w/b.host,remote.type=unix,remote.path=$w/b" \
        -device peerlane-cx,id=cx0,addr=4,lid=1,netdev=na,mac=52:54:00:00:00:01,trains=$trains_0 \
        -device peerlane-cx,id=cx1,addr=5,lid=2,netdev=nb,mac=52:54:00:00:00:02,trains=$trains_1
    device 0 ${1:-00}
    device 1 ${1:-00}
    posted_all=0
}

# to_lid LID: the queue pair is as new, MTU 4096, and its other end is there
to_lid() {
    side 0
    posted=0
    wrhex $((mem + 0x60040)) 0x0000000000000000
    short 050a 00$QP; cmd $r 8
    fixed 0502 00$QP 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$QP 00000000 256; at "$r" 32 a0 44 00$QP 54 4:$1 172 01; cmd $r 8
    fixed 0504 00$QP 00000000 256; cmd $r 8
}
# frame_is FROM LID LENGTH WANT PACKETS: a WRITE of that length comes from there; what memory is then, and how many packets came
frame_is() {
    to_lid $2
    qom_counter cx0 packets-in
    packets=$r
    qom_counter cx0 frames-in
    sent=$r
    check "seed $seed: a frame is sent" "$qt_work/cx-frames" "$w/a" "$w/a.host" write $1 0x$QP 0x$KEY_0 $3
    until_is "seed $seed: it has come" $((sent + 1)) frames-in cx0
    becomes "seed $seed: from $1, LID $2, $3 bytes: taken or not" $((packets + $5)) qom_counter cx0 packets-in
    bytes_are "seed $seed: from $1, LID $2, $3 bytes: what is there" 0x200000 $4
}

# frames_of SERVICE ROUNDS: many, for a queue pair that is new in each round
frames_of() {
    qom_counter cx0 frames-in
    sent=$r
    for of in frames-dropped packets-in packets-dropped; do
        qom_counter cx0 $of
        eval "before_${of#*-}_${of%-*}=$r"
    done
    n=0
    while [ $n -lt $2 ]; do
        # A bad frame may end the connection
        to_lid 2
        # Two receives, for what is no answer
        wrhex $((mem + 0x52000)) 0x00000800${KEY}000000000020000000000800${KEY}0000000000200800
        wrhex $((mem + 0x60040)) 0x00000002
        # Without acknowledges there are no READs
        [ $1 != 0x00 ] || go 16 0x200000 $KEY_0 0x300000 70000
        check "seed $seed: frames are sent" "$qt_work/cx-frames" "$w/a" "$w/a.host" $((100 * seed + n)) $((FRAMES / 20)) 0x$QP 0x$KEY_0 $1 $trains
        sent=$((sent + FRAMES / 20))
        until_is "seed $seed: and looked at" $sent frames-in cx0
        n=$((n + 1))
    done
    for of in frames-dropped packets-in packets-dropped; do
        qom_counter cx0 $of
        eval "fr_more=\$((r - before_${of#*-}_${of%-*}))"
        check "seed $seed: $1: $of, of which there are $fr_more" test "$fr_more" -gt $((FRAMES * $2 / 2000))
    done
}

SRC=0x100000
DST=0x600000
BACK=0x140000
MANY=0x180000
FAR=0x700000

for seed in $SEEDS; do
    # Both, one, the other, and none have several frames in a datagram
    trains_0=off trains_1=off trains=
    [ $((seed % 4)) -gt 1 ] || trains_0=on trains=trains
    [ $((seed % 2)) -eq 0 ] || trains_1=on
    wire_start $seed
    two
    both_ready 0 7 7
    wire a.out nth 3 rc-rdma-write-middle drop
    wire all loss 4% roce
    wire all duplicate 4% roce
    wire all reorder 4% roce
    pattern $seed >"$OUT/pattern"
    p=$(cat "$OUT/pattern")
    wrhex $SRC 0x$p
    memset $DST 0x11000 0x55
    memset $BACK 0x11000 0x66
    go 8 $DST $KEY_1 $SRC 65536
    done_is "seed $seed: WRITE of 64 KiB"
    check "seed $seed: it arrives whole" holds $DST 65536
    bytes_are "seed $seed: and nothing behind it" $((DST + 65536)) 0x55555555
    go 16 $DST $KEY_1 $BACK 65535
    done_is "seed $seed: READ of a byte less"
    check "seed $seed: it comes back whole" holds $BACK 65535 66
    memset $((DST + 0x20000)) 8 0
    for n in 0 1 2 3 4 5 6 7; do
        go 18 $((DST + 0x20000)) $KEY_1 $((BACK + 0x20000)) 8 00000000000000010000000000000000
        until_is "seed $seed: FETCH and ADD" $posted_all wqes cx0
        bytes_are "seed $seed: it has found $n" $((BACK + 0x20000)) 0x000000000000000$n
    done
    # Seven entries by one doorbell: the WRITE is on its way when a piece of the first answer is missing
    wire b.out nth 3 rc-rdma-read-response-middle drop
    for n in 0 1 2; do
        wrhex $((MANY + 65536 * n)) 0x$p
    done
    memset $FAR 0x30000 0x77
    memset $BACK 0x4000 0x66
    memset $((FAR + 0x40000)) 16 0
    wrhex $((FAR + 0x40000)) 0x2a
    qom_counter cx0 cqes
    cqes=$r
    first=$posted
    put 16 $DST $KEY_1 $BACK 16384
    put 0
    put 8 $FAR $KEY_1 $MANY 196608
    put 0
    put 18 $((FAR + 0x40000)) $KEY_1 $((BACK + 0x20000)) 8 00000000000000010000000000000000
    put 8 $((FAR + 0x40008)) $KEY_1 $((BACK + 0x20000)) 8 '' 88
    put 16 $((FAR + 0x40008)) $KEY_1 $((BACK + 0x20008)) 8
    ring
    done_is "seed $seed: READ, NOP, WRITE, NOP, FETCH and ADD, WRITE with a fence, READ"
    value_is "seed $seed: each has completed" $((cqes + 7)) qom_counter cx0 cqes
    for n in 0 1 2 3 4 5 6; do
        bytes_are "seed $seed: in order: $n" $((0x51000 + 64 * ((cqes + n) % 16) + 0x3c)) "0x$(printf %04x $((first + n)))"
    done
    check "seed $seed: the first READ has what was there" holds $BACK 16384
    for n in 0 1 2; do
        check "seed $seed: part $n of the WRITE is whole" holds $((FAR + 65536 * n)) 65536
    done
    bytes_are "seed $seed: the sum" $((FAR + 0x40000)) 0x2b00000000000000
    bytes_are "seed $seed: the fence has waited for what was found, the last READ has read that" $((BACK + 0x20000)) \
        0x000000000000002a000000000000002a
    # A receive of 4 KiB for a message of 3000 bytes
    side 1
    wr $((mem + 0x52000)) 00001000$KEY_1 16:$((DST + 0x30000))
    wrhex $((mem + 0x60040)) 0x00000001
    side 0
    qom_counter cx1 cqes
    cqes=$r
    go 10 0 0 $SRC 3000
    done_is "seed $seed: SEND"
    until_is "seed $seed: it is received" $((cqes + 1)) cqes cx1
    bytes_are "seed $seed: as long as it was" $((0x451000 + 64 * (cqes % 16) + 0x2c)) 0x00000bb8
    check "seed $seed: and whole" holds $((DST + 0x30000)) 3000
    qom_counter cx0 retransmissions
    check "seed $seed: something was sent again" test "$r" -gt 0
    again=$r
    for what in "0 0x50 NAKs that came" "0 0x58 answers that were missing" "1 0x38 packets behind a hole" \
        "1 0x40 requests that came twice" "1 0x10 WRITEs" "1 0x18 READs" "1 0x20 atomics"; do
        counted ${what%% *} "$(echo "$what" | cut -d' ' -f2)"
        check "seed $seed: counted: ${what#* * }: $r" test "$r" -gt 0
    done
    counted 1 0x20
    check_eq "seed $seed: counted: each atomic once" 9 "$r"
    counted 1 0x18
    check_eq "seed $seed: counted: each READ once" 3 "$r"
    counted 0 0x60
    timeouts=$r
    counted 0 0x50
    naks=$r
    counted 0 0x58
    check_eq "seed $seed: counted: each time that it was sent again has a reason" $again $((r + naks + timeouts))
    side 0

    # Congestion: what comes to cx1 is marked, and cx1 tells, before it acknowledges the last packet
    wire all clear
    both_ready 0 7 7
    for of in "cx0 cnps-in" "cx1 cnps-out" "cx1 frames-marked"; do
        value_is "seed $seed: without marks: $of" 0 qom_counter $of
    done
    wire b.in rate 1gbit ecn 0
    go 8 $DST $KEY_1 $SRC 8192
    done_is "seed $seed: WRITE of 8 packets with marks"
    # More, if a busy host let time pass, and it was sent again
    qom_counter cx1 frames-marked
    check "seed $seed: all are counted: $r" test "$r" -ge 8
    for of in "cx1 cnps-out" "cx0 cnps-in"; do
        qom_counter $of
        check "seed $seed: the sender is told: $of: $r" test "$r" -gt 0
    done
    value_is "seed $seed: what goes back is not marked" 0 qom_counter cx0 frames-marked

    # Several READs at a time, and a piece of an answer is missing: all are asked for again, and no time has to pass
    for n in 1 2 3; do
        wire all clear
        both_ready 0 $((2 << 5 | 7)) 7
        memset $BACK 0x20000 0x66
        wire b.out nth $n rc-rdma-read-response-middle drop
        put 16 $DST $KEY_1 $BACK $((4096 + 1024))
        put 16 $DST $KEY_1 $((BACK + 8192)) 1024
        put 16 $DST $KEY_1 $((BACK + 16384)) 262144
        put 16 $DST $KEY_1 $((BACK + 16384 + 262144)) 262144
        ring
        becomes "seed $seed: four READs, piece $n of the first answer is lost" $posted_all qom_counter cx0 wqes
        check "seed $seed: the third has read what is there" holds $((BACK + 16384)) 49152
        check "seed $seed: and so has the first" holds $BACK 5120
    done

    # Failures, on a wire that is whole
    wire all clear
    both_ready 0 7 7
    qom_counter cx0 cqes
    cqes=$r
    go 8 $DST "$(printf %08x $((0x$KEY_1 ^ 1)))" $SRC 3000
    fails_with "seed $seed: WRITE with another key" 0x13
    both_ready 0 7 2
    cqes=$((cqes + 1))
    go 10 0 0 $SRC 100
    fails_with "seed $seed: SEND, and nobody receives" 0x16
    both_ready 4 3 7
    wire b link down
    qom_counter cx0 retransmissions
    before=$r
    cqes=$((cqes + 1))
    go 8 $DST $KEY_1 $SRC 100
    fails_with "seed $seed: WRITE, and the wire is cut" 0x15
    value_is "seed $seed: it was sent again as often as it may" $((before + 3)) qom_counter cx0 retransmissions
    qt_stop
    kill $wire_pid
    wait $wire_pid
    wire_pid=
    rm -f "$w"/*

    # A connection that does not acknowledge: a message of five packets that loses one is lost from there on, silently
    wire_start $seed
    two 01
    both_ready 0 0 0
    wrhex $SRC "0x$(printf %s "$p" | cut -c-10000)"
    memset $DST 0x11000 0x55
    wire a.out nth 2 uc-rdma-write-middle drop
    qom_counter cx1 packets-in
    packets=$r
    go 8 $DST $KEY_1 $SRC 5000
    done_is "seed $seed: UC: WRITE of five packets, of which one is lost"
    until_is "seed $seed: UC: the others have come" $((packets + 4)) packets-in cx1
    rdhex $SRC 2048
    check_eq "seed $seed: UC: two were written" "$r" "$(rdhex $DST 2048; echo "$r")"
    becomes "seed $seed: UC: and two dropped" 2 qom_counter cx1 packets-dropped
    bytes_are "seed $seed: UC: nothing behind them" $((DST + 2048)) 0x55555555
    bytes_are "seed $seed: UC: nor at the end" $((DST + 4096)) 0x55555555
    go 8 $((DST + 65536)) $KEY_1 $SRC 3000
    done_is "seed $seed: UC: the next WRITE"
    becomes "seed $seed: UC: it arrives" "$(rdhex $SRC 3000; echo "$r")" rdhex $((DST + 65536)) 3000
    value_is "seed $seed: UC: nothing was sent again" 0 qom_counter cx0 retransmissions
    value_is "seed $seed: UC: nobody was told" 0 qom_counter cx0 wqe-errors
    qt_stop
    kill $wire_pid
    wait $wire_pid
    wire_pid=
    rm -f "$w"/*

    # Management datagrams: QP1 of each end, which is number 1 on the wire, and a queue pair of UD that sends as if it were that
    wire_start $seed
    two 08
    for n in 0 1; do
        side $n
        short 050a 00$QP; cmd $r 8
        fixed 0502 00$QP 00000000 256; at "$r" 192 80010000; cmd $r 8
        fixed 0503 00$QP 00000000 256; at "$r" 32 20; cmd $r 8
        fixed 0504 00$QP 00000000 256; says "seed $seed: cx$n: QP1 is ready" 0 $r 8
        # Four receives of 296 bytes: a route header's place and a datagram
        qp1_recv=
        for at in 0 1 2 3; do
            here $((0x200000 + 0x1000 * at))
            qp1_recv=${qp1_recv}00000128$KEY$r
        done
        wrhex $((mem + 0x52000)) 0x$qp1_recv
        wrhex $((mem + 0x60040)) 0x0000000400000000
    done
    side 0
    zeros 280; at "$r" 0 0500 25 02 28 00$PD 34 18 36 00$UAR 148 00$CQ
    at "$r" 153 000001 184 0000000000060080 196 03 272 0000000000053000
    says "seed $seed: one that sends as if it were QP1" 0 $r 16; id; helper=$r
    fixed 0502 00$helper 00000000 256; at "$r" 192 80010000; cmd $r 8
    fixed 0503 00$helper 00000000 256; at "$r" 32 a0; cmd $r 8
    fixed 0504 00$helper 00000000 256; cmd $r 8
    wrhex $SRC "0x$(printf %s "$p" | cut -c-512)"
    posted_all=0 mads=0
    # mad QPN QUEUE RECORD INDEX QKEY LID: the queue pair sends 256 bytes to QP1 there
    mad() {
        hex 00 4:$4 0a${1}05
        mad_ctrl=$r
        zeros 32
        wr $(($2 + 64 * ($4 % 8))) ${mad_ctrl}0000000800000000${5}0000000080000001 8:$6 ${r}00000100$KEY_0 16:$SRC
        wr $3 8:$(($4 + 2))
        wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) 0x$mad_ctrl
        posted_all=$((posted_all + 1))
        done_is "seed $seed: a management datagram is sent"
    }
    # mad_is DESC DEVICE LID: its next receive has come from QP1 there, with the partition key in place of an immediate
    mad_is() {
        side $2
        cq_at=$((mem + 0x51000 + 64 * ${4:-0}))
        becomes "seed $seed: $1: from whom" "0x$(printf %04x $3)00000001" mad_from
        bytes_are "seed $seed: $1: of which partition" $((cq_at + 0x24)) 0x0000ffff
        bytes_are "seed $seed: $1: how long" $((cq_at + 0x2c)) 0x00000128
        check "seed $seed: $1: it is whole" holds $((mem + 0x200028 + 0x1000 * $5)) 256
        side 0
    }
    mad_from() { rdhex $((cq_at + 0x16)) 6; }
    mad $QP_0 0x52040 0x60044 0 80010000 2
    mad_is "QP1 to the other's QP1" 1 1 0 0
    mad $helper 0x53000 0x60084 0 80010000 2
    mad_is "in its name" 1 1 1 1
    mad $helper 0x53000 0x60084 2 00010000 2
    becomes "seed $seed: with another key it is dropped" 1 qom_counter cx1 packets-dropped
    mad $helper 0x53000 0x60084 4 80010000 1
    mad_is "to its own QP1" 0 1 $posted_all 0
    # What asks for counters the other device answers itself: nobody there gets it.  asks DESC METHOD ATTRIBUTE PORT STATUS RECEIVE
    asks() {
        zeros 256; at "$r" 0 010401$2 12 00000abc 16 $3 65 $4; wrhex $SRC 0x$r
        mad $helper 0x53000 0x60084 $((4 + 2 * $6)) 80010000 2
        becomes "seed $seed: $1" 0x01040181$5 mad_head $6
        bytes_are "seed $seed: $1: of this transaction" $((0x200028 + 0x1000 * $6 + 12)) 0x00000abc$3
    }
    mad_head() { rdhex $((0x200028 + 0x1000 * $1)) 6; }
    asks "what is wrong with a port that is none" 01 0012 02 001c 1
    asks "what cannot be set" 02 0012 01 000c 2
    asks "the counters of the port" 01 001d 01 0000 3
    qom_counter cx1 packets-in
    bytes_are "seed $seed: how many packets have come" $((0x203028 + 96)) "0x$(printf %016x $r)"
    side 1
    bytes_are "seed $seed: QP1 there has got two, and no more" $((mem + 0x51000 + 64 * 2 + 0x3f)) 0x00
    side 0
    qt_stop
    kill $wire_pid
    wait $wire_pid
    wire_pid=
    rm -f "$w"/*

    # Frames that are nearly right, for a queue pair whose other end they say they are
    qt_build cx-frames
    qt_start -netdev "dgram,id=na,local.type=unix,local.path=$w/a.host,remote.type=unix,remote.path=$w/a" \
        -device peerlane-cx,id=cx0,addr=4,lid=1,netdev=na,mac=52:54:00:00:00:01,trains=$trains_0
    device 0
    # One that is right is done; the same is not, from the port itself, from nobody, from a multicast LID, or with too much in it
    memset 0x200000 4 0x77
    frame_is 2 2 64 0x5a5a5a5a 1
    memset 0x200000 4 0x77
    frame_is 1 1 64 0x77777777 0
    frame_is 0 2 64 0x77777777 0
    frame_is 49152 49152 64 0x77777777 0
    frame_is 2 2 4200 0x77777777 0
    frames_of 0x00 20
    device 0 01
    frames_of 0x20 5
    device 0 02
    frames_of 0x60 5
    cfg_cap $DEVFN 0x10
    cfg_writew $DEVFN $((r + 8)) 0x8000
    cx_bar
    short 0104
    says "seed $seed: after all that and a reset the device works" 0 $r 12
    qt_stop
    rm -f "$w"/*
done
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: thirty-six thousand (at night a hundred thousand) random and mutated commands and work queue entries: the ConnectX says what is wrong with each command, and works on; one wrong field has the specified status
# tags: qtest
# tier: all
# timeout: 900
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"

# SEEDS and PIECES (commands and entries of each) may be given; a failure is repeated with the seed it printed
SEEDS=${SEEDS:-1 2 3 4 5 6 7 8}
[ "${TIER-}" != nightly ] || PIECES=${PIECES:-13500}
PIECES=${PIECES:-4500}

# Addresses of the steps, in decimal for awk
WQES=0x52040 RECVS=0x52000 RECORD=0x60040 BOXES=0x300000 ANSWERS=0x340000
# ... and of the entries that are judged: the first of the queue, its record, and four completions
JUDGED=0x5a040 JUDGED_RECORD=0x60140 JUDGED_CQ=0x59000

ROCE_IP=ffff0a000001 ROCE_MAC=525400123456
# setup: everything that an entry needs; $BASES has a right command of each kind.  Odd seeds have Ethernet.
setup() {
    link=infiniband
    [ $((seed % 2)) -eq 0 ] || link=ethernet
    cx_start link-layer=$link
    short 0104; cmd $r 12
    short 0102; cmd $r 8
    if [ $link = ethernet ]; then
        zeros 512; at "$r" 0 0755; at "$r" 15 02; at "$r" 259 01; says "seed $seed: RoCE is on" 0 "$r" 8
        zeros 48; at "$r" 0 0761; at "$r" 26 $ROCE_IP; at "$r" 34 $ROCE_MAC; at "$r" 43 02
        says "seed $seed: it has an address" 0 "$r" 8
    fi
    short 0802; cmd $r 16; id; UAR=$r
    short 0800; cmd $r 16; id; PD=$r
    zeros 280; at "$r" 0 0301 28 01$UAR 272 0000000000050000; EQ_IN=$r
    cmd $r 16; id; EQ=$r
    # Entries are overwritten
    zeros 280; at "$r" 0 0400 16 00020000 28 02$UAR 36 00$EQ 72 0000000000060000
    at "$r" 272 0000000000051000; CQ_IN=$r
    cmd $r 16; id; CQ=$r
    zeros 280; at "$r" 0 0500 28 00$PD 33 10 34 18 36 00$UAR 138 08
    at "$r" 148 00$CQ 180 00$CQ 184 0000000000060040 272 0000000000052000; QP_IN=$r
    says "seed $seed: a reliable connection" 0 $r 16; id; QP=$r
    # Two for entries that are judged, which complete by themselves
    says_at "seed $seed: a completion queue" 0 $CQ_IN 72 0000000000060100 272 "$(printf %016x $((JUDGED_CQ)))"; id; CQ_J=$r
    says_at "seed $seed: a requester" 0 $QP_IN 148 00$CQ_J 184 "$(printf %016x $((JUDGED_RECORD)))" 272 000000000005a000; id; ASKS=$r
    says_at "seed $seed: its responder" 0 $QP_IN 184 0000000000060180 272 000000000005b000; id; DOES=$r
    # Keys: of all memory, free, of pieces, free for pieces, and one to be invalidated
    zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD; PA_IN=$r
    cmd $r 16; id; PA=$r
    zeros 272; at "$r" 0 0200 16 40008100 20 ffffff11 28 01$PD 68 00000004
    at "$r" 75 0c; FREE_IN=$r
    cmd $r 16; id; FREE=$r
    at $FREE_IN 18 be; WINDOW_IN=$r
    cmd $r 16; id; WINDOW=$r
    zeros 272; at "$r" 0 0200 16 00003e00 20 ffffff00 28 00$PD
    at "$r" 40 0000000000002000 96 00000004
    KLM_IN=${r}00001000${PA}00000000000010000000001000${PA}000000000000104000; zeros 32; KLM_IN=$KLM_IN$r
    says "seed $seed: a key of keys" 0 $KLM_IN 16; id; KLM=$r
    zeros 304; at "$r" 0 0200 16 00003d00 20 ffffff00 28 00$PD
    at "$r" 32 0000000000001800 40 0000000000002000 72 0000000c 96 00000002
    at "$r" 272 000000000007000000000000000710000000000000072000; MTT_IN=$r
    zeros 280; at "$r" 0 090c 33 10 89 $PD 96 0000000000060080
    at "$r" 113 05 115 02 272 0000000000054000; RMP_IN=$r
    zeros 64; at "$r" 0 0a04; UCTX_IN=$r
    zeros 64; at "$r" 0 0a08 40 0000000000000002 48 00000000000560030000000000057003; UMEM_IN=$r
    at $QP_IN 25 02; UD_IN=$r
    at $QP_IN 25 08; GSI_IN=$r
    at $QP_IN 196 01; SHARED_IN=$r
    short 0771; cmd $r 16; id; SET=${r#????}
    fixed 0502 00$QP 00000000 256; at "$r" 170 e0 36 $SET; TO_INIT=$r
    fixed 0503 00$QP 00000000 256; at "$r" 32 a0 44 00$QP 54 0001; TO_RTR=$r
    fixed 0505 00$QP 00000000 256; at "$r" 16 02 36 $SET; TO_SET=$r
    [ $link != ethernet ] || { at $TO_RTR 59 40 74 $ROCE_IP 86 $ROCE_MAC; TO_RTR=$r; }
    # Commands with one wrong field: number of the base, and byte and value, or the length of the input or the output; the
    # status that the specification has for it.  Users, ids and kinds that there are not, sizes above the capability.
    WRONG="1:len:12:50 1:out:8:51 2:len:12:50 2:out:8:51 3:len:12:50 3:out:8:51 7:len:12:50 7:out:8:51 12:len:12:50 12:out:8:51 \
        15:len:12:50 1:0:0fff:02 3:0:0fff:02 1:28:1f:08 2:28:1f:08 1:29:fffff0:05 2:29:fffff0:05 3:25:05:03 3:25:09:03 \
        3:29:fffff0:05 3:37:fffff0:05 3:149:fffff0:05 3:181:fffff0:05 4:29:fffff0:05 6:29:fffff0:05 7:29:fffff0:05 8:29:fffff0:05 \
        11:29:fffff0:05 12:89:fffff0:05 15:9:fffff0:05 16:9:fffff0:05 17:9:fffff0:05 \
        2:2:03ff:05 3:2:03ff:05 7:2:03ff:05 12:2:03ff:05 14:2:03ff:05 15:2:03ff:05"
    check_eq "seed $seed: commands from reset to ready are bases" "0502 0503 0505" \
        "$(printf '%.4s %.4s %.4s' $TO_INIT $TO_RTR $TO_SET)"
    BASES="$EQ_IN $CQ_IN $QP_IN $UD_IN $GSI_IN $SHARED_IN $PA_IN $MTT_IN $FREE_IN $WINDOW_IN $KLM_IN $RMP_IN $UCTX_IN $UMEM_IN $TO_INIT $TO_RTR $TO_SET"
}

# Lines for qtest.  A command has a slot and a mailbox of its own; what its slot says is read before it is used again.
make_steps() { # SEED PIECES
    awk -v x=$(($1 * 7919 + 1)) -v pieces="$2" -v bases="$BASES" -v uar=$((0x$UAR)) -v qp=$((0x$QP)) -v pa=$((0x$PA)) \
        -v window=$((0x$WINDOW)) -v free=$((0x$FREE)) -v klm=$((0x$KLM)) -v slots=$((SLOT)) -v boxes=$((BOXES)) -v answers=$((ANSWERS)) \
        -v wqes=$((WQES)) -v recvs=$((RECVS)) -v record=$((RECORD)) -v bar="$(printf %.0f $((BAR)))" -v wrong="$WRONG" \
        -v asks=$((0x$ASKS)) -v does=$((0x$DOES)) -v judged=$((JUDGED)) -v judged_record=$((JUDGED_RECORD)) \
        -v judged_cq=$((JUDGED_CQ)) -v ether="$([ $link = infiniband ] || echo $ROCE_IP:$ROCE_MAC)" '
    function rnd(n) { x = (x * 16807) % 2147483647; return x % n }
    function pick(list,   a, n) { n = split(list, a, " "); return a[1 + rnd(n)] }
    function hex(n, v) { return sprintf("%0" n "x", v) }
    function noise(n,   h) { h = ""; while (n-- > 0) h = h hex(2, rnd(4) ? 0 : rnd(256)); return h }
    function w(a, h) { printf "write %.0f %d 0x%s\n", a, length(h) / 2, h }
    function put(h, at, new) { return substr(h, 1, 2 * at) new substr(h, 2 * at + length(new) + 1) }
    # Something else in one to three places, small numbers mostly
    function mutated(h,   n, i, at) {
        for (n = rnd(4); n > 0; n--) {
            at = rnd(length(h) / 2)
            i = rnd(4)
            h = i == 0 ? put(h, at, hex(2, rnd(256))) : i == 1 ? put(h, at - at % 4, hex(8, rnd(80))) : \
                i == 2 ? put(h, at - at % 4, noise(4)) : put(h, at, pick("00 ff 01 80"))
        }
        return h
    }
    function any(   a, n) { n = split(bases, a, " "); return a[1 + rnd(n)] }
    function short(   op) {
        op = !rnd(30000) ? pick("0103 0105") : pick("0100 0101 0107 0108 010a 0201 0202 0203 0204 0302 0303 0401 0402 0403 0501 0501 0504 0505 0507 " \
            "050a 050b 050e 0706 0707 0708 090d 090e 090f 0762 0764 0765 0770 0771 0772 0773 0800 0801 0802 0803 0805 080d 080e 080f 0816 0817 0a06 0a0a 0fff")
        return op "000000000000" hex(8, rnd(3) ? rnd(80) : 64 + rnd(60)) hex(8, rnd(3) ? 0 : rnd(4096)) hex(512, 0)
    }
    function slot(s, h, len, out, want) {
        return "07000000" hex(8, len) hex(16, boxes + 1024 * s) substr(h, 1, 32) "ffffffffffffffffffffffffffffff" want \
            hex(16, answers) hex(8, out) "5a000001"
    }
    function slot_of(s, h, len, out) {
        return (rnd(60) ? "07" : "00") "000000" hex(8, len) (rnd(60) ? hex(16, boxes + 1024 * s) : pick("0000000000000000 0000000600000000 ffffffffffffffff 0000000000300001")) \
            substr(h, 1, 32) "ffffffffffffffffffffffffffffffff" \
            (rnd(60) ? hex(16, answers) : pick("0000000000000000 0000000600000000 0000000000340001")) hex(8, out) (rnd(60) ? "5a" : "5b") "000001"
    }
    # A right command but for one field; its slot has the status that it must get, where the device has the answer later
    function one_wrong(s,   row, base, h, len, out) {
        split(pick(wrong), row, ":")
        split(bases, base, " ")
        h = base[row[1]]
        len = row[2] == "len" ? row[3] : length(h) / 2
        out = row[2] == "out" ? row[3] : 16
        if (row[2] + 0 || row[2] == "0") h = put(h, row[2], row[3])
        printf "read %d 32\n", slots + 64 * s + 32
        w(boxes + 1024 * s, substr(h, 33) "00")
        w(slots + 64 * s, slot(s, h, len, out, row[4]))
        w(bar + 24, hex(8, 2 ^ s))
        made++
    }
    # One slot after the other, but for those of entries(). After each round all of them are done.
    function command(   h, s, len) {
        s = turn++ % 24
        if (s == 0) idle()
        if (!rnd(6)) {
            one_wrong(s)
            return
        }
        h = rnd(3) ? mutated(any()) : mutated(short())
        # What the entries need is not destroyed
        if (h ~ /^0(202|302|401|501|801|803)/ && substr(h, 19, 4) == "0000" && (substr(h, 23, 2) < "20" || substr(h, 19, 6) == hex(6, qp) || substr(h, 19, 6) == hex(6, asks) || substr(h, 19, 6) == hex(6, does)))
            h = put(h, 10, "01")
        # Nor is all of it torn down (TEARDOWN_HCA, DISABLE_HCA)
        if (h ~ /^010[35]/) h = put(h, 0, "0106")
        len = rnd(12) ? length(h) / 2 : pick("8 12 16 17 80 280 528 4294967295")
        printf "read %d 32\n", slots + 64 * s + 32
        w(boxes + 1024 * s, substr(h, 33) "00")
        w(slots + 64 * s, slot_of(s, h, len, pick("16 16 80 272 272 4112 65536 12 8")))
        w(bar + 24, hex(8, 2 ^ s))
        made++
    }
    function any_key() { return pick(hex(6, pa) "00 " hex(6, pa) "00 " hex(6, pa) "00 " hex(6, pa) "00 " hex(6, pa) "00 " hex(6, pa) "00 " hex(6, klm) "00 " hex(6, window) "11 " hex(6, window) "12 " hex(6, free) "11 00000100") }
    function place() { return rnd(20) ? hex(16, 1048576 + rnd(1040384)) : pick("0000000000000000 0000000000000010 0000000600000000 fffffffffffffff0") }
    function piece() { return hex(8, pick("0 1 8 64 256 4096 8192 8193")) any_key() place() }
    function umr(i,   h) {
        h = hex(6, pick(window " " window " " free)) pick("11 12") pick("a0 a0 80 88 b0 20 c0 00") "000000" pick("0004 0004 0004 0000 0008 ffff") pick("0000 0000 0000 0004") \
            "00000000" pick("201e6041 201e6041 201e20c3 20002000 20000000 00000000 ffffffff") hex(64, 0)
        h = h pick("00 00 00 40") "00" pick("3e 3d 3f 15") "00" (rnd(2) ? "ffffff" : hex(6, qp)) pick("11 12 12") hex(16, 0) place() hex(16, pick("4096 8192 48 0 4294967296")) hex(56, 0) pick("0c 0c 0d 3d") "00000000"
        return h piece() (rnd(4) ? piece() : hex(8, 8) "00000400" hex(8, rnd(9)) hex(8, rnd(4))) piece() piece()
    }
    # An entry of two to four blocks, in its place
    function entry(at,   op, h) {
        op = rnd(30) ? pick("8 8 9 10 10 11 1 1 16 16 17 18 0 37 37") : rnd(256)
        ds = op == 37 ? 12 : op == 10 || op == 11 || op == 1 ? 2 + rnd(3) : op == 17 || op == 18 ? 4 : op ? 3 + rnd(3) : 1
        h = "00" hex(4, at) hex(2, op) hex(6, qp) hex(2, ds) "00000008"
        if (op == 37) h = h umr()
        else {
            h = h any_key()
            if (op == 8 || op == 9 || op > 11) h = h place() any_key() "00000000"
            if (op == 17 || op == 18) h = h noise(16) "00000008" hex(6, pa) "00" place()
            else h = h piece() piece() piece()
        }
        h = substr(h hex(128 * 4, 0), 1, 128 * int((ds + 3) / 4))
        return rnd(12) ? h : mutated(h)
    }
    # The engine has done what it was given
    function idle() { print "engine-idle cx0" }
    # The queue pair is connected to itself anew, and gets some.  Not always is it idle before the next thing.
    function entries(   h, at, n) {
        w(boxes + 1024 * 30, connected)
        w(slots + 64 * 24, moves)
        w(bar + 24, "0f000000")
        idle()
        for (at = 0; at < 6;) {
            h = entry(at)
            n = length(h) / 128
            if (at + n > 8) break
            w(wqes + 64 * at, h)
            at += n
            made++
        }
        w(recvs, piece() piece() piece() piece())
        w(record, (rnd(20) ? "00000004" : noise(4)) (rnd(20) ? hex(8, at) : noise(4)))
        w(bar + 4096 * uar + 2048, "00000000" hex(6, qp) "00")
        if (rnd(8)) idle()
    }
    # An entry that is right, or has one wrong field, between two queue pairs that are connected anew; its immediate says what
    # syndrome it must get.  Its completion is read when all is done.
    function judge(   kind, op, number, of, key, far, len, at, ds, h) {
        idle()
        header(29); w(boxes + 1024 * 29, connection(does))
        header(28); w(boxes + 1024 * 28, connection(asks))
        w(slots + 64 * 24, moves_of(asks, 29) moves_of(does, 28))
        w(bar + 24, "ff000000")
        idle()
        kind = pick("right right lkey rkey opcode place queue long odd big hole receive")
        op = pick("8 16"); number = 0; of = asks; key = hex(6, pa) "00"; far = key; len = 64; at = 1048576; ds = 3; want = "00"
        if (kind == "lkey") { key = "ffffff00"; want = "04" }
        if (kind == "rkey") { far = "ffffff00"; want = "13" }
        if (kind == "opcode") { op = 127; want = "02" }
        if (kind == "place") { number = 1 + rnd(65535); want = "02" }
        if (kind == "queue") { of = does; want = "02" }
        if (kind == "long") { op = 18; ds = 4; len = 16; want = "01" }
        if (kind == "odd") { op = 18; ds = 4; len = 8; at += 1 + rnd(7); want = "12" }
        if (kind == "big") { len = 1073741825; want = "01" }
        if (kind == "receive") { op = 10; ds = 2; want = "16" }
        h = "00" hex(4, number) hex(2, op) hex(6, of) hex(2, ds) "00000008000000" want
        if (op != 10) h = h hex(16, at) far "00000000"
        if (op == 18) h = h hex(32, 1)
        h = h hex(8, len) key (kind == "hole" ? "0000000600000000" : hex(16, 1310720))
        # A write that the bus refuses is lost
        if (kind == "hole" && op == 8) h = put(h, 15, "02")
        w(judged, substr(h hex(128, 0), 1, 128))
        w(judged_record, "0000000000000001")
        w(bar + 4096 * uar + 2048, "00000000" hex(6, asks) "00")
        idle()
        printf "read %d 64\n", judged_cq + 64 * (judgements++ % 4)
        # Whoever puts the queue pair into error later flushes nothing
        w(judged_record, "0000000000000000")
        made++
    }
    # An entry may have written anywhere
    function header(i) { w(boxes + 1024 * i + 560, hex(16, boxes + 1024 * i) "00000000" "005a") }
    function headers(   i) {
        for (i = 0; i < 31; i++)
            header(i)
        for (i = 0; i < 9; i++)
            w(answers + 1024 * i + 560, hex(16, answers + 1024 * (i + 1)))
    }
    # To this queue pair of the own port; and what leads there, for four slots
    function connection(to,   h) {
        h = put(put(put(put(hex(480, 0), 16, "a0"), 28, "00" hex(6, to)), 38, "0001"), 154, "e0")
        return ether ? put(put(put(h, 43, "40"), 58, substr(ether, 1, 12)), 70, substr(ether, 14)) : h
    }
    function moves_of(of, box,   op, i, h) {
        for (i = split("050a 0502 0503 0504", op, " "); i; i--)
            h = "07000000" hex(8, 256) hex(16, boxes + 1024 * box) op[i] "000000000000" hex(8, of) "00000000" \
                hex(32, 0) hex(16, answers) "000000105a000001" h
        return h
    }
    BEGIN {
        connected = connection(qp)
        moves = moves_of(qp, 30)
        for (round = 0; made < pieces; round++) {
            if (round % 64 == 0) headers()
            if (rnd(4)) command()
            else if (rnd(4)) entries()
            else judge()
            if (!rnd(40)) w(bar + 4096 * (16 + rnd(6)) + 2048 + 256 * rnd(8), noise(4) hex(6, 64 + rnd(8)) hex(2, rnd(64)))
            if (!rnd(40)) w(bar + 4096 * (16 + rnd(6)) + 32, hex(8, rnd(16) + 16777216 * rnd(2)) hex(8, rnd(8)))
        }
        idle()
    }'
}

# judge STEPS ANSWERS: of each command that has been done, "ok", "refused STATUS", "not delivered", or what is wrong with its answer;
# of those with one wrong field and of judged entries whether that has the right status.  There may be no room for more.
judge() {
    paste -d '\t' "$1" "$2" | awk -v slots=$((SLOT)) -v judged=$((JUDGED)) -v judged_cq=$((JUDGED_CQ)) \
        -v vendors="$(errors_specified | sed -n 's/^0x\(..\) d 0x\(..\)$/\1\2/p' | xargs)" -F '\t' '
    BEGIN { n = split(vendors " 0000", v, " "); while (n) { vendor[substr(v[n], 1, 2)] = substr(v[n], 3); n-- } n = split("00 02 03 04 05 06 08 09 0f 10 40 50 51", known, " "); while (n) status[known[n--]] = 1 }
    { split($1, step, " "); split($2, answer, " ") }
    step[1] == "write" && step[2] >= slots && step[2] < slots + 64 * 24 && step[3] == 64 {
        opcode[step[2] + 32] = substr(step[4], 35, 4)
        wanted[step[2] + 32] = substr(step[4], 97, 2)
    }
    step[1] == "write" && step[2] == judged { syndrome_wanted = substr(step[4], 33, 2) }
    step[1] == "read" && step[2] >= judged_cq && step[2] < judged_cq + 256 {
        is = substr(answer[2], 111, 4); own = substr(answer[2], 129, 2); cqe = (n - n % 4) / 4 % 2; n += 1
        if (own == "0" cqe) is = "0000"
        else if (own != "d" cqe) is = "none, but " own " and " is
        if (is == vendor[syndrome_wanted] syndrome_wanted) print "entry " syndrome_wanted
        else print "wrong: an entry with " syndrome_wanted " has " is
    }
    step[1] == "read" && step[3] == 32 && step[2] in opcode {
        out = substr(answer[2], 3, 32); own = substr(answer[2], 65, 2)
        op = opcode[step[2]]; s = substr(out, 1, 2); syndrome = substr(out, 9, 8)
        if (own ~ /[13579bdf]$/) print "not done"
        else if (own != "00") print "not delivered"
        else if (!(s in status)) print "wrong: " op " says status " s
        else if (s == "00" && syndrome != "00000000") print "wrong: " op " is right, but has syndrome " syndrome
        else if (s != "00" && (syndrome != "00" op s || substr(out, 17) != "0000000000000000")) print "wrong: " op " is refused with " s ", syndrome " syndrome ", and " substr(out, 17)
        else if (wanted[step[2]] != "ff" && s != wanted[step[2]] && s != "0f") print "wrong: " op " with one wrong field is refused with " s ", not " wanted[step[2]]
        else print (s == "00" ? "ok" : "refused " s) (wanted[step[2]] == s ? ", as one wrong field must be" : "")
    }'
}

pieces=0
: >"$OUT/all"
for seed in $SEEDS; do
    setup
    make_steps "$seed" "$PIECES" >"$OUT/steps"
    n=$(wc -l <"$OUT/steps")
    for of in commands command-errors wqes cqes; do
        qom_counter cx0 $of
        eval "before_$(echo $of | tr - _)=$r"
    done
    qt_feed <"$OUT/steps" >"$OUT/answers"
    check_eq "seed $seed: each step has its answer" "$n" "$(grep -c '^OK' "$OUT/answers")"
    judge "$OUT/steps" "$OUT/answers" >"$OUT/judged"
    check_false "seed $seed: each command has its own syndrome, or none" grep -m 5 '^wrong' "$OUT/judged"
    sort "$OUT/judged" | uniq -c | sort -rn | sed 's/^ */# /'
    check_eq "seed $seed: all are done when they are looked at" 0 "$(grep -c '^not done' "$OUT/judged")"
    cat "$OUT/judged" >>"$OUT/all"
    qom_counter cx0 commands
    done_commands=$((r - before_commands))
    qom_counter cx0 wqes
    done_wqes=$((r - before_wqes))
    echo "# seed $seed: $done_commands commands were done, $done_wqes entries"
    check "seed $seed: most of what was made was done" test $((done_commands + done_wqes)) -gt $((PIECES * 8 / 10))
    check "seed $seed: entries among it" test $done_wqes -gt $((PIECES / 12))
    pieces=$((pieces + PIECES))
    # Whatever has happened: after a reset of the function it works
    cfg_cap $DEVFN 0x10
    cfg_writew $DEVFN $((r + 8)) 0x8000
    cx_bar
    short 0104; says "seed $seed: after $n steps and a reset the device works" 0 $r 12
    qt_stop
done
for status in 02 03 05 06 08 0f 10 40 50 51; do
    check "some are refused with 0x$status" grep -q "^refused $status" "$OUT/all"
done
for status in 02 03 05 08 50 51; do
    check "some with one wrong field have 0x$status" grep -q "^refused $status, as" "$OUT/all"
done
for syndrome in 00 01 02 04 12 13 16; do
    check "some entries have syndrome 0x$syndrome" grep -q "^entry $syndrome" "$OUT/all"
done
echo "# $pieces commands and entries"
qt_finish

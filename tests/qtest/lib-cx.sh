# shellcheck shell=sh
# shellcheck disable=SC2034,SC2086,SC2154 # variables of the tests, numbers, variables of lib.sh
# SPDX-License-Identifier: MIT
#
# Commands to a ConnectX without a guest; sourced after lib.sh.

BAR=0x800000000
DEVFN=0x20
SLOT=0x10000
IN=0x20000
OUT_BOX=0x40000
NOWHERE=0000000600000000

# cx_start [PROPERTY=VALUE]
cx_start() {
    qt_start -device "peerlane-cx,id=cx0,addr=4,mac=52:54:00:12:34:56${1:+,$1}"
    cx_bar
}
cx_bar() {
    cfg_writel $DEVFN 0x10 $((BAR & 0xffffffff))
    cfg_writel $DEVFN 0x14 $((BAR >> 32))
    cfg_writew $DEVFN 4 6
    wrhex $((BAR + 0x10)) 0x00000000
    wr $((BAR + 0x14)) 8:$SLOT
}

# zeros N: N bytes of zeros in hexadecimal, in $r
zeros() { repeat $1 00; }
# wr ADDR PART...: they are written there
wr() {
    wr_at=$1
    shift
    hex "$@"
    wrhex $wr_at 0x$r
}
# after N STRING: what comes after so many characters, in $r
after() {
    [ ${#2} -gt $1 ] || { r=; return; }
    r=$2 af_n=$1
    while [ $af_n -ge 64 ]; do
        r=${r#????????????????????????????????????????????????????????????????}
        af_n=$((af_n - 64))
    done
    while [ $af_n -ge 8 ]; do
        r=${r#????????}
        af_n=$((af_n - 8))
    done
    while [ $af_n -gt 0 ]; do
        r=${r#?}
        af_n=$((af_n - 1))
    done
}
# first N STRING: so many characters, in $r, and what comes after them, in $rest
first() {
    after $1 "$2"
    rest=$r
    r=${2%%"$r"}
}
# at HEX BYTE NEW...: HEX with NEW, which is a part as those of hex, from that byte on, in $r
at() {
    at_hex=$1
    shift
    while [ $# -gt 0 ]; do
        hex $2
        at_new=$r
        first $((2 * $1)) "$at_hex"
        at_hex=$r$at_new
        after ${#at_new} "$rest"
        at_hex=$at_hex$r
        shift 2
    done
    r=$at_hex
}

# What a slot says unless a test changes it
defaults() { type=07 token=5a box_token=5a box_number=0 in_ptr='' out_ptr='' in_len='' own=01; }
defaults

# give HEX OUT-LENGTH: put a command into the slot, and ring its doorbell
give() {
    zeros 16
    first 32 "$1$r"
    cm_in=$r
    after 32 "$1"
    cm_n=0 rest=$r
    while [ -n "$rest" ]; do
        first 1024 "$rest"
        cm_box=$((IN + 1024 * cm_n))
        wrhex $cm_box 0x$r
        wr $((cm_box + 0x230)) 16:$((cm_box + 1024)) 8:$((cm_n + box_number)) 00$box_token
        cm_n=$((cm_n + 1))
    done
    cm_n=0
    while [ $((16 + 512 * cm_n)) -lt "$2" ] && [ $cm_n -lt 32 ]; do
        cm_box=$((OUT_BOX + 1024 * cm_n))
        wr $((cm_box + 0x230)) 16:$((cm_box + 1024))
        cm_n=$((cm_n + 1))
    done
    wr $SLOT ${type}000000 8:${in_len:-$((${#1} / 2))} ${in_ptr:-16:$IN} $cm_in
    wr $((SLOT + 0x20)) eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee ${out_ptr:-16:$OUT_BOX} 8:$2 ${token}0000$own
    defaults
    wrhex $((BAR + 0x18)) 0x00000001
}
# answer: wait, bounded, for the command; its status in $r, or "delivery D"
answer() {
    cm_n=0
    while :; do
        rdhex $((SLOT + 0x3f)) 1
        [ $((r & 1)) -eq 1 ] || break
        cm_n=$((cm_n + 1))
        more $cm_n || { r="no answer"; return; }
    done
    cm_delivery=$((r >> 1))
    rdhex $((SLOT + 0x20)) 16
    out=$r
    if [ $cm_delivery -ne 0 ]; then
        r="delivery $cm_delivery"
    else
        first 4 $out
        r=$((r))
    fi
}
# cmd HEX OUT-LENGTH: both
cmd() { give "$1" "$2"; answer; }
# id: what the last command has made, in $r
id() { after 20 $out; first 6 $r; }

# says DESC WANT HEX OUT-LENGTH
says() { cmd "$3" "$4"; check_eq "$1" "$2" "$r"; }

# fixed OPCODE WORD2 WORD3 [LENGTH]: a command with two more words, and zeros
fixed() {
    fi_hex=${1}000000000000$2$3
    [ ${4:-16} -le 16 ] || { zeros $((${4:-16} - 16)); fi_hex=$fi_hex$r; }
    r=$fi_hex
}
short() { fixed "$1" "${2:-00000000}" "${3:-00000000}"; }

# says_at DESC WANT HEX BYTE NEW...: a variation of a command that is right
says_at() {
    sa_d=$1 sa_w=$2
    shift 2
    at "$@"
    says "$sa_d" $sa_w "$r" 16
}
# becomes DESC WANT COMMAND...: wait, bounded, until COMMAND leaves that in $r
becomes() {
    be_desc=$1 be_want=$2
    shift 2
    be_n=0
    while "$@" && [ "$r" != "$be_want" ] && more $be_n; do
        be_n=$((be_n + 1))
    done
    # A counter may be ahead of what is written after it
    [ "$1" != qom_counter ] || idle "$2" || r="$r, and $2 is not idle"
    check_eq "$be_desc" "$be_want" "$r"
}

# Commands that make objects, of those that $UAR, $PD, $EQ and $CQ are, in $r:
# an event queue of 2 entries at 0x50000
eq_new() { zeros 280; at "$r" 0 0301 28 01$UAR 272 0000000000050000; }
# a completion queue of 4 entries at 0x51000, its record at 0x60000
cq_new() { zeros 280; at "$r" 0 0400 28 02$UAR 36 00$EQ 72 0000000000060000 272 0000000000051000; }
# a queue pair: 4 blocks to send, 4 receives of 16 bytes, at 0x52000
qp_new() {
    zeros 280; at "$r" 0 0500 28 00$PD 33 10 34 10 36 00$UAR 148 00$CQ 180 00$CQ 184 0000000000060040 272 0000000000052000
}
# shared receives: 4 entries of 32 bytes at 0x54000, their record at 0x60080
rmp_new() { zeros 280; at "$r" 0 090c 33 10 89 $PD 96 0000000000060080 113 05 115 02 272 0000000000054000; }
# a key for 8 KiB from 0x1800 on: three pages
key_new() {
    zeros 304; at "$r" 0 0200 16 00003d00 20 ffffff00 28 00$PD 32 0000000000001800 40 0000000000002000 72 0000000c 96 00000002 \
        272 000000000007000000000000000710000000000000072000
}
# create HEX: a command that makes an object; its id in $r
create() { cmd "$1" 16; [ "$r" = 0 ] || fail "an object is made" "$r"; id; }
# to_itself QP: it is connected to itself
to_itself() {
    fixed 0502 00$1 00000000 256; at "$r" 170 e0; cmd $r 8
    fixed 0503 00$1 00000000 256; at "$r" 32 a0 44 00$1 54 0001; cmd $r 8
    fixed 0504 00$1 00000000 256; cmd $r 8
    [ "$r" = 0 ] || fail "queue pair $1 is connected to itself" "$r"
}
# self_pair: the card is set up, with a queue pair that is connected to itself, and a key for all of memory
self_pair() {
    short 0104; cmd $r 12
    short 0102; cmd $r 8
    short 0802; create $r; UAR=$r
    short 0800; create $r; PD=$r
    eq_new; create $r; EQ=$r
    cq_new; create $r; CQ=$r
    zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
    create $r; PA_KEY=$r
    qp_new; create $r; QP=$r
    to_itself $QP
    memset 0x51000 256 0x77
}
# rdma_write ADDR LEN [INDEX]: of what is at DATA; INDEX counts its WRITEs from 0, 3 at most
DATA=0x80000
rdma_write() {
    wr $((0x52040 + 64 * ${3:-0})) 6:${3:-0} 08${QP}030000000800000000 16:$1 ${PA_KEY}0000000000 8:$2 ${PA_KEY}00 16:$DATA
    wr 0x60044 8:$((${3:-0} + 1))
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) "0x00000008${QP}03"
}

# shellcheck shell=sh
# shellcheck disable=SC2034,SC2086,SC2154 # for the cases and lib-cx.sh; numbers; variables of lib.sh, lib-cx.sh and of eval
# SPDX-License-Identifier: MIT
#
# Queue pairs of one or two ConnectX on a wire, without a guest; sourced after lib-cx.sh.  $w is a folder for their sockets.

# side N: commands go to cxN, which has memory of its own from $mem on
side() {
    side=$1
    eval "DEVFN=\${DEVFN_$1:-$((0x20 + 8 * $1))}"
    BAR=$((0x800000000 + 0x100000000 * $1))
    mem=$((0x400000 * $1))
    SLOT=$((mem + 0x10000)) IN=$((mem + 0x20000)) OUT_BOX=$((mem + 0x40000))
    eval "UAR=\${UAR_$1-} QP=\${QP_$1-} KEY=\${KEY_$1-} SET=\${SET_$1-}"
}
here() { hex 16:mem+$1; }

# device N [KIND]: everything up to a queue pair that is reset; KIND: 00 RC, 01 UC, 02 UD
device() {
    side $1
    cx_bar
    short 0104; cmd $r 12
    short 0102; cmd $r 8
    short 0802; cmd $r 16; id; UAR=$r
    short 0800; cmd $r 16; id; PD=$r
    here 0x50000; dv_at=$r
    zeros 280; at "$r" 0 0301 28 01$UAR 272 $dv_at; cmd "$r" 16; id; EQ=$r
    # That it may be overrun does not matter: completions are looked at one by one
    here 0x60000; dv_dbr=$r; here 0x51000; dv_at=$r
    zeros 280; at "$r" 0 0400 16 00020000 28 04$UAR 36 00$EQ
    at "$r" 72 $dv_dbr 272 $dv_at; cmd "$r" 16; id; CQ=$r
    zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
    cmd $r 16; id; KEY=${r}00
    here 0x60040; dv_dbr=$r; here 0x52000; dv_at=$r
    zeros 280; at "$r" 0 0500 28 00$PD 33 10 34 18 36 00$UAR
    at "$r" 148 00$CQ 180 00$CQ 184 $dv_dbr 272 $dv_at 25 ${2:-00}
    says "cx$1: a queue pair" 0 $r 16; id; QP=$r
    short 0771; cmd $r 16; id; SET=${r#????}
    eval "UAR_$1=$UAR QP_$1=$QP KEY_$1=$KEY SET_$1=$SET"
}
# counted N BYTE: a counter of what the queue pairs of cxN count, in $r
counted() {
    side $1
    zeros 32; at "$r" 0 0773 31 "$SET"; cmd "$r" 256
    rdhex $((OUT_BOX + $2 - 16)) 4
    r=$((r))
}
# ready N PEER-LID PEER-QP TIMEOUT RETRIES RNR-RETRIES: connected, from sequence number 0xfffff8 on, MTU 1024
ready() {
    side $1
    short 050a 00$QP; cmd $r 8
    fixed 0502 00$QP 00000000 256; at "$r" 36 $SET 170 e0; cmd $r 8
    fixed 0503 00$QP 00000000 256; at "$r" 32 60 44 00$3 54 $2 172 01fffff8; cmd $r 8
    fixed 0504 00$QP 00000000 256; at "$r" 56 2:$(($4 << 3)); at "$r" 145 fffff8
    at "$r" 137 2:$5 138 2:$(($6 << 5)); says "cx$1: connected" 0 $r 8
    posted=0
    wrhex $((mem + 0x60040)) 0x0000000000000000
}
both_ready() { # TIMEOUT RETRIES RNR-RETRIES
    ready 1 0001 $QP_0 $1 $2 $3
    ready 0 0002 $QP_1 $1 $2 $3
}
# put OPCODE REMOTE KEY LOCAL LENGTH [MORE [FLAGS]]: into the queue of cx0, with an atomic's segment
put() {
    put_ds=$((3 + ($1 != 10) + ($1 > 16) - 1))
    [ $1 -ne 0 ] || put_ds=1
    hex 00 4:$posted 2:$1 $QP 2:$put_ds
    put_ctrl=$r
    put_hex="$r 000000${7:-08}00000000"
    case $1 in
    0 | 10) ;;
    *) put_hex="$put_hex 16:$2 $3 00000000" ;;
    esac
    [ $1 -eq 0 ] || put_hex="$put_hex ${6-} 8:$5 $KEY 16:$4"
    wr $((mem + 0x52040 + 64 * (posted % 8))) $put_hex
    posted=$((posted + 1))
    posted_all=$((posted_all + 1))
}
# ring: what was put is to be sent
ring() {
    wr $((mem + 0x60044)) 8:$posted
    wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) 0x$put_ctrl
}
# until DESC WANT COUNTER DEVICE: the counter gets there; time passes when nothing happens for long
until_is() {
    un_n=0
    while qom_counter $4 $3 && [ "$r" != "$2" ] && more $un_n; do
        un_n=$((un_n + 1))
        [ $((un_n % 30)) -ne 0 ] || qt clock_step 1200000000
    done
    # The counter may be ahead of what is written after it
    idle $4 || r="$r, and $4 is not idle"
    # What comes after it would only wait
    check_eq "$1" "$2" "$r" || qt_finish
}
# done_is DESC: cx0 ends one more entry, and it is good
done_is() {
    qom_counter cx0 wqe-errors
    di_bad=$r
    until_is "$1" $posted_all wqes cx0
    qom_counter cx0 wqe-errors
    check_eq "$1: without error" $di_bad "$r"
}
# errors_specified: each syndrome, the side (d: requester, e: responder), and the vendor's that goes with them
errors_specified() {
    awk '/^Completions with errors$/ { on = 1 } /^Shared receives$/ { on = 0 }
        on && match($0, / +(0x..) +(0x..|none)/) {
            split(substr($0, RSTART, RLENGTH), vendor, " ")
            print $1, "d", vendor[1]
            if (vendor[2] != "none") print $1, "e", vendor[2]
        }' "$TOP/hw-model/docs/peerlane-cx.rst"
}
# fails_with DESC SYNDROME [SIDE]: the next completion of cx0
fails_with() {
    fw_at=$((0x51000 + 64 * (cqes % 16)))
    until_is "$1" $((cqes + 1)) cqes cx0
    rdhex $((fw_at + 0x3f)) 1
    check_eq "$1: its side" "0x${3:-d}" "${r%?}"
    bytes_are "$1: its status" $((fw_at + 0x37)) $2
    bytes_are "$1: the vendor's" $((fw_at + 0x36)) "$(errors_specified | sed -n "s/^$2 ${3:-d} //p")"
}
go() { put "$@"; ring; }

# peer_start: hw-model/test/cx-peer.c at the other end of the cable of cx0, which is connected to it as LID 2
peer_start() {
    qt_build cx-peer
    rm -f "$w"/a "$w"/a.host "$w"/in "$w"/out
    mkfifo "$w/in" "$w/out"
    # Its input ends with this case
    "$qt_work/cx-peer" "$w/a" "$w/a.host" <"$w/in" >"$w/out" &
    exec 7>"$w/in" 8<"$w/out"
    read -r r <&8
    qt_start -netdev "dgram,id=na,local.type=unix,local.path=$w/a.host,remote.type=unix,remote.path=$w/a" \
        -device "peerlane-cx,id=cx0,addr=4,lid=1,netdev=na,mac=52:54:00:00:00:01${1:+,$1}"
    device 0
    heard=0
}
# met TIMEOUT RETRIES RNR-RETRIES: connected, from sequence number 0xfffff8 on: offsets are counted from there
met() {
    # What nobody has heard would keep cx0 from sending
    qom_counter cx0 packets-out
    while [ $heard -lt $r ]; do
        echo hear >&7
        read -r he_opcode he_psn he_ask he_body <&8
        heard=$((heard + 1))
    done
    ready 0 0002 000041 $1 $2 $3
    qom_counter cx0 packets-in
    said=$r
    qom_counter cx0 packets-out
    heard=$r
    qom_counter cx0 wqes
    posted_all=$r
}
# psn OFFSET
psn() { hex 6:0xfffff8+$1; }
# say OPCODE OFFSET [BODY]: a packet for cx0, which has sent all that it could before, and has done with it then
say() {
    idle cx0
    psn $2
    echo "say $1 $QP $r ${3-}" >&7
    said=$((said + 1))
    say_n=0
    while qom_counter cx0 packets-in && [ "$r" -lt $said ] && more $say_n; do
        say_n=$((say_n + 1))
    done
    idle cx0
}
# hears DESC OPCODE OFFSET [BODY]: the next packet of cx0 is this
hears() {
    psn $3
    he_want="$2 $r${4:+ $4}"
    echo hear >&7
    read -r he_opcode he_psn he_ask he_body <&8
    heard=$((heard + 1))
    # What comes after it would only wait
    [ "$he_opcode" != nothing ] || { fail "$1" "nothing comes"; qt_finish; }
    check_eq "$1" "$he_want" "$he_opcode $he_psn${4:+ $he_body}"
}
# silent DESC: cx0 has sent nothing but what was heard
silent() {
    idle cx0
    value_is "$1" $heard qom_counter cx0 packets-out
}

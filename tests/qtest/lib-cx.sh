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
    wrhex $((BAR + 0x14)) "0x$(printf %08x $SLOT)"
}

# zeros N: N bytes of zeros in hexadecimal, in $r
zeros() { r=$(printf "%0$((2 * $1))d" 0); }
# repeated N HEX: that, N times, in $r
repeated() { r=$(printf "$2%.0s" $(seq $1)); }
# at HEX BYTE NEW: HEX with NEW from that byte on, in $r
at() {
    at_tail=$(printf %s "$1" | cut -c$((2 * $2 + ${#3} + 1))-)
    at_head=
    [ "$2" -eq 0 ] || at_head=$(printf %s "$1" | cut -c-$((2 * $2)))
    r=$at_head$3$at_tail
}

# What a slot says unless a test changes it
defaults() { type=07 token=5a box_token=5a box_number=0 in_ptr='' out_ptr='' in_len='' own=01; }
defaults

# give HEX OUT-LENGTH: put a command into the slot, and ring its doorbell
give() {
    cm_len=$((${#1} / 2))
    zeros 16
    cm_in=$1$r
    cm_in=$(printf %s "$cm_in" | cut -c-32)
    cm_rest=$(printf %s "$1" | cut -c33-)
    cm_n=0
    while [ -n "$cm_rest" ]; do
        cm_data=$(printf %s "$cm_rest" | cut -c-1024)
        cm_rest=$(printf %s "$cm_rest" | cut -c1025-)
        cm_box=$((IN + 1024 * cm_n))
        wrhex $cm_box 0x$cm_data
        wrhex $((cm_box + 0x230)) "0x$(printf %016x%08x00%s $((cm_box + 1024)) $((cm_n + box_number)) $box_token)"
        cm_n=$((cm_n + 1))
    done
    cm_n=0
    while [ $((16 + 512 * cm_n)) -lt "$2" ] && [ $cm_n -lt 32 ]; do
        cm_box=$((OUT_BOX + 1024 * cm_n))
        wrhex $((cm_box + 0x230)) "0x$(printf %016x $((cm_box + 1024)))"
        cm_n=$((cm_n + 1))
    done
    wrhex $SLOT "0x${type}000000$(printf %08x ${in_len:-$cm_len})${in_ptr:-$(printf %016x $IN)}$cm_in"
    wrhex $((SLOT + 0x20)) "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee${out_ptr:-$(printf %016x $OUT_BOX)}$(printf %08x "$2")${token}0000$own"
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
        r=$(printf %d "0x$(printf %s "$out" | cut -c3-4)")
    fi
}
# cmd HEX OUT-LENGTH: both
cmd() { give "$1" "$2"; answer; }
# id: what the last command has made, in $r
id() { r=$(printf %s "$out" | cut -c21-26); }

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
    r=$3
    shift 3
    while [ $# -gt 0 ]; do
        at "$r" $1 $2
        shift 2
    done
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

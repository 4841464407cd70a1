#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU's specification, its header and the device say the same
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2013,SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

RST=$TOP/hw-model/docs/peerlane-gpu.rst

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M
gpu_setup 0 0x20
use 0

# Registers: offsets in the tables and in the header; reset values in the
# tables and in the device; RO and WO keep no value, RW does
awk '/^=+ =+/ { next }
    $1 ~ /^[A-Z0-9_]+$/ && $2 ~ /^0x/ && $3 ~ /^(RO|RW|WO)$/ {
        wide = $0 ~ /64 bit/; print $1, $2, $3, $4, wide }' "$RST" >"$OUT/table"
bad=
n=0
while read -r name off acc reset wide; do
    n=$((n + 1))
    case $name in
    Q_*) var=PLN_$name at=$((0x1000 + off)) ;;
    *) var=PLN_REG_$name at=$((off)) ;;
    esac
    eval "num=\${$var-}"
    [ -n "$num" ] && [ $((num)) = $((off)) ] || bad="$bad $name:offset"
    reg $at
    case $reset in
    0x*) [ "$r" = $((reset)) ] || bad="$bad $name:reset=$r" ;;
    esac
done <"$OUT/table"
# All were as after a reset; now write
while read -r name off acc _ wide; do
    case $name in
    Q_*) at=$((0x1000 + off)) ;;
    *) at=$((off)) ;;
    esac
    reg $at
    before=$r
    case $name in
    Q_TAIL | Q_CTRL | Q_VECTOR) continue ;;    # have rules of their own
    esac
    setreg $at $((0x5a5a5a5a))
    reg $at
    case $acc in
    RW) [ "$r" = $((0x5a5a5a5a)) ] || bad="$bad $name:not-writable" ;;
    *) [ "$r" = "$before" ] || bad="$bad $name:writable" ;;
    esac
    if [ "$acc" = RW ] && [ "$wide" = 1 ]; then
        setreg $((at + 4)) $((0x12345678))
        reg $((at + 4))
        [ "$r" = $((0x12345678)) ] || bad="$bad $name:high-half"
    fi
done <"$OUT/table"
check_eq "$n registers: table, header and device agree" "" "$bad"
check "all tables were read" test "$n" -ge 30

# ... and nothing is in the header that is not in the tables
bad=
for name in $(sed -n 's/^#define *PLN_REG_\([A-Z0-9_]*\) .*/\1/p; s/^#define   PLN_\(Q_[A-Z_]*\) *0x.*/\1/p' "$REGS_H"); do
    grep -q "^$name " "$OUT/table" || bad="$bad $name"
done
check_eq "every register of the header is specified" "" "$bad"

# agree WHAT PREFIX HOW-MANY: the lines "NAME NUMBER" on standard input are the header's
agree() {
    bad=
    n=0
    while read -r name num; do
        n=$((n + 1))
        eval "[ \"\${$2$name-}\" = $num ]" || bad="$bad $name"
    done
    check_eq "$1 agree" "" "$bad"
    check_eq "all $1 are specified" "$3" "$n"
}
sed -n '/^Error codes/,/^Counters/s/^\([0-9][0-9]*\) *\([A-Z_][A-Z_]*\).*/\2 \1/p' "$RST" >"$OUT/errors"
agree "error codes" PLN_ERR_ $PLN_NUM_ERRORS <"$OUT/errors"
sed -n 's/^\([0-8]\)   \([A-Z0-9_]*\)  *[a-zA-Z].*/\2 \1/p' "$RST" >"$OUT/ops"
agree operations PLN_OP_ $PLN_NUM_OPS <"$OUT/ops"

# Counters: number, header name and QOM name
sed -n '/^=== =* =*$/,/^SEM_WAIT reads/s/^\([0-9][0-9]*\) *\([a-z][a-z0-9-]*\).*/\1 \2/p' "$RST" >"$OUT/counters"
qom_get gpu0 counters
bad=
while read -r num name; do
    eval "[ \"\${PLN_CNT_$(echo "$name" | tr a-z- A-Z_)-}\" = $num ]" || bad="$bad $name"
    case $qmp_reply in *"\"$name\": "*) ;; *) bad="$bad $name:qom" ;; esac
done <"$OUT/counters"
check_eq "counters agree" "" "$bad"
check_eq "all counters are specified" $PLN_NUM_COUNTERS "$(wc -l <"$OUT/counters")"

# Fields of the descriptor and of the completion record
bad=
n=0
for f in $(awk '/^Descriptor$/ { on = 1 } /^Error codes/ { on = 0 }
    on && $2 ~ /^0x[0-9a-f]+$/ && $3 ~ /^(32|64)$/ {
        if ($1 == "FENCE" && $2 == "0x00") comp = 1
        print (comp ? "COMP_" : "DESC_") $1 "=" $2 }' "$RST"); do
    n=$((n + 1))
    eval "[ \$((PLN_${f%%=*})) = $((${f#*=})) ]" || bad="$bad $f"
done
check_eq "$n descriptor and completion fields agree" "" "$bad"
check "all fields were read" test "$n" -eq 15
qt_finish

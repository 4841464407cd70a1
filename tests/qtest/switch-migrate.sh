#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: control bits, routes and counters of the switch survive migration to a file
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

LEN=4096
sw_start -name migrate
bar1_of 0
at_0=$r
bar1_of 1
at_1=$r
bar1_of 2
at_2=$r
bar1_of 3
at_3=$r

# tries: where DMA goes now, as words; each port's counters tell
tries() {
    tr=
    while read -r gpu dir at; do
        eval "at=\$at_$at"
        move "$gpu" "$dir" "$at" $LEN
        tr="$tr$gpu $dir: $moved"
        for p in $ALL_PORTS; do
            counted "$p"
            tr="$tr; $p $r"
        done
        tr="$tr
"
    done <<END
0 write 1
0 read 2
1 write 0
2 write 3
2 read 0
3 write 1
END
    r=$tr
}
for p in $ALL_PORTS; do snap "$p"; done
tries
plain=$r
# GPU 0: redirected to GPU 1 (port 2), directly to GPU 2 (port 3); GPU 1: redirected;
# GPU 2: refused by egress control; GPU 3: a bit without effect
acs_egress $DP0 4
acs_set $DP0 $((ACS_EC | ACS_RR))
acs_set $DP1 $((ACS_RR | ACS_UF))
acs_egress $DPI0 4
acs_set $DPI0 $ACS_EC
acs_set $DPI1 $ACS_TB
# It asks which buses are below, those of the inner switch
acs_set $DP2 $ACS_SV
# errors are told to the root port: its log, and that of the port
cfg_cap $RP0 0x10
for p in "$RP0 $r" "$SW0 0x90" "$DP2 0x90" "$SW1 0x90" "$DPI0 0x90"; do
    cfg_writew "${p% *}" $((${p#* } + 8)) 0xf
    cfg_writew "${p% *}" 0x3e 2
done
# errors: status, header and capability of AER, and what the root port has received
errors() {
    er=
    for er_p in "$DPI0 0x104" "$DPI0 0x118" "$DPI0 0x11c" "$DPI0 0x120" "$DPI0 0x124" "$RP0 0x130" "$RP0 0x134"; do
        ext_readl "${er_p% *}" "${er_p#* }"
        er="$er $(printf %x "$r")"
    done
    r=$er
}
# a slot's state: the drive's port has events enabled
cfg_writew $DP3 0xa8 0x1120
for p in $ALL_PORTS; do snap "$p"; done
tries
before=$r
check "control bits make a difference" test "$plain" != "$before"
counters=
for p in $ALL_PORTS; do
    qom_get "$p" counters
    counters="$counters$p $qmp_reply
"
done
errors
logged=$r
check "an error is logged, here and at the root port ($logged)" test "${logged##* }" != 0
qmp stop

check "saved to a file" qt_saved
qt_stop

sw_boot -incoming "file:$OUT/vmstate"
check "loaded from the file" qt_loaded
rm -f "$OUT/vmstate"
now=
for p in $ALL_PORTS; do
    qom_get "$p" counters
    now="$now$p $qmp_reply
"
done
check_eq "the counters of all ports" "$counters" "$now"
for port in "$DP0 $((ACS_EC | ACS_RR))" "$DP1 $((ACS_RR | ACS_UF))" "$DPI0 $((ACS_EC))" "$DPI1 $((ACS_TB))" "$DP2 $((ACS_SV))"; do
    acs_get "${port% *}"
    check_eq "control bits of port ${port% *}" "${port#* }" "$r"
done
ext_readl $DP0 $((ACS_AT + 8))
check_eq "the egress vector" 4 "$r"
cfg_readl $DP3 0xa8
check_eq "slot control" $((0x1120)) $((r & 0x1720))
errors
check_eq "what was logged" "$logged" "$r"
qmp cont
for p in $ALL_PORTS; do snap "$p"; done
tries
check_eq "DMA goes where it went" "$before" "$r"
qom_get sw0 requesters-of-all-switches
check_eq "by as many requesters" '{"return": 9}' "$(echo "$qmp_reply" | tr -d '\r')"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: whatever is in a migration stream of the switch's ports, QEMU takes it and goes on, or refuses it
# tags: qtest switch migration
# tier: check
# timeout: 1200
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-stream.sh"

machine() { sw_boot "$@"; }
# Ports have counted, redirect and refuse; an error of the inner switch is logged, and sent to the root port
sw_start
acs_egress $DPI0 4
acs_set $DPI0 $ACS_EC
acs_set $DP0 $ACS_RR
for p in "$SW0 0x90" "$DP2 0x90" "$SW1 0x90" "$DPI0 0x90"; do
    cfg_writew "${p% *}" $((${p#* } + 8)) 0xf
    cfg_writew "${p% *}" 0x3e 2
done
for gpu in 1 2 3; do
    bar1_of $gpu
    eval "at_$gpu=$r"
done
move 0 write $at_1 4096
check_eq "a peer is reached" 1 $moved
move 2 write $at_3 4096
check_eq "another is not" 0 $moved
ext_readl $DPI0 0x104
check "that is logged" test "$r" != 0
qmp stop
check "the machine is saved" qt_saved
qt_stop
mv vmstate good
cp good vmstate
load
check_eq "the stream itself is taken" completed "$loaded"
qt_stop

# Of each port: the header and the capabilities, those behind the first 256 bytes, what follows configuration space (interrupts,
# the log of errors, counters), and the whole
{
    sections peerlane-switch-upstream
    sections peerlane-switch-downstream
} >ports
check_eq "all ports are found in it" 8 "$(wc -l <ports)"
awk '{
    print 2, $1, $1 + 260
    print 2, $1 + 260, $1 + 4 + 512
    print 3, $1 + 4100, $2
    print 1, $1, $2
}' ports >ranges
# Each port is asked, DMA goes through all of them, and new routes are made
works() {
    for p in $ALL_PORTS; do
        qom_get $p counters
    done
    for bdf in $SW0 $DP0 $DP1 $DP2 $DP3 $SW1 $DPI0 $DPI1; do
        cfg_readl $bdf 0
        acs_get $bdf
        acs_set $bdf 0
    done
    for gpu in 0 2; do
        use $gpu
        queue_setup $gpu
        job $gpu op=$PLN_OP_COPY +flags=$PLN_DESC_F_DST_BUS src=$STAGE dst=$at_1 len=4096
    done
}
streams=${STREAMS:-12}
[ "$TIER" != nightly ] || streams=200
mutations $streams works
rm -f good vmstate
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the switch under ACS changes and removals with DMA in flight; no leak
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

# The guest powers slots, as without ACPI hotplug
sw_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off

bar1_of 0
stage=$((r + STAGE))
bar1_of 1
peer=$r
for p in $ALL_PORTS; do snap "$p"; done
direct=0 around=0 n=0 bad='' changes=0
while [ $n -lt 4 ]; do
    n=$((n + 1))
    memset $stage $SIZE $((n + 1))
    memset "$peer" $SIZE 0
    # The first change comes in or behind the first copy, so the second goes the other way; the rest, as it comes
    acs_set $DP0 $((n & 1 ? ACS_RR : 0))
    stream_put 0 "$peer"
    half_way gpu0 $GPU0 0 || bad="$bad round $n: not half way;"
    c=$((n + 1))
    acs_set $DP0 $((c & 1 ? ACS_RR : 0))
    awake $GPU0
    c=$((c + 1))
    h=0
    while qreg 0 "$PLN_Q_HEAD" && [ "$r" -lt 2 ] && more $h; do
        h=$((h + 1))
    done
    while [ $c -lt $((n + 400)) ]; do
        acs_set $DP0 $((c & 1 ? ACS_RR : 0))
        changes=$((changes + 1))
        c=$((c + 1))
        qreg 0 "$PLN_Q_HEAD"
        [ "$r" -ne 14 ] || break
    done
    settle 0
    [ "$r" = "$PLN_Q_IDLE" ] || bad="$bad round $n: queue $r;"
    pattern $((n + 1))
    want=$r
    two_ends "$peer" $SIZE
    [ "$want" = "$r" ] || bad="$bad round $n: data $r;"
    counted dp0
    d=0 a=0
    for word in $r; do
        case $word in
        peer-write=*) d=${word#*=} ;;
        upstream-peer-write=*) a=${word#*=} ;;
        # the engine has written to its own configuration space
        host-read=* | other=2) ;;
        *) bad="$bad round $n: $word;" ;;
        esac
    done
    [ $((d + a)) -eq $((14 * SIZE)) ] || bad="$bad round $n: $d + $a bytes;"
    [ $d -gt 0 ] && [ $a -gt 0 ] || bad="$bad round $n: $d bytes direct, $a around;"
    direct=$((direct + d)) around=$((around + a))
done
check_eq "ACS changes in the middle of DMA lose no byte, and what comes after goes another way" "" "$bad"
diag "$direct bytes direct, $around around, $changes changes"

acs_set $DP0 0
# gpu0 and gpu1: one; gpu2, gpu3: one at each switch; sw1, dpi0, dpi1: one
live_is "requesters at first" 9
n=0
while [ $n -lt 5 ]; do
    n=$((n + 1))
    # the provider goes in the middle of DMA to it
    stream 0 "$peer"
    check "round $n: the provider goes" unplug $DP1 gpu1
    settle 0
    gpu_dma 0 read "$peer" 4096
    check_eq "round $n: DMA from where it was fails" 0 "$dma_ok"
    live_is "round $n: its requester is gone" 8
    check "round $n: a provider comes" plug $DP1 dp1 1
    move 0 write "$peer" 4096
    check_eq "round $n: DMA to it works" 1 "$moved"
    # the requester goes in the middle of DMA
    stream 0 "$peer"
    check "round $n: the requester goes" unplug $DP0 gpu0
    live_is "round $n: its requester is gone" 8
    check "round $n: a requester comes" plug $DP0 dp0 0
    move 0 write "$peer" 4096
    check_eq "round $n: its DMA works" 1 "$moved"
    live_is "round $n: as many as at first" 9
done
snap dp0
move 0 write "$peer" 4096
counted dp0
check_eq "the new one is counted" "peer-write=4096 host-read=$JOB_READ host-write=$JOB_WRITE" "$r"

# A function two switches down has a requester at each; then all of a switch
check "one below the inner switch goes" unplug $DPI0 gpu2
live_is "both its requesters are gone" 7
check "the inner switch goes with all below it" unplug $DP2 sw1
live_is "and all their requesters" 2
move 0 write "$peer" 4096
check_eq "the others go on" 1 "$moved"
qt_finish

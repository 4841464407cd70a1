#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a ConnectX in the middle of long WRITEs and READs changes no memory once it is reset, stopped or pulled out, or is no bus master
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # for the libraries; numbers; variables of the libraries and of eval
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"
. "$(dirname "$0")/lib-switch.sh"

DEVFN_0=$GPU0
FROM=0x1000000 TO=0x2000000 HALF=0x200000
CQ_AT=0x51000
ENTRIES=1024

# at_work: cx0 is in the middle of 2 GiB of WRITEs and READs to itself, by turns
at_work() {
    qt_start -name cx-reset -netdev hubport,id=net,hubid=0 \
        -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
        -device pcie-root-port,id=rp0,addr=3,chassis=1,slot=1 \
        -device peerlane-switch-upstream,id=sw0,bus=rp0 \
        -device peerlane-switch-downstream,id=dp0,bus=sw0,addr=0,chassis=3,slot=3 \
        -device peerlane-cx,id=cx0,bus=dp0,netdev=net
    ecam_on
    bridge $RP0 0 1 3 0 0
    bridge $SW0 1 2 3 0 0
    bridge $DP0 2 3 3 0 0
    device 0
    here 0x60040; dbr=$r
    zeros 280; at "$r" 0 0500; at "$r" 28 00$PD; at "$r" 33 10; at "$r" 34 50; at "$r" 36 00$UAR; at "$r" 44 05
    at "$r" 148 00$CQ; at "$r" 180 00$CQ; at "$r" 184 $dbr; at "$r" 272 0000000000100000
    says "a queue pair with a long queue" 0 "$r" 16; id; QP_0=$r QP=$r
    ready 0 0001 $QP 0 7 7
    memset $FROM $((2 * HALF)) 0x11
    wrhex 0x100040 "0x$(awk -v qp=$QP -v key=$KEY -v n=$ENTRIES -v len=$((HALF)) -v from=$((FROM)) -v to=$((TO)) 'BEGIN {
        for (i = 0; i < n; i++) {
            printf "00%04x%02x%s03%08x%08x", i, i % 2 ? 16 : 8, qp, 8, 0
            printf "%016x%s%08x", i % 2 ? from + len : to, key, 0
            printf "%08x%s%016x%032x", len, key, i % 2 ? to + len : from, 0
        }
    }')"
    written=0
    moved
    base=$r
    posted=$ENTRIES put_ctrl=$(printf '00%04x10%s03' $((ENTRIES - 1)) $QP)
    ring
    mo_n=0
    while moved && [ $r -lt $((base + 3 * HALF)) ] && more $mo_n; do
        mo_n=$((mo_n + 1))
    done
    check "$1: both have written" test $r -ge $((base + 2 * HALF))
}
moved() { qom_counter cx0 data-host-write; }
# marked: whoever writes after this is found out; kept DESC: nobody has
marked() {
    memset $TO $((2 * HALF)) 0xaa
    memset $CQ_AT 4096 0xaa
}
kept() {
    for ke_what in $CQ_AT:4096:completions $TO:$((2 * HALF)):data; do
        ke_at=${ke_what%%:*} ke_what=${ke_what#*:}
        qmp pmemsave "{\"val\":$((ke_at)),\"size\":${ke_what%:*},\"filename\":\"$qt_work/now\"}"
        check_eq "$1: ${ke_what#*:} that were not there before" 0 "$(tr -d '\252' <"$qt_work/now" | wc -c)"
        check_eq "$1: of all ${ke_what#*:}" ${ke_what%:*} "$(wc -c <"$qt_work/now")"
    done
}
# in_between DESC: it has neither moved anything since $was, nor been waited for
in_between() {
    qom_counter cx0 wqes
    check "$1: in the middle: $r entries of $ENTRIES have ended" test $r -lt $ENTRIES
    value_is "$1: and nothing more is moved" $was moved
}
flr() {
    cfg_cap $GPU0 0x10
    cfg_writew $GPU0 $((r + 8)) 0x8000
}
hot_reset() {
    cfg_readl $DP0 0x3c
    hr_was=$r
    cfg_writel $DP0 0x3c $((hr_was | 1 << 22))
    cfg_writel $DP0 0x3c $hr_was
}
machine_reset() {
    qmp_events=
    qmp system_reset
    event '"RESET"'
}

for how in flr hot_reset machine_reset; do
    at_work $how
    $how
    moved; was=$r
    marked
    in_between $how
    kept $how
    check "$how: the engine has nothing to do" idle cx0
    kept "$how: then"
    qt_stop
done

at_work stop
qmp stop
moved; was=$r
marked
in_between stop
kept stop
qmp cont
mo_n=0
while moved && [ $r -lt $((was + 2 * HALF)) ] && more $mo_n; do
    mo_n=$((mo_n + 1))
done
check "cont: it goes on" test $r -ge $((was + 2 * HALF))
bytes_are "cont: with what it is to write" $TO 0x11111111
qt_stop

at_work "bus master off"
qom_counter cx0 dma-writes-lost
was=$r
cfg_writew $GPU0 4 2
marked
check "bus master off: the engine ends" idle cx0
kept "bus master off"
qom_counter cx0 dma-writes-lost
check "bus master off: completions are lost" test $r -gt $was
qt_stop

at_work "surprise removal"
qmp_events=
check "surprise removal" pull dp0
check "surprise removal: the device is gone" gone cx0
marked
check "surprise removal: which QMP tells" event DEVICE_DELETED
kept "surprise removal"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: functions that cannot be realized, and those behind a conventional bridge, leave nothing behind that the switch uses later
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

NO_ACPI="-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"

# Each change of a port's ACS or windows makes all routes again
many_changes() {
    mc_n=0
    while [ $mc_n -lt 50 ]; do
        for mc_port in $DP2 $DPI1; do
            acs_set $mc_port $ACS_RR
            acs_set $mc_port 0
        done
        mc_n=$((mc_n + 1))
    done
}

sw_start $NO_ACPI
live_is "requesters at first" 9
check "a function goes" pull dpi0
live_is "its requesters are gone" 7
# bad DRIVER PROPERTY VALUE WHY: no such function is realized, and that is why
bad() {
    qmp device_add "{\"driver\":\"$1\",\"id\":\"bad\",\"bus\":\"dpi0\",\"$2\":$3}"
    ba_why=${qmp_reply##*'"desc": "'}
    check_eq "a $1 with $2 $3 cannot be realized in its place" "$4" "$(echo "${ba_why%%\"*}" | grep -oE "^$4")"
}
bad peerlane-gpu vram-size 3 'vram-size must be'
bad peerlane-cx vectors 0 'vectors must be 1 to 64'
bad peerlane-cx vectors 65 'vectors must be 1 to 64'
bad peerlane-cx lid 0 'lid must be a unicast one'
bad peerlane-cx lid 49152 'lid must be a unicast one'
bad peerlane-cx link-layer '"token-ring"' 'link-layer must be'
bad peerlane-cx subnet '"10.1.2.0"' 'subnet must be'
bad peerlane-cx subnet '"ten"' 'subnet must be'
many_changes
live_is "nothing is left of them at the next change" 7
qmp device_add '{"driver":"peerlane-cx","id":"bad","bus":"dpi0","vectors":64,"lid":49151,"link-layer":"infiniband","subnet":"10.1.0.0"}'
live_is "one that can be has its place, and their name" 9
check "it goes" pull dpi0
live_is "with its requester" 7
bad peerlane-gpu vram-size 3 'vram-size must be'
check "then the inner switch goes" pull dp2
live_is "all that was below is gone" 2
many_changes
qmp query-status
check "the outer switch goes on" test -n "$qmp_reply"
qt_stop

# The windows of the port at 0x200 close and open
many_windows() {
    n=0
    while [ $n -lt 50 ]; do
        cfg_writew 0x200 4 0
        cfg_writew 0x200 4 6
        n=$((n + 1))
    done
}

# Behind a conventional bridge all functions have the bridge's ID, and one requester.
# QEMU's pcie-pci-bridge never frees its hot-plug controller.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
qt_start $NO_ACPI -device pcie-root-port,id=rp0,addr=3,chassis=1,slot=1 \
    -device peerlane-switch-upstream,id=sw0,bus=rp0 \
    -device peerlane-switch-downstream,id=dp0,bus=sw0,addr=0,chassis=3,slot=3 \
    -device pcie-pci-bridge,id=br,bus=dp0 \
    -device edu,bus=br,addr=1,id=e1 -device edu,bus=br,addr=2,id=e2
qom_get sw0 requesters-of-all-switches
check_eq "the bridge, and what is behind it" '{"return": 2}' "$(echo "$qmp_reply" | tr -d '\r')"
check "the bridge is pulled out" qom_set dp0 surprise-removal true
live_is "both are gone" 0
# port config: bus 1 below the root port, bus 2 below the switch's upstream port
cfg_writel 0x18 0x18 0x040100
cfg_writel 0x100 0x18 0x040201
many_windows
qmp query-status
check "the switch goes on" test -n "$qmp_reply"
qt_stop

# The function at slot 0 has the devfn by which the shared requester is known. It goes by ACPI, as QEMU has it when nobody says
# otherwise, and its neighbour goes on.
qt_start -device pcie-root-port,id=rp0,addr=3,chassis=1,slot=1 \
    -device peerlane-switch-upstream,id=sw0,bus=rp0 \
    -device peerlane-switch-downstream,id=dp0,bus=sw0,addr=0,chassis=3,slot=3 \
    -device pcie-pci-bridge,id=br,bus=dp0 \
    -device edu,bus=br,addr=0,id=e0 -device edu,bus=br,addr=1,id=e1
live_is "behind another: the bridge, and the two that share" 2
cfg_writel 0x18 0x18 0x040100
cfg_writel 0x100 0x18 0x040201
cfg_writel 0x200 0x18 0x040302
cfg_writel 0x300 0x18 0x040403
for bdf in 0x18 0x100 0x200 0x300; do
    cfg_writel $bdf 0x20 0xe000e000
    cfg_writew $bdf 4 6
done
EDU=0xe0000000
cfg_writel 0x408 0x10 $EDU
cfg_writew 0x408 4 6
# edu_dma FROM TO LENGTH COMMAND; edu_writes BYTE: the edu writes that to memory, from its buffer; that is at 0x40000 for edu
edu_dma() {
    writeq $((EDU + 0x80)) $(($1))
    writeq $((EDU + 0x88)) $(($2))
    writeq $((EDU + 0x90)) $3
    writeq $((EDU + 0x98)) $4
    qt clock_step 200000000
}
edu_writes() {
    memset 0x100000 8 $1
    memset 0x100008 8 0
    edu_dma 0x100000 0x40000 8 1
    edu_dma 0x40000 0x100008 8 3
}
edu_writes 0x5a
bytes_are "the neighbour does DMA" 0x100008 0x5a5a5a5a5a5a5a5a
# The ports of QEMU's ACPI for PCI: which bus, and which slot of it is emptied
qmp device_del '{"id":"e0"}'
bus=0
while ! gone e0 && [ $bus -lt 16 ]; do
    qt outl 0xcd0 $bus
    qt outl 0xcc8 1
    bus=$((bus + 1))
done
check "the one at slot 0 goes" gone e0
many_windows
live_is "the requester stays, of its neighbour" 2
edu_writes 0x33
bytes_are "which does DMA as before" 0x100008 0x3333333333333333
qt_stop

# A switch in the slot of a conventional bridge. A device below its port writes to the hot-plug controller of that bridge: the
# switch goes, and the device with it, in the middle of that write, which the link of the port would carry.
qt_start $NO_ACPI -device pcie-root-port,id=rp0,addr=3,chassis=1,slot=1 \
    -device pcie-pci-bridge,id=br,bus=rp0 \
    -device peerlane-switch-upstream,id=sw0,bus=br,addr=1 \
    -device peerlane-switch-downstream,id=dp0,bus=sw0,addr=0,chassis=3,slot=3,link-gen=3 \
    -device edu,bus=dp0,id=e0,dma_mask=0xffffffff
cfg_writel 0x18 0x18 0x040100
cfg_writel 0x100 0x18 0x040201
cfg_writel 0x208 0x18 0x040302
cfg_writel 0x300 0x18 0x040403
for bdf in 0x18 0x100 0x208 0x300; do
    cfg_writel $bdf 0x20 0xe000e000
done
cfg_writel 0x18 0x20 0xe010e000
SHPC=0xe0100000
cfg_writel 0x100 0x10 $SHPC
for bdf in 0x18 0x100 0x208 0x300; do
    cfg_writew $bdf 4 6
done
cfg_writel 0x400 0x10 $EDU
cfg_writew 0x400 4 6
edu_writes 0x5a
bytes_are "the device does DMA" 0x100008 0x5a5a5a5a5a5a5a5a
# Into its buffer comes: disable the slot, its power indicator off; of slot 1. No other registers are written.
writel 0x100000 0x010f
edu_dma 0x100000 0x40000 2 1
edu_dma 0x40000 $((SHPC + 0x14)) 2 3
check "it writes itself away" gone e0
check "and its switch" gone sw0
qmp query-status
check "QEMU goes on" test -n "$qmp_reply"
qt_finish

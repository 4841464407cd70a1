#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: devices are pulled out of the switch in the middle of DMA, and others plugged
# tags: qtest switch nvme
# tier: check
# timeout: 240
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

# One byte in a second of real time: the throttled drive keeps its second command
# and those after it until somebody drains it
sw_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
    -object throttle-group,id=slow,x-iops-total=1,x-iops-size=1 \
    -blockdev driver=null-co,node-name=null,size=1048576,read-zeroes=on \
    -blockdev driver=throttle,node-name=disk,throttle-group=slow,file=null

# Slot registers of a port, and its MSI
EXP=0x90
SLOT_IRQ=0x3800
LNKCAP_DLLLARC=20 LNKSTA_DLLLA=29
slot_irq_setup() {
    cfg_writel "$1" 0x74 $SLOT_IRQ
    cfg_writel "$1" 0x78 0
    cfg_writew "$1" 0x7c 0x4711
    cfg_writew "$1" 0x72 1
    writel $SLOT_IRQ 0
}
# slot_is DESC BDF PRESENT LINK PDC DLLSC INTERRUPT; then the events are cleared
slot_is() {
    cfg_readl "$2" $((EXP + 0x18))
    si="$((r >> 22 & 1))"
    si_pdc=$((r >> 19 & 1)) si_dllsc=$((r >> 24 & 1)) si_sta=$((r >> 16))
    cfg_readl "$2" $((EXP + 0x10))
    si="$si $((r >> LNKSTA_DLLLA & 1)) $si_pdc $si_dllsc"
    readl $SLOT_IRQ
    check_eq "$1: present, link, changes of both, interrupt" "$3 $4 $5 $6 $7" "$si $((r == 0x4711))"
    cfg_writew "$2" $((EXP + 0x1a)) $((si_sta & 0x11f))
    writel $SLOT_IRQ 0
}
ALL_EVENTS=0x1039       # DLLSCE, HPIE, CCIE, PDCE, ABPE; power on
slot_irq_setup $DP0
cfg_readl $DP0 $((EXP + 0xc))
check_eq "a slot for hotplug can report its link" 1 $((r >> LNKCAP_DLLLARC & 1))
cfg_writew $DP0 $((EXP + 0x18)) $ALL_EVENTS
slot_is "at first" $DP0 1 1 0 0 1
slot_is "acknowledged" $DP0 1 1 0 0 0
cfg_readl $DP0 $((EXP + 0x18))
check_eq "the link's event can be enabled" $((ALL_EVENTS)) $((r & 0xffff & ~0x3c0))
qmp_events=
check "the GPU is pulled" pull dp0
slot_is "pulled" $DP0 0 0 1 1 1
check "the GPU is gone" gone gpu0
check "which QMP tells" event DEVICE_DELETED
value_is "nobody answers there" 0xffffffff cfg_readl $GPU0 0
check "a GPU is plugged" add $DP0 dp0 0
slot_is "plugged" $DP0 1 1 1 1 1
cfg_writew $DP0 $((EXP + 0x18)) 0x0000
slot_is "the interrupts are off" $DP0 1 1 0 0 0
check "the GPU is pulled" pull dp0
slot_is "pulled, no interrupt wanted" $DP0 0 0 1 1 0
cfg_writew $DP0 $((EXP + 0x18)) 0x1020
slot_is "only the link's event is wanted, as Linux does" $DP0 0 0 0 0 0
check "a GPU is plugged" add $DP0 dp0 0
slot_is "plugged" $DP0 1 1 1 1 1

# Power alone: the link goes and comes, the device stays
cfg_writew $DP0 $((EXP + 0x18)) 0x1720
slot_is "power off" $DP0 1 0 0 1 1
value_is "nobody answers" 0xffffffff cfg_readl $GPU0 0
cfg_writew $DP0 $((EXP + 0x18)) 0x1120
slot_is "power on" $DP0 1 1 0 1 1
value_is "it is there again" 0x9e711234 cfg_readl $GPU0 0
# Plugged while the guest has yet to turn off what was pulled
check "the GPU is pulled" pull dp0
slot_is "pulled" $DP0 0 0 1 1 1
check "a GPU is plugged" add $DP0 dp0 0
slot_is "plugged" $DP0 1 1 1 1 1
cfg_writew $DP0 $((EXP + 0x18)) 0x1720
slot_is "the guest turns the old one off" $DP0 1 0 0 1 1
cfg_writew $DP0 $((EXP + 0x18)) 0x1120
slot_is "and the new one on" $DP0 1 1 0 1 1
value_is "which is there" 0x9e711234 cfg_readl $GPU0 0
plug_again() { gpu_setup 0 $GPU0 && use 0 && bar1 "$PLN_BAR1_CMD_MAP" 0 16 0; }
check "and gets its addresses" plug_again

# Nothing to pull, and what is no order to pull
refused() { # DESC WORDS PORT VALUE
    qom_set "$3" surprise-removal "$4"
    case $qmp_reply in
    *'"error"'*"$2"*) pass "$1" ;;
    *) fail "$1" "$qmp_reply" ;;
    esac
}
refused "an empty slot" "no device is plugged below dp3" dp3 true
refused "no order" "can only be set to true" dp0 false
gone gpu0 && fail "a refused order pulls nothing" "gpu0 is gone"

# Requesters and providers, in the middle of DMA, many times
bar1_of 1
peer=$r
plug_nvme() {
    cfg_writew $DP3 0xa8 0x0100
    qmp device_add '{"driver":"nvme","id":"nvme0","bus":"dp3","drive":"disk","serial":"nvme0"}'
    case $qmp_reply in *error*) echo "# $qmp_reply"; return 1 ;; esac
    nvme_setup && nvme_queues
}
# read 128 KiB into the peer, of which the drive's throttle holds the second and
# the third
nvme_start() {
    i=0
    while [ $i -lt 32 ]; do
        writeq $((PRPS + 8 * i)) $((peer + 4096 * (i + 1)))
        i=$((i + 1))
    done
    i=0
    while [ $i -lt 3 ]; do
        submit 1 2 "$peer" $PRPS 0 0 255
        i=$((i + 1))
    done
}
# As many as at first: gpu0, gpu1, sw1, dpi0, dpi1: one; gpu2, gpu3: two
live_is "requesters at first" 9
# sum_stream N ADDRESS: read 1 MiB fourteen times, slowly
sum_stream() {
    use "$1"
    queue_setup "$1"
    st_n=0
    while [ $st_n -lt 14 ]; do
        desc "$1" op="$PLN_OP_CRC32C" flags="$PLN_DESC_F_SRC_BUS" src="$2" len=0x100000
        st_n=$((st_n + 1))
    done
    ring "$1"
}
# half_sum ADDRESS: GPU 2 has read 256 or 512 KiB of a MiB there; then it sleeps
half_sum() {
    use 2
    queue_setup 2
    memset $HALF 32 0xee
    desc 2 op="$PLN_OP_CRC32C" +flags="$PLN_DESC_F_SRC_BUS" src="$1" len=0x100000 comp=$HALF
    half_way gpu2 $GPU2 2
}
# half_cut DESC: awake, it gets no more of it
half_cut() {
    awake $GPU2
    use 2
    settle 2
    hc=$r
    readl $((HALF + 8))
    hc="$hc $r"
    readq $((HALF + 24))
    case $r in $((0x40000)) | $((0x80000))) r=some ;; esac
    check_eq "$1" "$PLN_Q_ERROR $PLN_ERR_BUS some" "$hc $r"
}
HALF=$((COMP + 64))
round() {
    check "round $n: a drive is plugged" plug_nvme
    move 0 write "$peer" 4096
    [ "$moved" = 1 ] || fail "round $n: DMA from GPU to GPU" "$moved"
    nvme_start
    if [ $((n % 2)) -eq 1 ]; then
        # the provider goes while the drive writes to it and two GPUs read, one of them in the middle of a MiB
        check "round $n: a GPU has read a part" half_sum "$peer"
        sum_stream 0 "$peer"
        pull dp1 || fail "round $n: the provider is pulled" "$qmp_reply"
        half_cut "round $n: it gets no more"
        use 0
        settle 0
        [ "$r" = "$PLN_Q_IDLE" ] || cut=$((cut + 1))
        gpu_dma 0 read "$peer" 4096
        check_eq "round $n: DMA from where it was fails" 0 "$dma_ok"
        # the drive has mapped its memory; its transfer ends when the drive is pulled
        plug $DP1 dp1 1 || fail "round $n: a provider is plugged" "$qmp_reply"
    else
        stream 0 "$peer"
        pull dp0 || fail "round $n: the requester is pulled" "$qmp_reply"
        plug $DP0 dp0 0 || fail "round $n: a requester is plugged" "$qmp_reply"
        check "round $n: the drive holds commands" not_completed
    fi
    memset $((IO + 0x1000)) 256 0
    qmp_events=
    pull dp3 || fail "round $n: the drive is pulled" "$qmp_reply"
    # it lets its medium go when the last view of its memory has gone
    check "round $n: it has gone" event '"nvme0"'
    rdhex $((IO + 0x1000)) 256
    check_eq "round $n: a drive that is pulled completes nothing" "$none" "$r"
    live_is "round $n: as many requesters as at first" 9
}
repeat 512 0
none=0x$r
not_completed() { ! completed; }
cut=0
n=0
round
memory_tree
tree=$r
while [ $n -lt 16 ]; do
    n=$((n + 1))
    round
done
diag "of 8 sums that nobody held, $cut have been cut short"
tree_now() { # what RCU frees, it frees a little later
    tn=0
    while more $tn; do
        memory_tree
        [ "$r" != "$tree" ] || return
        tn=$((tn + 1))
    done
}
tree_now
check_eq "lines and address spaces of the memory tree are as many as at first" "$tree" "$r"

# A whole switch, with what is below it, while a drive beside it has mapped memory there: its transfers end, and count, when the
# ports on their way are gone
check "a drive is plugged" plug_nvme
gpu1=$peer
bar1_of 2
peer=$r
snap dp3
nvme_start
check "it holds commands that go into the inner switch" not_completed
stream 2 "$gpu1"
check "the inner switch is pulled, with two GPUs" pull dp2
check "they are gone" gone gpu2
check "and its ports" gone dpi1
live_is "and their requesters" 3
qmp_events=
check "the drive is pulled, whose transfers end with it" pull dp3
check "it has gone" event '"nvme0"'
counted dp3
check_eq "its own port has counted all three" "peer-write=$((3 * 131072))" "${r%% *}"
live_is "those are left that were beside it" 2
move 0 write "$gpu1" 4096
check_eq "the others go on" 1 "$moved"
qt_stop

# Where the slot cannot
qt_start -device pcie-root-port,id=rp0 -device peerlane-switch-upstream,id=sw0,bus=rp0 \
    -device peerlane-switch-downstream,id=dp0,bus=sw0,chassis=2,hotplug=off \
    -device peerlane-gpu,id=gpu0,bus=dp0,vram-size=4M,bar1-size=1M
refused "a slot without hotplug" "needs hotplug=on" dp0 true
qt_stop
qt_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=on \
    -device pcie-root-port,id=rp0 -device peerlane-switch-upstream,id=sw0,bus=rp0 \
    -device peerlane-switch-downstream,id=dp0,bus=sw0,chassis=2 \
    -device peerlane-gpu,id=gpu0,bus=dp0,vram-size=4M,bar1-size=1M
refused "hotplug by ACPI" "native hotplug" dp0 true
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU is unplugged and plugged again, with work under way
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

# Native hotplug, not that of ACPI
qt_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
    -device pcie-root-port,id=rp0,chassis=1,slot=1,addr=3 \
    -device peerlane-gpu,id=gpu1,addr=5,vram-size=1M,bar1-size=64K
setup() { # Bus 1, and windows for the BARs
    cfg_writel 0x18 0x18 0x00010100
    cfg_writel 0x18 0x20 0xe000e000
    cfg_writel 0x18 0x24 0xfff10001
    cfg_writel 0x18 0x28 0
    cfg_writel 0x18 0x2c 0x1f
    cfg_writew 0x18 4 6
    gpu_setup 1 0x28
}
setup

n=0
while [ $n -lt 3 ]; do
    n=$((n + 1))
    cfg_cap 0x18 0x10
    cfg_writew 0x18 $((r + 0x18)) 0x0100
    qmp device_add '{"driver":"peerlane-gpu","id":"gpu0","bus":"rp0","vram-size":67108864,"bar1-size":1048576,"coherent":true}'
    case $qmp_reply in '{"return"'*) pass "plugged" ;; *) fail "plugged" "$qmp_reply" ;; esac
    gpu_setup 0 0x100
    use 0
    value_is "it is there" $PLN_ID_VALUE reg $PLN_REG_ID
    value_is "no reset is counted" 0 reg $PLN_REG_RESET_COUNT
    bar1 $PLN_BAR1_CMD_MAP 0 4 0x10000
    bar1 $PLN_BAR1_CMD_MAP 8 1 0x10000
    memset $((WIN)) 16 0x5c
    use 1
    queue_setup 0
    job 0 op=$PLN_OP_COPY flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP)) dst=$((0x800000000 + 0x80000)) len=64
    use 0
    queue_setup 0
    queue_setup 1
    writeq $((WIN + 0x2000)) 0
    desc 0 op=$PLN_OP_SEM_WAIT src=0x2000 imm=1 arg=1000000
    desc 1 op=$PLN_OP_CRC32C len=0x4000000 comp=$((COMP + 32))
    ring 0
    ring 1
    qmp_events=
    qmp device_del '{"id":"gpu0"}'
    # What a guest does in the end: turn the slot's power and indicator off
    cfg_cap 0x18 0x10
    cfg_writew 0x18 $((r + 0x18)) 0x0700
    check "unplugged" event DEVICE_DELETED
    value_is "nothing answers" 0xffffffff cfg_readl 0x100 0
    qt clock_step 1000000000
done

# The engine itself turns its slot off, through configuration space, so the
# device goes while it is at work
cfg_writel 0 0x60 0xb0000001
cfg_cap 0x18 0x10
slot=$r
cfg_writew 0x18 $((slot + 0x18)) 0x0100
qmp device_add '{"driver":"peerlane-gpu","id":"gpu0","bus":"rp0","vram-size":67108864}'
gpu_setup 0 0x100
use 0
queue_setup 0
queue_setup 1
desc 0 op=$PLN_OP_IMM_WRITE flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP | PLN_DESC_F_IRQ)) arg=2 dst=$((0xb0018000 + slot + 0x18)) imm=0x0700
desc 0 op=$PLN_OP_NOP
desc 1 op=$PLN_OP_CRC32C len=0x4000000 comp=$((COMP + 32))
qmp_events=
qmp device_del '{"id":"gpu0"}'
ring 1
ring 0
check "it unplugs itself" event DEVICE_DELETED
value_is "nothing answers" 0xffffffff cfg_readl 0x100 0
use 1
queue_setup 0
job 0 op=$PLN_OP_NOP
job_is "the other GPU goes on" 0 0 0

# Plugged while the guest sleeps, it works when that is awake
cfg_writel 0xf8 0x40 0x601
cfg_writel 0xf8 0x44 0x80
qmp_events=
qt outw 0x604 0x2400
check "the guest sleeps" event SUSPEND
qmp device_add '{"driver":"peerlane-gpu","id":"gpu0","bus":"rp0","vram-size":67108864}'
qmp system_wakeup
check "it is awake" event WAKEUP
setup
gpu_setup 0 0x100
use 0
queue_setup 0
job 0 op=$PLN_OP_NOP
job_is "plugged meanwhile, a GPU works" 0 0 0
qt_finish

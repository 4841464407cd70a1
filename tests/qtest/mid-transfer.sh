#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: while a drive is at work: who counts its transfers, and where the engine runs
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

# The drive takes a while for each command, and all at once. GPU 9, with a coherent window, is not below the switch.
sw_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
    -blockdev null-co,node-name=disk,size=1048576,read-zeroes=on,latency-ns=200000000 \
    -device nvme,id=nvme0,bus=dp3,addr=0.0,multifunction=on,drive=disk,serial=nvme0 \
    -device edu,id=edu0,bus=dp3,addr=0.1,dma_mask=0xffffffffffffffff \
    -device peerlane-gpu,id=gpu9,addr=5,vram-size=4M,bar1-size=1M,coherent=on
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bridge $DP3 2 9 9 4 5
gpu_setup 9 0x28
use 9
bar1 $PLN_BAR1_CMD_MAP 0 1 0

# begin BLOCKS PRP1: a read into PRP1 begins; ended COUNT: so many of them have ended
begun=0
begin() {
    submit 1 2 "$2" 0 0 0 $(($1 - 1))
    begun=$((begun + 1))
}
ended() { # its completions come in any order, in one phase here
    en_end=$(($(date +%s) + 20))
    while [ "$(date +%s)" -le $en_end ]; do
        en_i=0
        while [ $en_i -lt $begun ]; do
            readl $((IO + 0x1000 + 16 * en_i + 12))
            [ $((r >> 16)) = 1 ] || break
            en_i=$((en_i + 1))
        done
        [ $en_i -lt $begun ] || return 0
    done
    return 1
}
of_port() {
    counted $1
    op_r=
    for op_w in $r; do
        case $op_w in host-*) ;; *) op_r="$op_r$op_w " ;; esac
    done
    r=$op_r
}

# ACS changes between the beginning and the end of a transfer
bar1_of 1
PEER=$r
for p in dp1 dp3 sw0; do snap $p; done
memset $PEER 4096 0x5a
begin 8 $PEER
acs_set $DP3 $ACS_RR
check "a read into the peer, redirected in the middle, ends" ended
bytes_are "its data is there" $PEER 0x0000000000000000
of_port dp3
check_eq "it went directly, when it began" "peer-write=4096 " "$r"
of_port dp1
check_eq "into the peer" "target-write=4096 " "$r"
of_port sw0
check_eq "and not above" "" "$r"
begin 8 $PEER
acs_set $DP3 0
check "another, that begins redirected, ends" ended
of_port dp3
check_eq "it went up" "upstream-peer-write=4096 " "$r"
of_port sw0
check_eq "and came down again" "upstream-peer-write=4096 target-write=4096 " "$r"

# Its target is no more there, and the drive no more a master, when it ends: it lands, and counts as what it was
qom_counter gpu1 bar1-dma-write
before=$r
snap dp1
memset $PEER 8192 0x5a
submit 1 2 $((PEER + 4096)) 0 0 0 7
cfg_writew $GPU1 4 4
cfg_writew $NVME 4 2
landed() {
    la_n=0
    while more $la_n; do
        qom_counter gpu1 bar1-dma-write
        [ $r -eq $before ] || return 0
        la_n=$((la_n + 1))
    done
    return 1
}
check "a read into a peer that is switched off meanwhile ends" landed
check_eq "the peer counts it" 4096 $((r - before))
of_port dp3
check_eq "so does the drive's port" "peer-write=4096 " "$r"
of_port dp1
check_eq "and the peer's" "target-write=4096 " "$r"
cfg_writew $GPU1 4 6
cfg_writew $NVME 4 6
bytes_are "the data has landed" $((PEER + 4096)) 0x0000000000000000
bytes_are "and none beside it" $PEER 0x5a5a5a5a5a5a5a5a
completed
check_eq "its completion has not: that was another write" 1 $?
writel $((REGS + 0x14)) 0x00460000
check "the drive is ready again" nvme_setup
check "it has queues again" nvme_queues
bridge $DP3 2 9 9 4 5
begun=0

# The same bytes of a GPU through both of its windows at once; the first ends first
dma_of_9() {
    qom_counter gpu9 bar1-dma-write
    do_b=$r
    qom_counter gpu9 coherent-dma-write
    r="$do_b $r"
}
bar1_of 9
AT_BAR1=$r
win_of 9
AT_WINDOW=$r
begin 8 $AT_BAR1
begin 1 $AT_WINDOW
check "reads into BAR1 and the window end" ended
dma_of_9
check_eq "each is counted where it went" "4096 512" "$r"
begin 1 $AT_BAR1
begin 1 $AT_WINDOW
check "two that are alike end" ended
dma_of_9
check_eq "both are counted" "4608 1024" "$r"

# A device that does not look whether it may read
cfg_writel $((NVME + 1)) 0x10 0xe0500000
cfg_writew $((NVME + 1)) 4 6
edu() { # FROM TO COMMAND
    writeq 0xe0500080 $1
    writeq 0xe0500088 $2
    writeq 0xe0500090 8
    writeq 0xe0500098 $3
    qt clock_step 200000000
}
memset $BUF 8 0x11
bar1_of 5
edu $r 0x40000 1
edu 0x40000 $BUF 3
bytes_are "gets all ones from where the port refuses" $BUF 0xffffffffffffffff

# A drive that is disabled waits, in its register, for what is under way. The engine does not run there: it would find the
# registers of that drive busy.
use 0
queue_setup 0
desc 0 op=$PLN_OP_IMM_WRITE +flags=$PLN_DESC_F_DST_BUS arg=4 dst=$((REGS + 0x1008)) imm=0
memset $COMP 32 0xee
begin 8 $BUF
printf 'writel %d %d\nreadl %d\nwritel %d 0x00460000\n' $((B0 + 0x1000 + PLN_Q_TAIL)) 1 \
    $((B0 + 0x1000 + PLN_Q_STATUS)) $((REGS + 0x14)) >&3
for answer in doorbell status disable; do
    read -r r <&4 || { echo "# QEMU died"; cat "$OUT/qemu.log"; exit 1; }
    [ $answer != status ] || status=$((${r#OK }))
done
check_eq "a queue whose doorbell was rung runs" $PLN_Q_RUNNING $status
settle 0
readl $((COMP + 8))
check_eq "the engine writes to the drive that was disabled" 0 $r
readl $((REGS + 0x1c))
check_eq "which is disabled" 0 $((r & 1))

# Devices without a name come and go: who is next is another one, also at the same place in QEMU's memory
plug_edu() {
    qmp device_add '{"driver":"edu","bus":"dp3","dma_mask":18446744073709551615}'
    cfg_writel $NVME 0x10 0xe0500000
    cfg_writew $NVME 4 6
    bar1_of 1
    edu 0x40000 $r 3
}
n=0
while [ $n -lt 12 ]; do
    pull dp3
    plug_edu
    n=$((n + 1))
done
qom_get gpu1 initiators
check_eq "twelve devices without a name are twelve initiators" 12 \
    "$(echo "$qmp_reply" | jq '[.return[] | select(.id | contains("peripheral-anon")) | select(.write == 8)] | length')"
qt_finish

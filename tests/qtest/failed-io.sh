#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what failed, ended at nobody or never left its device has moved nothing: no counter says otherwise
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

head -c 1048576 /dev/zero | tr '\0' A >disk.img
sw_start -blockdev driver=file,node-name=file,filename=disk.img \
    -blockdev driver=blkdebug,node-name=disk,image=file,inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5,inject-error.0.sector=8,inject-error.0.once=off,inject-error.0.immediately=off \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bar1_of 0
P=$r
memset $P 8192 0x33
qom_counter gpu0 bar1-dma-write
before=$r
snap dp3
drive read 8 8 $P
check_eq "the read fails: Unrecovered Read Error" $((0x281)) $r
bytes_are "nothing was written to the GPU" $P 0x3333333333333333
qom_counter gpu0 bar1-dma-write
check_eq "the GPU has counted nothing" 0 $((r - before))
counted dp3
check_eq "the drive's port neither, but for the queues" "" "$(echo "$r" | tr ' ' '\n' | grep peer)"
drive read 0 8 $P
check_eq "the next read succeeds" 0 $r
qom_counter gpu0 bar1-dma-write
check_eq "and is counted" 4096 $((r - before))
counted dp3
check_eq "by the port, too" peer-write=4096 "$(echo "$r" | tr ' ' '\n' | grep peer)"

# A hole in the window of a peer's port: nothing arrives there, whoever asks, and however
moved() { # what PORT has counted of other memory than the host's
    counted $1
    mo_r=
    for mo_w in $r; do
        case $mo_w in host-*) ;; *) mo_r="$mo_r$mo_w " ;; esac
    done
    r=$mo_r
}
all() { # by dp0 (of the GPU), dp3 (of the drive), sw0 (between them and above) and dp1
    al=
    for p in dp0 dp3 sw0 dp1; do
        moved $p
        al="$al$p: $r;"
    done
    r=$al
}
HOLE=$((P + 0x110000000))
for p in dp0 dp3 sw0 dp1; do snap $p; done
drive read 0 8 $HOLE
check_eq "a write is posted: the drive does not know" 0 $r
all
check_eq "all ended nowhere, and did not leave the switch" "dp0: ;dp3: other=4096 ;sw0: ;dp1: ;" "$r"
gpu_dma 0 write $HOLE 4096
check_eq "nor does a GPU" 1 $dma_ok
all
check_eq "and is counted alike" "dp0: other=4096 ;dp3: ;sw0: ;dp1: ;" "$r"
gpu_dma 0 read $HOLE 4096
all
check_eq "when it reads, too" "dp0: other=4096 ;dp3: ;sw0: ;dp1: ;" "$r"
check_eq "but then it knows" 0 $dma_ok
drive write 0 8 $HOLE
check_eq "and so does a drive: Data Transfer Error" 4 $r
all
check_eq "counted alike" "dp0: ;dp3: other=4096 ;sw0: ;dp1: ;" "$r"
acs_set $DP0 $ACS_RR
acs_set $DP3 $ACS_RR
drive read 0 8 $HOLE
gpu_dma 0 write $HOLE 4096
all
check_eq "redirected, both leave the switch, and come back to nobody" \
    "dp0: other=4096 ;dp3: other=4096 ;sw0: other=8192 ;dp1: ;" "$r"
acs_set $DP0 0
acs_set $DP3 0
readl $HOLE
check_eq "who reads there without a look at errors gets all ones" $((0xffffffff)) $r

# What its device refuses did not arrive either: registers take no 2 bytes
use 0
queue_setup 0
bar0_of 1
job 0 op=$PLN_OP_IMM_WRITE +flags=$PLN_DESC_F_DST_BUS arg=2 dst=$((r + PLN_REG_SCRATCH)) imm=1
check_eq "registers refuse 2 bytes, and the writer does not know" "$PLN_Q_IDLE 0" "$st $c_status"
all
check_eq "they ended nowhere" "dp0: other=2 ;dp3: ;sw0: ;dp1: ;" "$r"

# With bus mastering off nothing leaves a device; its ring is in the peer
qset 0 $PLN_Q_CTRL $PLN_Q_CTRL_RESET
bar1_of 1
setreg64 $((0x1000 + PLN_Q_BASE)) $r
qset 0 $PLN_Q_SIZE 16
qset 0 $PLN_Q_CTRL $PLN_Q_CTRL_ENABLE
cfg_writew $GPU0 4 2
for p in dp0 dp3 sw0 dp1; do snap $p; done
qset 0 $PLN_Q_TAIL 1
settle 0
value_is "bus master off: no descriptor" $PLN_ERR_RING qreg 0 $PLN_Q_ERROR_CODE
for p in dp0 sw0 dp1; do
    counted $p
    check_eq "and $p has counted nothing" "" "$r"
done
qt_finish

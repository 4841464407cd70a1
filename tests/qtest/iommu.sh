#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: counters and errors of peer DMA that an IOMMU translates
# tags: qtest p2p
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

qt_start -device intel-iommu,aw-bits=39 \
    -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on \
    -device peerlane-gpu,id=gpu1,addr=5,vram-size=16M,bar1-size=1M
gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
BAR1_0=$B1
WIN_0=$WIN
bar1 $PLN_BAR1_CMD_MAP 1 2 0x30000

# What device 0x28 sees at 0 is host memory, at 1 GiB BAR1 of GPU 0, at 2 GiB its coherent
# window, at 3 GiB host memory without the right to write, and nothing above.
iommu_on 0 0x28 0x83 $((BAR1_0 | 0x83)) $((WIN_0 | 0x83)) 0x81

use 1
queue_setup 0
TO_BUS=$((PLN_DESC_F_COMP | PLN_DESC_F_DST_BUS))
FROM_BUS=$((PLN_DESC_F_COMP | PLN_DESC_F_SRC_BUS))
grown() { # GPU COUNTER: how much it grew since the last time
    qom_counter "$1" "$2"
    eval "gr_old=\${old_$(echo "$1_$2" | tr - _)-0}"
    eval "old_$(echo "$1_$2" | tr - _)=$r"
    r=$((r - gr_old))
}
grown gpu1 engine-host-write
job 0 op=$PLN_OP_FILL flags=$TO_BUS arg=4 imm=0x31323334 dst=0x40010000 len=0x20000
job_is "into BAR1, all that is mapped" 0 0 131072
bytes_are "data is right" $((WIN_0 + 0x30000 + 0x1fffc)) 0x34333231
value_is "counted as BAR1" 131072 grown gpu0 bar1-dma-write
value_is "not as the window" 0 grown gpu0 coherent-dma-write
value_is "GPU 1 knows it for a peer" 131072 grown gpu1 engine-peer-write
value_is "only the record is the host's" 32 grown gpu1 engine-host-write
job 0 op=$PLN_OP_FILL flags=$TO_BUS arg=1 imm=0x77 dst=0x80000123 len=5000
job_is "into the coherent window" 0 0 5000
bytes_are "data is right" $((WIN_0 + 0x122)) 0x0077
value_is "counted as the window" 5000 grown gpu0 coherent-dma-write
value_is "not as BAR1" 0 grown gpu0 bar1-dma-write
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=0x80000123 dst=0 len=77
value_is "a read too" 77 grown gpu0 coherent-dma-read
qom_get gpu0 initiators
case $qmp_reply in
*'"id": "gpu1"'*) pass "the initiator is known" ;;
*) fail "the initiator is known" "$qmp_reply" ;;
esac

# What the IOMMU refuses
fault_bits() { # overflow and pending
    readl $((VTD + 0x34))
    r=$((r & 3))
}
grown gpu1 engine-host-write
memset 0x180000 64 0x2f
value_is "nothing was refused so far" 0 fault_bits
job 0 op=$PLN_OP_FILL flags=$TO_BUS arg=1 imm=0x77 dst=0xc0180000 len=16
job_is "no right to write: the engine does not hear of it" 0 0 16
value_is "the IOMMU tells" 2 fault_bits
readq $((VTD + 8))
record=$((VTD + (r >> 24 & 0x3ff) * 16 + 8))
readl $record
check_eq "of GPU 1" $((0x28)) $((r & 0xffff))
readl $((record + 4))
check_eq "there is a record, of a write, for which a right was missing" "1 0 5" "$((r >> 31)) $((r >> 30 & 1)) $((r & 0xff))"
value_is "it is not counted, but the record" 32 grown gpu1 engine-host-write
bytes_are "nothing was written" 0x180000 0x2f2f2f2f
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=0xc0180000 dst=0x100 len=4
job_is "but one to read" 0 0 4
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=0x100000000 dst=0x100 len=4
check_eq "nothing is there" "$PLN_Q_ERROR $PLN_ERR_BUS" "$st $c_status"
queue_setup 0
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=$((BAR1_0 + 0x10000)) dst=0x100 len=4
check_eq "nor at the address that the bus knows" "$PLN_Q_ERROR $PLN_ERR_BUS" "$st $c_status"

# GPU 0 has no context entry at all
use 0
setreg64 $((0x1000 + PLN_Q_BASE)) $RING
qset 0 $PLN_Q_SIZE $RING_SIZE
qset 0 $PLN_Q_CTRL $PLN_Q_CTRL_ENABLE
qset 0 $PLN_Q_TAIL 1
settle 0
value_is "a device without a context reads no ring" $PLN_ERR_RING qreg 0 $PLN_Q_ERROR_CODE
qt_finish

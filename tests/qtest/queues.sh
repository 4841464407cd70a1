#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: rings, doorbells, interrupts, halting and recovery of queues
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on
gpu_setup 0 0x20
use 0
msix_setup 0 0x20

seen() { # VECTOR: did it arrive since the last time? 1 or 0 in $r
    readl $((MSIX_AT + 4 * $1))
    sn=$r
    writel $((MSIX_AT + 4 * $1)) 0
    r=0
    [ "$sn" != $((0x100 + $1)) ] || r=1
}

# Ring addresses and sizes
try() { # BASE SIZE: the status and the error code of queue 2
    qset 2 $PLN_Q_CTRL $PLN_Q_CTRL_RESET
    setreg64 $((0x1200 + PLN_Q_BASE)) "$1"
    qset 2 $PLN_Q_SIZE "$2"
    qset 2 $PLN_Q_CTRL $PLN_Q_CTRL_ENABLE
    qreg 2 $PLN_Q_STATUS
    tr=$r
    qreg 2 $PLN_Q_ERROR_CODE
    r="$tr $r"
}
good() { try "$2" "$3"; check_eq "$1" "$PLN_Q_IDLE 0" "$r"; }
ring_error() { try "$2" "$3"; check_eq "$1" "$PLN_Q_ERROR $PLN_ERR_RING" "$r"; }
good "smallest ring" 0x10000 2
good "largest ring" 0x10000 4096
ring_error "ring of 1" 0x10000 1
ring_error "ring of 0" 0x10000 0
ring_error "ring of 3" 0x10000 3
ring_error "ring of 8192" 0x10000 8192
ring_error "ring not aligned" 0x10020 16
ring_error "ring wraps" -128 4
value_is "such an error is an interrupt" 1 seen 0
try 0x600000000 16
qset 2 $PLN_Q_TAIL 1
settle 2
qreg 2 $PLN_Q_ERROR_CODE
check_eq "descriptor that cannot be read" $PLN_ERR_RING "$r"
qset 2 $PLN_Q_CTRL $PLN_Q_CTRL_RESET
value_is "is an interrupt too" 1 seen 0
counter $PLN_CNT_DESCRIPTORS
done_before=$r

# Order, wrapping around
queue_setup 0
i=0
while [ $i -lt 40 ]; do
    desc 0 op=$PLN_OP_COPY src=$i dst=$((i + 1)) len=1 fence=$((100 + i))
    [ $((i % 8)) -ne 7 ] || { ring 0; settle 0; }
    i=$((i + 1))
done
value_is "40 descriptors on a ring of 16: head" 8 qreg 0 $PLN_Q_HEAD
value_is "the last fence" 139 reg64 $((0x1000 + PLN_Q_FENCE))
value_is "counted" $((done_before + 40)) counter $PLN_CNT_DESCRIPTORS
value_is "no interrupt was asked for" 0 seen 1
memset $WIN 64 0
qt writeb $WIN 0x77
queue_setup 0
i=0
while [ $i -lt 15 ]; do
    desc 0 op=$PLN_OP_COPY src=$i dst=$((i + 1)) len=1
    i=$((i + 1))
done
ring 0
settle 0
bytes_are "they run in order" $((WIN + 14)) 0x777700

# Interrupts
job 0 op=$PLN_OP_NOP +flags=$PLN_DESC_F_IRQ
value_is "interrupt of queue 0 is vector 1" 1 seen 1
value_is "and no other" 0 seen 0
counter $PLN_CNT_INTERRUPTS
ints=$r
qset 0 $PLN_Q_VECTOR 9
job 0 op=$PLN_OP_NOP +flags=$PLN_DESC_F_IRQ
value_is "another vector" 1 seen 9
value_is "not the old one" 0 seen 1
value_is "counted" $((ints + 1)) counter $PLN_CNT_INTERRUPTS
writel $((B0 + PLN_MSIX_TABLE + 16 * 9 + 12)) 1
job 0 op=$PLN_OP_NOP +flags=$PLN_DESC_F_IRQ
value_is "a masked vector waits" 0 seen 9
readl $((B0 + PLN_MSIX_PBA))
check_eq "in the pending bits" $((1 << 9)) "$r"
writel $((B0 + PLN_MSIX_TABLE + 16 * 9 + 12)) 0
value_is "until it is unmasked" 1 seen 9

# An error stops one queue and not the others
queue_setup 0
queue_setup 1
memset $((WIN + 0x1000)) 64 0
desc 0 op=$PLN_OP_NOP
desc 0 op=77 +flags=$PLN_DESC_F_IRQ
desc 0 op=$PLN_OP_FILL arg=1 imm=0x11 dst=0x1000 len=8
desc 1 op=$PLN_OP_FILL arg=1 imm=0x22 dst=0x1010 len=8 comp=$((COMP + 32))
ring 0
ring 1
settle 0
check_eq "the queue with the error stops" "$PLN_Q_ERROR" "$r"
settle 1
check_eq "the other does not" "$PLN_Q_IDLE" "$r"
bytes_are "what stood behind the error was not done" $((WIN + 0x1000)) 0x0000
bytes_are "the other queue's work was" $((WIN + 0x1010)) 0x2222
value_is "vector 0 tells of the error" 1 seen 0
value_is "the descriptor's own interrupt comes too" 1 seen 9
value_is "the device's status says so" $((PLN_STATUS_READY | PLN_STATUS_QUEUE_ERROR)) reg $PLN_REG_STATUS
value_is "index of the error" 1 qreg 0 $PLN_Q_ERROR_INDEX
value_is "control reads as not enabled" 0 qreg 0 $PLN_Q_CTRL
ring 0
qset 0 $PLN_Q_CTRL 0
qset 0 $PLN_Q_CTRL $PLN_Q_CTRL_ENABLE
value_is "neither doorbell nor enabling revives it" $PLN_Q_ERROR qreg 0 $PLN_Q_STATUS
qset 0 $PLN_Q_SIZE 8
value_is "nor can its ring be changed" 16 qreg 0 $PLN_Q_SIZE
qset 0 $PLN_Q_CTRL $((PLN_Q_CTRL_RESET | PLN_Q_CTRL_ENABLE))
value_is "a reset does, and enables it at once" $PLN_Q_IDLE qreg 0 $PLN_Q_STATUS
value_is "no error left" 0 qreg 0 $PLN_Q_ERROR_CODE
value_is "no index left" 0 qreg 0 $PLN_Q_ERROR_INDEX
value_is "head at the start" 0 qreg 0 $PLN_Q_HEAD
value_is "tail too" 0 qreg 0 $PLN_Q_TAIL
value_is "the vector stays" 9 qreg 0 $PLN_Q_VECTOR
value_is "status is clean" $PLN_STATUS_READY reg $PLN_REG_STATUS
tail_0=0
job 0 op=$PLN_OP_FILL arg=1 imm=0x11 dst=0x1000 len=8
job_is "and it works" 0 0 8

# Doorbells
counter $PLN_CNT_DOORBELLS
bells=$r
qset 0 $PLN_Q_TAIL $RING_SIZE
value_is "tail behind the ring" $PLN_Q_ERROR qreg 0 $PLN_Q_STATUS
value_is "its code" $PLN_ERR_TAIL qreg 0 $PLN_Q_ERROR_CODE
queue_setup 0
qset 0 $PLN_Q_TAIL 0xffffffff
value_is "largest tail" $PLN_ERR_TAIL qreg 0 $PLN_Q_ERROR_CODE
qset 3 $PLN_Q_TAIL 1
value_is "doorbell of a disabled queue" $PLN_Q_DISABLED qreg 3 $PLN_Q_STATUS
value_is "does not move its tail" 0 qreg 3 $PLN_Q_TAIL
value_is "all were counted" $((bells + 3)) counter $PLN_CNT_DOORBELLS
queue_setup 0
job 0 op=$PLN_OP_NOP
ring 0
settle 0
value_is "the same tail again does nothing" 1 qreg 0 $PLN_Q_HEAD

# An enabled queue keeps its ring; a disabled one stops and can go on
setreg64 $((0x1000 + PLN_Q_BASE)) 0x40000
value_is "base of an enabled queue stays" $RING reg64 $((0x1000 + PLN_Q_BASE))
writeq $((WIN + 0x2000)) 0
desc 0 op=$PLN_OP_SEM_WAIT src=0x2000 imm=1 arg=1000000
desc 0 op=$PLN_OP_NOP fence=55
ring 0
check "a wait has begun" idle gpu0
value_is "a queue in the middle of something" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
job 1 op=$PLN_OP_NOP fence=66 comp=$((COMP + 64))
value_is "does not hold up another" 66 reg64 $((0x1100 + PLN_Q_FENCE))
qset 0 $PLN_Q_CTRL 0
value_is "can be disabled" $PLN_Q_DISABLED qreg 0 $PLN_Q_STATUS
writeq $((WIN + 0x2000)) 1
qt clock_step 1000000
value_is "then it rests" 1 qreg 0 $PLN_Q_HEAD
qset 0 $PLN_Q_CTRL $PLN_Q_CTRL_ENABLE
settle 0
value_is "enabled, it goes on from there" 55 reg64 $((0x1000 + PLN_Q_FENCE))

# Long work of two queues is interleaved
queue_setup 0
queue_setup 1
# The short one copies the fence of the long one, so it tells whether that has ended
memset $COMP 128 0
desc 0 op=$PLN_OP_CRC32C len=0x1000000 fence=3
desc 1 op=$PLN_OP_COPY +flags=$PLN_DESC_F_SRC_BUS src=$COMP dst=0x1000 len=8 comp=$((COMP + 64)) fence=4
memset $((WIN + 0x1000)) 8 0xee
# Both begin at once
qom_set gpu0 fault-hung-engine true
ring 0
ring 1
qom_set gpu0 fault-hung-engine false
settle 0
settle 1
bytes_are "a short job passes a long one" $((WIN + 0x1000)) 0x0000000000000000
value_is "it has ended" 4 readq $((COMP + 64))
value_is "and the long one ends too" 3 readq $COMP

# Without the bus master bit nothing is reached
cfg_writew 0x20 4 2
desc 0 op=$PLN_OP_NOP
ring 0
settle 0
value_is "no bus master: no descriptor" $PLN_ERR_RING qreg 0 $PLN_Q_ERROR_CODE
qt_finish

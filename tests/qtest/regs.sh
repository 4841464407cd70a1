#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU's PCI configuration, properties and register access
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

: >"$OUT/guest.log"
qt_start -d guest_errors -D "$OUT/guest.log" -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,queues=3,uuid=00112233-4455-6677-8899-aabbccddeeff \
    -device peerlane-gpu,id=gpu1,addr=5,vram-size=48M,bar1-size=64K,coherent=on,vendor-id=0x10de,device-id=0x20b0,bar1-runs=2

cfg_readl 0x20 0
check_eq "PCI ids" $((0x9e711234)) "$r"
cfg_readl 0x28 0
check_eq "PCI ids by property" $((0x20b010de)) "$r"
cfg_readl 0x20 8
check_eq "class" $((0x0302)) $((r >> 16))

bar_size() {
    cfg_writel "$1" "$2" 0xffffffff
    cfg_readl "$1" "$2"
    r_lo=$r
    cfg_writel "$1" $(($2 + 4)) 0xffffffff
    cfg_readl "$1" $(($2 + 4))
    r=$(((-((r << 32 | r_lo) & ~0xf)) & 0x7fffffffffffffff))
}
cfg_writel 0x20 0x10 0xffffffff
value_is "BAR0: 64 KiB, 32 bit" 0xffff0000 cfg_readl 0x20 0x10
value_is "BAR1: its size" 0x100000 bar_size 0x20 0x14
value_is "no coherent window: no BAR" 0 cfg_readl 0x20 0x1c
value_is "BAR1 of the other: its size" 0x10000 bar_size 0x28 0x14
value_is "coherent window: power of two above VRAM" 0x4000000 bar_size 0x28 0x1c
cfg_readl 0x28 0x1c
check_eq "coherent window: 64 bit, prefetchable" 12 $((r & 15))

check "power management capability" cfg_cap 0x20 1
check "MSI-X capability" cfg_cap 0x20 0x11
cfg_readl 0x20 "$cap"
check_eq "17 vectors" 16 $((r >> 16 & 0x7ff))
check "PCI Express capability" cfg_cap 0x20 0x10
cfg_readl 0x20 $((cap + 4))
check_eq "function level reset" 1 $((r >> 28 & 1))

gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
value_is "VRAM size" 0x1000000 reg64 $PLN_REG_VRAM_SIZE
value_is "BAR1 size" 0x100000 reg64 $PLN_REG_BAR1_SIZE
value_is "no coherent size" 0 reg64 $PLN_REG_COHERENT_SIZE
value_is "features" $((PLN_FEAT_DMA_COUNTERS | PLN_FEAT_TIME)) reg $PLN_REG_FEATURES
value_is "number of queues" 3 reg $PLN_REG_NUM_QUEUES
value_is "runs" 512 reg $PLN_REG_BAR1_RUNS_MAX
bytes_are "uuid" $((B0 + PLN_REG_UUID)) 0x00112233445566778899aabbccddeeff
value_is "a queue that is not there reads 0" 0 qreg 3 $PLN_Q_VECTOR
qset 3 $PLN_Q_VECTOR 2
value_is "... and is not written" 0 qreg 3 $PLN_Q_VECTOR
value_is "a queue's vector" 3 qreg 2 $PLN_Q_VECTOR
qset 2 $PLN_Q_VECTOR 16
value_is "... is set" 16 qreg 2 $PLN_Q_VECTOR
qset 2 $PLN_Q_VECTOR 17
value_is "... and no vector that is not there" 16 qreg 2 $PLN_Q_VECTOR

writeq $((B0 + PLN_REG_BAR1_VRAM)) 0x1122334455667788
value_is "64-bit write" 0x1122334455667788 reg64 $PLN_REG_BAR1_VRAM
readq $((B0 + PLN_REG_BAR1_VRAM))
check_eq "64-bit read" $((0x1122334455667788)) "$r"
setreg $PLN_REG_SCRATCH 0x01020304
qt writeb $((B0 + PLN_REG_SCRATCH)) 0xff
qt writew $((B0 + PLN_REG_SCRATCH)) 0xffff
value_is "no 8-bit or 16-bit write" 0x01020304 reg $PLN_REG_SCRATCH
value_is "no register: 0" 0 reg 0x0ffc

# What is not there is logged, wherever it is not
GUEST_LOG=$OUT/guest.log
logged() { # DESC TEXT OFFSET
    : >"$GUEST_LOG"
    reg $3
    check_eq "$1 reads 0" 0 "$r"
    check "and is logged" grep -q "$2" "$GUEST_LOG"
}
logged "no register" "no register 0xffc" 0x0ffc
logged "a hole in an initiator" "no register 0x404" 0x0404
logged "a hole behind its counters" "no register 0x5f8" 0x05f8
logged "a hole in a queue" "no register 0xfc of queue 2" 0x12fc
logged "a queue that is not there" "queue 3 of 3" $((0x1300 + PLN_Q_VECTOR))

use 1
value_is "other GPU: VRAM size" 0x3000000 reg64 $PLN_REG_VRAM_SIZE
value_is "other GPU: coherent size" 0x3000000 reg64 $PLN_REG_COHERENT_SIZE
value_is "other GPU: features" $((PLN_FEAT_DMA_COUNTERS | PLN_FEAT_TIME | PLN_FEAT_COHERENT)) reg $PLN_REG_FEATURES
value_is "other GPU: its own scratch" 0 reg $PLN_REG_SCRATCH
memset $WIN 16 0x77
bytes_are "coherent window is memory" $((WIN + 8)) 0x7777777777777777
memset $((WIN + 0x3000000)) 16 0x77
bytes_are "behind VRAM it reads all ones" $((WIN + 0x3000000)) 0xffffffffffffffff
qt_stop

# Properties that cannot be
refused() {
    ! "$QEMU" -machine none -nodefaults -display none -accel qtest \
        -machine q35 -L /usr/share/seabios -device "peerlane-gpu,$1" </dev/null >"$OUT/refused" 2>&1 &&
        grep -q "$2" "$OUT/refused"
}
check "refuses a VRAM that is too small" refused vram-size=64K vram-size
check "refuses a VRAM that is no multiple of 64 KiB" refused vram-size=1049600 vram-size
check "refuses a BAR1 that is no power of two" refused bar1-size=768K bar1-size
check "refuses no queues" refused queues=0 queues
check "refuses 17 queues" refused queues=17 queues
check "refuses 1025 runs" refused bar1-runs=1025 bar1-runs
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: fault-late-writes: what was written through BAR1 is visible after a read there or a flush, and not before
# tags: qtest p2p
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=4M,bar1-size=1M,coherent=on \
    -device peerlane-gpu,id=gpu1,addr=5,vram-size=4M,bar1-size=1M
gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
BAR1_0=$B1
VRAM_0=$WIN     # the coherent window shows VRAM as it is
use 1
BAR1_1=$B1
bar1 $PLN_BAR1_CMD_MAP 0 1 0
queue_setup 1      # a ring of its own
use 0
queue_setup 0
map() {
    use 0
    bar1 $PLN_BAR1_CMD_MAP 0 2 0x40000
}
map
OLD=0x1111111111111111
NEW=0x2222222222222222

# fresh: 8 KiB of VRAM, all old
fresh() { memset $((VRAM_0 + 0x40000)) 8192 0x11; }
# peer_writes OFFSET LENGTH: GPU 1 writes the new bytes into BAR1 of GPU 0
peer_writes() {
    use 1
    job 1 op=$PLN_OP_FILL +flags=$PLN_DESC_F_DST_BUS arg=1 imm=0x22 dst=$((BAR1_0 + $1)) len=$2
    job_is "a peer writes $2 bytes, and is told of success" 0 0 $2
    use 0
}
# vram OFFSET: 8 bytes there, in $r
vram() { qt readq $((VRAM_0 + 0x40000 + $1)); }
# sees DESC WANT OFFSET
sees() {
    vram $3
    check_eq "$1" "$2" "$r"
}
# engine_sees DESC BYTES: how many of 4096 bytes GPU 0's engine finds to be new
engine_sees() {
    job 0 op=$PLN_OP_FILL arg=1 imm=0x22 dst=0x100000 len=4096
    job 0 op=$PLN_OP_COMPARE src=0x40000 dst=0x100000 len=4096
    check_eq "$1" "$2" "$c_bytes"
}
late() { check "$1 writes are held" qom_set gpu0 fault-late-writes "$1"; }
features() {
    reg $PLN_REG_FEATURES
    check_eq "$1" $2 $((r & PLN_FEAT_LATE_WRITES ? 1 : 0))
}

features "a GPU of which no flush is asked does not ask for it" 0
fresh
peer_writes 0 4096
engine_sees "without the fault: visible at once" 4096

# 4 KiB are 512 writes of 8 bytes
late 512
features "the GPU says that it wants to be flushed" 1
fresh
qom_counter gpu0 bar1-dma-write
before=$r
peer_writes 0 4096
qom_counter gpu0 bar1-dma-write
check_eq "the GPU has got it all" 4096 $((r - before))
engine_sees "and the engine sees nothing of it: who forgets to flush works with old data" 0
sees "nor does the coherent window" $OLD 0
setreg $PLN_REG_BAR1_FLUSH 1
engine_sees "flushed, it sees all" 4096
sees "and so does the window" $NEW 4088

fresh
peer_writes 0 4096
qt readb $((BAR1_0 + 0x1fff8))
sees "a processor's read at another place in BAR1 pushes the writes before it" $NEW 0
engine_sees "all of them" 4096
fresh
peer_writes 0 4096
use 1
job 1 op=$PLN_OP_COPY +flags=$PLN_DESC_F_SRC_BUS src=$((BAR1_0 + 64)) dst=0x1000 len=8
use 0
bytes_are "a peer reads what was written" $((BAR1_1 + 0x1000)) 0x2222222222222222
engine_sees "and pushes all" 4096
fresh
qt writeq $BAR1_0 $NEW
sees "a processor's write is late, too" $OLD 0
queue_setup 0
sees "and no access to registers pushes it" $OLD 0
qt readq $BAR1_0
check_eq "but a read sees it" $NEW "$r"
sees "and then all do" $NEW 0

# As many as fit: the first in is the first out
fresh
peer_writes 0 4104
sees "one more than there is room for: the first is visible" $NEW 0
sees "and the second is not" $OLD 8
late 2
sees "another number pushes what waited" $NEW 4096
fresh
qt writeq $BAR1_0 0x1
qt writeq $BAR1_0 0x2
qt writeq $BAR1_0 0x3
sees "of three at one place, with room for two, the first" 0x0000000000000001 0
setreg $PLN_REG_BAR1_FLUSH 0
sees "flushed: the last" 0x0000000000000003 0

# What else pushes
pushes() { # DESC COMMAND...
    pu_d=$1
    shift
    fresh
    qt writeq $BAR1_0 $NEW
    sees "a write waits" $OLD 0
    "$@"
    sees "$pu_d pushes it" $NEW 0
}
late 64
pushes "unmapping" bar1 $PLN_BAR1_CMD_UNMAP_ALL 0 0 0
map
pushes "a reset" setreg $PLN_REG_RESET $PLN_RESET_MAGIC
map
pushes "a machine that stops" qmp stop
qt writeq $((BAR1_0 + 8)) $NEW
sees "while it has stopped nothing waits" $NEW 8
qmp cont

# Edges: the last 8 bytes of the run, over its end, and behind it
qom_counter gpu0 bar1-unmapped
before=$r
fresh
qt writeq $((BAR1_0 + 0x1fffc)) $NEW
qt readl $((BAR1_0 + 0x1fffc))
check_eq "half of a write over the end of a run is in it" 0x0000000022222222 "$r"
qom_counter gpu0 bar1-unmapped
check "the other half is nowhere" test $((r - before)) -gt 0
qt readq $((BAR1_0 + 0x20000))
check_eq "behind it are ones" 0xffffffffffffffff "$r"

check_fails "more than 65536 are refused" "fault-late-writes must be at most 65536" \
    qom_set gpu0 fault-late-writes 65537
qt writeq $BAR1_0 $NEW
late 0
sees "switched off: pushed" $NEW 0
features "and not asked for any more" 0
fresh
queue_setup 0
peer_writes 0 4096
engine_sees "as at first" 4096
qt_stop

# From the beginning, and saved
DEV=peerlane-gpu,id=gpu0,addr=4,vram-size=1M,bar1-size=64K,coherent=on
qt_start -device $DEV,fault-late-writes=16
gpu_setup 0 0x20
use 0
bar1 $PLN_BAR1_CMD_MAP 0 1 0
BAR1_0=$B1
VRAM_0=$((WIN - 0x40000))
features "with the device: it says so" 1
memset $WIN 64 0x11
qt writeq $BAR1_0 $NEW
sees "and writes wait" $OLD 0
qmp stop
check "saved to a file" qt_saved
qt_stop
qt_start -device $DEV -incoming "file:$OUT/vmstate"
check "loaded from the file" qt_loaded
rm -f "$OUT/vmstate"
qmp cont
use 0
sees "saved and loaded: what waited is there" $NEW 0
features "and the fault" 1
qt writeq $((BAR1_0 + 8)) $NEW
sees "which goes on" $OLD 8
qt_finish

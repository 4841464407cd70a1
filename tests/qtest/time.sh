#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU's clock, and the time at which descriptors end
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

# The clock of a machine without processors moves by clock_step only
DEV="-device peerlane-gpu,id=gpu0,addr=4,vram-size=1M,bar1-size=64K,coherent=on"
qt_start $DEV -device peerlane-gpu,id=gpu1,addr=5,vram-size=1M,bar1-size=64K
gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
queue_setup 0

now() {
    reg64 $PLN_REG_TIME
    now=$((r))
}
# took NS COMMAND...: the clock says so
took() {
    to_want=$1
    shift
    now
    to_was=$now
    "$@"
    now
    check_eq "TIME after: $*" $to_want $((now - to_was))
}
took 0 setreg $PLN_REG_SCRATCH 1
took 12345 qt clock_step 12345
took 0 setreg $PLN_REG_RESET $PLN_RESET_MAGIC
queue_setup 0
now
use 1
value_is "another GPU has the same" $now reg64 $PLN_REG_TIME
use 0
reg $PLN_REG_FEATURES
check_eq "the GPU says that it tells time" $PLN_FEAT_TIME $((r & PLN_FEAT_TIME))

# The high half is that of the low half that was read
qt clock_step 0xfffffff0
reg $PLN_REG_TIME
qt clock_step 0x100000000
value_is "the high half is latched" 1 reg $((PLN_REG_TIME + 4))
reg $PLN_REG_TIME
value_is "and follows the next low half" 2 reg $((PLN_REG_TIME + 4))

T=$PLN_DESC_F_TIME
job 0 op=$PLN_OP_FILL arg=1 imm=1 len=4096
check_eq "without the flag: bytes" 4096 "$c_bytes"
now
job 0 op=$PLN_OP_FILL +flags=$T arg=1 imm=1 len=4096
check_eq "with it: the time" $now $((c_bytes))
check_eq "and success" 0 "$c_status"
qt clock_step 7000
job 0 op=$PLN_OP_CRC32C +flags=$T src=0x10000 len=32
check_eq "7 microseconds later" $((now + 7000)) $((c_bytes))
check_eq "the result is told, too" $((0x8a9136aa)) $((c_result))    # RFC 3720, of zeros
job 0 op=$PLN_OP_NOP flags=$T fence=77
value_is "no record, no time: it ends all the same" 77 reg64 $((0x1000 + PLN_Q_FENCE))
job 0 op=$PLN_OP_NOP +flags=$T len=1
check_eq "what is refused" $PLN_ERR_LENGTH "$c_status"
check_eq "is, at a time" $((now + 7000)) $((c_bytes))

# Work of known length, and nobody looks until 5 ms after it: a wait for nothing ends after 300 microseconds
queue_setup 0
now
desc 0 op=$PLN_OP_NOP +flags=$T comp=$COMP
desc 0 op=$PLN_OP_SEM_WAIT +flags=$T imm=$((1 << 62)) arg=300 comp=$((COMP + 32))
ring 0
check "all is done that can be" idle gpu0
readq $((COMP + 24))
check_eq "one ends at once" $now $((r))
qreg 0 $PLN_Q_STATUS
check_eq "and the other waits" "$PLN_Q_RUNNING" "$r"
qt clock_step 300000
settle 0
qt clock_step 5000000
readl $((COMP + 40))
check_eq "in vain" $PLN_ERR_TIMEOUT "$r"
readq $((COMP + 56))
check_eq "and ended when its time was over" $((now + 300000)) $((r))

# What was latched is saved
reg $PLN_REG_TIME
qmp stop
check "saved to a file" qt_saved
qt_stop
qt_start $DEV -device peerlane-gpu,id=gpu1,addr=5,vram-size=1M,bar1-size=64K -incoming "file:$OUT/vmstate"
check "loaded from the file" qt_loaded
rm -f "$OUT/vmstate"
qmp cont
use 0
value_is "the latched half" 2 reg $((PLN_REG_TIME + 4))
qt_finish

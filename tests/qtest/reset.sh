#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the three ways to reset the GPU, with work under way
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on
gpu_setup 0 0x20
use 0
value_is "no reset is counted at power on" 0 reg $PLN_REG_RESET_COUNT

busy() { # put the device into a state that a reset has to clear
    use 0
    msix_setup 0 0x20
    queue_setup 0
    queue_setup 1
    memset $((WIN + 0x10000)) 16 0x5c
    setreg $PLN_REG_SCRATCH 0x77
    bar1 $PLN_BAR1_CMD_MAP 2 1 0x10000
    check_eq "$1: BAR1 is mapped" 0 "$r"
    qset 1 $PLN_Q_VECTOR 11
    job 1 op=99
    check_eq "$1: one queue has an error" "$PLN_Q_ERROR" "$st"
    writeq $((WIN + 0x2000)) 0
    memset 0x100000 16 0
    desc 0 op=$PLN_OP_NOP fence=12
    desc 0 op=$PLN_OP_SEM_WAIT src=0x2000 imm=1 arg=10000000
    desc 0 op=$PLN_OP_FILL flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP)) arg=1 imm=0x33 dst=0x100000 len=8
    ring 0
    check "$1: the other waits" idle gpu0
    value_is "$1: it is at work" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
    counter $PLN_CNT_DESCRIPTORS
    jobs=$r
}
as_new() { # DESC RESETS: all must be as after power on
    for q in 0 1; do
        for f in CTRL STATUS BASE SIZE HEAD TAIL ERROR_CODE ERROR_INDEX FENCE; do
            eval "qreg $q \$PLN_Q_$f"
            [ "$r" = 0 ] || fail "$1: queue $q: $f is $r"
        done
        value_is "$1: vector of queue $q" $((q + 1)) qreg $q $PLN_Q_VECTOR
    done
    value_is "$1: scratch" 0 reg $PLN_REG_SCRATCH
    value_is "$1: BAR1 units" 0 reg $PLN_REG_BAR1_UNITS_USED
    value_is "$1: BAR1 runs" 0 reg $PLN_REG_BAR1_RUNS_USED
    value_is "$1: BAR1 index" 0 reg $PLN_REG_BAR1_INDEX
    bytes_are "$1: BAR1 is empty" $((B1 + 0x20000)) 0xffffffff
    value_is "$1: status" $PLN_STATUS_READY reg $PLN_REG_STATUS
    value_is "$1: resets" "$2" reg $PLN_REG_RESET_COUNT
    bytes_are "$1: VRAM is kept" $((WIN + 0x10000)) 0x5c5c5c5c
    value_is "$1: counters are kept" $jobs counter $PLN_CNT_DESCRIPTORS
    # The dropped job must not come back
    writeq $((WIN + 0x2000)) 1
    qt clock_step 20000000000
    bytes_are "$1: the dropped job does nothing" 0x100000 0x0000000000000000
    value_is "$1: nothing ran" $jobs counter $PLN_CNT_DESCRIPTORS
    queue_setup 0
    job 0 op=$PLN_OP_FILL flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP)) arg=1 imm=0x44 dst=0x100000 len=8
    job_is "$1: it works" 0 0 8
}

# off: wait, bounded, until the function decodes nothing any more
off() {
    of_n=0
    while cfg_readl 0x20 4 && [ $((r & 6)) -ne 0 ] && more $of_n; do
        of_n=$((of_n + 1))
    done
}

busy "register"
setreg $PLN_REG_RESET 0x52535420
value_is "register: not without the magic" 0 reg $PLN_REG_RESET_COUNT
setreg $PLN_REG_RESET $PLN_RESET_MAGIC
cfg_cap 0x20 0x11
cfg_readl 0x20 $r
check_eq "register: MSI-X stays enabled" 1 $((r >> 31 & 1))
as_new "register" 1

busy "FLR"
cfg_cap 0x20 0x10
cfg_writew 0x20 $((r + 8)) 0x8000
cfg_readl 0x20 4
check_eq "FLR: memory and bus master are off" 0 $((r & 6))
cfg_cap 0x20 0x11
cfg_readl 0x20 $r
check_eq "FLR: MSI-X is off" 0 $((r >> 31 & 1))
gpu_setup 0 0x20
as_new "FLR" 2

busy "machine"
qmp system_reset
# The event may come before or after the reply; the command register tells
off
gpu_setup 0 0x20
as_new "machine" 3

# The engine itself resets its function, through configuration space
ecam_on
qt readl 0xb0020000
check_eq "configuration space in memory" 0x000000009e711234 "$r"
busy "own FLR"
cfg_cap 0x20 0x10
queue_setup 2
desc 2 op=$PLN_OP_IMM_WRITE flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP | PLN_DESC_F_IRQ)) arg=2 dst=$((0xb0020000 + cap + 8)) imm=0x8000 comp=$((COMP + 64))
desc 2 op=$PLN_OP_NOP comp=$((COMP + 96))
ring 2
off
gpu_setup 0 0x20
counter $PLN_CNT_DESCRIPTORS
check_eq "own FLR: the descriptor that did it is dropped too" "$jobs" "$r"
as_new "own FLR" 4
value_is "own FLR: its queue is disabled" $PLN_Q_DISABLED qreg 2 $PLN_Q_STATUS

# Without power the engine rests: it sends neither requests nor interrupts
power() { # 0: D0, 3: D3hot
    cfg_cap 0x20 1
    cfg_writew 0x20 $((r + 4)) "$1"
}
msix_setup 0 0x20
queue_setup 1
memset 0x100000 16 0
desc 1 op=$PLN_OP_SEM_WAIT src=0x2000 imm=2 arg=10000000
ring 1
WORD=0x100100
queue_setup 2
memset $COMP 64 0
desc 2 op=$PLN_OP_SEM_WAIT +flags=$PLN_DESC_F_SRC_BUS src=$WORD imm=1 arg=10000000
desc 2 op=$PLN_OP_FILL +flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_IRQ)) arg=1 imm=0x66 dst=0x100000 len=8 comp=$((COMP + 32)) fence=7
ring 2
check "D0: it has begun to wait" idle gpu0
value_is "D0: a wait for a word of the host" $PLN_Q_RUNNING qreg 2 $PLN_Q_STATUS
power 3
writeq $WORD 1
qt clock_step 1000000000
bytes_are "D3hot: a wait that could end starts no work" 0x100000 0x0000000000000000
bytes_are "D3hot: it leaves no record" $COMP "0x$(printf %0128d 0)"
value_is "D3hot: it raises no interrupt" 0 readl $((MSIX_AT + 12))
power 0
value_is "D0: the wait ends, and the work is done" $PLN_Q_IDLE settle 2
bytes_are "D0: its data" 0x100000 0x6666666666666666
value_is "D0: its record" 7 readq $((COMP + 32))
value_is "D0: its interrupt" 0x103 readl $((MSIX_AT + 12))
power 3
reg $PLN_REG_ID
check "D3hot: registers do not answer" test $r -ne $((PLN_ID_VALUE))
qt clock_step 20000000000
value_is "D3hot: no interrupt, also of the wait that is over" 0 readl $MSIX_AT
power 0
value_is "D0: it goes on with what it has" $PLN_Q_ERROR settle 1
value_is "D0: the wait is over" $PLN_ERR_TIMEOUT qreg 1 $PLN_Q_ERROR_CODE
value_is "D0: which an interrupt tells" 0x100 readl $MSIX_AT
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: injected faults: engine error, stuck fence, lost interrupt, removal
# tags: qtest fault
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on
gpu_setup 0 0x20
use 0
msix_setup 0 0x20
queue_setup 0
queue_setup 1
IRQ=$PLN_DESC_F_IRQ

fault_left() {
    qom_get gpu0 "$1"
    r=${qmp_reply#*: }
    r=${r%\}*}
}

check "arm two engine errors" qom_set gpu0 fault-engine-error 2
job 0 op=$PLN_OP_FILL arg=1 imm=0x11 dst=0x1000 len=8
check_eq "the first" "$PLN_Q_ERROR $PLN_ERR_INJECTED" "$st $c_status"
bytes_are "nothing was done" $((WIN + 0x1000)) 0x0000000000000000
value_is "one is left" 1 fault_left fault-engine-error
job 1 op=$PLN_OP_FILL arg=1 imm=0x11 dst=0x1000 len=8
check_eq "the second, on another queue" "$PLN_Q_ERROR $PLN_ERR_INJECTED" "$st $c_status"
queue_setup 0
queue_setup 1
job 0 op=$PLN_OP_FILL arg=1 imm=0x11 dst=0x1000 len=8
job_is "then it works again" 0 0 8
value_is "both were counted" 2 counter $PLN_CNT_FAULTS_INJECTED

check "arm a stuck fence" qom_set gpu0 fault-stuck-fence 1
writel $((MSIX_AT + 4)) 0
job 0 op=$PLN_OP_FILL +flags=$IRQ arg=1 imm=0x22 dst=0x1000 len=8 fence=9
check_eq "no record" $((0xeeeeeeee)) "$c_status"
value_is "no fence" 1 reg64 $((0x1000 + PLN_Q_FENCE))
bytes_are "the work was done" $((WIN + 0x1000)) 0x2222222222222222
value_is "the interrupt came" 0x101 readl $((MSIX_AT + 4))
job 0 op=$PLN_OP_NOP fence=10
check_eq "the next has its record" 10 "$c_fence"

check "arm a lost interrupt" qom_set gpu0 fault-lost-irq 1
counter $PLN_CNT_INTERRUPTS
ints=$r
writel $((MSIX_AT + 4)) 0
job 0 op=$PLN_OP_NOP +flags=$IRQ
job_is "the work is done" 0 0 0
value_is "no interrupt" 0 readl $((MSIX_AT + 4))
value_is "none counted" $ints counter $PLN_CNT_INTERRUPTS
job 0 op=$PLN_OP_NOP +flags=$IRQ
value_is "the next comes" 0x101 readl $((MSIX_AT + 4))
value_is "four faults in all" 4 counter $PLN_CNT_FAULTS_INJECTED

check "the engine hangs" qom_set gpu0 fault-hung-engine true
memset $COMP 32 0xee
desc 0 op=$PLN_OP_FILL arg=1 imm=0x44 dst=0x1000 len=8
ring 0
qt clock_step 1000000000
bytes_are "it does nothing" $((WIN + 0x1000)) 0x2222222222222222
qset 0 $PLN_Q_CTRL $PLN_Q_CTRL_RESET
value_is "its queue cannot be stopped" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
check "it goes on" qom_set gpu0 fault-hung-engine false
value_is "with what it has" $PLN_Q_IDLE settle 0
bytes_are "the work is done" $((WIN + 0x1000)) 0x4444444444444444
value_is "five faults in all" 5 counter $PLN_CNT_FAULTS_INJECTED
check "the engine hangs again" qom_set gpu0 fault-hung-engine true
desc 0 op=$PLN_OP_FILL arg=1 imm=0x55 dst=0x1000 len=8
ring 0
setreg $PLN_REG_RESET $PLN_RESET_MAGIC
value_is "a reset of the device stops the queue" $PLN_Q_DISABLED qreg 0 $PLN_Q_STATUS
check "no more of it" qom_set gpu0 fault-hung-engine false
queue_setup 0
queue_setup 1
job 0 op=$PLN_OP_NOP
bytes_are "and drops its work" $((WIN + 0x1000)) 0x4444444444444444

check "a fault can be taken back" qom_set gpu0 fault-engine-error 5
check "so" qom_set gpu0 fault-engine-error 0
job 0 op=$PLN_OP_NOP
job_is "nothing happens" 0 0 0
check_fails "no fault of the wrong type" "'fault-engine-error' expects uint64" qom_set gpu0 fault-engine-error '"x"'

# Surprise removal, with work under way
bar1 $PLN_BAR1_CMD_MAP 0 1 0x10000
memset $((WIN + 0x10000)) 16 0x5c
bytes_are "BAR1 is there" $B1 0x5c5c5c5c
reg $PLN_REG_RESET_COUNT
resets=$r
writeq $((WIN + 0x2000)) 0
desc 0 op=$PLN_OP_SEM_WAIT src=0x2000 imm=1 arg=1000000
desc 0 op=$PLN_OP_FILL flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP)) arg=1 imm=0x33 dst=0x100000 len=8
ring 0
check "it waits" idle gpu0
check "remove it" qom_set gpu0 surprise-removed true
value_is "configuration space reads all ones" 0xffffffff cfg_readl 0x20 0
cfg_writel 0x20 0x10 0
value_is "registers too" 0xffffffff reg $PLN_REG_ID
setreg $PLN_REG_SCRATCH 1
value_is "the MSI-X table too" 0xffffffff reg $PLN_MSIX_TABLE
bytes_are "BAR1 too" $B1 0xffffffff
bytes_are "the coherent window too" $((WIN + 0x10000)) 0xffffffff
memset $((WIN + 0x10000)) 16 0
bytes_are "which ignores writes" $((WIN + 0x10000)) 0xffffffff
qt clock_step 2000000000
bytes_are "no DMA any more" 0x100000 0x0000000000000000
qom_get gpu0 state
case $qmp_reply in *'"removed": true'*) pass "state says so" ;; *) fail "state says so" ;; esac
qmp_events=
qmp system_reset
check "the machine is reset" event '"RESET"'
value_is "it stays away" 0xffffffff cfg_readl 0x20 0
check "bring it back" qom_set gpu0 surprise-removed false
value_is "it is not configured" 0 cfg_readl 0x20 0x10
gpu_setup 0 0x20
value_is "it is there" $PLN_ID_VALUE reg $PLN_REG_ID
value_is "its return counts as a reset, that of the machine does not" $((resets + 1)) reg $PLN_REG_RESET_COUNT
value_is "and was reset" $PLN_Q_DISABLED qreg 0 $PLN_Q_STATUS
value_is "BAR1 is not mapped" 0 reg $PLN_REG_BAR1_RUNS_USED
value_is "scratch is clear" 0 reg $PLN_REG_SCRATCH
bytes_are "no write of that time reached VRAM" $((WIN + 0x10000)) 0x5c5c5c5c
queue_setup 0
job 0 op=$PLN_OP_NOP
job_is "it works" 0 0 0
qt_finish

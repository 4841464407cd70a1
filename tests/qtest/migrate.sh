#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU's whole state survives migration to a file and back
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

DEV=peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on
qt_start -device $DEV -device peerlane-gpu,id=gpu1,addr=5,vram-size=1M,bar1-size=64K
gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
msix_setup 0 0x20
queue_setup 0
queue_setup 1
queue_setup 2
setreg $PLN_REG_SCRATCH 0xabcd
bar1 $PLN_BAR1_CMD_MAP 0 1 0x30000
bar1 $PLN_BAR1_CMD_MAP 4 2 0x10000
bar1 $PLN_BAR1_CMD_MAP 9 3 0x50000
bar1 $PLN_BAR1_CMD_UNMAP 0 1 0
memset $((WIN + 0x10000)) 64 0x1a
memset $((WIN + 0x20000)) 64 0x2b
job 2 op=$PLN_OP_FILL arg=8 imm=0x0123456789abcdef dst=0x100000 len=0xf00000
job 2 op=$PLN_OP_CRC32C len=0x1000000
crc=$c_result
job 2 op=99
# Another GPU has written here
use 1
queue_setup 3
job 3 op=$PLN_OP_COPY flags=$((PLN_DESC_F_DST_BUS | PLN_DESC_F_COMP)) dst=$((0x800000000 + 0x40000)) len=24
check_eq "the other GPU's DMA" "$PLN_Q_IDLE" "$st"
use 0
job 0 op=$PLN_OP_CRC32C len=0x1000000
crc=$c_result
check "a fault is armed" qom_set gpu0 fault-lost-irq 7

# In flight: a wait, and a sum that needs 64 slices: the machine is stopped in the middle
writeq $((WIN + 0x8000)) 0
desc 0 op=$PLN_OP_SEM_WAIT src=0x8000 imm=5 arg=5000000 fence=31
desc 0 op=$PLN_OP_NOP +flags=$PLN_DESC_F_IRQ fence=32
ring 0
qt clock_step 1000000
job 1 op=$PLN_OP_CRC32C len=0x1000000 comp=$((COMP + 32))
readq $((COMP + 48))
crc=$r
qt clock_step 1000
qom_counter gpu0 engine-vram-read
before=$r
desc 1 op=$PLN_OP_CRC32C len=0x1000000 comp=$((COMP + 32)) fence=41
check "a sum is in the middle" half_way gpu0 0x20 1
qmp stop
awake 0x20
qom_counter gpu0 engine-vram-read
check "some of it has been read ($((r - before)) bytes), and not all" test $((r - before)) -gt 0 -a $((r - before)) -lt $((0x1000000))
qom_get gpu0 state
case $qmp_reply in
*running*running*) pass "two jobs are in flight" ;;
*) fail "two jobs are in flight" "$qmp_reply" ;;
esac
qom_get gpu0 counters
counters=$qmp_reply
qom_get gpu0 initiators
initiators=$qmp_reply
qom_get gpu0 state
state=$qmp_reply
i=0
while [ $i -lt 50 ]; do
    readl $B0
    i=$((i + 1))
done
qom_get gpu0 state
check_eq "the engine rests while the machine is stopped" "$state" "$qmp_reply"

check "saved to a file" qt_saved
qt_stop

qt_start -device $DEV -device peerlane-gpu,id=gpu1,addr=5,vram-size=1M,bar1-size=64K -incoming "file:$OUT/vmstate"
check "loaded from the file" qt_loaded
rm -f "$OUT/vmstate"
use 0
qom_get gpu0 counters
check_eq "counters" "$counters" "$qmp_reply"
qom_get gpu0 initiators
check_eq "initiators" "$initiators" "$qmp_reply"
qom_get gpu0 state
check_eq "queues and the rest" "$state" "$qmp_reply"
qom_get gpu0 fault-lost-irq
check_eq "faults" '{"return": 7}' "$(echo "$qmp_reply" | tr -d '\r')"
value_is "scratch" 0xabcd reg $PLN_REG_SCRATCH
value_is "BAR1 runs" 2 reg $PLN_REG_BAR1_RUNS_USED
value_is "BAR1 units" 5 reg $PLN_REG_BAR1_UNITS_USED
bytes_are "BAR1, first run" $((B1 + 0x40000 + 32)) 0x1a1a1a1a
bytes_are "its second unit" $((B1 + 0x50000)) 0x2b2b2b2b
bytes_are "unmapped as before" $B1 0xffffffff
bytes_are "VRAM" $((WIN + 0x100000)) 0xefcdab8967452301
value_is "error of queue 2" $PLN_ERR_OPCODE qreg 2 $PLN_Q_ERROR_CODE

qmp cont
settle 1
check_eq "the long job ends" "$PLN_Q_IDLE" "$r"
readq $((COMP + 48))
check_eq "its sum is right" "$crc" "$r"
value_is "its fence" 41 reg64 $((0x1100 + PLN_Q_FENCE))
value_is "the wait goes on" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
writeq $((WIN + 0x8000)) 5
# The clock of qtest is not migrated and began at 0
idle gpu0
qt clock_step 3000000
settle 0
check_eq "until it sees its value" "$PLN_Q_IDLE" "$r"
value_is "and then the next" 32 reg64 $((0x1000 + PLN_Q_FENCE))
bar1 $PLN_BAR1_CMD_UNMAP 4 2 0
check_eq "runs can be unmapped" 0 "$r"
bar1 $PLN_BAR1_CMD_MAP 9 1 0
check_eq "and are known" "$PLN_ERR_OVERLAP" "$r"
qt_stop

# A machine that goes back to what it was: who has done DMA since is nobody it knows, and then is known by its name
job_ends() { # NAME
    check "$1 ends" event "\"status\": \"concluded\", \"id\": \"$1\""
    qmp job-dismiss "{\"id\":\"$1\"}"
}
# QEMU keeps the channel of a snapshot for good.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=1M,bar1-size=64K -device peerlane-gpu,id=gpu1,addr=5,vram-size=1M,bar1-size=64K
qmp blockdev-create '{"job-id":"file","options":{"driver":"file","filename":"'"$OUT"'/states","size":0}}'
job_ends file
qmp blockdev-add '{"driver":"file","filename":"'"$OUT"'/states","node-name":"file"}'
qmp blockdev-create '{"job-id":"qcow2","options":{"driver":"qcow2","file":"file","size":1048576}}'
job_ends qcow2
qmp blockdev-add '{"driver":"qcow2","file":"file","node-name":"states"}'
gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
bar1 $PLN_BAR1_CMD_MAP 0 1 0
at_gpu0=$B1
use 1
names() {
    queue_setup 0
    job 0 op=$PLN_OP_FILL +flags=$PLN_DESC_F_DST_BUS arg=1 dst=$at_gpu0 len=8
    qom_get gpu0 initiators
    check_eq "$1" '"id": "gpu1"' "$(echo "$qmp_reply" | grep -o '"id": "[^"]*"')"
}
qmp snapshot-save '{"job-id":"save","tag":"before","vmstate":"states","devices":["states"]}'
job_ends save
names "one GPU writes to the other"
qmp snapshot-load '{"job-id":"load","tag":"before","vmstate":"states","devices":["states"]}'
job_ends load
qom_get gpu0 initiators
check_eq "as before, nobody has" '{"return": []}' "$(echo "$qmp_reply" | tr -d '\r')"
names "it writes again"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the engine works beside QEMU's main loop, and who resets, stops or pulls it waits for the end of a slice
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

# Memory that can be looked at while QEMU answers nobody
RAM=$OUT/ram
sw_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
    -object memory-backend-file,id=ram,size=64M,mem-path="$RAM",share=on -machine memory-backend=ram \
    -blockdev null-co,node-name=disk,size=1048576,read-zeroes=on,latency-ns=2000000000 \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0 \
    -device peerlane-gpu,id=gpu9,addr=5,vram-size=16M,bar1-size=1M,coherent=on
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
gpu_setup 9 0x28
bridge $DP3 2 9 9 4 4
use 9
in_ram() { r=$(od -An -v -tx8 -j$(($1)) -N8 "$RAM" | tr -d ' '); }

# The main loop has the big lock, and does nothing but wait for a drive: a driver disables that while it reads
queue_setup 0
n=0
while [ $n -lt 12 ]; do
    desc 0 op=$PLN_OP_COPY +flags=$PLN_DESC_F_DST_BUS dst=0x1000000 len=0x100000 fence=$((1 + n))
    n=$((n + 1))
done
memset $COMP 32 0
submit 1 2 $BUF 0 0 0 7
printf 'writel %d %d\nwritel %d 0x00460000\n' $((B0 + 0x1000 + PLN_Q_TAIL)) $tail_0 $((REGS + 0x14)) >&3
n=0
while in_ram $COMP && [ $((0x$r)) -ne 12 ] && more $n; do
    n=$((n + 1))
done
check_eq "12 MiB are copied" 12 $((0x$r))
in_ram $((co_c + 8))
check_eq "while the drive still reads, and QEMU waits for it" 0 $((0x$r >> 32))
for answer in doorbell disable; do
    read -r r <&4 || { echo "# QEMU died"; cat "$OUT/qemu.log"; exit 1; }
    check_eq "$answer: done" OK "$r"
done
check "the queue rests" settle 0

# Somebody asks QEMU things while jobs are under way, and gets an answer each time.  There are more jobs until one of them
# was not yet done after an answer: the engine may be quicker than who asks.
n=0
jobs=0
while [ $n -eq 0 ] && [ $jobs -lt 64 ]; do
    queue_setup 0
    for job in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        desc 0 op=$PLN_OP_CRC32C len=0x1000000
    done
    ring 0
    qmp query-status
    while qreg 0 $PLN_Q_STATUS && [ $r -eq $PLN_Q_RUNNING ]; do
        case $qmp_reply in *'"running": true'*) n=$((n + 1)) ;; *) break ;; esac
        more $n || break
        qmp query-status
    done
    jobs=$((jobs + 1))
done
check_eq "the job is done" $PLN_Q_IDLE $r
check "QMP was answered meanwhile" test $n -ge 1
diag "$n times"

# What moves when a command is done has moved: memory is looked at right after it, and again
SPOTS=
n=0
while [ $n -lt 64 ]; do
    SPOTS="$SPOTS $((WIN + 0x40000 - 4096 * (n + 1)))"
    n=$((n + 1))
done
busy() { # ROUND: jobs that fill memory with another value each, word by word so that it takes a while
    queue_setup 0
    bu_n=0
    while [ $bu_n -lt 15 ]; do
        desc 0 op=$PLN_OP_FILL flags=0 len=0x40000 arg=2 imm=$(($1 * 16 + bu_n + 1))
        bu_n=$((bu_n + 1))
    done
}
# still LINES: after these lines for qtest, which begin with a doorbell, nothing changes any more. QEMU gets all at once.
still() {
    {
        printf '%s\n' "$1"
        for st_pass in 1 2; do
            for st_spot in $SPOTS; do printf 'readq %d\n' $st_spot; done
        done
    } >"$OUT/lines"
    cat "$OUT/lines" >&3
    st_n=$(grep -c . "$OUT/lines")
    while [ $st_n -gt 0 ]; do
        read -r r <&4 || { echo "# QEMU died"; cat "$OUT/qemu.log"; exit 1; }
        echo "$r"
        st_n=$((st_n - 1))
    done | tail -n 128 >"$OUT/seen"
    head -n 64 "$OUT/seen" >"$OUT/first"
    tail -n 64 "$OUT/seen" | cmp -s - "$OUT/first"
}
# wait REGISTER-READS: some time between the doorbell and what comes then
wait_some() {
    r=
    ws_n=0
    while [ $ws_n -lt $1 ]; do
        r="$r
readl $((B0))"
        ws_n=$((ws_n + 1))
    done
}
BELL="writel $((B0 + 0x1000 + PLN_Q_TAIL)) 15"
case $TIER in nightly) rounds=${ROUNDS:-200} ;; *) rounds=${ROUNDS:-15} ;; esac
moved=
for what in "reset of the queue:writel $((B0 + 0x1000 + PLN_Q_CTRL)) $PLN_Q_CTRL_RESET" \
    "disabling it:writel $((B0 + 0x1000 + PLN_Q_CTRL)) 0" \
    "reset of the device:writel $((B0 + PLN_REG_RESET)) $PLN_RESET_MAGIC" \
    "bus master off:outl 0xcf8 $((0x80002804))
outw 0xcfc 2"; do
    moved=0
    n=0
    while [ $n -lt $rounds ]; do
        busy $n
        wait_some $((n % 20))
        still "$BELL$r
${what#*:}" || moved=$((moved + 1))
        cfg_writew 0x28 4 6
        n=$((n + 1))
    done
    check_eq "${what%%:*}: of $rounds times, this often something moved later" 0 $moved
done
cfg_cap 0x28 0x10
flr=$((cap + 8))
n=0
moved=0
while [ $n -lt $rounds ]; do
    busy $n
    wait_some $((n % 20))
    still "$BELL$r
outl 0xcf8 $((0x80000000 | 0x28 << 8 | flr & 0xfc))
outw $((0xcfc + (flr & 2))) 0x8000" || moved=$((moved + 1))
    gpu_setup 9 0x28
    n=$((n + 1))
done
check_eq "FLR: of $rounds times" 0 $moved

# A machine that stops and goes on does all the work, once
sum=
n=0
while [ $n -lt $rounds ]; do
    busy $n
    ring 0
    qmp stop
    still "readl $((B0))" || moved=$((moved + 1))
    qmp cont
    settle 0
    [ "$r" = $PLN_Q_IDLE ] || sum="$sum $n:$r"
    readq $((WIN + 0x3fff8))
    [ "$r" = $(((n * 16 + 15) * 0x0001000100010001)) ] || sum="$sum $n:$r"
    n=$((n + 1))
done
check_eq "stop: of $rounds times" 0 $moved
check_eq "and all work was done" "" "$sum"

# What needs the big lock: an engine that fills registers is reset, also by another engine
bar1_of 9
AT9=$r
bar0_of 9
REG9=$r
use 8
queue_setup 1
n=0
while [ $n -lt $rounds ]; do
    use 9
    queue_setup 0
    desc 0 op=$PLN_OP_FILL flags=$PLN_DESC_F_DST_BUS dst=$AT9 len=0x40000 arg=8 imm=$n
    desc 0 op=$PLN_OP_COPY flags=$PLN_DESC_F_SRC_BUS src=$AT9 len=0x40000
    use 8
    desc 1 op=$PLN_OP_IMM_WRITE flags=$PLN_DESC_F_DST_BUS arg=4 dst=$((REG9 + PLN_REG_RESET)) imm=$((PLN_RESET_MAGIC))
    use 9
    ring 0
    use 8
    ring 1
    settle 1
    use 9
    settle 0
    n=$((n + 1))
done
value_is "an engine resets another one, which accesses its own BAR" $PLN_Q_DISABLED qreg 0 $PLN_Q_STATUS
queue_setup 0
job 0 op=$PLN_OP_FILL arg=1 imm=1 len=16
job_is "which works" 0 0 16

# Pulled, and plugged again
ecam_on
n=0
while [ $n -lt 12 ]; do
    use 1
    queue_setup 1
    desc 1 op=$PLN_OP_CRC32C len=0x400000
    desc 1 op=$PLN_OP_FILL flags=$PLN_DESC_F_DST_BUS dst=0x1000000 len=0x400000 arg=8 imm=7
    ring 1
    pull dp1
    qmp device_add '{"driver":"peerlane-gpu","id":"gpu1","bus":"dp1","vram-size":4194304,"bar1-size":1048576,"bar1-runs":16}'
    gpu_setup 1 $GPU1
    n=$((n + 1))
done
use 1
queue_setup 1
job 1 op=$PLN_OP_FILL arg=1 imm=1 len=16
job_is "pulled $n times in the middle of its work, a GPU works" 0 0 16
rm -f "$RAM"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a drive's transfer to a peer costs at most 1.25 times that to host memory
# tags: qtest switch nvme bench
# tier: all
# timeout: 60
# exclusive
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
# Sanitizers cost time, and not evenly
QEMU=${QEMU:-$BUILD/qemu/qemu-system-x86_64}
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

# What is compared is processor time of the emulator, not the clock.  Other work on
# the machine can only add to it (caches), so the least of all rounds counts, which
# take turns; and when that was not enough of them for a quiet moment of each,
# there are more.  What is slower stays slower.
ROUNDS=15
ROUNDS_MOST=90
COMMANDS=60
LEN=524288
head -c $LEN /dev/urandom >disk.img
sw_start -blockdev "driver=file,node-name=disk,filename=$OUT/disk.img" \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
nvme 0 5 $((IO + 0x1000)) 0 0x003f0001 1 0
nvme 0 1 $IO 0 0x003f0001 0x00010001 0
check_eq "it has queues of 64" 0 "$r"

# prp_list AT BUFFER
prp_list() {
    pl_i=1
    while [ $pl_i -lt $((LEN / 4096)) ]; do
        writeq $(($1 + 8 * (pl_i - 1))) $(($2 + 4096 * pl_i))
        pl_i=$((pl_i + 1))
    done
}
bar1_of 1
PEER=$r
prp_list $PRPS $BUF
prp_list $((PRPS + 0x1000)) "$PEER"

# cpu: nanoseconds that QEMU's threads have run
cpu() { r=$(awk '{ ns += $1 } END { printf "%.0f", ns }' /proc/$qt_pid/task/*/schedstat); }
slot=0
# batch read|write BUFFER PRP-LIST: nanoseconds for COMMANDS commands, in $ns
batch() {
    ba_op=1
    [ "$1" = write ] || ba_op=2
    ba_i=0
    while [ $ba_i -lt $COMMANDS ]; do
        ba_s=$((IO + 64 * (slot % 64)))
        writel $ba_s $((ba_op | slot % 64 << 16))
        writel $((ba_s + 4)) 1
        qt writeq $((ba_s + 24)) $(($2))
        qt writeq $((ba_s + 32)) $(($3))
        writel $((ba_s + 48)) $((LEN / 512 - 1))
        ba_last=$((IO + 0x1000 + 16 * (slot % 64)))
        ba_phase=$((1 - slot / 64 % 2))
        slot=$((slot + 1))
        ba_i=$((ba_i + 1))
    done
    cpu
    ns=$r
    writel $((REGS + 0x1008)) $((slot % 64))
    ba_i=0
    while [ $ba_i -lt 500 ]; do
        sleep 0.02
        readl $((ba_last + 12))
        [ $((r >> 16 & 1)) -ne $ba_phase ] || break
        ba_i=$((ba_i + 1))
    done
    [ $((r >> 17)) -eq 0 ] || fail "$1 $2" "status $((r >> 17))"
    cpu
    ns=$((r - ns))
    writel $((REGS + 0x100c)) $((slot % 64))
}

: >times.txt
# ratio_of DIRECTION: in $ratio, thousandths, of $host and $peer
ratio_of() {
    for to in host peer; do
        eval "$to=$(grep "^$1 $to" times.txt | sort -k 3n | head -n 1 | cut -d ' ' -f 3)"
    done
    ratio=$((host * 1000 / peer))
}
enough() {
    for dir in read write; do
        ratio_of $dir
        [ $ratio -ge 800 ] || return 1
    done
}
n=0
while [ $n -lt $ROUNDS ] || { [ $n -lt $ROUNDS_MOST ] && ! enough; }; do
    n=$((n + 1))
    for dir in read write; do
        batch $dir $BUF $PRPS
        echo "$dir host $ns" >>times.txt
        batch $dir "$PEER" $((PRPS + 0x1000))
        echo "$dir peer $ns" >>times.txt
    done
done
snap dp3
check_eq "all of it was counted, host and peer" \
    "$((n * COMMANDS * LEN)) $((n * COMMANDS * LEN))" "$(echo $snap_dp3 | cut -d ' ' -f 1,2)"
for dir in read write; do
    ratio_of $dir
    diag "$dir: $((host / 1000)) us to host memory, $((peer / 1000)) us to a peer, for $((COMMANDS * LEN >> 20)) MiB: $ratio/1000"
    check "$dir: at least 0.8 of the speed of host memory" test $ratio -ge 800
done
qt_finish

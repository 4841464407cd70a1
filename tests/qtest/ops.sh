#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: every operation of the GPU's engine, on its data
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

# step NS: time goes on when the engine waits for it, and not while it begins to
step() {
    idle gpu0
    qt clock_step "$1"
}

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on
gpu_setup 0 0x20
use 0
queue_setup 0
EQUAL=0xffffffffffffffff
SRC_BUS=$((PLN_DESC_F_COMP | PLN_DESC_F_SRC_BUS))
DST_BUS=$((PLN_DESC_F_COMP | PLN_DESC_F_DST_BUS))
BOTH_BUS=$((SRC_BUS | DST_BUS))
HOST=0x100000           # a place in host memory

# Something without a short period: 61 bytes, doubled up to about 1 MiB
repeat 1 0102030507111317192329313741434753596167717379838997a1a3a7a9adb1b5b7bbbfc1c5c7cbcdd3d9dfe3e5e9effbf1f30b0d0f1d1f2b2d2f3335
wrhex $WIN "0x$r"
len=61
while [ $len -lt 900000 ]; do
    desc 0 op=$PLN_OP_COPY flags=0 src=0 dst=$len len=$len
    len=$((len * 2))
done
ring 0
settle 0
N=$len                  # 999424
check_eq "pattern is made" $PLN_Q_IDLE "$r"

job 0 op=$PLN_OP_NOP fence=0x123456789abcdef
job_is "nop" 0 0 0
check_eq "nop: its fence" $((0x123456789abcdef)) "$c_fence"
value_is "nop: fence register" 0x123456789abcdef reg64 $((PLN_Q_FENCE + 0x1000))
readl $((COMP + 12))
check_eq "nop: opcode in the record" 0 "$r"

# COPY
job 0 op=$PLN_OP_COPY src=3 dst=0x200001 len=$((N - 3))
job_is "copy in VRAM, several slices, nothing aligned" 0 0 $((N - 3))
job 0 op=$PLN_OP_COMPARE src=3 dst=0x200001 len=$((N - 3))
job_is "is equal" 0 $EQUAL $((N - 3))
bytes_are "one byte before is untouched" $((WIN + 0x200000)) 0x00
bytes_are "and one after" $((WIN + 0x200001 + N - 3)) 0x00
job 0 op=$PLN_OP_COPY flags=$DST_BUS dst=$((HOST + 5)) len=$((N - 3)) src=3
job_is "copy to host memory" 0 0 $((N - 3))
job 0 op=$PLN_OP_COMPARE flags=$DST_BUS src=3 dst=$((HOST + 5)) len=$((N - 3))
job_is "is equal" 0 $EQUAL $((N - 3))
rdhex $((WIN + 3)) 64
want=$r
bytes_are "also to the CPU" $((HOST + 5)) "$want"
job 0 op=$PLN_OP_COPY flags=$BOTH_BUS src=$((HOST + 5)) dst=$((HOST + 0x200000)) len=$((N - 3))
job_is "copy from host memory to host memory" 0 0 $((N - 3))
job 0 op=$PLN_OP_COPY flags=$SRC_BUS src=$((HOST + 0x200000)) dst=0x400000 len=$((N - 3))
job_is "copy from host memory" 0 0 $((N - 3))
job 0 op=$PLN_OP_COMPARE src=3 dst=0x400000 len=$((N - 3))
job_is "is equal after three ways" 0 $EQUAL $((N - 3))
job 0 op=$PLN_OP_COPY src=0x400000 dst=0x400400 len=600000
job_is "overlapping copy upwards" 0 0 600000
job 0 op=$PLN_OP_COMPARE src=3 dst=0x400400 len=600000
job_is "is right" 0 $EQUAL 600000
job 0 op=$PLN_OP_COPY src=0x400400 dst=0x400001 len=600000
job 0 op=$PLN_OP_COMPARE src=3 dst=0x400001 len=600000
job_is "overlapping copy downwards is right" 0 $EQUAL 600000
job 0 op=$PLN_OP_COPY flags=$BOTH_BUS src=$((HOST + 5)) dst=$((HOST + 1000)) len=600000
job 0 op=$PLN_OP_COMPARE flags=$DST_BUS src=3 dst=$((HOST + 1000)) len=600000
job_is "overlapping copy in host memory is right" 0 $EQUAL 600000
job 0 op=$PLN_OP_COPY src=0 dst=$((0xffffff)) len=1
job_is "copy to the last byte of VRAM" 0 0 1

# FILL
job 0 op=$PLN_OP_FILL arg=1 imm=0xa5 dst=0x600001 len=7
job_is "fill, 1 byte wide" 0 0 7
bytes_are "is right, and no more" $((WIN + 0x600000)) 0x00a5a5a5a5a5a5a500
job 0 op=$PLN_OP_FILL arg=2 imm=0x1234 dst=0x600010 len=6
bytes_are "fill, 2 bytes wide" $((WIN + 0x600010)) 0x3412341234120000
job 0 op=$PLN_OP_FILL arg=4 imm=0x12345678 dst=0x600020 len=8
bytes_are "fill, 4 bytes wide" $((WIN + 0x600020)) 0x785634127856341200000000
job 0 op=$PLN_OP_FILL arg=8 imm=0xfedcba9876543210 dst=0x600040 len=16
bytes_are "fill, 8 bytes wide" $((WIN + 0x600040)) 0x1032547698badcfe1032547698badcfe00000000
job 0 op=$PLN_OP_FILL flags=$DST_BUS arg=8 imm=0x0807060504030201 dst=$HOST len=524288
job_is "fill host memory, two slices" 0 0 524288
bytes_are "its last word" $((HOST + 524280)) 0x0102030405060708

# CRC32C: the check value, the vectors of RFC 3720, and chains
wrhex $((WIN + 0x700000)) 0x313233343536373839
job 0 op=$PLN_OP_CRC32C src=0x700000 len=9
job_is "CRC-32C of 123456789" 0 $((0xe3069283)) 9
job 0 op=$PLN_OP_CRC32C src=0x700000 len=4
job 0 op=$PLN_OP_CRC32C src=0x700004 len=5 imm=$c_result
job_is "in two parts" 0 $((0xe3069283)) 5
memset $((WIN + 0x700100)) 32 0
job 0 op=$PLN_OP_CRC32C src=0x700100 len=32
job_is "CRC-32C of 32 bytes 0" 0 $((0x8a9136aa)) 32
memset $HOST 32 0xff
job 0 op=$PLN_OP_CRC32C flags=$SRC_BUS src=$HOST len=32
job_is "CRC-32C of 32 bytes 255 in host memory" 0 $((0x62a8ab43)) 32
job 0 op=$PLN_OP_CRC32C src=0 len=900001
whole=$c_result
job 0 op=$PLN_OP_CRC32C src=0 len=333
job 0 op=$PLN_OP_CRC32C src=333 len=299668 imm=$c_result
job 0 op=$PLN_OP_CRC32C src=300001 len=600000 imm=$c_result
check_eq "slices do not show in the CRC" "$whole" "$c_result"

# COMPARE
qt writeb $((WIN + 0x200001 + 500000)) 0xee
job 0 op=$PLN_OP_COMPARE src=3 dst=0x200001 len=$((N - 3))
job_is "compare finds the byte that differs" 0 500000 500000
job 0 op=$PLN_OP_COMPARE src=3 dst=0x200001 len=500000
job_is "and not the one behind the end" 0 $EQUAL 500000
memset $HOST 64 0x41
memset $((HOST + 64)) 64 0x41
qt writeb $((HOST + 64)) 0x42
job 0 op=$PLN_OP_COMPARE flags=$BOTH_BUS src=$HOST dst=$((HOST + 64)) len=64
job_is "compare in host memory; the first byte differs" 0 0 0

# ADD
wrhex $((WIN + 0x800000)) 0x01000000ffffffff0000008010000000
wrhex $((WIN + 0x800100)) 0x02000000020000000000008005000000
job 0 op=$PLN_OP_ADD arg=$PLN_ADD_INT32 dst=0x800000 src=0x800100 len=16
job_is "add integers" 0 0 16
bytes_are "they wrap" $((WIN + 0x800000)) 0x03000000010000000000000015000000
wrhex $((WIN + 0x800000)) 0x0000c03f000080bf0000807f
wrhex $HOST 0x000010400000803f0000803f
job 0 op=$PLN_OP_ADD flags=$SRC_BUS arg=$PLN_ADD_FLOAT32 dst=0x800000 src=$HOST len=12
job_is "add floats from host memory" 0 0 12
bytes_are "1.5 + 2.25, -1 + 1, inf + 1" $((WIN + 0x800000)) 0x00007040000000000000807f
job 0 op=$PLN_OP_ADD flags=$DST_BUS arg=$PLN_ADD_INT32 dst=$HOST src=0x800100 len=4
bytes_are "add to host memory" $HOST 0x0200104000
job 0 op=$PLN_OP_FILL arg=4 imm=1 dst=0x900000 len=1000000
job 0 op=$PLN_OP_ADD arg=$PLN_ADD_INT32 dst=0x900000 src=0x900000 len=1000000
job 0 op=$PLN_OP_FILL arg=4 imm=2 dst=0xa00000 len=1000000
job 0 op=$PLN_OP_COMPARE src=0x900000 dst=0xa00000 len=1000000
job_is "add a range to itself, several slices" 0 $EQUAL 1000000

# SEM_WRITE, IMM_WRITE
memset $((WIN + 0xb00000)) 64 0
job 0 op=$PLN_OP_SEM_WRITE dst=0xb00008 imm=0x1122334455667788
job_is "semaphore write" 0 0 8
bytes_are "is right" $((WIN + 0xb00000)) 0x0000000000000000887766554433221100000000
job 0 op=$PLN_OP_SEM_WRITE flags=$DST_BUS dst=$HOST imm=0x99 len=8
bytes_are "semaphore write to host memory" $HOST 0x9900000000000000
w=1
for want in 0x4100000000 0x4142000000 0x4142434400000000 0x4142434445464748; do
    memset $((WIN + 0xb00100)) 16 0
    case $w in 1) imm=0x41 ;; 2) imm=0x4241 ;; 4) imm=0x44434241 ;; 8) imm=0x4847464544434241 ;; esac
    job 0 op=$PLN_OP_IMM_WRITE arg=$w dst=0xb00100 imm=$imm
    bytes_are "immediate write, $w wide" $((WIN + 0xb00100)) $want
    w=$((w * 2))
done
job 0 op=$PLN_OP_IMM_WRITE flags=$DST_BUS arg=4 dst=$HOST imm=0x01020304 len=4
bytes_are "immediate write to host memory" $HOST 0x04030201

# SEM_WAIT; virtual time passes when the test says so
writeq $((WIN + 0xb00200)) 7
job 0 op=$PLN_OP_SEM_WAIT src=0xb00200 imm=7
job_is "a semaphore that is there already" 0 7 8
desc 0 op=$PLN_OP_SEM_WAIT src=0xb00200 imm=9 arg=1000 fence=41
desc 0 op=$PLN_OP_NOP fence=42
ring 0
step 500000
value_is "waits" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
value_is "no fence yet" 1 reg64 $((PLN_Q_FENCE + 0x1000))
writeq $((WIN + 0xb00200)) 10
step 100000
settle 0
check_eq "goes on when it sees a larger value" $PLN_Q_IDLE "$r"
value_is "and then the next" 42 reg64 $((PLN_Q_FENCE + 0x1000))
writeq $HOST 0
desc 0 op=$PLN_OP_SEM_WAIT flags=$SRC_BUS src=$HOST imm=0x8000000000000000 arg=1000
ring 0
step 500000
value_is "waits on host memory" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
writeq $HOST 0xffffffffffffffff
step 100000
settle 0
check_eq "compares unsigned" $PLN_Q_IDLE "$r"
desc 0 op=$PLN_OP_SEM_WAIT src=0xb00200 imm=11 arg=1000
ring 0
step 990000
value_is "not before its time" $PLN_Q_RUNNING qreg 0 $PLN_Q_STATUS
step 20000
settle 0
check_eq "times out" "$PLN_Q_ERROR" "$r"
value_is "with the code for it" $PLN_ERR_TIMEOUT qreg 0 $PLN_Q_ERROR_CODE
readl $((COMP + 8))
check_eq "in the record too" $PLN_ERR_TIMEOUT "$r"
readq $((COMP + 16))
check_eq "with what it saw" 10 "$r"
queue_setup 0
job 0 op=$PLN_OP_SEM_WAIT src=0xb00200 imm=11
check_eq "timeout 0 looks once" "$PLN_Q_ERROR $PLN_ERR_TIMEOUT" "$st $c_status"
qt_finish

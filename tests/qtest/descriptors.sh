#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each check of a descriptor: right code, queue stops, no memory touched
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

# A small VRAM, so that all of it can be summed up after each bad descriptor
VRAM=0x100000
qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=1M,bar1-size=1M,coherent=on
gpu_setup 0 0x20
use 0
queue_setup 0
queue_setup 1

C=$PLN_DESC_F_COMP
SB=$((C | PLN_DESC_F_SRC_BUS))
DB=$((C | PLN_DESC_F_DST_BUS))
HOST=0x20000
END=$((0x100000))
MAX64=0xffffffffffffffff
# Host memory from just below COMP to just above it, and around HOST
memset 0x7f00 0x200 0x6b
memset $((HOST - 0x100)) 0x1000 0x6c
job 1 op=$PLN_OP_FILL arg=4 imm=0x01020304 dst=0 len=$VRAM comp=$((COMP + 0x1000))
job 1 op=$PLN_OP_COPY src=1 dst=0x80000 len=0x1fff comp=$((COMP + 0x1000))

# sums: of VRAM by queue 1, and of host memory around the targets; in $sum
sums() {
    desc 1 op=$PLN_OP_CRC32C src=0 len=$VRAM comp=$((COMP + 0x1000))
    desc 1 op=$PLN_OP_CRC32C flags=$SB src=$((HOST - 0x100)) len=0x1000 comp=$((COMP + 0x1020))
    desc 1 op=$PLN_OP_CRC32C flags=$SB src=0x7f00 len=0x100 comp=$((COMP + 0x1040))
    desc 1 op=$PLN_OP_CRC32C flags=$SB src=$((COMP + 32)) len=0xe0 comp=$((COMP + 0x1060))
    ring 1
    settle 1
    sum=$r
    for s in 0x1010 0x1030 0x1050 0x1070; do
        readq $((COMP + s))
        sum=$sum:$r
    done
}
sums
before=$sum

# bad DESC CODE fields...
bad() {
    b_desc=$1
    b_code=$2
    shift 2
    memset $COMP 32 0x6b
    desc 0 op=$PLN_OP_NOP flags=0 fence=5
    desc 0 fence=77 "$@"
    desc 0 op=$PLN_OP_FILL arg=1 dst=0x100 imm=0x55 len=16
    ring 0
    settle 0
    b_got="status $r"
    qreg 0 $PLN_Q_ERROR_CODE
    b_got="$b_got code $r"
    qreg 0 $PLN_Q_ERROR_INDEX
    b_got="$b_got index $r"
    qreg 0 $PLN_Q_HEAD
    b_got="$b_got head $r"
    reg64 $((0x1000 + PLN_Q_FENCE))
    b_got="$b_got fence $r"
    readq $COMP
    b_got="$b_got record $r"
    readl $((COMP + 8))
    b_got="$b_got $r"
    readq $((COMP + 24))
    b_got="$b_got $r"
    queue_setup 0
    sums
    [ "$sum" = "$before" ] || b_got="$b_got, and memory changed"
    b_want="status $PLN_Q_ERROR code $b_code index 1 head 1 fence 5"
    case $record in
    yes) b_want="$b_want record 77 $b_code 0" ;;
    no) b_want="$b_want record $((0x6b6b6b6b6b6b6b6b)) $((0x6b6b6b6b)) $((0x6b6b6b6b6b6b6b6b))" ;;
    esac
    check_eq "$b_desc" "$b_want" "$b_got"
}
record=yes

E=$PLN_ERR_OPCODE
bad "opcode: first that is none" $E op=$PLN_NUM_OPS src=0 dst=0 len=64
bad "opcode: largest" $E op=0xffffffff src=0 dst=0 len=64

E=$PLN_ERR_FLAGS
bad "flags: unknown" $E op=$PLN_OP_FILL flags=$((C | 0x20)) arg=1 imm=1 len=16
bad "flags: highest bit" $E op=$PLN_OP_FILL flags=$((C | 0x80000000)) arg=1 imm=1 len=16
bad "flags: nop from the bus" $E op=$PLN_OP_NOP flags=$SB
bad "flags: nop to the bus" $E op=$PLN_OP_NOP flags=$DB
bad "flags: fill from the bus" $E op=$PLN_OP_FILL flags=$SB arg=1 imm=1 len=16
bad "flags: CRC to the bus" $E op=$PLN_OP_CRC32C flags=$DB len=16
bad "flags: semaphore write from the bus" $E op=$PLN_OP_SEM_WRITE flags=$SB imm=1
bad "flags: semaphore wait to the bus" $E op=$PLN_OP_SEM_WAIT flags=$DB
bad "flags: immediate write from the bus" $E op=$PLN_OP_IMM_WRITE flags=$SB arg=1 imm=1

E=$PLN_ERR_RESERVED
bad "reserved: the reserved field" $E op=$PLN_OP_FILL res=1 arg=1 imm=1 len=16
bad "reserved: source of a nop" $E op=$PLN_OP_NOP src=1
bad "reserved: destination of a nop" $E op=$PLN_OP_NOP dst=1
bad "reserved: immediate of a nop" $E op=$PLN_OP_NOP imm=1
bad "reserved: immediate of a copy" $E op=$PLN_OP_COPY src=0 dst=64 len=8 imm=1
bad "reserved: source of a fill" $E op=$PLN_OP_FILL src=8 arg=1 imm=1 len=16
bad "reserved: destination of a CRC" $E op=$PLN_OP_CRC32C dst=8 len=16
bad "reserved: immediate of a compare" $E op=$PLN_OP_COMPARE dst=8 len=16 imm=1
bad "reserved: immediate of an add" $E op=$PLN_OP_ADD arg=1 dst=8 len=16 imm=1
bad "reserved: source of a semaphore write" $E op=$PLN_OP_SEM_WRITE src=8 imm=1
bad "reserved: destination of a semaphore wait" $E op=$PLN_OP_SEM_WAIT dst=8
bad "reserved: source of an immediate write" $E op=$PLN_OP_IMM_WRITE src=8 arg=1 imm=1

E=$PLN_ERR_ARG
bad "arg: nop" $E op=$PLN_OP_NOP arg=1
bad "arg: copy" $E op=$PLN_OP_COPY arg=1 dst=64 len=8
bad "arg: fill, width 0" $E op=$PLN_OP_FILL arg=0 imm=1 len=16
bad "arg: fill, width 3" $E op=$PLN_OP_FILL arg=3 imm=1 len=15
bad "arg: fill, width 16" $E op=$PLN_OP_FILL arg=16 imm=1 len=16
bad "arg: fill, immediate wider than 1" $E op=$PLN_OP_FILL arg=1 imm=0x100 len=16
bad "arg: fill, immediate wider than 2" $E op=$PLN_OP_FILL arg=2 imm=0x10000 len=16
bad "arg: fill, immediate wider than 4" $E op=$PLN_OP_FILL arg=4 imm=0x100000000 len=16
bad "arg: CRC" $E op=$PLN_OP_CRC32C arg=1 len=16
bad "arg: CRC so far, too wide" $E op=$PLN_OP_CRC32C len=16 imm=0x100000000
bad "arg: compare" $E op=$PLN_OP_COMPARE arg=1 dst=64 len=16
bad "arg: add, no type" $E op=$PLN_OP_ADD arg=0 dst=64 len=16
bad "arg: add, type 3" $E op=$PLN_OP_ADD arg=3 dst=64 len=16
bad "arg: semaphore write" $E op=$PLN_OP_SEM_WRITE arg=1 imm=1
bad "arg: semaphore wait, too long" $E op=$PLN_OP_SEM_WAIT arg=$((PLN_SEM_MAX_WAIT_US + 1))
bad "arg: immediate write, width 0" $E op=$PLN_OP_IMM_WRITE arg=0 imm=1
bad "arg: immediate write, width 5" $E op=$PLN_OP_IMM_WRITE arg=5 imm=1
bad "arg: immediate write, too wide" $E op=$PLN_OP_IMM_WRITE arg=1 imm=0x100

E=$PLN_ERR_LENGTH
bad "length: nop" $E op=$PLN_OP_NOP len=1
for o in "$PLN_OP_COPY" "$PLN_OP_CRC32C" "$PLN_OP_COMPARE"; do
    bad "length: 0, operation $o" $E op=$o len=0
    bad "length: too long, operation $o" $E op=$o len=0x100000001
    bad "length: largest, operation $o" $E op=$o len=$MAX64
done
bad "length: fill of 0" $E op=$PLN_OP_FILL arg=1 imm=1 len=0
bad "length: fill too long" $E op=$PLN_OP_FILL arg=1 imm=1 len=0x100000001
bad "length: fill, no multiple of 2" $E op=$PLN_OP_FILL arg=2 imm=1 len=3
bad "length: fill, no multiple of 8" $E op=$PLN_OP_FILL arg=8 imm=1 len=12
bad "length: add of 0" $E op=$PLN_OP_ADD arg=1 dst=64 len=0
bad "length: add, no multiple of 4" $E op=$PLN_OP_ADD arg=1 dst=64 len=6
bad "length: semaphore write" $E op=$PLN_OP_SEM_WRITE imm=1 len=4
bad "length: semaphore wait" $E op=$PLN_OP_SEM_WAIT len=16
bad "length: immediate write" $E op=$PLN_OP_IMM_WRITE arg=4 imm=1 len=8

E=$PLN_ERR_ALIGN
bad "align: fill, 2" $E op=$PLN_OP_FILL arg=2 imm=1 dst=1 len=4
bad "align: fill, 8" $E op=$PLN_OP_FILL arg=8 imm=1 dst=4 len=8
bad "align: fill on the bus" $E op=$PLN_OP_FILL flags=$DB arg=4 imm=1 dst=$((HOST + 2)) len=8
bad "align: add, destination" $E op=$PLN_OP_ADD arg=1 dst=66 len=4
bad "align: add, source" $E op=$PLN_OP_ADD arg=1 src=2 dst=64 len=4
bad "align: semaphore write" $E op=$PLN_OP_SEM_WRITE dst=4 imm=1
bad "align: semaphore wait" $E op=$PLN_OP_SEM_WAIT src=4
bad "align: immediate write" $E op=$PLN_OP_IMM_WRITE arg=4 dst=2 imm=1
record=no
bad "align: completion record, by 1" $E op=$PLN_OP_FILL arg=1 imm=1 len=16 comp=$((COMP + 1))
bad "align: completion record, by 16" $E op=$PLN_OP_FILL arg=1 imm=1 len=16 comp=$((COMP + 16))
bad "any error, no record asked for" $PLN_ERR_OPCODE op=99 flags=0
record=yes

E=$PLN_ERR_RANGE
bad "range: copy from behind VRAM" $E op=$PLN_OP_COPY src=$END dst=0 len=1
bad "range: copy from the last byte and more" $E op=$PLN_OP_COPY src=$((END - 1)) dst=0 len=2
bad "range: copy to behind VRAM" $E op=$PLN_OP_COPY src=0 dst=$END len=1
bad "range: copy to the last byte and more" $E op=$PLN_OP_COPY src=0 dst=$((END - 1)) len=2
bad "range: copy, source wraps" $E op=$PLN_OP_COPY src=$MAX64 dst=0 len=2
bad "range: copy, destination wraps" $E op=$PLN_OP_COPY src=0 dst=$MAX64 len=2
bad "range: copy, larger than VRAM" $E op=$PLN_OP_COPY src=0 dst=0 len=0x100001
bad "range: copy, the longest" $E op=$PLN_OP_COPY src=0 dst=0 len=0x100000000
bad "range: bus source wraps" $E op=$PLN_OP_COPY flags=$SB src=$MAX64 dst=0 len=2
bad "range: bus destination wraps" $E op=$PLN_OP_COPY flags=$DB src=0 dst=$MAX64 len=2
bad "range: fill past the end" $E op=$PLN_OP_FILL arg=1 imm=1 dst=$((END - 8)) len=9
bad "range: fill, wraps" $E op=$PLN_OP_FILL arg=8 imm=1 dst=0xfffffffffffffff8 len=16
bad "range: fill on the bus, wraps" $E op=$PLN_OP_FILL flags=$DB arg=8 imm=1 dst=0xfffffffffffffff8 len=16
bad "range: CRC past the end" $E op=$PLN_OP_CRC32C src=$((END - 8)) len=9
bad "range: CRC on the bus, wraps" $E op=$PLN_OP_CRC32C flags=$SB src=0xfffffffffffffff8 len=9
bad "range: compare, source" $E op=$PLN_OP_COMPARE src=$((END - 8)) len=9
bad "range: compare, destination" $E op=$PLN_OP_COMPARE dst=$((END - 8)) len=9
bad "range: add, source" $E op=$PLN_OP_ADD arg=1 src=$((END - 8)) dst=64 len=12
bad "range: add, destination" $E op=$PLN_OP_ADD arg=1 dst=$((END - 8)) len=12
bad "range: semaphore write" $E op=$PLN_OP_SEM_WRITE dst=$END imm=1
bad "range: semaphore write, far away" $E op=$PLN_OP_SEM_WRITE dst=0xfffffffffffffff8 imm=1
bad "range: semaphore wait" $E op=$PLN_OP_SEM_WAIT src=$END
bad "range: immediate write" $E op=$PLN_OP_IMM_WRITE arg=1 dst=$END imm=1

E=$PLN_ERR_BUS
NOWHERE=0x600000000
bad "bus: copy from where nothing is" $E op=$PLN_OP_COPY flags=$SB src=$NOWHERE len=64
bad "bus: CRC" $E op=$PLN_OP_CRC32C flags=$SB src=$NOWHERE len=64
bad "bus: compare" $E op=$PLN_OP_COMPARE flags=$DB dst=$NOWHERE len=64
bad "bus: add" $E op=$PLN_OP_ADD flags=$DB arg=1 dst=$NOWHERE len=64
bad "bus: semaphore wait" $E op=$PLN_OP_SEM_WAIT flags=$SB src=$NOWHERE
# Writes are posted: one that is refused is lost, and the engine goes on
lost() { # DESC BYTES fields...
    lo_d=$1
    lo_n=$2
    shift 2
    job 0 "$@"
    job_is "lost: $lo_d" 0 0 "$lo_n"
    sums
    check_eq "lost: $lo_d: nothing has changed" "$before" "$sum"
}
posted() { # WHO: for each of the operations that write to the bus
    $1 "copy to where nothing is" 64 op=$PLN_OP_COPY flags=$DB dst=$NOWHERE len=64
    $1 "fill" 64 op=$PLN_OP_FILL flags=$DB dst=$NOWHERE arg=1 len=64
    $1 "semaphore write" 8 op=$PLN_OP_SEM_WRITE flags=$DB dst=$NOWHERE
    $1 "immediate write" 4 op=$PLN_OP_IMM_WRITE flags=$DB arg=4 dst=$NOWHERE
    setreg $PLN_REG_SCRATCH 0x1234
    $1 "its own registers" 4 op=$PLN_OP_IMM_WRITE flags=$DB arg=4 dst=$((B0 + PLN_REG_SCRATCH)) imm=1
    value_is "which are not changed" 0x1234 reg $PLN_REG_SCRATCH
}
host_writes() { qom_counter gpu0 engine-host-write; }
host_writes
had=$r
posted lost
host_writes
check_eq "only records are counted, of the jobs and of the sums" $((5 * 5 * PLN_COMP_SIZE)) $((r - had))
memset $COMP 32 0x6b
job 0 op=$PLN_OP_NOP comp=$NOWHERE
qreg 0 $PLN_Q_ERROR_CODE
check_eq "lost: the completion record" "$PLN_Q_IDLE 0" "$st $r"
queue_setup 0

# The same fields, right this time, do run: the checks are not always true
job 0 op=$PLN_OP_COPY src=$((END - 2)) dst=0x40000 len=2
job_is "the last two bytes of VRAM can be read" 0 0 2
job 0 op=$PLN_OP_FILL arg=8 imm=1 dst=$((END - 8)) len=8
job_is "and written" 0 0 8
job 0 op=$PLN_OP_CRC32C len=$VRAM
job_is "all of VRAM at once" 0 $c_result $((VRAM))
qt_stop

# posted-errors: what is lost on the bus is an error here, to find out who lost it
qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=1M,bar1-size=1M,coherent=on,posted-errors=on
gpu_setup 0 0x20
use 0
queue_setup 0
queue_setup 1
sums
before=$sum
record=yes
told() { # DESC BYTES fields...
    to_d=$1
    shift 2
    bad "told of: $to_d" $PLN_ERR_BUS "$@"
}
posted told
record=no
# The fence register has already moved when the record cannot be written
memset $COMP 32 0x6b
job 0 op=$PLN_OP_NOP comp=$NOWHERE
qreg 0 $PLN_Q_ERROR_CODE
check_eq "told of: the completion record" "$PLN_Q_ERROR $PLN_ERR_BUS" "$st $r"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: BAR1 gets another size by its Resizable BAR capability
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

DEV=peerlane-gpu,id=gpu0,addr=4,vram-size=6M,bar1-size=2M,coherent=on
GPU=0x20
U=0x10000
MAP=$PLN_BAR1_CMD_MAP
ext() { readl $((ECAM + (GPU << 12) + $1)); }
setext() { writel $((ECAM + (GPU << 12) + $1)) "$2"; }
# ext_cap ID: where this extended capability is, in $r
ext_cap() {
    ec_at=0x100
    while [ $((ec_at)) -ne 0 ]; do
        ext $ec_at
        if [ $((r & 0xffff)) -eq $(($1)) ]; then
            r=$((ec_at))
            return 0
        fi
        ec_at=$((r >> 20 & 0xffc))
    done
    r=none
    return 1
}

# --- without ----------------------------------------------------------------
qt_start -device $DEV
ecam_on
ext_cap 0x15
check_eq "off by default: there is no such capability" none "$r"
check "but there is Advanced Error Reporting" ext_cap 1
qt_stop
"$QEMU" -L /usr/share/qemu -L /usr/share/seabios -machine q35 -accel qtest -nodefaults -display none \
    -device peerlane-gpu,bar1-size=512K,rebar=on >"$OUT/bad" 2>&1
check_eq "refused: half a MiB, which the capability cannot say" 1 $?
check "and why" grep -q "with rebar=on bar1-size must be at least 1 MiB" "$OUT/bad"

# --- with -------------------------------------------------------------------
DEV=$DEV,rebar=on
qt_start -device $DEV -d guest_errors
ecam_on
gpu_setup 0 $GPU
use 0
check "there is one" ext_cap 0x15
CAP=$((r + 4)) CTRL=$((r + 8))
value_is "version 1, the last" 0x00010015 ext $((CTRL - 8))
# 6 MiB of VRAM need 8: 1, 2, 4 or 8 MiB
value_is "the sizes" 0xf0 ext $CAP
value_is "one entry, for BAR 1, which has 2 MiB" 0x121 ext $CTRL
value_is "the register says so" 0x200000 reg64 $PLN_REG_BAR1_SIZE

memory() { cfg_writew $GPU 4 "$1"; }    # 6: on, 0: off
# takes N: its size is N from here on, and BARs have their addresses again
takes() {
    memory 0
    setext $CTRL $(($1 << 8 | 0x21))
    gpu_setup 0 $GPU
}
# is N DESC: the capability, the register and the BAR say 2^N MiB
is() {
    value_is "$2: control" $(($1 << 8 | 0x21)) ext $CTRL
    value_is "$2: register" $((0x100000 << $1)) reg64 $PLN_REG_BAR1_SIZE
    cfg_writel $GPU 0x14 0xffffffff
    value_is "$2: bits of the BAR that are address" $(((-(0x100000 << $1) & 0xffffffff) | 0xc)) cfg_readl $GPU 0x14
    gpu_setup 0 $GPU
}
logged() { grep -c "$1" "$OUT/qemu.log"; }

is 1 "as it was made"
memset $WIN $((0x600000)) 0
memset $((WIN + 0x5f0000)) 16 0x5f
value_is "behind the end of 2 MiB no unit can be mapped" $PLN_ERR_RANGE bar1 $MAP 0x20 1 0
value_is "but within" 0 bar1 $MAP 0 1 0x5f0000
bytes_are "VRAM is seen there" $B1 0x5f5f5f5f

# Nothing changes
setext $CTRL 0x221
is 1 "while memory is enabled"
check_eq "and this is logged" 1 "$(logged 'BAR1 keeps its size while memory is enabled')"
memory 0
for n in 4 5 31 32 63; do
    setext $CTRL $((n << 8 | 0x21))
done
memory 6
is 1 "sizes that it cannot have"
check_eq "and each is logged" 5 "$(logged 'BAR1 cannot have size .*: only 0 (1 MiB) to 3')"
memory 0
setext $CTRL 0xffffc1de
memory 6
is 1 "all other bits"
writel $((ECAM + (GPU << 12) + CAP)) 0xffffffff
value_is "the sizes are read-only" 0xf0 ext $CAP
memory 0
setext $CTRL 0x121
memory 6
bytes_are "the size that it has: what is mapped stays" $B1 0x5f5f5f5f
value_is "and counts as before" 1 reg $PLN_REG_BAR1_RUNS_USED

# It grows
memory 0
setext $CTRL 0x321
value_is "8 MiB: the address is gone" 0xc cfg_readl $GPU 0x14
value_is "8 MiB: all of it" 0 cfg_readl $GPU 0x18
gpu_setup 0 $GPU
is 3 "8 MiB"
value_is "8 MiB: nothing is mapped" 0 reg $PLN_REG_BAR1_RUNS_USED
bytes_are "8 MiB: nothing is seen" $B1 0xffffffff
bytes_are "8 MiB: VRAM is kept" $((WIN + 0x5f0000)) 0x5f5f5f5f
value_is "8 MiB: all of VRAM at once" 0 bar1 $MAP 0 0x60 0
bytes_are "8 MiB: it is seen" $((B1 + 0x5f0000)) 0x5f5f5f5f
memset $((B1 + 0x400000)) 4 0x44
bytes_are "8 MiB: and written" $((WIN + 0x400000)) 0x44444444
value_is "8 MiB: past the old end" 0 bar1 $MAP 0x7f 1 0x5f0000
bytes_are "8 MiB: the last unit" $((B1 + 0x7f0000)) 0x5f5f5f5f
bytes_are "8 MiB: before it nothing" $((B1 + 0x7efffc)) 0xffffffff
value_is "8 MiB: behind the end" $PLN_ERR_RANGE bar1 $MAP 0x80 1 0
# The engine reaches it by its address
queue_setup 0
job 0 op=$PLN_OP_FILL +flags=$PLN_DESC_F_DST_BUS arg=1 imm=0x66 dst=$((B1 + 0x500000)) len=16
job_is "8 MiB: the engine writes there" 0 0 16
bytes_are "8 MiB: and it is in VRAM" $((WIN + 0x500000)) 0x66666666
# One byte of the register is enough
memory 0
qt writeb $((ECAM + (GPU << 12) + CTRL + 1)) 2
gpu_setup 0 $GPU
is 2 "4 MiB, by one byte"
takes 0
is 0 "1 MiB"
value_is "1 MiB: the unit behind it" $PLN_ERR_RANGE bar1 $MAP 0x10 1 0
value_is "1 MiB: its last" 0 bar1 $MAP 0x0f 1 0x5f0000
bytes_are "1 MiB: is seen" $((B1 + 0xf0000)) 0x5f5f5f5f
# What is behind is not the GPU's
counter $PLN_CNT_BAR1_UNMAPPED
unmapped=$r
readl $((B1 + 0x100000))
value_is "1 MiB: it does not answer there" $unmapped counter $PLN_CNT_BAR1_UNMAPPED
readl $B1
value_is "1 MiB: as it does before" $((unmapped + 1)) counter $PLN_CNT_BAR1_UNMAPPED

# Writes that are late go with the size, and come before it changes
takes 3
check "writes are late" qom_set gpu0 fault-late-writes 4
bar1 $MAP 0x40 1 0x10000
writeq $((B1 + 0x400000)) 0x7777777777777777
bytes_are "one is" $((WIN + 0x10000)) 0x00000000
takes 1
bytes_are "no more" $((WIN + 0x10000)) 0x77777777
check "no more of them" qom_set gpu0 fault-late-writes 0

# While the engine is at work, on BAR1 too: it ends what it moves, then finds nobody there
takes 3
bar1 $MAP 0 0x60 0
queue_setup 0
n=0
while [ $n -lt 12 ]; do
    desc 0 op=$PLN_OP_COPY +flags=$PLN_DESC_F_DST_BUS dst=$B1 src=0x300000 len=0x300000 fence=$((1 + n))
    n=$((n + 1))
done
ring 0
# Bus mastering stays on
memory 4
setext $CTRL 0x021
gpu_setup 0 $GPU
settle 0
check_eq "its job ends well: writes are posted" "$PLN_Q_IDLE" "$r"
is 0 "while the engine worked"

# --- resets -----------------------------------------------------------------
takes 3
setreg $PLN_REG_RESET $PLN_RESET_MAGIC
is 3 "the device's own reset keeps it"
bar1 $MAP 0x7f 1 0
cfg_cap $GPU 0x10
cfg_writew $GPU $((r + 8)) 0x8000
value_is "FLR: memory is off" 0 cfg_readl $GPU 0x10
gpu_setup 0 $GPU
is 1 "FLR: as it was made"
value_is "FLR: nothing is mapped" 0 reg $PLN_REG_BAR1_RUNS_USED
takes 0
qmp system_reset
n=0
while cfg_readl $GPU 4 && [ $((r & 6)) -ne 0 ] && more $n; do
    n=$((n + 1))
done
ecam_on
gpu_setup 0 $GPU
is 1 "reset of the machine: as it was made"
takes 3
check "it falls off the bus" qom_set gpu0 surprise-removed true
bytes_are "all ones, up to its end" $((B1 + 0x7ffffc)) 0xffffffff
memory 0
setext $CTRL 0x021
check "it comes back" qom_set gpu0 surprise-removed false
gpu_setup 0 $GPU
is 1 "back on the bus: as it was made"

# --- saved and loaded -------------------------------------------------------
for n in 0 3; do
    takes $n
    # An address of the smallest size has bits that a larger one has not
    memory 0
    cfg_writel $GPU 0x14 $((0x100000 << n))
    cfg_writel $GPU 0x18 8
    memory 6
    B1=$((0x800000000 + (0x100000 << n)))
    bar1 $MAP $((0xf + (0x70 * n / 3))) 1 0x5f0000
    at=$((B1 + (0x100000 << n) - U))
    bytes_are "size $n: the last unit" $at 0x5f5f5f5f
    qmp stop
    check "size $n: saved" qt_saved
    qt_stop
    qt_start -device $DEV -d guest_errors -incoming "file:$OUT/vmstate"
    check "size $n: loaded" qt_loaded
    bytes_are "size $n: the last unit is seen" $at 0x5f5f5f5f
    value_is "size $n: control" $((n << 8 | 0x21)) ext $CTRL
    value_is "size $n: register" $((0x100000 << n)) reg64 $PLN_REG_BAR1_SIZE
    cfg_readl $GPU 0x14
    check_eq "size $n: the address" $(((0x100000 << n) | 0xc)) "$r"
    qmp cont
    is $n "size $n: after it"
    use 0
done

# --- streams that cannot be --------------------------------------------------
# The last one is of a BAR1 of 8 MiB at 8 MiB of its window; its configuration space is found by the capability
config=$(($(LC_ALL=C grep -obUaP '\x15\x00\x01\x00\xf0\x00\x00\x00\x21\x03' vmstate | cut -d: -f1) - (CTRL - 8)))
check "configuration space is found in the stream" test $config -gt 0
mv vmstate good
qt_stop
# streams WANT DESC OFFSET BYTES: what becomes of one with these bytes there
streams() {
    cp good vmstate
    # shellcheck disable=SC2059 # BYTES are octal
    printf "$4" | dd of=vmstate bs=1 seek=$((config + $3)) conv=notrunc 2>"$OUT/dd.log"
    qt_start -device $DEV -incoming defer
    qmp migrate-incoming "{\"uri\":\"file:$OUT/vmstate\",\"exit-on-error\":false}"
    st_n=0
    st_is=
    while [ -z "$st_is" ] && more $st_n; do
        qmp query-migrate
        case $qmp_reply in
        *'"status": "completed"'*) st_is=completed ;;
        *'"status": "failed"'*) st_is=failed ;;
        esac
        st_n=$((st_n + 1))
    done
    check_eq "$1: $2" "$1" "$st_is"
    qmp query-status
    check "$2: QEMU stays whole" test -n "$qmp_reply"
    qt_stop
}
size_at=$((CTRL + 1))
streams completed "the size that it has" $size_at '\003'
streams failed "a size that it cannot have" $size_at '\004'
streams failed "a size of reserved bits" $size_at '\103'
streams failed "other sizes on offer" $((CAP)) '\360\001'
streams failed "a size in which a run does not fit" $size_at '\002'
streams completed "an address of 16 MiB" 0x14 '\014\000\000\001'
streams failed "an address that is none for 8 MiB" 0x14 '\014\000\020\001'
DEV=$(echo "$DEV" | sed 's/,rebar=on//')
streams failed "to a GPU that has no such capability" $size_at '\003'
qt_finish

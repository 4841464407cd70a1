#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: DMA between the GPU and other devices' BARs: data right, counters exact
# tags: qtest p2p
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

head -c 16384 /dev/urandom >"$OUT/disk" || exit 1
qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=24M,bar1-size=1M,coherent=on \
    -device peerlane-gpu,id=gpu1,addr=5,vram-size=32M,bar1-size=2M \
    -drive "file=$OUT/disk,format=raw,if=none,id=d0" -device nvme,id=nvme0,serial=0,drive=d0,addr=6 \
    -object memory-backend-ram,id=m0,size=1M,share=on -device ivshmem-plain,id=shm0,memdev=m0,addr=7 \
    -device edu,id=edu0,addr=8,dma_mask=0xffffffffffffffff \
    -device edu,addr=9,dma_mask=0xffffffffffffffff
gpu_setup 0 0x20
gpu_setup 1 0x28
use 0
BAR1_0=$B1
WIN_0=$WIN
use 1
BAR1_1=$B1
TO_BUS=$((PLN_DESC_F_COMP | PLN_DESC_F_DST_BUS))
FROM_BUS=$((PLN_DESC_F_COMP | PLN_DESC_F_SRC_BUS))
EQUAL=0xffffffffffffffff

# delta GPU COUNTER: how much it grew since the last time
delta() {
    qom_counter "$1" "$2"
    eval "de_old=\${old_$(echo "$1_$2" | tr - _)-0}"
    eval "old_$(echo "$1_$2" | tr - _)=$r"
    r=$((r - de_old))
}
# initiator GPU ID: "read write", or nothing
initiator() {
    qom_get "$1" initiators
    r=$(echo "$qmp_reply" | tr '{' '\n' | sed -n "/\"id\": \"$2\"/"'{
        s/.*"read": \([0-9]*\).*"write": \([0-9]*\).*/\1 \2/p
        }')
}
initiator_is() { # DESC GPU ID "READ WRITE"
    initiator "$2" "$3"
    check_eq "$1" "$4" "$r"
}

# GPU to GPU
use 0
bar1 $PLN_BAR1_CMD_MAP 1 2 0x30000
use 1
bar1 $PLN_BAR1_CMD_MAP 0 32 0x100000
queue_setup 0
repeat 32 a1b2c3d4e5f60718
wrhex $BAR1_1 "0x$r"
i=256
while [ $i -lt 131072 ]; do
    desc 0 op=$PLN_OP_COPY flags=0 src=0x100000 dst=$((0x100000 + i)) len=$i
    i=$((i * 2))
done
ring 0
settle 0
qt writeb $((BAR1_1 + 70000)) 0
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0x100000 dst=$((BAR1_0 + 0x10000)) len=131072
job_is "GPU 1 writes into BAR1 of GPU 0" 0 0 131072
value_is "GPU 1 counts it as peer" 131072 delta gpu1 engine-peer-write
value_is "GPU 0 counts it in BAR1" 131072 delta gpu0 bar1-dma-write
value_is "not in the coherent window" 0 delta gpu0 coherent-dma-write
initiator_is "by initiator" gpu0 gpu1 "0 131072"
delta gpu1 engine-host-write
value_is "GPU 1's own BAR1 saw no DMA" 0 delta gpu1 bar1-dma-write
job 0 op=$PLN_OP_COMPARE flags=$FROM_BUS src=$((BAR1_0 + 0x10000)) dst=0x100000 len=131072
job_is "data is right, read back by DMA" 0 $EQUAL 131072
value_is "read back: GPU 1" 131072 delta gpu1 engine-peer-read
value_is "read back: GPU 0" 131072 delta gpu0 bar1-dma-read
initiator_is "read back: by initiator" gpu0 gpu1 "131072 131072"
rdhex $((BAR1_1 + 69990)) 32
bytes_are "and by GPU 0's window" $((WIN_0 + 0x30000 + 69990)) "$r"
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0x100000 dst=$((WIN_0 + 0x80000)) len=4097
job_is "into the coherent window" 0 0 4097
value_is "counted there" 4097 delta gpu0 coherent-dma-write
value_is "not in BAR1" 0 delta gpu0 bar1-dma-write
job 0 op=$PLN_OP_CRC32C flags=$FROM_BUS src=$((WIN_0 + 0x80000)) len=4097
value_is "reads of it too" 4097 delta gpu0 coherent-dma-read
delta gpu1 engine-peer-read
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=$BAR1_1 dst=0 len=512
job_is "GPU 1 reads its own BAR1 by DMA" 0 0 512
value_is "which is peer to its engine" 512 delta gpu1 engine-peer-read
value_is "but no other device's DMA" 0 delta gpu1 bar1-dma-read
memset $BAR1_0 16 0
value_is "CPUs are not counted" 0 delta gpu0 bar1-dma-write
delta gpu0 bar1-unmapped
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0x100000 dst=$BAR1_0 len=64
job_is "DMA into unmapped BAR1 is dropped" 0 0 64
value_is "and counted" 8 delta gpu0 bar1-unmapped
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=$BAR1_0 dst=0x10 len=8
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0x10 dst=$((COMP + 64)) len=8
bytes_are "DMA from it is all ones" $((COMP + 64)) 0xffffffffffffffff

# A GPU reaches its own windows too, also where nothing is mapped
use 0
queue_setup 0
delta gpu0 bar1-unmapped
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=$BAR1_0 dst=0 len=8
job_is "GPU 0 reads its own BAR1, unmapped" 0 0 8
bytes_are "all ones" $WIN_0 0xffffffffffffffff
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0 dst=$BAR1_0 len=8
job_is "and writes there" 0 0 8
value_is "both are counted" 2 delta gpu0 bar1-unmapped
memset $((WIN_0 + 16)) 8 0
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=$((WIN_0 + 0x1800000)) dst=16 len=8
job_is "its coherent window past the end of VRAM" 0 0 8
bytes_are "all ones" $((WIN_0 + 16)) 0xffffffffffffffff
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=$B0 dst=32 len=8
check_eq "but not its registers" "$PLN_Q_ERROR $PLN_ERR_BUS" "$st $c_status"

# A doorbell of the other GPU, rung by an engine
use 0
queue_setup 0
desc 0 op=$PLN_OP_NOP fence=99
use 1
queue_setup 1
job 1 op=$PLN_OP_IMM_WRITE flags=$TO_BUS arg=4 dst=$((0xe0000000 + 0x1000 + PLN_Q_TAIL)) imm=1 comp=$((COMP + 96))
settle 1
check_eq "an engine rings the other GPU's doorbell" "$PLN_Q_IDLE" "$r"
use 0
settle 0
value_is "which does its work" 99 reg64 $((0x1000 + PLN_Q_FENCE))
use 1
queue_setup 0

# GPU engine to a device's memory BAR
cfg_writel 0x38 0x18 0x0000000c
cfg_writel 0x38 0x1c 0x7
cfg_writew 0x38 4 6
delta gpu1 engine-peer-write
delta gpu1 engine-host-write
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0x100000 dst=0x700000010 len=4096
job_is "GPU 1 writes into BAR2 of ivshmem" 0 0 4096
value_is "counted as peer" 4096 delta gpu1 engine-peer-write
value_is "only the record goes to the host" 32 delta gpu1 engine-host-write
rdhex $BAR1_1 32
bytes_are "data is right" 0x700000010 "$r"
job 0 op=$PLN_OP_FILL arg=1 imm=0 dst=0x200000 len=4096
job 0 op=$PLN_OP_COPY flags=$FROM_BUS src=0x700000010 dst=0x200000 len=4096
job 0 op=$PLN_OP_COMPARE src=0x100000 dst=0x200000 len=4096
job_is "and back" 0 $EQUAL 4096
delta gpu1 engine-peer-write
job 0 op=$PLN_OP_COPY flags=$TO_BUS src=0x100000 dst=0x200000 len=4096
value_is "host memory is no peer" 0 delta gpu1 engine-peer-write

# Stock devices into the GPU: edu, with and without an id
edu() { # DEVFN BASE ADDR LEN COMMAND
    cfg_writel $1 0x10 $2
    cfg_writew $1 4 6
    if [ $5 = 3 ]; then
        writeq $(($2 + 0x80)) 0x40000
        writeq $(($2 + 0x88)) $3
    else
        writeq $(($2 + 0x80)) $3
        writeq $(($2 + 0x88)) 0x40000
    fi
    writeq $(($2 + 0x90)) $4
    writeq $(($2 + 0x98)) $5
    qt clock_step 200000000
}
memset 0x100000 1000 0x3e
delta gpu0 bar1-dma-write
delta gpu0 bar1-dma-read
edu 0x40 0xe2000000 0x100000 1000 1
value_is "edu reads host memory: not the GPU's" 0 delta gpu0 bar1-dma-read
edu 0x40 0xe2000000 $((BAR1_0 + 0x10000)) 1000 3
value_is "edu writes into BAR1" 1000 delta gpu0 bar1-dma-write
initiator_is "by initiator" gpu0 edu0 "0 1000"
bytes_are "data is right" $((WIN_0 + 0x30000 + 996)) 0x3e3e3e3ea1b2c3d4
edu 0x40 0xe2000000 $((WIN_0 + 0x80000)) 77 1
value_is "edu reads the coherent window" 77 delta gpu0 coherent-dma-read
initiator_is "by initiator" gpu0 edu0 "77 1000"
edu 0x48 0xe2100000 $((BAR1_0 + 0x10000)) 5 3
initiator_is "a device without id has its path" gpu0 "\/machine\/peripheral-anon\/device\[[0-9]*\]" "0 5"
use 0
reg 0x400
check_eq "first initiator by register: GPU 1" $((PLN_INITIATOR_VALID | 0x28)) "$r"
reg 0x420
check_eq "second initiator: edu" $((PLN_INITIATOR_VALID | 0x40)) "$r"
value_is "its bytes read" 77 reg64 0x428
value_is "its bytes written" 1000 reg64 0x430

# NVMe, whose data goes through mapped memory
NV=0xe3000000
cfg_writel 0x30 0x10 $NV
cfg_writel 0x30 0x14 0
cfg_writew 0x30 4 6
ASQ=0x40000 ACQ=0x41000 IOSQ=0x42000 IOCQ=0x43000
memset $ASQ 0x4000 0
writel $((NV + 0x24)) 0x000f000f
writeq $((NV + 0x28)) $ASQ
writeq $((NV + 0x30)) $ACQ
writel $((NV + 0x14)) 0x00460001
sq_0=0 sq_1=0
nvme() { # QUEUE CDW0 NSID PRP1 PRP2 CDW10 CDW12 [CDW11]: its status in $r
    eval "nv_t=\$sq_$1"
    nv_s=$(($1 ? IOSQ : ASQ))
    nv_c=$(($1 ? IOCQ : ACQ))
    nv_a=$((nv_s + 64 * nv_t))
    memset $nv_a 64 0
    writel $nv_a $2
    writel $((nv_a + 4)) $3
    writeq $((nv_a + 24)) $4
    writeq $((nv_a + 32)) $5
    writel $((nv_a + 40)) $6
    writel $((nv_a + 44)) ${8-0}
    writel $((nv_a + 48)) $7
    eval "sq_$1=$((nv_t + 1))"
    writel $((NV + 0x1000 + 8 * $1)) $((nv_t + 1))
    nv_n=0
    while more $nv_n; do
        readl $((nv_c + 16 * nv_t + 12))
        if [ $((r >> 16 & 1)) = 1 ]; then
            nv_r=$((r >> 17))
            writel $((NV + 0x1004 + 8 * $1)) $((nv_t + 1))
            r=$nv_r
            return 0
        fi
        nv_n=$((nv_n + 1))
    done
    r=timeout
}
nvme 0 5 0 $IOCQ 0 0x000f0001 0 1
cq=$r
nvme 0 1 0 $IOSQ 0 0x000f0001 0 0x10001
check_eq "NVMe queues" "0 0" "$cq $r"
file_hex() { # OFFSET LEN
    r=0x$(od -An -v -tx1 -j "$1" -N "$2" "$OUT/disk" | tr -d ' \n')
}
delta gpu0 bar1-dma-write
delta gpu0 bar1-dma-read
delta gpu0 coherent-dma-write
delta gpu0 coherent-dma-read
nvme 1 2 1 $((BAR1_0 + 0x11000)) $((BAR1_0 + 0x18000)) 0 15
check_eq "NVMe reads 8 KiB into BAR1" 0 "$r"
file_hex 0 4096
bytes_are "first page is right" $((WIN_0 + 0x31000)) "$r"
file_hex 4096 4096
bytes_are "second page is right" $((WIN_0 + 0x38000)) "$r"
value_is "counted exactly" 8192 delta gpu0 bar1-dma-write
value_is "and nowhere else" 0 delta gpu0 coherent-dma-write
initiator_is "by initiator" gpu0 nvme0 "0 8192"
nvme 1 1 1 $((BAR1_0 + 0x18000)) 0 16 7
check_eq "NVMe writes 4 KiB from BAR1" 0 "$r"
file_hex 4096 4096
want=$r
file_hex 8192 4096
check_eq "the file has them" "$want" "$r"
value_is "counted exactly" 4096 delta gpu0 bar1-dma-read
initiator_is "by initiator" gpu0 nvme0 "4096 8192"
nvme 1 2 1 $((WIN_0 + 0x90000)) 0 3 0
check_eq "NVMe reads 512 bytes into the coherent window" 0 "$r"
value_is "counted there" 512 delta gpu0 coherent-dma-write
value_is "and not in BAR1" 0 delta gpu0 bar1-dma-write
file_hex 1536 512
bytes_are "data is right" $((WIN_0 + 0x90000)) "$r"
value_is "the other GPU saw nothing of this" 0 delta gpu1 bar1-dma-write
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a ConnectX below a switch: what is refused is counted by the device and logged by the port; queues of a user in the memory of a peer count at the ports
# tags: qtest switch
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # for the libraries; numbers; variables of the libraries and of eval
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"
# Its "counted" is of ports
. "$(dirname "$0")/lib-switch.sh"

UNCOR=0x104 COR=0x110 UR=$((1 << 20)) ACSV=$((1 << 21)) ADVISORY=$((1 << 13))
EQ_AT=0x74000
DEVFN_0=$GPU0

qt_start -name cx-switch -netdev hubport,id=net,hubid=0 \
    -device pcie-root-port,id=rp0,addr=3,chassis=1,slot=1 \
    -device peerlane-switch-upstream,id=sw0,bus=rp0 \
    -device peerlane-switch-downstream,id=dp0,bus=sw0,addr=0,chassis=3,slot=3 \
    -device peerlane-switch-downstream,id=dp1,bus=sw0,addr=1,chassis=4,slot=4 \
    -device peerlane-cx,id=cx0,bus=dp0,netdev=net \
    -device peerlane-gpu,id=gpu1,bus=dp1,vram-size=4M,bar1-size=1M,bar1-runs=16
ecam_on
bridge $RP0 0 1 4 0 7
bridge $SW0 1 2 4 0 7
bridge $DP0 2 3 3 0 0
bridge $DP1 2 4 4 1 1
gpu_setup 1 $GPU1
use 1
bar1 $PLN_BAR1_CMD_MAP 0 16 0
bar1_of 1; PEER=$r
bar1_of 5; HOLE=$r
device 0

# began: what cx0 and its port count from here on; counts DESC READS-REFUSED WRITES-LOST REFUSED-BY-THE-PORT: since then
began() {
    idle cx0
    qom_counter cx0 dma-reads-refused; reads=$r
    qom_counter cx0 dma-writes-lost; writes=$r
    snap dp0
}
counts() {
    idle cx0
    value_is "$1: dma-reads-refused" $((reads + $2)) qom_counter cx0 dma-reads-refused
    value_is "$1: dma-writes-lost" $((writes + $3)) qom_counter cx0 dma-writes-lost
    counted dp0
    case $r in *refused=*) r=${r##*refused=} ;; *) r=0 ;; esac
    check_eq "$1: bytes that the port has refused" $4 $r
}
# logs DESC REGISTER WANT: wait, bounded, until the port has logged something there; and clear that
logs() {
    lg_n=0
    while more $lg_n; do
        ext_readl $DP0 $2
        [ "$r" = 0 ] || break
        lg_n=$((lg_n + 1))
    done
    lg_is=$r
    ext_writel $DP0 $2 $lg_is
    check_eq "$1" $3 $lg_is
}
# again: a queue pair that is connected to itself, as new
again() {
    ready 0 0001 $QP 0 7 7
    qom_counter cx0 cqes
    cqes=$r
    qom_counter cx0 wqes
    posted_all=$r
    began
}

# What is refused.  Reads fail; a write is posted, so that only the count and the port's log know
again; go 8 0x200000 $KEY $HOLE 64
fails_with "data that cannot be read, at the requester" 0x02
counts "it" 1 0 64
logs "the port notes it as advisory" $COR $ADVISORY
again; go 16 $HOLE $KEY 0x200000 64
until_is "data that cannot be read, at the responder, which is the same queue pair" $((cqes + 1)) cqes cx0
counts "it" 1 0 64
logs "the port notes it as advisory" $COR $ADVISORY
again; go 8 $HOLE $KEY 0x100000 64
done_is "WRITE to where nobody is"
counts "it" 0 1 64
logs "the port logs an Unsupported Request" $UNCOR $UR
acs_egress $DP0 4
acs_set $DP0 $ACS_EC
again; go 8 $PEER $KEY 0x100000 64
done_is "WRITE to a peer against egress control"
counts "it" 0 1 64
logs "the port logs an ACS violation" $UNCOR $ACSV
acs_set $DP0 0
again; go 8 $PEER $KEY 0x100000 64
done_is "WRITE to a peer"
counts "it" 0 0 0

# An event of the port: of 60 bytes, and of the word that says that it is there
zeros 280; at "$r" 0 0301 28 01$UAR 88 0000000000000200 272 16:$EQ_AT
says "an event queue for ports" 0 $r 16
cable() { qmp set_link "{\"name\":\"cx0\",\"up\":$1}"; }
memset $EQ_AT 128 0x77
began
cable false
becomes "the cable is out: an event" 0x00090001 rdhex $EQ_AT 4
counts "it" 0 0 0
cfg_writew $DP0 4 2
cable true
counts "the cable is in, and the port is no bus master: the event" 0 2 64
bytes_are "it is lost" $((EQ_AT + 64)) 0x77777777
logs "the port logs an Unsupported Request" $UNCOR $UR
# A command's slot has 64 bytes
began
wrhex $((BAR + 0x18)) 0x00000001
counts "a command" 1 0 64
logs "the port notes it as advisory" $COR $ADVISORY
cfg_writew $DP0 4 6
cfg_writew $GPU0 4 2
began
wrhex $((BAR + 0x18)) 0x00000001
counts "a command, and the device is no bus master" 1 0 0
cfg_writew $GPU0 4 6

# A user has queues, doorbell records and data in the memory of the peer, and rings a doorbell in a page of his own.
# In that memory: the completion queue, receives and sends at 0x400, records at 0x800.
zeros 64; at "$r" 0 0a04; says "a user" 0 "$r" 16; id; USER=${r#??}
DRIVER_UAR=$UAR
zeros 280; at "$r" 0 0301 2 ffff 28 01$UAR 272 16:$((EQ_AT + 0x1000))
says "an event queue that all users may name" 0 $r 16; id; EQ=$r
short 0800; at "$r" 2 $USER; cmd "$r" 16; id; PD=$r
short 0802; at "$r" 2 $USER; cmd "$r" 16; id; UAR=$r
zeros 64; at "$r" 0 0a08 2 $USER 40 0000000000000001 48 16:$((PEER | 3))
says "memory of the user's" 0 "$r" 16; id; UMEM=00$r
zeros 280; at "$r" 0 0400 2 $USER 16 02020000 20 $UMEM 28 04$UAR 36 00$EQ
at "$r" 72 0000000000000800 88 ${UMEM}80; says "a completion queue in it" 0 "$r" 16; id; CQ=$r
zeros 280; at "$r" 0 0500 2 $USER 28 00$PD 33 10 34 18 36 00$UAR
at "$r" 148 00$CQ 180 00$CQ 184 0000000000000840 232 10 252 $UMEM
at "$r" 256 0000000000000400${UMEM}80; says "a queue pair in it" 0 "$r" 16; id; QP=$r
fixed 0502 00$QP 00000000 256; at "$r" 2 $USER 170 e0; cmd $r 8
fixed 0503 00$QP 00000000 256; at "$r" 2 $USER 32 a0 44 00$QP 54 0001; cmd $r 8
fixed 0504 00$QP 00000000 256; at "$r" 2 $USER; says "it is connected to itself" 0 $r 8
zeros 272; at "$r" 0 0200 16 00007c00 20 ffffff00 28 80$PD
says "a key of the user's domain" 0 $r 16; id; KEY=${r}00

memset $PEER 0x1000 0x77
memset $((PEER + 0x840)) 8 0
wrhex $((PEER + 0x10000)) "0x$(awk 'BEGIN { for (i = 0; i < 2048; i++) printf "%04x", i }')"
memset 0x300000 4097 0x55
ctrl=00000008${QP}03
wr $((PEER + 0x440)) ${ctrl}0000000800000000 16:0x300000 ${KEY}00000000 8:4096 $KEY 16:$((PEER + 0x10000))
wrhex $((PEER + 0x844)) 0x00000001
idle cx0
for of in dma-host-read dma-host-write dma-peer-read dma-peer-write data-host-read data-host-write data-peer-read data-peer-write; do
    qom_counter cx0 $of
    eval "cx_$(echo $of | tr - _)=$r"
done
moved() { # NAME: bytes since then, in $r
    qom_counter cx0 $1
    eval "r=\$((r - cx_$(echo $1 | tr - _)))"
}
for port in dp0 dp1 sw0; do snap $port; done
qom_counter cx0 doorbells; rung=$r
qom_counter cx0 wqes; done=$r
wrhex $((BAR + 0x1000 * 0x$DRIVER_UAR + 0x800)) 0x$ctrl
idle cx0
value_is "a doorbell in another page is one" $((rung + 1)) qom_counter cx0 doorbells
value_is "but not for this queue pair" $done qom_counter cx0 wqes
counted dp0
check_eq "and nothing moves" "" "$r"
wrhex $((BAR + 0x1000 * 0x$UAR + 0x800)) 0x$ctrl
becomes "one in the user's page is" $((done + 1)) qom_counter cx0 wqes
rdhex $((PEER + 0x10000)) 4096
check_eq "the data has moved" "${r}55" "$(rdhex 0x300000 4097; echo $r)"
bytes_are "the completion is in the peer" $((PEER + 0x3c)) 0x0000
bytes_are "with its owner" $((PEER + 0x3f)) 0x00
for what in data-host-read:0 data-host-write:4096 data-peer-read:4096 data-peer-write:0 \
    dma-host-read:0 dma-host-write:4096 dma-peer-write:64; do
    value_is "cx0: ${what%:*}" ${what#*:} moved ${what%:*}
done
moved dma-peer-read
read=$r
check "data, record and entry were read from the peer: $read bytes" test $read -ge $((4096 + 4 + 48))
for what in "dp0:peer-read=$read peer-write=64 host-write=4096" "dp1:target-read=$read target-write=64" "sw0:host-write=4096"; do
    counted ${what%%:*}
    check_eq "${what%%:*} has counted the same" "${what#*:}" "$r"
done

# The GPU does it all by itself, as its programs do: it makes the entry in its own memory, announces it in the record there,
# and rings the doorbell, which is a write from one port to the other
ctrl=00000108${QP}03
wrhex $((PEER + 0x20000)) "0x${ctrl}0000000800000000$(printf %016x 0x302000)${KEY}00000000$(printf %08x 4096)$KEY$(printf %016x $((PEER + 0x10000)))"
# reversed HEX: its bytes the other way round
reversed() { echo "0x$(echo $1 | sed 's/../&\n/g' | tac | tr -d '\n')"; }
memset 0x302000 4097 0x55
qom_counter cx0 wqes; done=$r
qom_counter cx0 doorbells; rung=$r
use 1
queue_setup 1
desc 1 op=$PLN_OP_COPY flags=0 src=0x20000 dst=0x480 len=48
desc 1 op=$PLN_OP_IMM_WRITE flags=0 arg=4 dst=0x844 imm=0x02000000
desc 1 op=$PLN_OP_IMM_WRITE flags=$PLN_DESC_F_DST_BUS arg=8 dst=$((BAR + 0x1000 * 0x$UAR + 0x800)) imm="$(reversed $ctrl)"
for port in dp0 dp1 sw0; do snap $port; done
qset 1 $PLN_Q_TAIL $tail_1
settle 1
check_eq "the GPU has done all that" $PLN_Q_IDLE $r
becomes "the GPU's doorbell has the entry done" $((done + 1)) qom_counter cx0 wqes
value_is "it was one doorbell" $((rung + 1)) qom_counter cx0 doorbells
rdhex $((PEER + 0x10000)) 4096
check_eq "the data has moved" "${r}55" "$(rdhex 0x302000 4097; echo $r)"
bytes_are "the second completion is in the GPU" $((PEER + 0x7c)) 0x0001
bytes_are "and is none of an error" $((PEER + 0x7f)) 0x00
counted dp1
case " $r " in *" peer-write=8 "*) r=8 ;; esac
check_eq "the GPU's port has counted the doorbell" 8 "$r"
counted dp0
case " $r " in *" target-write=8 "*) r=8 ;; esac
check_eq "the ConnectX's port, too" 8 "$r"
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a port of the switch whose bus master enable is off refuses what would go up through it, and nothing else
# tags: qtest switch
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

LEN=4096
HOST=0x200000
UNCOR=0x104 COR=0x110 UR=$((1 << 20)) ADVISORY=$((1 << 13))

# off BDF, on BDF: its bus master enable
off() { cfg_writew $1 4 2; }
on() { cfg_writew $1 4 6; }
# logged DESC BDF REGISTER WANT: wait, bounded, until something is there; and clear that
logged() {
    lo_n=0
    while more $lo_n; do
        ext_readl $2 $3
        [ "$r" = 0 ] || break
        lo_n=$((lo_n + 1))
    done
    lo_is=$r
    ext_writel $2 $3 $lo_is
    check_eq "$1" $4 $lo_is
}
# counts DESC PORT=WHAT...: what ports have counted, and all others nothing
counts() {
    ct_d=$1
    shift
    ct_want='' ct_got=''
    for ct_port in $ALL_PORTS; do
        ct_is=
        for ct_one in "$@"; do
            [ "${ct_one%%=*}" != $ct_port ] || ct_is=${ct_one#*=}
        done
        counted $ct_port
        ct_want="$ct_want$ct_port: $ct_is;" ct_got="$ct_got$ct_port: $r;"
    done
    check_eq "$ct_d" "$ct_want" "$ct_got"
}
# rings_at N: who works for this has its ring and its completions in the memory of GPU N
rings_at() {
    bar1_of $1
    RING=$((r + 0x10000)) COMP=$((r + 0x8000))
}
# arrives DESC N READ-OR-WRITE ADDRESS, refused likewise: all of it, or none, and of a read the engine hears
arrives() { move $2 $3 $4 $LEN; check_eq "$1" 1 "$moved"; }
refused() { move $2 $3 $4 $LEN; check_eq "$1" 0 "$moved"; }

sw_boot -name master
ecam_on
for port in $RP0:0 $SW0:4; do
    cfg_writel ${port%:*} 0x18 $((${port%:*} == RP0 ? 0x090100 : 0x090201))
    cfg_readl ${port%:*} 4
    check_eq "$port: bus master enable after reset" ${port#*:} $((r & 4))
done
cfg_readl $DP0 4
check_eq "likewise of a downstream port" 4 $((r & 4))
qt_stop

sw_start -name master
for port in $ALL_PORTS; do snap $port; done
job="host-read=$JOB_READ host-write=$JOB_WRITE"
bar1_of 0; at_gpu0=$r
bar1_of 1; at_gpu1=$r
bar1_of 2; at_gpu2=$r
bar1_of 3; at_gpu3=$r
arrives "with all of them on a write arrives" 0 write $HOST
counts "and counts" "dp0=host-read=$JOB_READ host-write=$((LEN + JOB_WRITE))" "sw0=host-read=$JOB_READ host-write=$((LEN + JOB_WRITE))"

# The downstream port: nothing of what is below gets any further, to the host or to a peer
off $DP0
use 0
queue_setup 0
desc 0 op=$PLN_OP_NOP
ring 0
settle 0
value_is "downstream port off: no descriptor" $PLN_ERR_RING qreg 0 $PLN_Q_ERROR_CODE
counts "it was refused" dp0=refused=$JOB_READ
logged "a read is advisory" $DP0 $COR $ADVISORY
cfg_readl $GPU0 4
check_eq "who has asked got no completion but an Unsupported Request" 1 $((r >> 29 & 1))
rings_at 1
setreg64 $((0x1000 + PLN_Q_BASE)) $RING
queue_setup 0
desc 0 op=$PLN_OP_NOP
ring 0
settle 0
value_is "nor one from a peer" $PLN_ERR_RING qreg 0 $PLN_Q_ERROR_CODE
counts "it was refused, too" dp0=refused=$JOB_READ
RING=0x10000 COMP=0x8000
arrives "the other way a write arrives" 1 write $at_gpu0
counts "and counts" "dp0=target-write=$LEN" "dp1=peer-write=$LEN $job" "sw0=$job"
arrives "so does what is read there" 1 read $at_gpu0
counts "and counts" "dp0=target-read=$LEN" "dp1=peer-read=$LEN $job" "sw0=$job"
on $DP0
arrives "on again, a write arrives" 0 write $HOST

# The upstream port: peers still reach each other
rings_at 1
msix_setup 0 $GPU0
# told DESC WANT: GPU 0 does something and sends an interrupt, which is a write
told() {
    use 0
    queue_setup 0
    memset $MSIX_AT 0x100 0
    job 0 op=$PLN_OP_NOP +flags=$PLN_DESC_F_IRQ
    idle gpu0
    value_is "$1" $2 readl $((MSIX_AT + 4))
}
told "an interrupt arrives" 0x101
off $SW0
told "upstream port off: it does not" 0
for port in $ALL_PORTS; do snap $port; done
peers="peer-read=$JOB_READ peer-write=$JOB_WRITE"
refused "a write to the host is lost" 0 write $HOST
counts "by that port" "dp0=$peers other=$LEN" "dp1=target-read=$JOB_READ target-write=$JOB_WRITE" "sw0=refused=$LEN"
logged "which logs it" $SW0 $UNCOR $UR
refused "a read of the host is refused" 0 read $HOST
counts "by that port" "dp0=$peers other=$LEN" "dp1=target-read=$JOB_READ target-write=$JOB_WRITE" "sw0=refused=$LEN"
logged "which logs it" $SW0 $COR $ADVISORY
arrives "a peer is still there" 0 write $((at_gpu1 + 0x20000))
counts "without the port" "dp0=peer-read=$JOB_READ peer-write=$((LEN + JOB_WRITE))" \
    "dp1=target-read=$JOB_READ target-write=$((LEN + JOB_WRITE))"
ext_readl $DP0 $UNCOR
check_eq "the downstream port has nothing to log" 0 $r
acs_egress $DP0 0x8
acs_set $DP0 $((ACS_EC | ACS_RR))
refused "one to which requests are redirected is not" 0 write $at_gpu2
counts "since the way is up" "dp0=$peers other=$LEN" "dp1=target-read=$JOB_READ target-write=$JOB_WRITE" "sw0=refused=$LEN"
acs_set $DP0 0
on $SW0
arrives "on again, a write arrives" 0 write $HOST

# A switch below the switch
rings_at 3
off $SW1
for port in $ALL_PORTS; do snap $port; done
refused "inner upstream port off: a write to the host is lost" 2 write $HOST
counts "there" "dpi0=$peers other=$LEN" "dpi1=target-read=$JOB_READ target-write=$JOB_WRITE" "sw1=refused=$LEN"
arrives "a peer of the same switch is still there" 2 write $((at_gpu3 + 0x20000))
on $SW1
off $DP2
for port in $ALL_PORTS; do snap $port; done
refused "the port above it off: a write to the host is lost" 2 write $HOST
counts "at that port" "dpi0=$peers other=$LEN" "dpi1=target-read=$JOB_READ target-write=$JOB_WRITE" "sw1=other=$LEN" "dp2=refused=$LEN"
arrives "a peer of the inner switch is still there" 2 write $((at_gpu3 + 0x20000))
refused "one of the outer switch is not" 2 write $at_gpu1
off $SW1
refused "both off, likewise" 2 write $HOST
on $SW1
on $DP2
arrives "on again, it is" 2 write $at_gpu1

# A function level reset clears the bit.  Here it resets what is below, too.
cfg_writew $SW1 0x98 0x8000
cfg_readl $SW1 4
check_eq "a function level reset clears it" 0 $((r & 4))
bridge $SW1 5 6 8 2 3
off $SW1
bridge $DPI0 6 7 7 2 2
bridge $DPI1 6 8 8 3 3
for n in 2 3; do
    eval "gpu_setup $n \$GPU$n"
    use $n
    bar1 $PLN_BAR1_CMD_MAP 0 16 0
done
refused "and nothing gets up" 2 write $HOST
on $SW1
arrives "until somebody sets it" 2 write $HOST

# A downstream port decodes nothing after its reset, whatever its windows are then: requests of a peer that is at work go up
RING=0x10000 COMP=0x8000
cfg_writew $DP1 0x98 0x8000
cfg_readl $DP1 4
check_eq "a function level reset of a port clears all of its command register" 0 $((r & 7))
for port in $ALL_PORTS; do snap $port; done
arrives "a write of its neighbour arrives below 1 MiB" 0 write 0x90000
counts "as one to the host" "dp0=host-read=$JOB_READ host-write=$((LEN + JOB_WRITE))" \
    "sw0=host-read=$JOB_READ host-write=$((LEN + JOB_WRITE))"
qt_finish

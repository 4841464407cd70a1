# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Helpers of the switch's tests: a machine, its windows, what ports counted.
#
# The machine, with functions as bus << 8 | device << 3:
#
#	rp0 -- sw0 -+- dp0 -- gpu0
#	            +- dp1 -- gpu1
#	            +- dp2 -- sw1 -+- dpi0 -- gpu2
#	            |              +- dpi1 -- gpu3
#	            +- dp3 -- (empty)
#	rp1 -- gpu8
#
# GPU N has its registers in MiB N of 0xe0000000 and BAR1 in 4 GiB number N of
# 0x800000000.  The windows of rp0 and sw0 reach to number 7: of 4 to 7 nobody
# knows.
#
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables for the cases

RP0=0x18 RP1=0x20
SW0=0x100
DP0=0x200 DP1=0x208 DP2=0x210 DP3=0x218
GPU0=0x300 GPU1=0x400
SW1=0x500 DPI0=0x600 DPI1=0x608
GPU2=0x700 GPU3=0x800
GPU8=0xa00

ACS_AT=0x148
VSEC_AT=0x160
ACS_SV=0x1 ACS_TB=0x2 ACS_RR=0x4 ACS_CR=0x8 ACS_UF=0x10 ACS_EC=0x20 ACS_DT=0x40
ALL_PORTS="dp0 dp1 dp2 dp3 sw0 sw1 dpi0 dpi1"

# sw_boot [QEMU-ARGUMENTS...]: the machine as it is after power on
sw_boot() {
    sw_gpu=peerlane-gpu,vram-size=4M,bar1-size=1M,bar1-runs=16
    qt_start \
        -device pcie-root-port,id=rp0,addr=3,chassis=1,slot=1 \
        -device pcie-root-port,id=rp1,addr=4,chassis=2,slot=2 \
        -device peerlane-switch-upstream,id=sw0,bus=rp0 \
        -device peerlane-switch-downstream,id=dp0,bus=sw0,addr=0,chassis=3,slot=3 \
        -device peerlane-switch-downstream,id=dp1,bus=sw0,addr=1,chassis=4,slot=4 \
        -device peerlane-switch-downstream,id=dp2,bus=sw0,addr=2,chassis=5,slot=5 \
        -device peerlane-switch-downstream,id=dp3,bus=sw0,addr=3,chassis=6,slot=6 \
        -device peerlane-switch-upstream,id=sw1,bus=dp2 \
        -device peerlane-switch-downstream,id=dpi0,bus=sw1,addr=0,chassis=7,slot=7 \
        -device peerlane-switch-downstream,id=dpi1,bus=sw1,addr=1,chassis=8,slot=8 \
        -device "$sw_gpu,id=gpu0,bus=dp0" -device "$sw_gpu,id=gpu1,bus=dp1" \
        -device "$sw_gpu,id=gpu2,bus=dpi0" -device "$sw_gpu,id=gpu3,bus=dpi1" \
        -device "$sw_gpu,id=gpu8,bus=rp1" "$@"
}

# sw_start [QEMU-ARGUMENTS...]: the same, with buses, windows and BAR1 mapped
sw_start() {
    sw_boot "$@"
    ecam_on
    bridge $RP0 0 1 9 0 7
    bridge $SW0 1 2 9 0 7
    bridge $DP0 2 3 3 0 0
    bridge $DP1 2 4 4 1 1
    bridge $DP2 2 5 8 2 3
    bridge $DP3 2 9 9 -
    bridge $SW1 5 6 8 2 3
    bridge $DPI0 6 7 7 2 2
    bridge $DPI1 6 8 8 3 3
    bridge $RP1 0 10 10 8 8
    for sw_n in 0 1 2 3 8; do
        eval "sw_bdf=\$GPU$sw_n"
        gpu_setup $sw_n "$sw_bdf"
        use $sw_n
        bar1 "$PLN_BAR1_CMD_MAP" 0 16 0
    done
}

# bridge BDF PRIMARY SECONDARY SUBORDINATE FIRST [LAST]: its buses, and windows
# for GPUs number FIRST to LAST, none if FIRST is -
bridge() {
    cfg_writel "$1" 0x18 $(($4 << 16 | $3 << 8 | $2))
    if [ "$5" = - ]; then
        cfg_writel "$1" 0x20 0x0000fff0
        cfg_writel "$1" 0x24 0x0000fff0
    else
        cfg_writel "$1" 0x20 $((0xe000 + 16 * $5 | (0xe000 + 16 * $6) << 16))
        cfg_writel "$1" 0x24 0xfff00000
        cfg_writel "$1" 0x28 $((8 + $5))
        cfg_writel "$1" 0x2c $((8 + $6))
    fi
    cfg_writew "$1" 4 6
}

# extended configuration space
ext_readl() { readl $((ECAM + ($1 << 12) + $2)); }
ext_writel() { writel $((ECAM + ($1 << 12) + $2)) "$3"; }
acs_set() { qt writew $((ECAM + ($1 << 12) + ACS_AT + 6)) $(($2)); }
acs_get() { qt readw $((ECAM + ($1 << 12) + ACS_AT + 6)); r=$((r)); }
# acs_egress BDF VECTOR (of ports 0 to 31)
acs_egress() { ext_writel "$1" $((ACS_AT + 8)) "$2"; }

# snap PORT: its counters now, in snap_PORT
snap() {
    qom_get "$1" counters
    sn_rest=${qmp_reply#*'{"return": {'}
    sn_rest=${sn_rest%%\}*}
    sn_pr=0 sn_pw=0 sn_hr=0 sn_hw=0 sn_ur=0 sn_uw=0 sn_tr=0 sn_tw=0 sn_ot=0 sn_re=0
    while [ -n "$sn_rest" ]; do
        sn_one=${sn_rest%%,*}
        case $sn_rest in
        *,*) sn_rest=${sn_rest#*,} ;;
        *) sn_rest= ;;
        esac
        sn_v=${sn_one##* }
        case $sn_one in
        *'"peer-read"'*) sn_pr=$sn_v ;;
        *'"peer-write"'*) sn_pw=$sn_v ;;
        *'"host-read"'*) sn_hr=$sn_v ;;
        *'"host-write"'*) sn_hw=$sn_v ;;
        *'"upstream-peer-read"'*) sn_ur=$sn_v ;;
        *'"upstream-peer-write"'*) sn_uw=$sn_v ;;
        *'"target-read"'*) sn_tr=$sn_v ;;
        *'"target-write"'*) sn_tw=$sn_v ;;
        *'"other"'*) sn_ot=$sn_v ;;
        *'"refused"'*) sn_re=$sn_v ;;
        *) echo "# counter? $sn_one"; exit 1 ;;
        esac
    done
    eval "snap_$1='$sn_pr $sn_pw $sn_hr $sn_hw $sn_ur $sn_uw $sn_tr $sn_tw $sn_ot $sn_re'"
}

# counted PORT: what has been counted since the last snap, in $r, as NAME=BYTES
# for what is not 0; a new snap
counted() {
    eval "set -- $1 \$snap_$1"
    snap "$1"
    co_p=$1
    shift
    eval "co_now=\$snap_$co_p"
    r=
    for co_v in $co_now; do
        case $# in
        10) co_n=peer-read ;;
        9) co_n=peer-write ;;
        8) co_n=host-read ;;
        7) co_n=host-write ;;
        6) co_n=upstream-peer-read ;;
        5) co_n=upstream-peer-write ;;
        4) co_n=target-read ;;
        3) co_n=target-write ;;
        2) co_n=other ;;
        1) co_n=refused ;;
        esac
        [ "$co_v" -eq "$1" ] || r="$r $co_n=$((co_v - $1))"
        shift
    done
    r=${r# }
}

# A job of one descriptor reads this and writes its completion
JOB_READ=64
JOB_WRITE=32
STAGE=0x80000

# gpu_dma N read|write ADDRESS LENGTH: DMA by GPU N, between the bus address and
# its VRAM from STAGE on; dma_ok is 1 or 0: whether the engine hears of no error, as it
# never does of a write, which is posted.  A GPU uses the queue of its number.
gpu_dma() {
    use "$1"
    queue_setup "$1"
    if [ "$2" = read ]; then
        job "$1" op="$PLN_OP_COPY" +flags="$PLN_DESC_F_SRC_BUS" src=$(($3)) dst=$STAGE len="$4"
    else
        job "$1" op="$PLN_OP_COPY" +flags="$PLN_DESC_F_DST_BUS" src=$STAGE dst=$(($3)) len="$4"
    fi
    dma_ok=0
    if [ "$st" = "$PLN_Q_IDLE" ] && [ "$c_status" = 0 ] && [ "$c_bytes" = "$4" ]; then
        dma_ok=1
    elif [ "$2 $c_status" != "read $PLN_ERR_BUS" ]; then
        echo "# DMA failed otherwise: queue $st status $c_status bytes $c_bytes"
        exit 1
    fi
}

# two_ends ADDRESS LENGTH: the first and last 8 bytes, in $r
two_ends() {
    qts "readq $(($1))" "readq $(($1 + $2 - 8))"
    r=${answers# }
}
# pattern BYTE: what two_ends says of memory filled with it
pattern() { hex 2:"$1"; repeat 8 "$r"; r="0x$r 0x$r"; }

# move N read|write ADDRESS LENGTH [hole]: gpu_dma on fresh data; then moved is 1 if all
# of it arrived, 0 if nothing did, and of a read the engine was told, else "wrong".  What is
# in a "hole" can be neither set nor seen.
move_n=0
move() {
    move_n=$((move_n % 120 + 1))
    bar1_of "$1"
    mo_stage=$((r + STAGE))
    if [ "$2" = read ]; then
        mo_from=$(($3)) mo_to=$mo_stage
    else
        mo_from=$mo_stage mo_to=$(($3))
    fi
    case ${5-} in
    hole) mo_see=0 ;;
    *) mo_see=1 ;;
    esac
    [ "$mo_see$2" = 0read ] || memset $mo_from "$4" $((move_n + 128))
    [ "$mo_see$2" = 0write ] || memset $mo_to "$4" $move_n
    gpu_dma "$1" "$2" "$3" "$4"
    moved=wrong
    if [ "$mo_see$2" = 0write ]; then
        moved=0
        return
    fi
    two_ends $mo_to "$4"
    mo_got=$r
    pattern $((move_n + 128))
    if [ "$mo_got" = "$r" ]; then
        [ $dma_ok = 0 ] || moved=1
        return
    fi
    pattern $move_n
    [ "$mo_got$dma_ok" != "${r}0" ] && [ "$mo_got$2" != "${r}write" ] || moved=0
}

# live WANT: wait, bounded, until there are that many requesters
live() {
    li_n=0
    while more $li_n; do
        qom_get sw0 requesters-of-all-switches
        r=${qmp_reply##*: }
        r=${r%%\}*}
        [ "$r" != "$1" ] || return 0
        li_n=$((li_n + 1))
    done
}
live_is() {
    live "$2"
    check_eq "$1" "$2" "$r"
}

# unplug PORT-BDF DEVICE: unplug as the guest does it, by the slot's power
unplug() {
    qmp device_del "{\"id\":\"$2\"}"
    cfg_writew "$1" 0xa8 0x0700
    un_n=0
    while more $un_n; do
        qmp qom-list '{"path":"/machine/peripheral"}'
        case $qmp_reply in
        *"\"$2\""*) ;;
        *) return 0 ;;
        esac
        un_n=$((un_n + 1))
    done
    echo "# $2 does not go"
    return 1
}
# add PORT-BDF PORT N: plug GPU N and give it its addresses; plug: power, and that
add() {
    qmp device_add "{\"driver\":\"peerlane-gpu\",\"id\":\"gpu$3\",\"bus\":\"$2\",\"vram-size\":4194304,\"bar1-size\":1048576,\"bar1-runs\":16}"
    case $qmp_reply in *error*) echo "# $qmp_reply"; return 1 ;; esac
    eval "in_bdf=\$GPU$3"
    gpu_setup "$3" "$in_bdf"
    use "$3"
    bar1 "$PLN_BAR1_CMD_MAP" 0 16 0
}
plug() {
    cfg_writew "$1" 0xa8 0x0100
    add "$@"
}

# stream_put N ADDRESS: fourteen copies of 512 KiB from VRAM to a bus address; stream: they begin
SIZE=0x80000
stream_put() {
    use "$1"
    queue_setup "$1"
    st_n=0
    while [ $st_n -lt 14 ]; do
        desc "$1" op="$PLN_OP_COPY" flags="$PLN_DESC_F_DST_BUS" src=$STAGE dst="$2" len=$SIZE
        st_n=$((st_n + 1))
    done
}
stream() {
    stream_put "$@"
    ring "$1"
}

# pull PORT: surprise removal of what is below; gone DEVICE: it is away
pull() { qom_set "$1" surprise-removal true; }
gone() {
    qmp qom-list '{"path":"/machine/peripheral"}'
    case $qmp_reply in *"\"$1\""*) return 1 ;; esac
}

# memory_tree: what "info mtree" says, in $r: lines, and address spaces
memory_tree() {
    qmp human-monitor-command '{"command-line":"info mtree"}'
    r=$(printf '%s' "$qmp_reply" | awk '
        { lines = gsub(/\\r\\n/, "&"); print lines, gsub(/address-space: /, "&") }')
}

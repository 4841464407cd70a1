#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: requests from below two switches: both sets of ACS bits decide
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

LEN=4096
sw_start -name cascade

# GPU 2 is the requester: below dpi0 of the inner switch, below dp2 of the outer.
# inner and outer: what each switch does with the request, peer, up or refuse.
ways() { # TARGET INNER-ACS OUTER-ACS
    inner=up outer=up
    case $1 in
    sibling) # below the inner switch
        [ $(($2 & ACS_RR)) -ne 0 ] || inner=peer
        # to the outer switch that is what lies below the same port
        [ $(($3 & ACS_UF)) -ne 0 ] || outer=refuse
        ;;
    cousin) # below the outer switch
        [ $(($3 & ACS_RR)) -ne 0 ] || outer=peer
        ;;
    own)
        [ $(($2 & ACS_UF)) -ne 0 ] || inner=refuse
        [ $(($3 & ACS_UF)) -ne 0 ] || outer=refuse
        ;;
    esac
    [ $inner = up ] || outer=-
}

bar1_of 3
at_sibling=$r
bar1_of 0
at_cousin=$r
bar1_of 8
at_cross=$r
bar1_of 2
at_own=$r
at_host=0x200000

for p in $ALL_PORTS; do
    snap "$p"
done
for in_acs in 0 $ACS_RR $ACS_UF $((ACS_RR | ACS_UF)); do
    acs_set $DPI0 $((in_acs))
    for out_acs in 0 $ACS_RR $ACS_UF $((ACS_RR | ACS_UF)) $((ACS_SV | ACS_TB | ACS_CR | ACS_DT)); do
        acs_set $DP2 $((out_acs))
        bad=
        for target in sibling cousin cross host own; do
            ways $target $((in_acs)) $((out_acs))
            case $(((in_acs >> 2 ^ out_acs >> 2 ^ out_acs >> 4) & 1)):$target in
            0:sibling | 1:cousin | 0:cross | 1:host | 0:own) dir='read' ;;
            *) dir='write' ;;
            esac
            rd=$JOB_READ wr=$JOB_WRITE
            if [ $target = host ]; then
                if [ $dir = read ]; then rd=$((rd + LEN)); else wr=$((wr + LEN)); fi
            fi
            job="host-read=$rd host-write=$wr"
            e_dpi0=$job e_sw1=$job e_dp2=$job e_sw0=$job e_dpi1='' e_dp0=''
            ok=1
            case $inner in
            peer) e_dpi0="peer-$dir=$LEN $job" e_dpi1="target-$dir=$LEN" ;;
            refuse) e_dpi0="$job refused=$LEN" ok=0 ;;
            up)
                case $outer:$target in
                refuse:*)
                    e_dpi0="$job other=$LEN" e_sw1=$e_dpi0 e_dp2="$job refused=$LEN"
                    ok=0
                    ;;
                peer:*)
                    e_dpi0="$job upstream-peer-$dir=$LEN" e_sw1=$e_dpi0
                    e_dp2="peer-$dir=$LEN $job" e_dp0="target-$dir=$LEN"
                    ;;
                up:host) ;;
                up:*)
                    e_dpi0="$job upstream-peer-$dir=$LEN"
                    e_sw1=$e_dpi0 e_dp2=$e_dpi0 e_sw0=$e_dpi0
                    t="target-$dir=$LEN"
                    case $target in
                    sibling) e_dpi1=$t e_sw1="$e_sw1 $t" e_dp2="$e_dp2 $t" e_sw0="$e_sw0 $t" ;;
                    own) e_dpi0="$e_dpi0 $t" e_sw1="$e_sw1 $t" e_dp2="$e_dp2 $t" e_sw0="$e_sw0 $t" ;;
                    cousin) e_dp0=$t e_sw0="$e_sw0 $t" ;;
                    esac
                    ;;
                esac
                ;;
            esac
            eval "at=\$at_$target"
            move 2 $dir "$at" $LEN $target
            want='' got=''
            for p in dpi0 dpi1 sw1 dp0 dp2 sw0; do
                counted $p
                got="$got$p: $r; "
                eval "want=\"\${want}$p: \$e_$p; \""
            done
            [ "$moved $got" = "$ok $want" ] || bad="$bad
$target $dir (inner $inner, outer $outer): want $ok $want
got $moved $got"
        done
        desc="inner $((in_acs)), outer $((out_acs)): five targets"
        if [ -z "$bad" ]; then pass "$desc"; else fail "$desc" "$bad"; fi
    done
done

# Source validation, when the outer port's subordinate bus is too small
acs_set $DPI0 0
cfg_writel $DP2 0x18 $((6 << 16 | 5 << 8 | 2))
acs_set $DP2 0
move 2 write $at_host $LEN
check_eq "a bus that is not below the port, no source validation: passes" 1 "$moved"
snap dp2
acs_set $DP2 $ACS_SV
use 2
queue_setup 2
memset $at_host $LEN 0x11
desc 2 op="$PLN_OP_COPY" +flags="$PLN_DESC_F_DST_BUS" src=$STAGE dst=$at_host len=$LEN
ring 2
settle 2
check_eq "with it the GPU cannot even fetch the descriptor" "$PLN_Q_ERROR" "$r"
counted dp2
check_eq "which the port counts as refused" "refused=$JOB_READ" "$r"
pattern 0x11
want=$r
two_ends $at_host $LEN
check_eq "and memory is as it was" "$want" "$r"
cfg_writel $DP2 0x18 $((8 << 16 | 5 << 8 | 2))
move 2 write $at_host $LEN
check_eq "with the right number of buses it passes again" 1 "$moved"

# Windows and memory enable of the target's port
bar1_of 1
at=$r
move 0 write "$at" $LEN
check_eq "a peer is reached" 1 "$moved"
cfg_writew $DP1 4 4
gpu_dma 0 read "$at" $LEN
check_eq "not when its port's memory enable is clear" 0 "$dma_ok"
cfg_writew $DP1 4 6
move 0 write "$at" $LEN
check_eq "again when it is set" 1 "$moved"
cfg_writel $DP1 0x28 15
cfg_writel $DP1 0x2c 15
gpu_dma 0 read "$at" $LEN
check_eq "not when its port's window is elsewhere" 0 "$dma_ok"
cfg_writel $DP1 0x28 9
cfg_writel $DP1 0x2c 9
move 0 write "$at" $LEN
check_eq "again when it is back" 1 "$moved"

# Source validation of the outer switch knows the buses of the inner one as they are
acs_set $DP0 0
bridge $DPI0 6 0 0 2 2
acs_set $DP2 $ACS_SV
bridge $DPI0 6 7 7 2 2
move 2 write 0x200000 $LEN
check_eq "an inner bus is numbered, and its function's requests are valid at once" 1 "$moved"
acs_set $DP2 0

# Reset clears the control bits and with them the routes
acs_set $DP0 $ACS_RR
acs_get $DP0
check_eq "redirect is set" $((ACS_RR)) "$r"
qmp system_reset
qt clock_step 1000000
n=0
while more $n; do
    cfg_readl $RP0 0x18
    [ "$r" -ne 0 ] || break
    n=$((n + 1))
done
cfg_writel 0 0x64 0
cfg_writel 0 0x60 $((ECAM | 1))
bridge $RP0 0 1 9 0 7
bridge $SW0 1 2 9 0 7
acs_get $DP0
check_eq "and clear after a reset" 0 "$r"
qt_stop

# Three switches above each other, of which two refuse whatever the GPU sends: its bus is below none of their ports any more
set --
above=rp
for n in 0 1 2; do
    set -- "$@" -device peerlane-switch-upstream,id=up$n,bus=$above \
        -device peerlane-switch-downstream,id=down$n,bus=up$n,chassis=$((2 + n)),slot=$((2 + n))
    above=down$n
done
qt_start -device pcie-root-port,id=rp,addr=3,chassis=1,slot=1 "$@" \
    -device peerlane-gpu,id=gpu,bus=down2,vram-size=4M,bar1-size=1M
ecam_on
bridge $RP0 0 1 7 -
for bus in 1 2 3 4 5 6; do
    bridge $((bus << 8)) $bus $((bus + 1)) 7 -
done
cfg_readl 0x700 0
check_eq "the GPU is there" $((0x9e711234)) $r
for port in 0x200 0x400; do acs_set $port $ACS_SV; done
cfg_writel 0x400 0x18 0x606004
cfg_writel 0x200 0x18 0x606002
check "its requests have no way, and QEMU lives" qt endianness
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the switch routes by every combination of ACS bits, and counts it
# tags: qtest switch
# tier: check
# timeout: 60
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

LEN=4096
sw_start -name acs

# GPU 0 is the requester.  Port 2 leads to its sibling, port 3 to the cousin.
acs_egress $DP0 0xffffffff
ext_readl $DP0 $((ACS_AT + 8))
check_eq "the port's own bit is not in its egress vector" $((0xfffffffd)) "$r"
acs_egress $DP0 0x4
ext_readl $DP0 $((ACS_AT + 4))
check_eq "no control bit is set at first" 0 $((r >> 16))
check_eq "the capability has all bits, and 64 of egress" $((0x407f)) $((r & 0xffff))

# The bits of the targets' ports in the vector
sibling_bit=4 cousin_bit=8
# way TARGET ACS: peer, up or refuse, from the words of the specification
way() {
    case $1 in
    sibling | cousin)
        if [ $(($2 & ACS_EC)) -eq 0 ]; then
            way=peer
            [ $(($2 & ACS_RR)) -eq 0 ] || way=up
        elif [ $((vector & ${1}_bit)) -eq 0 ]; then
            way=peer
        else
            way=refuse
            [ $(($2 & ACS_RR)) -eq 0 ] || way=up
        fi
        ;;
    own)
        way=refuse
        [ $(($2 & ACS_UF)) -eq 0 ] || way=up
        ;;
    hole)
        way=refuse
        [ $(($2 & ACS_RR)) -eq 0 ] || way=nowhere
        ;;
    cross) way=up ;;
    host) way=host ;;
    esac
}

bar1_of 1
at_sibling=$r
bar1_of 2
at_cousin=$r
bar1_of 8
at_cross=$r
bar1_of 0
at_own=$r
bar1_of 5
at_hole=$r
at_host=0x200000

# what dp0, sw0 and the ports to the target must count; the GPU fetches its
# descriptor and writes a record of its end
expect() { # TARGET DIRECTION
    ex_rd=$JOB_READ ex_wr=$JOB_WRITE
    ex_dp0='' ex_sw0='' ex_dp1='' ex_dp2='' ex_t="$2"
    case $way in
    host) if [ "$2" = read ]; then ex_rd=$((ex_rd + LEN)); else ex_wr=$((ex_wr + LEN)); fi ;;
    esac
    ex_job="host-read=$ex_rd host-write=$ex_wr"
    ex_dp0=$ex_job ex_sw0=$ex_job
    case $way in
    peer) ex_dp0="peer-$ex_t=$LEN $ex_job" ;;
    up) ex_dp0="$ex_job upstream-peer-$ex_t=$LEN" ex_sw0=$ex_dp0 ;;
    refuse) ex_dp0="$ex_job refused=$LEN" ;;
    nowhere) ex_dp0="$ex_job other=$LEN" ex_sw0=$ex_dp0 ;;
    esac
    case $way:$1 in
    peer:sibling) ex_dp1="target-$ex_t=$LEN" ;;
    peer:cousin) ex_dp2="target-$ex_t=$LEN" ;;
    up:sibling) ex_dp1="target-$ex_t=$LEN" ex_sw0="$ex_sw0 $ex_dp1" ;;
    up:cousin) ex_dp2="target-$ex_t=$LEN" ex_sw0="$ex_sw0 $ex_dp2" ;;
    up:own) ex_dp0="$ex_dp0 target-$ex_t=$LEN" ex_sw0="$ex_sw0 target-$ex_t=$LEN" ;;
    esac
}

for p in dp0 dp1 dp2 sw0; do
    snap $p
done
seen=
n=0
combination() {
    acs_set $DP0 $n
    acs_get $DP0
    [ "$r" = $n ] || fail "control bits $n are set" "they are $r"
    bad=
    for target in sibling cousin cross host own hole; do
        # Reads and writes take turns, over the bits without effect too
        case $(((n ^ n >> 1 ^ n >> 3) & 1)):$target in
        0:sibling | 1:cousin | 0:cross | 1:host | 0:own | 1:hole) dir='read' ;;
        *) dir='write' ;;
        esac
        eval "at=\$at_$target"
        way $target $n
        expect $target $dir
        move 0 $dir "$at" $LEN $target
        case $way in
        refuse | nowhere) ok=0 ;;
        *) ok=1 ;;
        esac
        got=
        for p in dp0 dp1 dp2 sw0; do
            counted $p
            got="$got$p: $r; "
        done
        want="dp0: $ex_dp0; dp1: $ex_dp1; dp2: $ex_dp2; sw0: $ex_sw0; "
        [ "$moved $got" = "$ok $want" ] || bad="$bad
$target $dir ($way): want $ok $want
got $moved $got"
        case $seen in
        *" $target-$way-$dir "*) ;;
        *) seen="$seen $target-$way-$dir " ;;
        esac
    done
    if [ -z "$bad" ]; then
        pass "control bits $n, vector $vector: six targets"
    else
        fail "control bits $n, vector $vector: six targets" "$bad"
    fi
}
vector=4
while [ $n -lt 128 ]; do
    combination
    n=$((n + 1))
done
# the other way round, and both, with egress control on
for vector in 8 12; do
    acs_egress $DP0 $vector
    for n in 32 33 36 37 48 63 127; do
        combination
    done
done
# every way was seen in both directions: 2 * (3 + 3 + 1 + 1 + 2 + 2)
check_eq "all ways were taken, both to read and to write" 24 "$(echo "$seen" | wc -w)"

# the capability in the guest says the same as the property outside
snap dp0
# shellcheck disable=SC2086  # a list
set -- $snap_dp0
i=0
for want in "$@"; do
    ext_readl $DP0 $((VSEC_AT + 16 + 8 * i))
    lo=$r
    ext_readl $DP0 $((VSEC_AT + 20 + 8 * i))
    check_eq "counter $i in the capability" "$want" $((r << 32 | lo))
    i=$((i + 1))
done
ext_writel $DP0 $((VSEC_AT + 16)) 12345
snap dp0
check_eq "and the guest cannot write it" "$*" "$snap_dp0"
qt_stop

# As firmware may leave it
ports="-device pcie-root-port,id=rp0 -device peerlane-switch-upstream,id=sw0,bus=rp0"
down=peerlane-switch-downstream,id=dp0,bus=sw0,chassis=2
qt_start $ports -device $down,acs-control=0x1d
cfg_writel 0 0x60 $((ECAM | 1))
cfg_writel 0x08 0x18 0x00020100
cfg_writel 0x100 0x18 0x00020201
acs_get 0x200
check_eq "acs-control is the value after reset" $((0x1d)) "$r"
acs_set 0x200 0
qmp device_add "{\"driver\":\"peerlane-switch-downstream\",\"id\":\"x\",\"bus\":\"sw0\",\"addr\":\"1\",\"acs-control\":128}"
case $qmp_reply in
*"acs-control=0x80 has bits that the port has not"*) pass "a bit that is not there is refused" ;;
*) fail "a bit that is not there is refused" "$qmp_reply" ;;
esac
qt_finish

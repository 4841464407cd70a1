#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the port that refuses a request logs it, and tells the root port; so does a GPU with errors of its own
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

sw_start -name aer
LEN=8                   # one packet: where no memory is, QEMU moves no more at once
UNCOR=0x104 COR=0x110 COR_MASK=0x114 CAP=0x118 HEADER=0x11c ROOT_STATUS=0x130 ROOT_SOURCE=0x134
UR=$((1 << 20)) ACSV=$((1 << 21)) ADVISORY=$((1 << 13))
bar1_of 1
peer=$r
bar1_of 5
hole=$r

# The guest wants to know: in device control, and SERR in bridge control, on the way
report() { # BDF, OFFSET OF PCI EXPRESS
    cfg_writew "$1" $(($2 + 8)) 0xf
    cfg_writew "$1" 0x3e 2
}
cfg_cap $RP0 0x10
report $RP0 "$r"
report $SW0 0x90
report $DP0 0x90
report $DP2 0x90
report $SW1 0x90

# logged BDF REGISTER: wait, bounded, until something is there; clear_log: clear that
logged() {
    lo=0
    while more $lo; do
        ext_readl "$1" "$2"
        [ "$r" = 0 ] || break
        lo=$((lo + 1))
    done
    lo=$r
}
clear_log() { ext_writel "$1" "$2" "$lo"; }
# the_log DESC BDF REGISTER WANT: and cleared
the_log() {
    logged "$2" "$3"
    check_eq "$1" "$4" "$r"
    clear_log "$2" "$3"
}
header_is() { # DESC BDF DWORD...
    hi_d=$1
    hi_b=$2
    shift 2
    hi_want='' hi_got='' hi_i=0
    for hi_v in "$@"; do
        ext_readl "$hi_b" $((HEADER + 4 * hi_i))
        hi_want="$hi_want $(printf %08x $((hi_v)))" hi_got="$hi_got $(printf %08x "$r")"
        hi_i=$((hi_i + 1))
    done
    check_eq "$hi_d" "$hi_want" "$hi_got"
}
quiet() { # DESC BDF
    ext_readl "$2" $UNCOR
    qu=$r
    ext_readl "$2" $COR
    check_eq "$1: nothing is logged" "0 0" "$qu $r"
}
# Received by GPU 0, signaled by its port; and clear that
abort_is() { # DESC MASTER TARGET SIGNALED
    cfg_readl $GPU0 4
    ab_got="$((r >> 29 & 1)) $((r >> 28 & 1))"
    cfg_writel $GPU0 4 $((0x30000000 | r & 0xffff))
    cfg_readl $DP0 0x1c
    check_eq "$1" "$2 $3 $4" "$ab_got $((r >> 27 & 1))"
    cfg_writel $DP0 0x1c $((0x08000000 | r & 0xffff))
}
cfg_readl $DP0 0x9c
linkcap=$r

move 0 write "$peer" $LEN
move 0 read 0x200000 $LEN
quiet "what arrives" $DP0
abort_is "nor does anybody note an abort" 0 0 0

acs_egress $DP0 4
acs_set $DP0 $ACS_EC
gpu_dma 0 write "$peer" $LEN
logged $DP0 $UNCOR
check_eq "a write against egress control is an ACS violation" $ACSV "$r"
# 4 DWORDs of header, with data, 2 DWORDs long; requester 03:00.0, all bytes enabled
header_is "and its header is logged" $DP0 0x60000002 0x030000ff $((peer >> 32)) $((peer & 0xffffffff))
ext_readl $DP0 $CAP
check_eq "as the first error" 21 $((r & 31))
clear_log $DP0 $UNCOR
cfg_readl $DP0 0x98
check_eq "the port has detected a non-fatal error" 2 $((r >> 16 & 15))
cfg_readl $DP0 0x9c
check_eq "its link capabilities are as they were" "$linkcap" "$r"
logged $RP0 $ROOT_STATUS
check_eq "the root port has received it: uncorrectable, non-fatal" $((0x24)) $((r & 0x7f))
ext_readl $RP0 $ROOT_SOURCE
check_eq "from the port that refused" $((DP0)) $((r >> 16))
abort_is "the requester of a posted write does not know" 0 0 0

# The completion tells the requester of a read, so the port only notes it (advisory)
gpu_dma 0 read "$peer" $LEN
the_log "a read is advisory" $DP0 $COR $ADVISORY
quiet "which is masked after reset" $DP0
abort_is "the completer has aborted, and the requester heard of it" 0 1 1
ext_writel $DP0 $COR_MASK 0
gpu_dma 0 read "$peer" $LEN
logged $DP0 $UNCOR
check_eq "unmasked, the violation is logged too" $ACSV "$r"
abort_is "and so it is with the next" 0 1 1
header_is "with its header" $DP0 0x20000002 0x030000ff $((peer >> 32)) $((peer & 0xffffffff))
clear_log $DP0 $UNCOR
logged $DP0 $COR
clear_log $DP0 $COR

acs_set $DP0 0
gpu_dma 0 write "$hole" $LEN
the_log "an address that no port claims is an unsupported request" $DP0 $UNCOR $UR
bar1_of 0
gpu_dma 0 write "$r" $LEN
the_log "one below the same port, too" $DP0 $UNCOR $UR
quiet "other ports" $DP1

# Where a window leads, and no device is: the port above says so, whoever sent it there
hole=$((peer + 0x10000000))
gpu_dma 0 write "$hole" $LEN
logged $DP1 $UNCOR
check_eq "what nobody takes below a port, that port does not support" $UR "$r"
header_is "and its header is logged" $DP1 0x60000002 0x030000ff $((hole >> 32)) $((hole & 0xffffffff))
clear_log $DP1 $UNCOR
quiet "the port that sent it there" $DP0
gpu_dma 0 read "$hole" $LEN
the_log "a read is advisory there, too" $DP1 $COR $ADVISORY
abort_is "what nobody supports is a master abort" 1 0 0

# Source validation at the outer switch
cfg_writel $DP2 0x18 $((6 << 16 | 5 << 8 | 2))
acs_set $DP2 $ACS_SV
use 2
queue_setup 2
desc 2 op="$PLN_OP_COPY" +flags="$PLN_DESC_F_DST_BUS" src=$STAGE dst=0x200000 len=$LEN
ring 2
settle 2
the_log "the fetch of a descriptor from a wrong bus is refused: advisory" $DP2 $COR $ADVISORY
quiet "the inner port" $DPI0

# An error of the GPU's own link is in its own log, which outlives a reset
ext_writel $RP0 $ROOT_STATUS 0x7f
quiet "the GPU" $GPU0
cfg_cap $GPU0 0x10
exp=$r
cfg_writew $GPU0 $((exp + 8)) 0xf
qmp human-monitor-command '{"command-line":"pcie_aer_inject_error gpu0 MALF_TLP"}'
logged $GPU0 $UNCOR
check_eq "a malformed packet is in the GPU's log" $((1 << 18)) "$r"
logged $RP0 $ROOT_STATUS
check_eq "the root port has received it: uncorrectable, fatal" $((0x54)) $((r & 0x7f))
ext_readl $RP0 $ROOT_SOURCE
check_eq "from the GPU" $((GPU0)) $((r >> 16))
cfg_writew $GPU0 $((exp + 8)) 0x800f
ext_readl $GPU0 $UNCOR
check_eq "a reset of the function leaves the log" $((1 << 18)) "$r"
cfg_readl $GPU0 $((exp + 8))
check_eq "and reports no more of them" 0 $((r & 15))
ext_writel $GPU0 $UNCOR $((1 << 18))
quiet "the GPU, when that is cleared" $GPU0
qt_stop

# Behind an IOMMU: the port that nobody answers below has got the address of the bus. What GPU 0, at 03:00.0, sees
# at 0 is host memory, at 1 GiB the window of GPU 1's port; pages are of 1 GiB.
sw_start -name aer -device intel-iommu,aw-bits=39
iommu_on 3 0 0x83 $((peer | 0x83))
gpu_dma 0 write 0x50000000 $LEN
logged $DP1 $UNCOR
check_eq "what nobody takes, and an IOMMU has sent there, is an unsupported request, too" $UR "$r"
header_is "its header has the address on the bus" $DP1 0x60000002 0x030000ff $((hole >> 32)) $((hole & 0xffffffff))
qt_finish

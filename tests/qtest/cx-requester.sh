#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what the ConnectX writes has its number as the requester: an IOMMU that remaps interrupts compares it
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"

qt_start -device intel-iommu,intremap=on -device peerlane-cx,id=cx0,addr=4,mac=52:54:00:12:34:56
cx_bar
self_pair

# The table of VT-d with entries of 16 bytes at 2 MiB: 0 is for the card, 1 for another function, 2 is not there.
# Present, vector 0x31; all 16 bits of the requester are compared.
TABLE=0x200000
memset $TABLE 0x1000 0
n=0
for requester in $DEVFN 0x28; do
    writeq $((TABLE + 16 * n)) 0x310001
    writeq $((TABLE + 16 * n + 8)) $((1 << 18 | requester))
    n=$((n + 1))
done
writeq $((VTD + 0xb8)) $((TABLE | 2))
writel $((VTD + 0x18)) 0x01000000
writel $((VTD + 0x18)) 0x02000000
readl $((VTD + 0x1c))
check_eq "interrupts are remapped" 3 $((r >> 24 & 3))
readq $((VTD + 8))
RECORD=$((VTD + (r >> 24 & 0x3ff) * 16 + 8))

memset $DATA 4 0
n=0
# interrupt DESC ENTRY WANT: a WRITE to an entry's address; WANT: whom a record of a fault names, and for what reason
interrupt() {
    rdma_write $((0xfee00010 | $2 << 5)) 4 $n
    n=$((n + 1))
    becomes "$1: the WRITE is done" $n qom_counter cx0 cqes
    readl $((RECORD + 4))
    if [ $((r >> 31)) -eq 1 ]; then
        reason=$((r & 0xff))
        readl $RECORD
        got="$((r & 0xffff)) $reason"
        # gone with a 1
        writel $((RECORD + 4)) 0x80000000
    else
        got=none
    fi
    check_eq "$1" "$3" "$got"
}
interrupt "an entry for the card: no fault" 0 none
interrupt "an entry for another: the card is named, and was not to do it" 1 "$((DEVFN)) $((0x26))"
interrupt "an entry that is not there: the card is named" 2 "$((DEVFN)) $((0x22))"
qt_finish

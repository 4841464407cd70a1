#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: DMA by an IO thread, which does not hold QEMU's big lock, is counted, also while what it reaches is pulled out
# tags: qtest switch
# tier: all
# timeout: 600
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"

# As virtio 1 says: the common structure lies at the beginning of BAR4, notifications at 0x3000
DISK=0x900
AT=0xe0400000
TABLE=0x141000
AVAIL=0x142000
USED=0x143000
HEAD=0x140000
DONE=0x140010
status() { qt writeb $((AT + 0x14)) $1; }
# disk_setup: reset it, and give it its queue; fails if it does not want our features
disk_setup() {
    for s in 0 1 3; do status $s; done
    writel $((AT + 0x08)) 0
    writel $((AT + 0x0c)) 0
    writel $((AT + 0x08)) 1
    writel $((AT + 0x0c)) 3     # VERSION_1, ACCESS_PLATFORM: its DMA goes the way of other devices'
    status 11
    qt readb $((AT + 0x14))
    [ $((r)) = 11 ] || return 1
    memset $HEAD 0x4000 0
    asked=0
    qt writew $((AT + 0x16)) 0
    qt writew $((AT + 0x18)) 16
    for field in "0x20 $TABLE" "0x28 $AVAIL" "0x30 $USED"; do
        writel $((AT + ${field% *})) ${field#* }
        writel $((AT + ${field% *} + 4)) 0
    done
    qt writew $((AT + 0x1c)) 1
    status 15
}
# a machine with such a drive
start() {
    sw_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
        -object iothread,id=io0 -blockdev null-co,node-name=disk,size=1048576,read-zeroes=on \
        -device virtio-blk-pci,id=disk0,bus=dp3,drive=disk,iothread=io0,iommu_platform=on,disable-legacy=on,num-queues=1
    bridge $DP3 2 9 9 4 4
    cfg_writel $DISK 0x20 $AT
    cfg_writel $DISK 0x24 0
    cfg_writew $DISK 4 6
    check "the drive is ready" disk_setup
}

# part N ADDRESS LENGTH FLAGS-AND-NEXT: of a request
part() {
    writeq $((TABLE + 16 * $1)) $(($2))
    writel $((TABLE + 16 * $1 + 8)) $3
    writel $((TABLE + 16 * $1 + 12)) $4
}
# begin ADDRESS LENGTH: the beginning of the disk is read to there
begin() {
    part 0 $HEAD 16 0x00010001
    part 1 $1 $2 0x00020003
    part 2 $DONE 1 2
    qt writew $((AVAIL + 4 + 2 * (asked % 16))) 0
    asked=$((asked + 1))
    qt writew $((AVAIL + 2)) $asked
    qt writew $((AT + 0x3000)) 0
}
ended() {
    en_end=$(($(date +%s) + 20))
    while qt readw $((USED + 2)); do
        [ $((r)) != $asked ] || return 0
        [ "$(date +%s)" -le $en_end ] || return 1
    done
}
of_port() {
    counted $1
    r=$(echo $r | tr ' ' '\n' | grep -v '^host-' | xargs)
}


start
qmp query-iothreads
check "there is an IO thread" sh -c 'echo "$1" | grep -q "\"thread-id\": [1-9]"' sh "$qmp_reply"
bar1_of 1
peer=$r
memset $peer 4096 0x5a
for p in dp1 dp3 sw0; do snap $p; done
begin $peer 4096
check "a read into a peer ends" ended
bytes_are "its data is there" $peer 0x0000000000000000
of_port dp3
check_eq "the port of the drive counts it" "peer-write=4096" "$r"
of_port dp1
check_eq "that of the peer, too" "target-write=4096" "$r"
of_port sw0
check_eq "and none above" "" "$r"

# round JOBS: the inner switch goes with its GPUs while the thread writes into one of them
round() {
    bar1_of 2
    inner=$r
    for p in dp1 dp2 dp3; do snap $p; done
    begin $inner 65536
    check "a read into a GPU of the inner switch ends" ended
    n=0
    while [ $n -lt $1 ]; do
        begin $inner 65536
        n=$((n + 1))
    done
    check "that switch is pulled" qom_set dp2 surprise-removal true
    # What it asked for is gone, and a virtio drive goes on only after a reset
    check "the drive is reset" disk_setup
    counted dp2
    reached=$(echo $r | tr ' ' '\n' | sed -n 's/^target-write=//p')
    counted dp3
    sent=$(echo $r | tr ' ' '\n' | sed -n 's/^peer-write=//p')
    check "what reached the port of the switch is what the drive sent there, or less" test "$reached" -ge 65536 -a "$reached" -le "$sent"
    [ "$reached" -ge $((65536 * ($1 + 1))) ] || cut=$((cut + 1))
    begin $peer 512
    check "it works" ended
    of_port dp1
    check_eq "and is counted" "target-write=512" "$r"
}
cut=0
round 12
rounds=1
[ "$TIER" != nightly ] || rounds=20
i=1
while [ $i -lt $rounds ]; do
    qt_stop
    start
    round $((1 + i * 5 % 14))
    i=$((i + 1))
done
diag "in $cut of $rounds rounds the switch went in the middle"
qt_finish

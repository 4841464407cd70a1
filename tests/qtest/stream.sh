#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a migration stream whose GPU cannot be is refused; whatever is in one, QEMU stays whole
# tags: qtest migration
# tier: check
# timeout: 1200
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-stream.sh"

DEV="-device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on"
FENCE=0x1122334455667788
machine() { qt_start $DEV "$@"; }
machine
gpu_setup 0 0x20
use 0
queue_setup 0
bar1 $PLN_BAR1_CMD_MAP 0 1 0
setreg $PLN_REG_SCRATCH 0x13579bdf
setreg $PLN_REG_BAR1_INDEX 0x2468ace0
# In flight, and the marks by which its place in the stream is found
desc 0 op=$PLN_OP_SEM_WAIT arg=9999999 src=0x1000 imm=5 fence=$FENCE
ring 0
idle gpu0
qmp stop
check "a machine with a job in flight is saved" qt_saved
qt_stop
mv vmstate good

desc_at=$(($(at '\x11\x22\x33\x44\x55\x66\x77\x88') - 56))
next_at=$(($(at '\x13\x57\x9b\xdf\x24\x68\xac\xe0') + 24))
check "the job and the device are found in it" test "$desc_at" -gt 0 -a "$next_at" -gt 0

# refused DESC OFFSET BYTES…: with these bytes at these places
refused() {
    re_desc=$1
    shift
    cp good vmstate
    while [ $# -gt 0 ]; do
        put $1 "$2"
        shift 2
    done
    load
    check_eq "refused: $re_desc" failed "$loaded"
    qt_stop
}

cp good vmstate
load
check_eq "the stream itself is taken" completed "$loaded"
qt_stop
# A machine whose GPU has other properties
was=$DEV
for other in bar1-runs=511 queues=3 coherent=off bar1-size=2M vram-size=32M; do
    DEV=$(echo "$was," | sed "s/,${other%%=*}=[^,]*,/,/")$other
    cp good vmstate
    load
    check_eq "refused: $other" failed "$loaded"
    qt_stop
done
DEV=$was
# The fault of late writes: the ring is of the number before, or there is none
DEV=$was,fault-late-writes=4
cp good vmstate
put $((next_at - 33)) '\000\001\000\001'
load
check_eq "refused: more late writes than can be" failed "$loaded"
qt writeq $B1 1
value_is "and then none is late" $((PLN_FEAT_COHERENT | PLN_FEAT_TIME | PLN_FEAT_DMA_COUNTERS)) reg $PLN_REG_FEATURES
qt_stop
DEV=$was
refused "the next queue is none" $next_at '\000\177\377\377'
refused "the next queue is the first that is none" $next_at '\000\000\000\020'
wide='\000\000\000\010'
refused "a word of 1,024 bytes" $desc_at "$wide" $((desc_at + 8)) '\000\000\004\000' \
    $((desc_at + 16)) '\000\000\000\000\000\000\000\000' $((desc_at - 1)) '\000'
refused "a fill by nothing" $desc_at '\000\000\000\002' $((desc_at + 8)) '\000\000\000\000' \
    $((desc_at + 16)) '\000\000\000\000\000\000\000\000' \
    $((desc_at + 32)) '\000\000\000\000\000\000\020\000' $((desc_at - 1)) '\000'
refused "memory that is not there" $((desc_at + 16)) '\000\000\000\001\000\000\000\000'
refused "more done than there was to do" $((desc_at + 64)) '\000\000\000\000\000\000\020\000'
refused "an operation that is none" $desc_at '\000\000\001\000'
refused "in flight in a queue that rests" $((desc_at - 50)) "\\000\\000\\000\\00$PLN_Q_IDLE"
refused "a wait without a job" $((desc_at - 2)) '\000'
refused "a queue without a ring has a job" $((desc_at - 38)) '\000\000\000\000'

# next_queue and queue 0, and what is in the whole section: configuration space, MSI-X and properties, the other queues, the
# counters
sections peerlane-gpu >device
check_eq "there is one such device" 1 "$(wc -l <device)"
read -r from to <device
q0=$((desc_at - 50))
cat >ranges <<END
1 $next_at $((next_at + 4))
4 $q0 $((q0 + 146))
1 $from $((from + 260))
1 $((from + 4100)) $next_at
1 $((q0 + 146)) $to
2 $from $to
END
works() {
    qt clock_step 20000000
    qreg 0 $PLN_Q_STATUS
    qom_get gpu0 counters
    qom_get gpu0 initiators
    qom_get gpu0 state
}
streams=${STREAMS:-12}
[ "$TIER" != nightly ] || streams=400
mutations $streams works
rm -f good vmstate
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the ConnectX tells its driver of firmware that has failed, of resets, and of its cable
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"

EQ_AT=0x74000

# reads DESC WANT OFFSET BYTES: of the initialization segment
reads() {
    rdhex $((BAR + $3)) $4
    check_eq "$1" "$2" "$r"
}
failed() { check "the firmware has failed: $1" qom_set cx0 firmware-failed $1; }
healthy() {
    reads "$1: the syndrome is none" 0x00 0x23d 1
    reads "$1: no reset is asked for" 0x00 0x238 1
}

qt_start -netdev hubport,id=net,hubid=0 -device peerlane-cx,id=cx0,addr=4,netdev=net
cfg_writel $DEVFN 0x10 $((BAR & 0xffffffff))
cfg_writel $DEVFN 0x14 $((BAR >> 32))
cfg_writew $DEVFN 4 6
reads "after a reset the function is disabled" 0x00000156 0x14 4
cx_bar
reads "with the address of a queue it is not" "0x$(printf %08x $((SLOT | 0x56)))" 0x14 4
wr $((BAR + 0x14)) 8:$((SLOT | 0x100))
reads "a driver can say that it is" "0x$(printf %08x $((SLOT | 0x156)))" 0x14 4
cx_bar
healthy "at first"
short 0104; says "ENABLE_HCA" 0 $r 12
wrhex $((BAR + 0x1b)) 0x01
reads "a byte cannot be written" "0x$(printf %08x $((SLOT | 0x56)))" 0x14 4

# Firmware that has failed answers no more, and says why
failed true
short 0102; INIT=$r
give $INIT 8
check "the engine looks no more at what it is given" idle cx0
bytes_are "a command has no answer" $((SLOT + 0x3f)) 0x01
reads "a reset is asked for, the severity is critical" 0x8a 0x238 1
reads "nobody knows yet" "0x$(printf %08x $((SLOT | 0x56)))" 0x14 4
reads "the syndrome is: firmware internal error" 0x01 0x23d 1
reads "the same in a word" 0x00010000 0x23c 4
reads "who knows finds the function disabled" "0x$(printf %08x $((SLOT | 0x156)))" 0x14 4
# Who gives it a queue starts it anew
cx_bar
healthy "with a queue"
says "what was before is gone" 4 $INIT 8
short 0104; says "it can be enabled" 0 $r 12
failed true
failed false
healthy "the property ends it, too"
reads "which is a reset" 0x00000156 0x14 4
cx_bar
short 0104; says "and it works" 0 $r 12
failed false
says "what has not failed cannot be mended: it goes on" 0 $INIT 8

# The cable
short 0802; cmd $r 16; id; UAR=$r
# port_is DESC STATES: physical, of the port, and of the virtual port
port_is() {
    short 0762; cmd $r 528
    rdhex $((OUT_BOX + 0x22)) 2
    check_eq "$1" "$2" "$r"
}
cable() { qmp set_link "{\"name\":\"cx0\",\"up\":$1}"; }
port_is "the port is active" 0x5044
cable false
port_is "without a cable it polls, and is down" 0x2011
cable true
port_is "and active with it" 0x5044
zeros 280; at "$r" 0 0301 28 01$UAR 88 0000000000000200 272 16:$EQ_AT
says "an event queue for ports" 0 $r 16
memset $EQ_AT 128 0xff
event_head() { rdhex $((EQ_AT + $1)) 4; }
cable false
becomes "port 1 is told to be down" 0x00090001 event_head 0
rdhex $((EQ_AT + 0x28)) 1
check_eq "it is port 1" 0x10 "$r"
cable true
becomes "and to be active" 0x00090004 event_head 64

# A reset from outside
cfg_cap $DEVFN 0x10
cfg_writew $DEVFN $((r + 8)) 0x8000
cfg_writel $DEVFN 0x10 $((BAR & 0xffffffff))
cfg_writel $DEVFN 0x14 $((BAR >> 32))
cfg_writew $DEVFN 4 6
reads "FLR: the function is disabled" 0x00000156 0x14 4
healthy "FLR"

# A refused save is not tested here: QEMU does not free all that it has begun one with
check "a card as after a reset is saved" qt_saved
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what the switch refuses of a drive's DMA: data to be fetched is an error, data to be stored is lost
# tags: qtest switch nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

drive_image() { # of blocks of 512 bytes: 0 to 7 hold 'A', 8 to 23 'B', then zeros
    head -c 4096 /dev/zero | tr '\0' A
    head -c 8192 /dev/zero | tr '\0' B
    head -c 1036288 /dev/zero
} >disk.img
drive_image
sw_start -drive if=none,id=disk,file=disk.img,format=raw \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0

check "the drive is ready" nvme_setup
status_is() { check_eq "$1" "$2" "$r"; }
data_is() { # DESC ADDRESS LENGTH BYTE
    pattern "$4"
    di_want=$r
    two_ends "$2" "$3"
    check_eq "$1" "$di_want" "$r"
}
counted_is() { # DESC WORD: among what the drive's port has counted
    counted dp3
    case " $r " in
    *" $2 "*) pass "$1" ;;
    *) fail "$1" "want $2 in: $r" ;;
    esac
}
not_counted() { # DESC NAME
    counted dp3
    case $r in
    *"$2"*) fail "$1" "$r" ;;
    *) pass "$1" ;;
    esac
}

check "it has queues" nvme_queues

bar1_of 1
PEER=$r
bar1_of 5
HOLE=$r
snap dp3
drive read 0 8 $BUF
status_is "read to host memory" 0
data_is "has the data" $BUF 4096 65
drive read 8 8 $PEER
status_is "read to a peer" 0
data_is "has the data" $PEER 4096 66
counted_is "and its port counts it" peer-write=4096
memset $PEER 4096 67
drive write 24 8 $PEER
status_is "write from a peer" 0
counted_is "and its port counts it" peer-read=4096
drive read 24 8 $BUF
data_is "what was written is there" $BUF 4096 67

drive read 0 8 $HOLE
status_is "read to an address that nothing claims: posted, the drive does not know" 0
counted_is "the port refused all of it" refused=4096
drive write 0 8 $HOLE
status_is "write from there: Data Transfer Error" 4
counted_is "the port refused all of it" refused=4096
drive read 0 8 $BUF
status_is "the drive goes on" 0
data_is "and the medium has not been written" $BUF 4096 65
snap dp3

# Three pages, the last of which cannot be reached
writeq $PRPS $((BUF + 0x1000))
writeq $((PRPS + 8)) $((HOLE))
memset $BUF 0x2000 1
drive read 0 24 $BUF $PRPS
status_is "one page of three cannot be reached: the drive does not know" 0
counted_is "the port refused that page" refused=4096
data_is "the first page has arrived" $BUF 0x1000 65
data_is "and the second" $((BUF + 0x1000)) 0x1000 66
nvme 0 6 "$HOLE" 0 1 0 0
status_is "identify to nowhere: the drive does not know" 0
counted_is "the port refused it" refused=4096

# As ACS says: egress control blocks the peer (port 2), then does not
acs_egress $DP3 4
acs_set $DP3 $ACS_EC
drive read 0 8 $PEER
status_is "a peer that egress control blocks: the drive does not know" 0
counted_is "the port refused it" refused=4096
data_is "and the peer's memory is as it was" $PEER 4096 67
drive write 0 8 $PEER
status_is "write from there: Data Transfer Error" 4
counted_is "the port refused it" refused=4096
acs_set $DP3 $((ACS_EC | ACS_RR))
drive read 0 8 $PEER
status_is "the same redirected" 0
counted_is "goes around" upstream-peer-write=4096
data_is "and arrives" $PEER 4096 65
acs_set $DP3 0
drive read 8 8 $PEER
status_is "without control" 0
data_is "it arrives" $PEER 4096 66
not_counted "and does not go around" upstream-peer

# With neither memory nor a device at an address above the switch
drive read 0 8 0x700000000000
status_is "an address that nothing claims above: the drive does not know" 0
counted_is "is not refused by the port" other=4096
nvme 0 6 $BUF 0 1 0 0
status_is "identify to host memory" 0

# A completion is posted, too: the command is done, nobody hears of it, and the drive goes on
nvme 0 5 $((HOLE)) 0 0x000f0002 1 0
queue=$r
nvme 0 1 $((ADMIN + 0x4000)) 0 0x000f0002 0x00020001 0
status_is "a queue whose completions go nowhere" "$queue"
memset $BUF 4096 1
slot_2=0
snap dp3
submit 2 2 $BUF 0 0 0 7
pattern 65
want=$r
two_ends $BUF 4096
co_n=0
while [ "$r" != "$want" ] && more $co_n; do
    two_ends $BUF 4096
    co_n=$((co_n + 1))
done
check_eq "a command of it is done" "$want" "$r"
nvme 0 6 $BUF 0 1 0 0
status_is "and identify works after that" 0
readl $((REGS + 0x1c))
check_eq "the drive is ready, and not failed" 1 $((r & 3))
counted_is "its port refused the completion" refused=16
qt_stop

# For debugging: the drive tells
drive_image
sw_start -drive if=none,id=disk,file=disk.img,format=raw \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0,x-posted-errors=on
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
snap dp3
drive read 0 8 $HOLE
status_is "x-posted-errors: read to an address that nothing claims: Data Transfer Error" 4
counted_is "the port refused all of it" refused=4096
memset $BUF 0x2000 1
writeq $PRPS $((BUF + 0x1000))
writeq $((PRPS + 8)) $((HOLE))
drive read 0 24 $BUF $PRPS
status_is "one page of three: Data Transfer Error" 4
data_is "and nothing was moved" $BUF 0x2000 1
nvme 0 6 "$HOLE" 0 1 0 0
status_is "identify to nowhere: Data Transfer Error" 4
drive read 0 8 $BUF
status_is "host memory" 0
qt_finish

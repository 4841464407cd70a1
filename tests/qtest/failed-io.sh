#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a read that fails on the drive has moved nothing: no counter says otherwise
# tags: qtest quick switch nvme
# tier: check
# timeout: 30
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/switch/lib.sh"
. "$(dirname "$0")/switch/nvme.sh"

head -c 1048576 /dev/zero | tr '\0' A >disk.img
sw_start -blockdev driver=file,node-name=file,filename=disk.img \
    -blockdev driver=blkdebug,node-name=disk,image=file,inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5,inject-error.0.sector=8,inject-error.0.once=off,inject-error.0.immediately=off \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
bar1_of 0
P=$r
memset $P 8192 0x33
qom_counter gpu0 bar1-dma-write
before=$r
snap dp3
drive read 8 8 $P
check_eq "the read fails: Unrecovered Read Error" $((0x281)) $r
bytes_are "nothing was written to the GPU" $P 0x3333333333333333
qom_counter gpu0 bar1-dma-write
check_eq "the GPU has counted nothing" 0 $((r - before))
counted dp3
check_eq "the drive's port neither, but for the queues" "" "$(echo "$r" | tr ' ' '\n' | grep peer)"
drive read 0 8 $P
check_eq "the next read succeeds" 0 $r
qom_counter gpu0 bar1-dma-write
check_eq "and is counted" 4096 $((r - before))
counted dp3
check_eq "by the port, too" peer-write=4096 "$(echo "$r" | tr ' ' '\n' | grep peer)"
qt_finish

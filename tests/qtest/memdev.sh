#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: memdev: VRAM in a memory backend, which another process sees and writes, and a drive; wrong ones are refused
# tags: qtest nvme
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"

SIZE=4194304
backend() { # ID FILE [MORE]
    echo "memory-backend-file,id=$1,mem-path=$OUT/$2,size=$SIZE,share=on${3-}"
}
GPU=peerlane-gpu,id=gpu0,addr=4,vram-size=4M,bar1-size=1M,coherent=on
qt_start -object "$(backend m0 vram)" -object "$(backend m1 spare)" -object memory-backend-ram,id=small,size=2M \
    -device $GPU,memdev=m0 -device pcie-root-port,id=rp0,addr=5,chassis=1,slot=1
gpu_setup 0 0x20
use 0
queue_setup 0
in_file() { # FILE OFFSET LENGTH: what another process reads there, as 0x...
    r=0x$(od -An -v -tx1 -j $(($2)) -N "$3" "$OUT/$1" | tr -d ' \n')
}

in_file vram 0x1000 8
check_eq "new VRAM is zero" 0x0000000000000000 "$r"
job 0 op=$PLN_OP_FILL arg=8 imm=0x8877665544332211 dst=0x1000 len=4096
in_file vram 0x1ff8 16
check_eq "what the engine writes another process reads" 0x11223344556677880000000000000000 "$r"
printf 'seen by all' | dd of="$OUT/vram" bs=1 seek=$((0x200000)) conv=notrunc 2>"$OUT/dd.err"
bytes_are "what another process writes is in VRAM" $((WIN + 0x200000)) 0x7365656e20627920616c6c
job 0 op=$PLN_OP_FILL arg=1 imm=0x73 dst=0x300000 len=1
job 0 op=$PLN_OP_COMPARE src=0x200000 dst=0x300000 len=1
job_is "the engine sees it, too" 0 0xffffffffffffffff 1
bar1 $PLN_BAR1_CMD_MAP 0 1 0x200000
bytes_are "and it is in BAR1" $B1 0x7365656e
qom_counter gpu0 engine-vram-write
check "the GPU counts as ever" test "$r" -gt 4096

refused() { # DESC WHY PROPERTIES
    qmp device_add "{\"driver\":\"peerlane-gpu\",\"bus\":\"rp0\",\"id\":\"gpu1\",\"bar1-size\":1048576,\"vram-size\":$3}"
    case $qmp_reply in
    *"$2"*) pass "$1" ;;
    *) fail "$1" "$qmp_reply" ;;
    esac
}
refused "a backend that another GPU has" "m0 is in use" "$SIZE,\"memdev\":\"m0\""
refused "one of another size" "small has 2097152 bytes, vram-size is 4194304" "$SIZE,\"memdev\":\"small\""
refused "one that there is not" "m9" "$SIZE,\"memdev\":\"m9\""
made() { # DESC OBJECT
    qmp object-add "$2"
    case $qmp_reply in *error*) fail "$1 is made" "$qmp_reply" ;; esac
}
head -c $SIZE /dev/zero >"$OUT/fixed"
made "a backend that cannot be written" "{\"qom-type\":\"memory-backend-file\",\"id\":\"ro\",\"mem-path\":\"$OUT/fixed\",\"size\":$SIZE,\"share\":true,\"readonly\":true}"
refused "one that cannot be written" "ro cannot be written" "$SIZE,\"memdev\":\"ro\""
made "a backend that is no file" "{\"qom-type\":\"memory-backend-ram\",\"id\":\"ram\",\"size\":$SIZE}"
refused "one that is no file" "ram is not memory that can be mapped twice" "$SIZE,\"memdev\":\"ram\""
made "a backend of its own copy of a file" "{\"qom-type\":\"memory-backend-file\",\"id\":\"copy\",\"mem-path\":\"$OUT/fixed\",\"size\":$SIZE,\"share\":false}"
refused "one that is not shared" "copy is not memory that can be mapped twice" "$SIZE,\"memdev\":\"copy\""
qmp object-del '{"id":"m0"}'
case $qmp_reply in *error*) pass "the backend of a GPU stays" ;; *) fail "the backend of a GPU stays" "$qmp_reply" ;; esac
refused "what was refused before is free" '"return"' "$SIZE,\"memdev\":\"m1\""

# It migrates as a GPU's VRAM does, into another file or none
qmp stop
check "saved to a file" qt_saved
qt_stop
qt_start -object "$(backend m0 other)" -object "$(backend m1 spare)" -device $GPU,memdev=m0 \
    -device pcie-root-port,id=rp0,addr=5,chassis=1,slot=1 \
    -device peerlane-gpu,bus=rp0,id=gpu1,bar1-size=1M,vram-size=4M,memdev=m1 -incoming "file:$OUT/vmstate"
check "loaded from the file" qt_loaded
in_file other 0x200000 11
check_eq "VRAM is in the other backend" 0x7365656e20627920616c6c "$r"
in_file other 0x1ff8 16
check_eq "all of it" 0x11223344556677880000000000000000 "$r"
rm -f "$OUT/vmstate"
qt_stop

# A drive's DMA maps VRAM and unmaps it: both are of the GPU's region, and of the same
head -c 1048576 /dev/zero | tr '\0' A >disk.img
RP2=0x30
sw_start -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
    -drive if=none,id=disk,file=disk.img,format=raw -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0 \
    -object "$(backend m0 third)" -device pcie-root-port,id=rp2,addr=6,chassis=9,slot=9 \
    -device peerlane-gpu,bus=rp2,id=gpu9,vram-size=4M,bar1-size=1M,memdev=m0
bridge $RP2 0 11 11 9 9
gpu_setup 9 0xb00
use 9
bar1 "$PLN_BAR1_CMD_MAP" 0 16 0
check_eq "BAR1 shows VRAM" 0 "$r"
check "a drive is ready" nvme_setup
check "it has queues" nvme_queues
n=0
while [ $n -lt 12 ]; do
    drive read 0 8 $((B1 + 4096 * n))
    [ "$r" = 0 ] || break
    n=$((n + 1))
done
check_eq "it reads into the GPU 12 times" "12 0" "$n $r"
qom_counter gpu9 bar1-dma-write
check_eq "and the GPU has counted all of that" 49152 "$r"
head -c 49152 disk.img >want
check "another process sees it" cmp -n 49152 want "$OUT/third"
qmp_events=
qmp device_del '{"id":"gpu9"}'
cfg_cap $RP2 0x10
cfg_writew $RP2 $((r + 0x18)) 0x0700
check "the GPU is unplugged" event DEVICE_DELETED
qmp object-del '{"id":"m0"}'
case $qmp_reply in *error*) fail "then the backend is free" "$qmp_reply" ;; *) pass "then the backend is free" ;; esac
drive read 0 8 $BUF
check_eq "and the drive goes on" 0 "$r"
qt_finish

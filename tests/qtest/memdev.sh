#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: memdev: VRAM in a memory backend, which another process sees and writes; wrong ones are refused
# tags: qtest quick
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

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
head -c $SIZE /dev/zero >"$OUT/fixed"
qmp object-add "{\"qom-type\":\"memory-backend-file\",\"id\":\"ro\",\"mem-path\":\"$OUT/fixed\",\"size\":$SIZE,\"share\":true,\"readonly\":true}"
case $qmp_reply in *error*) fail "a backend that cannot be written is made" "$qmp_reply" ;; esac
refused "one that cannot be written" "ro cannot be written" "$SIZE,\"memdev\":\"ro\""
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
qt_finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the CUDA runtime, 12 and 13, on the emulated GPU, with a window and without
# tags: guest cuda
# tier: check
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cudart_guest_13"

# run NAME TOPOLOGY KVER
run() {
	boot "$1" "$2" "$3" 110 "$TOP/tests/cudart/guest/cudart" "MODE=$1"
	check_eq "$1: with two plans" 2 "$(grep -c '^1\.\.[1-9]' "$OUT/$1/result.log")"
}

run coherent no-drive 7.2
run plain "$TOP/tests/cuda/two-gpus.topo" 6.12
finish

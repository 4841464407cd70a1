#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda between processes and between GPUs: memory, events, peer access
# tags: guest cuda
# tier: check
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cuda_procs"

# run NAME TOPOLOGY KVER GPUS
run() {
	boot "$1" "$2" "$3" 110 "$TOP/tests/cuda/guest/procs" "GPUS=$4"
}

run window "$TOP/tests/cuda/two-gpus.topo,gpu0.coherent=on,gpu1.coherent=on" 7.2 2
run plain "$TOP/tests/cuda/two-gpus.topo" 6.12 1
finish

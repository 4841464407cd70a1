#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda on the emulated GPU: coherent and not, two GPUs, two kernels
# tags: guest cuda
# tier: check
# timeout: 480
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cuda_guest"

# run NAME TOPOLOGY KVER MODE GPUS
run() {
	boot "$1" "$2" "$3" 150 "$TOP/tests/cuda/guest/cuda" "MODE=$4" "GPUS=$5"
}

run coherent no-drive 7.2 coherent 1
run plain "$TOP/tests/cuda/two-gpus.topo" 7.2 plain 2
# The tier check has Linux 6.12 in cuda/procs and cufile/guest
[ "${TIER:-check}" = check ] || run no-p2pdma no-drive 6.12 coherent 1
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda on a fake driver: meaning of every call, every failure
# tags: cuda
# tier: check
# timeout: 1200
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

build_userlib cuda tests
# What has threads once more under the sanitizer for them; what takes longest goes first
set -- cuda_stream_unit_tsan "cuda_failure_unit_tsan threads" cuda_fuzz_tsan
for part in failure_unit drain_unit stream_unit fuzz memory_unit order_unit share_unit peer_unit code_unit pool_unit unit; do
	set -- "$@" "cuda_${part}_san" "cuda_$part"
done
units "$@"
# UCX replaces functions of the library in memory
LD_LIBRARY_PATH=$BUILD/userlib/tests/host/fake CUDA_VISIBLE_DEVICES=0 "$BUILD/userlib/tests/host/cuda_patch" >cuda_patch.log 2>&1
ended cuda_patch $? cuda_patch.log
finish

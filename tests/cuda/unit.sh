#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda on a fake driver: meaning of every call, every failure
# tags: quick cuda
# tier: check
# timeout: 1200
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

build_userlib cuda tests
for part in unit memory_unit order_unit stream_unit drain_unit failure_unit share_unit peer_unit code_unit \
	pool_unit fuzz; do
	unit "cuda_$part"
	unit "cuda_${part}_san"
done
# UCX replaces functions of the library in memory
LD_LIBRARY_PATH=$BUILD/userlib/tests/host/fake CUDA_VISIBLE_DEVICES=0 "$BUILD/userlib/tests/host/cuda_patch" >cuda_patch.log 2>&1
ended cuda_patch $? cuda_patch.log
# What has threads once more under the sanitizer for them
unit cuda_failure_unit_tsan threads
unit cuda_fuzz_tsan
unit cuda_stream_unit_tsan
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: real NVIDIA GPU: what pln_mr_reg() exports, and staging at full speed
# tags: gpu
# tier: all
# timeout: 300
#
# Runs on the host, like check-gpu.sh.  The RDMA device is a false one; the
# dma-bufs and the copies are the GPU's.  Needs the build, and on the host only
# a C library of version 2.34 or later.
#
#   O=DIR       a build to use when build/userlib has none
set -u

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/gpu/lib.sh"

need_gpu
for dir in "$top/build/userlib" "$O"; do
	test=$dir/tests/host/mr_gpu
	[ -x "$test" ] || continue
	LC_ALL=C ldd "$test" 2>&1 | grep -q 'not found' &&
		skip "$test does not run here: the C library is older than 2.34"
	"$test" "$dir/tests/host/mr"
	exit
done
skip "no mr_gpu in $O/tests/host (run: make)"

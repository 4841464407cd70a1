#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda on two emulated GPUs, with streams that are held up and between processes, answers as NVIDIA's on two H100s
# tags: guest cuda
# tier: all
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cuda_conform"

# Time decides in two places: a call that has not returned after 2 s is said to wait, and what holds a stream up does so for
# 20 s.  A host that is slower than that makes a call which should return fail; one that should wait, and does not, it can
# hide.  ids has no pending work, and the library alone gives them: tests/cuda/conform.sh asks it.

boot two "$TOP/tests/cuda/two-gpus.topo,gpu0.coherent=on,gpu1.coherent=on" 7.2 240 "$TOP/tests/cuda/guest/conform"
for part in two procs two-order order copies; do
	sed -n "s/^# $part: //p" "$OUT/two/result.log" >"answers.$part"
	conform_golden "$part" >"golden.$part"
	check "$part: every answer is that of a real driver" diff -u "golden.$part" "answers.$part"
done
finish

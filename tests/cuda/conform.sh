#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda answers as NVIDIA's does on a real GPU, question by question
# tags: quick cuda
# timeout: 180
. "$TOP/tests/lib/case.sh"
need_tool make
need_tool flock
need_tool cc

flock "$BUILD/userlib/tests.lock" make -C "$TOP/userlib/cuda" O="$BUILD/userlib" tests >build.log 2>&1 || {
	fail "the test programs build" "$(tail -n 20 build.log)"
	finish
}
host=$BUILD/userlib/tests/host
golden=$TOP/userlib/cuda/test/conform.golden

LD_LIBRARY_PATH=$host/fake CUDA_VISIBLE_DEVICES=0 "$host/cuda_conform" >answers
check "all questions were asked" test "$(wc -l <answers)" -ge 460
check "every answer is that of a real driver" diff -u "$golden" answers
sed 's/^alloc 0 .*/alloc 0 0/' answers >wrong
check_not "a wrong answer would be seen" cmp "$golden" wrong
finish

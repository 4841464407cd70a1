#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcudart 12 and 13 answer as NVIDIA's do on a real GPU
# tags: cuda
# tier: check
# timeout: 400
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

build_userlib cuda tests
build_userlib cudart tests
host=$BUILD/userlib/tests/host
export LD_LIBRARY_PATH="$host/fake:$BUILD/userlib" CUDA_VISIBLE_DEVICES=0 PEERLANE_FAKE_COHERENT=1
for major in 12 13; do
	golden=$TOP/userlib/cudart/test/conform.$major.golden
	"$host/cudart_conform_$major" >"answers.$major" 2>/dev/null
	check "$major: all questions were asked" test "$(wc -l <"answers.$major")" -ge 260
	check "$major: every answer is that of NVIDIA's runtime" diff -u "$golden" "answers.$major"
	sed 's/^alloc 0  .*/alloc 0 1/' "answers.$major" >wrong
	check_false "$major: a wrong answer would be seen" cmp "$golden" wrong
done
# Without a driver a program starts, and its first call says so
mkdir none
cp "$BUILD/userlib/libcudart.so.13" none/
LD_LIBRARY_PATH=$PWD/none "$host/cudart_conform_13" >none.txt 2>none.err
check "no driver: an error, no crash" grep -q '^count  *35$' none.txt
check "and it says why" grep -q 'libcuda\.so\.1' none.err
finish

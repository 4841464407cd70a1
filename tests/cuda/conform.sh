#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda answers as NVIDIA's does on a real GPU, and on two, question by question
# tags: cuda
# tier: check
# timeout: 400
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"

build_userlib cuda tests
host=$BUILD/userlib/tests/host
golden=$TOP/userlib/cuda/test/conform.golden

# ask WINDOW GPUS [PART]: with a coherent window or without
ask() {
	# shellcheck disable=SC2086 # none, or a word
	LD_LIBRARY_PATH=$host/fake PEERLANE_FAKE_GPUS=$2 PEERLANE_FAKE_COHERENT=$1 "$BUILD/userlib/tests/cuda_conform" ${3-}
}

# Side by side, since most of the time they wait
ask 1 1 >answers &
ask 1 1 order >answers.order &
ask 1 1 copies >answers.copies &
ask 1 1 ids >answers.ids &
ask 1 1 attributes >answers.attributes &
ask 0 1 >answers.0 &
ask 1 2 two >answers.two &
ask 1 2 two-order >answers.two-order &
wait
check "all questions were asked" test "$(wc -l <answers)" -ge 1070
check "every answer is that of a real driver" diff -u "$golden" answers
check "streams that are held up do as on a real driver" diff -u "${golden%.golden}_order.golden" answers.order
check "copies and fills behind what is held up do, too" diff -u "${golden%.golden}_copies.golden" answers.copies
check "ids of memory by hand, too" diff -u "${golden%.golden}_ids.golden" answers.ids
# Each GPU has its own: no number is compared
check_eq "a device tells all of its attributes" "$(seq 147)" "$(sed -nE 's/^([0-9]+) -?[0-9]+$/\1/p' answers.attributes)"
# Of two processes tests/cuda/conform-guest.sh asks
for part in two two-order; do
	conform_golden "$part" >"golden.$part"
	check "$part: every answer is that of a real driver" diff -u "golden.$part" "answers.$part"
done
# Without a window there is no managed memory, and the rest is the same
sed '/^\[managed memory\]$/,/^\[batches\]$/d' "$golden" >rest
sed '/^\[managed memory\]$/,/^\[batches\]$/d' answers.0 >answers.plain
check "without a window too" diff -u rest answers.plain
sed 's/^alloc 0 .*/alloc 0 1/' answers >wrong
check_false "a wrong answer would be seen" cmp "$golden" wrong
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcudart 12 and 13 on a fake device: device code, questions on captures, threads
# tags: cuda
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

build_userlib cuda tests
build_userlib cudart tests
export LD_LIBRARY_PATH="$BUILD/userlib/tests/host/fake:$BUILD/userlib" PEERLANE_FAKE_COHERENT=1
for major in 12 13; do
	unit "cudart_code_unit_$major"
done
unit cudart_lock_unit
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: registration on a false libibverbs and libcuda: every way, every failure
# tags: rdma
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
fakes=$BUILD/userlib/tests/host/mr
for each in mr_unit mr_unit_san; do
	unit "$each" "$fakes"
	unit "$each" "$fakes" old
done
unit mr_faults_san "$fakes"
finish

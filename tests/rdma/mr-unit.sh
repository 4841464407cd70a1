#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: registration on a false libibverbs and libcuda: every way, every failure
# tags: quick rdma
# timeout: 120
. "$TOP/tests/lib/case.sh"
. "$TOP/tests/topo/lib.sh"
need_tool make flock cc

build_core
fakes=$BUILD/userlib/tests/host/mr
for each in mr_unit mr_unit_san; do
	unit "$each" "$fakes"
	unit "$each" "$fakes" old
done
unit mr_faults_san "$fakes"
finish

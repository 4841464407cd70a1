#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor tells near and far pairs of drive and GPU apart, as the kernel does
# tags: doctor guest p2p
# tier: check
# timeout: 180

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/tests/doctor/lib.sh"
need_tool cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

foretold pairs "$TOP/scenarios/topologies/two-gpus-two-nvme.topo" 7.2 "" \
	"PAIRS='disk0 disk2'"
agrees
is "each GPU has drives that reach it, and drives that do not" '
	group_by(.doctor.answer.gpus[0].gpu) | length == 2 and
	all([.[].io.path] | unique == ["bounce", "p2p"])'
is "those that do not are told why" 'all(.io.path == "p2p" or
	([.doctor.findings[].id] | index("host-bridge-untrusted")))'
machine "each GPU has a near drive: the machine is healthy" '.status == 0'
finish

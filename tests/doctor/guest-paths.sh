#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor foretells the path that peerlane io then takes, and why
# tags: doctor guest p2p
# tier: all
# timeout: 300

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/tests/doctor/lib.sh"
need_tool cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/6.12/base.cpio"
topologies=$TOP/scenarios/topologies

foretold direct "$topologies/same-switch.topo" 7.2 "" FILES=1
agrees
is "ext4 is direct, and only that" \
	'[.[] | select(.io.path == "p2p") | .label] == ["ext4"]'
is "tmpfs is staged, and doctor says that it is in memory" \
	'.[] | select(.label == "tmpfs") | [.doctor.findings[].id] | index("fs-in-memory")'
is "journalled data is staged, and doctor says so" \
	'.[] | select(.label == "data-journal") | [.doctor.findings[].id] | index("fs-journal-data")'
machine "the machine is healthy" '.status == 0 and .doctor.verdict == "healthy"'
machine "doctor knows that it is emulated" \
	'[.doctor.findings[].id] | index("env-emulated")'

foretold apart "$topologies/two-root-ports.topo" 7.2 "" ""
agrees
is "the reason is the root complex" \
	'.[0].doctor | ([.findings[].id] | index("host-bridge-untrusted")) and
	 (.answer.reason | test("8086:29c0"))'
is "the library has it from the kernel, too" \
	'.[0].io.reason | test("EREMOTEIO|whitelisted|EINVAL")'
machine "the machine is broken" '.status == 2 and .doctor.verdict == "broken"'

foretold old-kernel "$topologies/same-switch.topo" 6.12 "" ""
agrees
is "the reason is the kernel" \
	'.[0].doctor.findings | map(select(.severity == "error").id) == ["kernel-no-p2pdma"]'
finish

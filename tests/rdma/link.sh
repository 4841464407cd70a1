#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: links on a device of the test's own: ways, credits, pipelining, every failure
# tags: rdma
# tier: check
# timeout: 400
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
units link_unit_san link_fuzz_san "link_fuzz_san 2" link_faults_san link_port_unit_san link_wire_unit_san \
	verbs_unit_san link_unit link_port_unit link_wire_unit
finish

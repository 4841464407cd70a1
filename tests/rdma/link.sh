#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: links on a device of the test's own: ways, credits, pipelining, every failure
# tags: quick rdma
# tier: check
# timeout: 400
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
unit link_unit
unit link_unit_san
unit link_faults_san
unit link_fuzz_san
unit link_fuzz_san 2
unit link_port_unit
unit link_port_unit_san
unit link_wire_unit
unit link_wire_unit_san
unit verbs_unit_san
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the RDMA devices of a drive of another host, from answers of netlink: malformed, short, of later kernels, of devices that go away
# tags: topo rdma
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
unit nvmeof_unit
unit nvmeof_unit_san
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the PCI Express tree: config spaces, ways, the nearest GPU, every failure
# tags: topo
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
unit topo_unit
unit topo_unit_san
finish

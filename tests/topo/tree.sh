#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the PCI Express tree: config spaces, ways, the nearest GPU, every failure
# tags: quick topo
# timeout: 120
. "$TOP/tests/lib/case.sh"
. "$TOP/tests/topo/lib.sh"
need_tool make flock cc

build_core
unit topo_unit
unit topo_unit_san
finish

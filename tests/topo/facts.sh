#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: facts of a machine and records of them: answers, mistakes, every failure
# tags: quick topo
# timeout: 120
. "$TOP/tests/lib/case.sh"
. "$TOP/tests/topo/lib.sh"
need_tool make flock cc

build_core
unit facts_unit
unit facts_unit_san
finish

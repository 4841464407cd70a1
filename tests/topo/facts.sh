#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: facts of a machine and records of them: answers, mistakes, every failure
# tags: topo
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
unit facts_unit
unit facts_unit_san
finish

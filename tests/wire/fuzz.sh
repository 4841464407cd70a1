#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: random frames and commands do not bring the wire down, and what it counts adds up
# tags: wire
# tier: check
# timeout: 120

. "$TOP/tests/wire/lib.sh"
wire_test fuzz "${SEED:-1}" "${STEPS:-2000}"

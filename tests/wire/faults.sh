#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the wire between hosts does the harm that was ordered, no other, and counts it
# tags: wire
# tier: check
# timeout: 120

. "$TOP/tests/wire/lib.sh"
wire_test faults

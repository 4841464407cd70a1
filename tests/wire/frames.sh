#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the wire between hosts takes frames where they belong, and counts RoCE by opcode
# tags: wire
# tier: check
# timeout: 120

. "$TOP/tests/wire/lib.sh"
wire_test frames

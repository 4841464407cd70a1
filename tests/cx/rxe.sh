#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a ConnectX and stock soft-RoCE talk to each other: every verb of RC, UC and UD, both ways, and RC with lost and reordered packets
# tags: guest rdma
# tier: nightly
# timeout: 960
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"

cx_hosts a
cx_run

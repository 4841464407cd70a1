#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two hosts with a ConnectX each: every verb of RC, XRC, UC and UD, and of RC and XRC on a wire that loses or reorders packets
# tags: guest rdma
# tier: all
# timeout: 960
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"

cx_hosts a b
cx_run

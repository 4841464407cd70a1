#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two hosts with a ConnectX with Ethernet each and Linux 6.12: every verb of RC, XRC, UC and UD by RoCE addresses, and RC with lost and reordered packets
# tags: guest rdma
# tier: nightly
# timeout: 960
# shellcheck disable=SC2034 # of lib.sh
CX_KERNEL=6.12 CX_PORT=link-layer=ethernet
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"

cx_hosts a b
cx_run

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two hosts with a ConnectX with Ethernet each: every verb of RC, XRC, UC and UD by RoCE addresses, and RC with lost and reordered packets
# tags: guest rdma
# tier: nightly
# timeout: 960
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"

CX_PORT=link-layer=ethernet
cx_hosts a b
cx_run

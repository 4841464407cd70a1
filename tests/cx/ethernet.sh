#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the stock mlx5 driver makes network devices of two ConnectX with Ethernet: ping, TCP with checksums, long frames, links down and up
# tags: guest rdma
# tier: all
# timeout: 400
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"

CX_PORT=link-layer=ethernet
SC_GUEST=$TOP/tests/cx/guest/ethernet
cx_hosts a b
hosts_boot 300 2
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the stock mlx5 driver makes a network device of a ConnectX with Ethernet, which talks to a virtio-net: ping, TCP with checksums, long frames, links down and up
# tags: guest rdma
# tier: nightly
# timeout: 400
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"

CX_PORT=link-layer=ethernet
SC_GUEST=$TOP/tests/cx/guest/ethernet
cx_hosts a
hosts_boot 300 2
finish

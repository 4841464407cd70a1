#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: rdma-core's own test suite on the emulated ConnectX with Ethernet: its tests pass, but for those that rdma-core-ethernet.expect explains
# tags: programs guest rdma third-party
# tier: nightly
# timeout: 1800
. "$TOP/tests/programs/lib-rdma-core.sh"

# Both ends of the suite's raw packets are on the one card, whose wire ends in its own port: each frame comes back
at_exit 'rm -f plug'
rdma_core_suite -netdev dgram,id=plug,local.type=unix,local.path=plug,remote.type=unix,remote.path=plug \
	-device peerlane-cx,id=cx0,bus=sw0.0,link-layer=ethernet,netdev=plug,mac=52:54:00:00:00:01
finish

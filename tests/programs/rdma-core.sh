#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: rdma-core's own test suite on the emulated ConnectX with InfiniBand: its tests pass, but for those that rdma-core.expect explains
# tags: programs guest rdma third-party
# tier: nightly
# timeout: 1800
. "$TOP/tests/programs/lib-rdma-core.sh"

rdma_core_suite -device peerlane-cx,id=cx0,bus=sw0.0
finish

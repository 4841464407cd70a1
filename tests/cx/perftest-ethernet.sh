#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: perftest's tools for raw Ethernet packets between two ConnectX with Ethernet: perftest-ethernet.list says what works, and why other things do not
# tags: guest rdma
# tier: nightly
# timeout: 1200
# shellcheck source=tests/cx/lib-perftest.sh
. "$TOP/tests/cx/lib-perftest.sh"

perftest_hosts cx,cx0.link=ethernet,memory=512M perftest-ethernet.list
finish

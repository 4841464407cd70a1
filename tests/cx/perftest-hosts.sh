#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: perftest's tools, services and options between two ConnectX, in host memory and with dma-bufs of the GPUs at both ends: perftest.list says which work, and why others do not
# tags: guest rdma p2p switch
# tier: nightly
# timeout: 2400
# shellcheck source=tests/cx/lib-perftest.sh
. "$TOP/tests/cx/lib-perftest.sh"

perftest_hosts cx,memory=512M perftest.list
finish

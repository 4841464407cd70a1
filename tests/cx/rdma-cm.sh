#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: perftest of Debian between two ConnectX with Ethernet: by RoCE addresses, and by connections that rdma_cm makes
# tags: guest rdma
# tier: all
# timeout: 600
# shellcheck source=tests/cx/lib.sh
. "$TOP/tests/cx/lib.sh"
need_file "$BUILD/guest/$SC_KERNEL/perftest.cpio"

CX_PORT=link-layer=ethernet
SC_GUEST=$TOP/tests/cx/guest/rdma-cm
cx_hosts a b
echo perftest >>"$OUT/case/extras"
echo rdma_ucm >>"$OUT/case/modules"
hosts_boot 550 2
finish

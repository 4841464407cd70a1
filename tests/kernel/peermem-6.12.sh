#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_peermem on Linux 6.12: an RDMA core with the peer-memory interface (a test module plays it) registers GPU memory
# tags: kernel guest rdma
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 6.12 p2p-abi-plain peermem 170
finish

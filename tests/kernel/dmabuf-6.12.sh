#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: dma-bufs of peerlane_gpu on Linux 6.12, which has no P2PDMA: below one switch importers reach it, elsewhere they are refused
# tags: kernel guest p2p
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# What the stock kernel can check: freed memory, list and slab corruption
VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 6.12 p2p-abi-plain dmabuf 170
finish

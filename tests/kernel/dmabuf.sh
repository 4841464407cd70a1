#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: dma-bufs of peerlane_gpu: other drivers import GPU memory and do DMA there, until it goes away
# tags: kernel guest p2p
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# What the stock kernel can check: freed memory, list and slab corruption
VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 7.2 p2p-abi dmabuf 170
finish

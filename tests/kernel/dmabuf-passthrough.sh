#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: dma-bufs of peerlane_gpu behind an IOMMU that passes addresses through: importers get BAR1's
# tags: kernel guest p2p iommu
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# What the stock kernel can check: freed memory, list and slab corruption
VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1 intel_iommu=on iommu=pt'
driver_guest 7.2 p2p-abi-iommu dmabuf 170 -device intel-iommu
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: dma-bufs of peerlane_gpu under the debug kernel, behind an IOMMU that translates
# tags: kernel guest p2p iommu debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE='intel_iommu=on'
debug_guest p2p-abi-iommu dmabuf 470 -device intel-iommu
finish

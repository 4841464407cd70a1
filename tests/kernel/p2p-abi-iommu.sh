#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia_p2p_* behind an IOMMU that translates: the addresses for DMA are the IOMMU's, and the data is right
# tags: kernel guest p2p iommu
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE=intel_iommu=on
driver_guest 7.2 p2p-abi-iommu p2p-abi 170 -device intel-iommu
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu behind an IOMMU that translates: the engine reaches host memory by IOVAs alone
# tags: kernel guest iommu
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE=intel_iommu=on
driver_guest 7.2 driver iommu 170 -device intel-iommu
finish

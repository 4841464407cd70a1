#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu when the GPU fails, is reset, or goes away
# tags: kernel guest fault
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# What the stock kernel can check: freed memory, list and slab corruption
VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
# ACPI's slots do not tell that the GPU has gone; kernel/hotplug has those that do
driver_guest 7.2 driver faults 170 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=on
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu on Linux 6.12 when the GPU fails, is reset, or goes away
# tags: kernel guest fault
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# ACPI's slots do not tell that the GPU has gone; kernel/hotplug has those that do
driver_guest 6.12 driver-plain faults 170 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=on
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: faults, resets and removal under load, under the debug kernel
# tags: kernel guest fault debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

# ACPI's slots do not tell that the GPU has gone; kernel/debug-hotplug has those that do
debug_guest driver faults 470 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=on
finish

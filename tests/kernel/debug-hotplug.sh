#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU is pulled out and unplugged in use, under the debug kernel
# tags: kernel guest fault p2p debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"
. "$TOP/tests/kernel/lib-hotplug.sh"

debug_guest driver hotplug 470 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off
finish

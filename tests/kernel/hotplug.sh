#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu when its GPU is pulled out or unplugged in use, and plugged again
# tags: kernel guest fault p2p
# timeout: 180
. "$TOP/tests/kernel/lib.sh"
. "$TOP/tests/kernel/lib-hotplug.sh"

VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 7.2 driver hotplug 170 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off
finish

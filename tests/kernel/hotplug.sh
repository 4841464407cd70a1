#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu when its GPU is pulled out or unplugged in use, and plugged again
# tags: kernel guest fault p2p
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

. "$TOP/scenarios/lib/hotplug.sh"

# The host's side of pln_hotplug
host_pull() { vm_pull "$1" "$2" && echo ok; }
host_unplug() { vm_unplug "$1" "$2" && echo ok; }
host_plug() { vm_plug "$1" "$2" && echo ok; }

VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 7.2 driver hotplug 170 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off
finish

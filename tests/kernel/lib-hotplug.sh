# shellcheck shell=sh
# SPDX-License-Identifier: MIT
. "$TOP/scenarios/lib/machine/hotplug.sh"

# The host's side of pln_hotplug
host_pull() { vm_pull "$1" "$2" && echo ok; }
host_unplug() { vm_unplug "$1" "$2" && echo ok; }
host_plug() { vm_plug "$1" "$2" && echo ok; }

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Devices that come and go, for users of vm.sh.  The guest has to see PCIe
# hotplug itself, not ACPI: every machine of vm.sh is made so.
#
#	vm_pull NAME DEVICE	out of its port, with no word to the guest
#	vm_unplug NAME DEVICE	ask the guest for it, and return
#	vm_plug NAME DEVICE	in again, as the machine had it at first
#
# Each prints an error and fails when it cannot be done.
#
# The guest's wish "host throttle DRIVE BPS": the host's end of the drive moves so many
# bytes per second at most; 0: any.

# vm_plug_args NAME DEVICE: what comes after -device for it
vm_plug_args() {
	vm_plug_line=$(grep -E "^[a-z0-9-]+,id=$2(,|\$)" "$OUT/$1/qemu.args") || return
	# and what -set has added
	printf '%s%s\n' "$vm_plug_line" "$(sed -n "s/^device[.]$2[.]/,/p" "$OUT/$1/qemu.args" | tr -d '\n')"
}

vm_pull() {
	vm_port=$(vm_plug_args "$1" "$2" | sed -n 's/.*,bus=\([^,]*\).*/\1/p')
	[ -n "$vm_port" ] || { echo "no device $2"; return 1; }
	vm_qom_set "$1" "/machine/peripheral/$vm_port" surprise-removal true \
		>/dev/null
}

vm_unplug() {
	vm_command "$1" device_del --arg id "$2" >/dev/null
}

# What was there before may still hold the id, until the guest has let go of it,
# and the drive's image, until QEMU has: 10 s at most
vm_plug() {
	vm_plug_dev=$(vm_plug_args "$1" "$2")
	[ -n "$vm_plug_dev" ] || { echo "no device $2"; return 1; }
	vm_tries=0
	while :; do
		# HMP takes what the command line takes
		vm_reply=$(vm_command "$1" human-monitor-command --arg command-line "device_add $vm_plug_dev" |
			jq -r .return) && [ -z "$vm_reply" ] && return
		case $vm_reply in
		*'uplicate'* | *'ermission conflict'*) ;;
		*) break ;;
		esac
		vm_tries=$((vm_tries + 1))
		[ "$vm_tries" -lt 100 ] || break
		sleep 0.1
	done
	printf '%s\n' "$vm_reply"
	return 1
}

host_throttle() { # GUEST "DRIVE BPS"
	vm_command "$1" block_set_io_throttle --arg id "${2% *}" --argjson bps "${2#* }" \
		--argjson bps_rd 0 --argjson bps_wr 0 --argjson iops 0 --argjson iops_rd 0 --argjson iops_wr 0 \
		>/dev/null && echo ok
}

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What the guest sides share.  The host side numbers the results.
status=0

# check DESC COMMAND…
check() {
	desc=$1
	shift
	if "$@" >/tmp/check.log 2>&1; then
		echo "ok 1 - $desc"
		return 0
	fi
	status=1
	echo "not ok 1 - $desc"
	sed 's/^/# /' /tmp/check.log
}

# program NAME ARGUMENTS…: one of the test programs, which print results
program() {
	name=$1
	shift
	"/usr/lib/peerlane/tests/$name" "$@" || status=1
}

# address DRIVER: of the first device that it is bound to
address() {
	for device in /sys/bus/pci/drivers/"$1"/0000:*; do
		echo "${device##*/}"
		return
	done
}

# pci_of NODE: the GPU of peerlane-gpuN
pci_of() {
	readlink -f "/sys/class/peerlane_gpu/$1/device" | sed 's/.*\///'
}

# give_peer PCI-ADDRESS: that GPU becomes the device of peerlane_p2p_test
give_peer() {
	echo "$1" >/sys/bus/pci/drivers/peerlane_gpu/unbind
	echo peerlane_p2p_test >"/sys/bus/pci/devices/$1/driver_override"
	echo "$1" >/sys/bus/pci/drivers_probe
	test -e "/sys/bus/pci/drivers/peerlane_p2p_test/$1"
}

finish() {
	exit "$status"
}

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What the guest sides share.  The host side numbers the results.
status=0
results=0

# shellcheck source=tests/kernel/guest/strict.sh
. /case/strict.sh

# What the host side says: TIER, for the test programs, too
# shellcheck source=/dev/null
. /case/env
export TIER

# check DESC COMMAND…
check() {
	results=$((results + 1))
	desc=$1
	shift
	if "$@" >/tmp/check.log 2>&1; then
		echo "ok $results - $desc"
		return 0
	fi
	status=1
	echo "not ok $results - $desc"
	sed 's/^/# /' /tmp/check.log
}

# module_stays DESC MODULE: somebody uses it, so it cannot be unloaded
module_stays() {
	left=0
	rmmod "$2" >/tmp/rmmod.log 2>&1 || left=$?
	check "$1" grep -q "'$2': Resource temporarily unavailable" /tmp/rmmod.log
	check "$1: rmmod's status" test "$left" -eq 1
}

# program NAME ARGUMENTS…: one of the test programs, which print results and a plan
program() {
	name=$1
	shift
	echo "# program $name"
	"/usr/lib/peerlane/tests/$name" "$@" || status=1
}

# seconds CHECK NIGHTLY CHECKED: of a race; at night a kernel that checks itself has longer limits
seconds() {
	case $TIER-$(uname -r) in
	nightly-*-debug | nightly-*-kcsan) echo "$3" ;;
	nightly-*) echo "$2" ;;
	*) echo "$1" ;;
	esac
}

# share MOST RACES: the seconds of each of so many races that are to come, so that the limit of a case that runs for minutes holds on a
# busy machine, too: they end when the guest is nine minutes old, but for the rounds that each of them has at least
share() {
	share=$(((540 - $(cut -d. -f1 /proc/uptime)) / $2))
	[ "$share" -lt "$1" ] || share=$1
	[ "$share" -gt 0 ] || share=1
	echo "$share"
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

# nothing_held PCI-ADDRESS: lines of debugfs memory that count what is held must be 0
nothing_held() {
	cat "/sys/kernel/debug/peerlane_gpu/$1/memory"
	awk '/^(vram-used|vram-quarantined|bar1-used|files|buffers|exports|p2p-tables|jobs|pinned) / { seen++; bad += $2 != 0 }
	END { exit bad || seen != 9 }' "/sys/kernel/debug/peerlane_gpu/$1/memory"
}

# Debian's 6.1 and 6.12 are built without it
has_p2pdma() {
	case $(uname -r) in
	*-p2pdma) ;;
	6.1.* | 6.12.*) return 1 ;;
	esac
}

# Linux before 6.19 cannot be asked for the way of a dma-buf
finds_way() {
	case $(uname -r) in
	6.*) return 1 ;;
	esac
}

# give_peer PCI-ADDRESS: that GPU becomes the device of peerlane_p2p_test
give_peer() {
	echo "$1" >/sys/bus/pci/drivers/peerlane_gpu/unbind
	echo peerlane_p2p_test >"/sys/bus/pci/devices/$1/driver_override"
	echo "$1" >/sys/bus/pci/drivers_probe
	test -e "/sys/bus/pci/drivers/peerlane_p2p_test/$1"
}

# What waits in the driver waits half a second, when it is loaded again, too; at night it has its defaults
short_waits() {
	echo options peerlane_gpu remove_report_ms=500 drain_ms=500 >/etc/modprobe.d/peerlane-gpu-waits.conf || return 1
	for wait in remove_report_ms drain_ms; do
		echo 500 >"/sys/module/peerlane_gpu/parameters/$wait" || return 1
	done
}
[ "$TIER" = nightly ] || check "the driver's waits are short" short_waits

# look_for_lost: kmemleak believes what two scans see that was 5 s old when the second one began
look_for_lost() {
	lost_until=$(($(cut -d. -f1 /proc/uptime) + 7))
	echo scan >/sys/kernel/debug/kmemleak
	lost_wait=$((lost_until - $(cut -d. -f1 /proc/uptime)))
	[ "$lost_wait" -le 0 ] || sleep "$lost_wait"
	echo scan >/sys/kernel/debug/kmemleak
}

# lost [FILE]: what it found that our modules have allocated, a record each; "unloaded" where the module has gone
# shellcheck disable=SC2120 # debug-finds names a file
lost() {
	awk '
	function flush() {
		if (ours)
			printf "%s", record
		record = ours = ""
	}
	/^unreferenced object/ { flush() }
	{ record = record $0 "\n" }
	/\[peerlane[]_]/ { ours = 1 }
	# an address without a name, on the stack
	/\] 0xffffffff[0-9a-f]+$/ || /^ +0xffffffff[0-9a-f]+$/ { ours = 1; record = record "    unloaded\n" }
	END { flush() }' "${1:-/sys/kernel/debug/kmemleak}"
}

none_lost() {
	look_for_lost
	lost >/tmp/lost
	cat /tmp/lost
	test ! -s /tmp/lost
}

# Under a debug kernel nothing may be lost, either.  "several" looks for it after the last script.
finish() {
	[ -n "${LOST_LATER-}" ] || [ ! -e /sys/kernel/debug/kmemleak ] || check "no memory of our modules is lost" none_lost
	echo "1..$results"
	exit "$status"
}

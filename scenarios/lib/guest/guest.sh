# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for scenario.sh, and for guests
#
# The guest's side of what scenarios share; sourced as /case/lib/guest.sh.

guest_checks=0
guest_failed=0

pass() {
	guest_checks=$((guest_checks + 1))
	echo "ok $guest_checks - $1"
}

# fail DESC [DETAIL]
fail() {
	guest_checks=$((guest_checks + 1))
	guest_failed=$((guest_failed + 1))
	echo "not ok $guest_checks - $1"
	[ -z "${2-}" ] || printf '%s\n' "$2" | sed 's/^/# /'
}

# check DESC COMMAND…
check() {
	guest_desc=$1
	shift
	if "$@" >/tmp/check.out 2>&1; then
		pass "$guest_desc"
	else
		fail "$guest_desc" "command: $*
$(head -n 20 /tmp/check.out)"
	fi
}

# check_fails DESC REGEX COMMAND…: it refuses, with a status from 1 to 125, and says why
check_fails() {
	guest_desc=$1
	guest_regex=$2
	shift 2
	guest_got=0
	"$@" >/tmp/check.out 2>&1 || guest_got=$?
	if [ "$guest_got" -ge 1 ] && [ "$guest_got" -le 125 ] && grep -qE -e "$guest_regex" /tmp/check.out; then
		pass "$guest_desc"
	else
		fail "$guest_desc" "command: $*
want: a status from 1 to 125, and: $guest_regex
got:  $guest_got, and
$(head -n 20 /tmp/check.out)"
	fi
}

check_eq() {
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "want: $2
got:  $3"
	fi
}

# must COMMAND…: without it nothing else makes sense
must() {
	"$@" >/tmp/must.out 2>&1 && return
	fail "$*" "$(head -n 20 /tmp/must.out)"
	finish
}


# must_appear FILE: drivers probe in the background; bounded by 10 s
must_appear() {
	guest_tries=0
	while [ ! -e "$1" ] && [ "$guest_tries" -lt 200 ]; do
		guest_tries=$((guest_tries + 1))
		sleep 0.05
	done
	must test -e "$1"
}

# becomes FILE PATTERN: its first line, within 10 s
becomes() {
	guest_tries=0
	while [ "$guest_tries" -lt 200 ]; do
		guest_line=
		{ read -r guest_line <"$1"; } 2>/dev/null
		# shellcheck disable=SC2254 # a pattern
		case $guest_line in
		$2) return ;;
		esac
		guest_tries=$((guest_tries + 1))
		sleep 0.05
	done
	echo "$1 is \"$guest_line\", not \"$2\""
	return 1
}

# card_up: the ConnectX has its driver, and its port is active
card_up() {
	must_appear /sys/class/infiniband/mlx5_0
	must becomes /sys/class/infiniband/mlx5_0/ports/1/state '4: ACTIVE'
}

# mount_ext4 DRIVE: on /mnt. In the first seconds after a mount a thread of the kernel reads block bitmaps ahead; nothing else may move
# data while a transfer is counted.
mount_ext4() {
	must mount -t ext4 -o no_prefetch_block_bitmaps "$1" /mnt
}

# drive_of IMAGE: the block device of the drive that has it, /dev/nvme0n1 or
# another: drivers probe drives in any order, serial numbers tell them apart
drive_of() {
	guest_serial=$(sed -n "s/^\([^ ]*\) nvme .* image=$1\$/\1/p" /case/machine)
	guest_tries=0
	while [ -n "$guest_serial" ] && [ "$guest_tries" -lt 200 ]; do
		for guest_disk in /sys/block/nvme*n1; do
			guest_found= # read takes the padding away
			{ read -r guest_found <"$guest_disk/device/serial"; } 2>/dev/null
			[ "$guest_found" = "$guest_serial" ] || continue
			must_appear "/dev/${guest_disk##*/}"
			echo "/dev/${guest_disk##*/}"
			return
		done
		guest_tries=$((guest_tries + 1))
		sleep 0.05
	done
	return 1
}

# What the result shall have.  The host makes JSON of it: KEY.KEY is a key of an object,
# KEY.N an element of a list.

# fact KEY JSON: a number, true, false, or what a program has printed with --json
fact() {
	printf '@fact %s %s\n' "$1" "$2"
}

# text KEY TEXT: a string, of as many lines as it has
text() {
	printf '%s\n' "$2" | sed "s/^/@text $1 /"
}

# list KEY NUMBER…
list() {
	printf '@list %s\n' "$*"
}

# counted LABEL COMMAND…: with the devices' counters around it; its status is
# in counted_status
counted() {
	guest_label=$1
	shift
	host begin "$guest_label" >/tmp/host.out ||
		fail "the host counts" "$(cat /tmp/host.out)"
	"$@"
	counted_status=$?
	host end "$guest_label" >/tmp/host.out ||
		fail "the host counts" "$(cat /tmp/host.out)"
}

# transfers LABEL FILE: hand over what peerlane io has printed
transfers() {
	while IFS= read -r guest_line; do
		case $guest_line in
		'{'*'}') printf '@transfer %s %s\n' "$1" "$guest_line" ;;
		esac
	done <"$2"
}

# counter NAME: of the GPUs; their driver shows it in debugfs
counter() {
	[ -d /sys/kernel/debug/peerlane_gpu ] || mount -t debugfs none /sys/kernel/debug
	awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' /sys/kernel/debug/peerlane_gpu/*/counters
}

# vmstat NAME: a counter of the kernel
vmstat() {
	sed -n "s/^$1 //p" /proc/vmstat
}

finish() {
	echo "1..$guest_checks"
	[ "$guest_checks" -gt 0 ] || exit 1
	[ "$guest_failed" -eq 0 ] || exit 2
	exit 0
}

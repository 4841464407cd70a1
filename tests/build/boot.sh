#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each guest kernel boots in the time that the speed of this machine allows, and starts from a snapshot in a quarter of that
# tags: build guest
# tier: check
# timeout: 180
# exclusive
#
# It runs alone: how much sooner a guest starts from a snapshot is a quotient of two times, and beside
# another case the two may have had different shares of the processors.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"

need_file "$BUILD/qemu/qemu-system-x86_64"

# first_line KVER SNAPSHOT WHAT LIMIT: to the case's first line in at most LIMIT
# nanoseconds; the best of three counts, and is in $best
first_line() {
	best=
	for _ in 1 2 3; do
		ns=$(PEERLANE_SNAPSHOT=$2 "$TOP/images/guest/boot-time" "$1" 2>>"$OUT/errors") || ns=
		if [ -n "$ns" ] && { [ -z "$best" ] || [ "$ns" -lt "$best" ]; }; then
			best=$ns
		fi
		[ -z "$best" ] || [ "$best" -gt "$4" ] || break
	done
	if [ -z "$best" ]; then
		fail "Linux $1 $3, runs the case, reports its status" "$(tail -n 20 "$OUT/errors")"
		best=$4
	else
		pass "Linux $1 $3, runs the case, reports its status"
		check "in $((best / 1000000)) ms, at most $(($4 / 1000000))" test "$best" -le "$4"
	fi
}

# The tier check has the first of them
kernels=$(sed -n 's/^GUEST_KERNELS=//p' "$TOP/versions.mk" | tr , ' ')
[ "$TIER" != check ] || kernels=${kernels%% *}
for kver in $kernels; do
	need_file "$BUILD/guest/$kver/base.cpio" "$BUILD/guest/$kver/overlay.cpio" "$BUILD/guest/$kver/vmlinux"
	# Under emulation a boot took 10 to 16 times as long as the loop, and may be three times
	# as slow beside it on another processor; other programs slow both down.
	first_line "$kver" 0 boots "$(pace_loop | awk '{ printf "%.0f", $1 * 45e9 }')"
	boot=$best
	# the first start makes the snapshot; it is not judged
	"$TOP/images/guest/boot-time" "$kver" >/dev/null 2>>"$OUT/errors"
	first_line "$kver" 1 "starts from a snapshot" $((boot / 4))
done
finish

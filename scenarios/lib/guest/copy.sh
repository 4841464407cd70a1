#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The guest of scenarios that copy a file through GPU memory.
# /case/env says FS (ext4, xfs, raw), BYTES, and whether to try strict mode (STRICT) and to measure what the
# processor spends (COST).

# shellcheck source=scenarios/lib/guest/guest.sh
. /case/lib/guest.sh
. /case/env

drive=$(drive_of disk0)
must test -b "$drive"
case ${FS:?} in
raw)
	source=$drive
	target=$drive
	set -- --to-offset "${TO_OFFSET:?}"
	;;
*)
	mkdir -p /mnt
	case $FS in
	ext4) mount_ext4 "$drive" ;;
	*) must mount -t "$FS" "$drive" /mnt ;;
	esac
	source=/mnt/data
	target=/mnt/copy
	set --
	;;
esac

# What runs for the first time costs an emulated processor more than the copy does
peerlane io read --file "$source" --gpu 0 --size 1M >/dev/null 2>&1

sync
echo 3 >/proc/sys/vm/drop_caches
file_pages=$(vmstat nr_file_pages)
in=$(vmstat pgpgin)
out=$(vmstat pgpgout)

# --sync: staged data may wait in the page cache, and is to be counted, too
counted copy peerlane io copy --file "$source" --to "$target" "$@" \
	--gpu 0 --size "${BYTES:?}" --crc --sync --json >/tmp/copy.json 2>/tmp/copy.err
if [ "$counted_status" -eq 0 ]; then
	pass "peerlane io copies the file through GPU memory"
else
	fail "peerlane io copies the file through GPU memory" \
		"status $counted_status
$(cat /tmp/copy.json /tmp/copy.err)"
	dmesg | tail -n 5 | sed 's/^/# /'
fi
transfers copy /tmp/copy.json
fact vmstat.file_pages $(($(vmstat nr_file_pages) - file_pages))
fact vmstat.in $((($(vmstat pgpgin) - in) * 1024))
fact vmstat.out $((($(vmstat pgpgout) - out) * 1024))
text kernel_words "$(dmesg |
	grep -o 'cannot be used for peer-to-peer DMA.*' | head -n 1)"

if [ -n "${STRICT-}" ]; then
	counted strict peerlane io read --file "$source" --gpu 0 \
		--size 1048576 --strict --json >/tmp/strict.json 2>/tmp/strict.err
	fact strict.status "$counted_status"
	text strict.said "$(cat /tmp/strict.json /tmp/strict.err)"
else
	echo 3 >/proc/sys/vm/drop_caches
	counted control env CUFILE_FORCE_COMPAT_MODE=1 peerlane io read --file "$source" \
		--gpu 0 --size "$BYTES" --json >/tmp/control.json 2>/tmp/control.err
	check_eq "the same read staged, as a control" 0 "$counted_status"
	sed 's/^/# /' /tmp/control.err
	fact control "$(cat /tmp/control.json)"
	if [ -n "${COST-}" ]; then
		# What the processor spends: the library, and a program that reads into the page cache and copies from there. The least
		# of three: what the host takes from the guest meanwhile counts as its time.
		for way in cufile copy cufile copy cufile copy; do
			echo 3 >/proc/sys/vm/drop_caches
			peerlane io load --file "$source" --gpu 0 --size "$BYTES" --chunk 1M \
				--transfer "$way" --json >/tmp/cost.json 2>/tmp/cost.err
			check_eq "reads of 1 MiB ($way), for their cost" 0 $?
			sed 's/^/# /' /tmp/cost.err
			sed -n 's/.*"cpu_seconds":\([0-9.]*\).*/\1/p' /tmp/cost.json >>"/tmp/cost.$way"
		done
		# a debug kernel's checks are most of what either costs
		times=3
		[ ! -e /proc/lockdep ] || times=1
		fact cost.cufile "$(sort -g /tmp/cost.cufile | head -n 1)"
		fact cost.copy "$(sort -g /tmp/cost.copy | head -n 1)"
		fact cost.times "$times"
	fi
fi

sync
[ "$FS" = raw ] || must umount /mnt
finish

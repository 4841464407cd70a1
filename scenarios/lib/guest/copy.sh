#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The guest of scenarios that copy a file through GPU memory.
# /case/env says FS (ext4, xfs, raw), BYTES, and whether to try strict mode.

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
	must mount -t "$FS" "$drive" /mnt
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
fact vmstat "{\"file_pages\":$(($(vmstat nr_file_pages) - file_pages)),\
\"in\":$((($(vmstat pgpgin) - in) * 1024)),\
\"out\":$((($(vmstat pgpgout) - out) * 1024))}"
text kernel_words "$(dmesg |
	grep -o 'cannot be used for peer-to-peer DMA.*' | head -n 1)"

if [ -n "${STRICT-}" ]; then
	counted strict peerlane io read --file "$source" --gpu 0 \
		--size 1048576 --strict --json >/tmp/strict.json 2>/tmp/strict.err
	fact strict "{\"status\":$counted_status}"
	text strict.said "$(cat /tmp/strict.json /tmp/strict.err)"
else
	echo 3 >/proc/sys/vm/drop_caches
	counted control env CUFILE_FORCE_COMPAT_MODE=1 peerlane io read --file "$source" \
		--gpu 0 --size "$BYTES" --json >/tmp/control.json 2>/tmp/control.err
	check_eq "the same read staged, as a control" 0 "$counted_status"
	sed 's/^/# /' /tmp/control.err
	fact control "$(cat /tmp/control.json)"
fi

sync
[ "$FS" = raw ] || must umount /mnt
finish

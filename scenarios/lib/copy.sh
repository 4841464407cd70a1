# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for scenario.sh, and for guests
#
# copy FS [strict]: a file goes from the drive into GPU memory and back to a second
# file; the counters of the devices and the data on the drive are looked at from
# outside of the guest.  Then comes a control: the same read, staged; or, where
# the copy itself is staged, a read in strict mode.

copy_mib=32
[ "${TIER-}" != nightly ] || copy_mib=256
copy_bytes=$((copy_mib * 1048576))
# an xfs has 300 MiB at least; raw has the copy in the second half
copy_total=$((copy_mib * 3 * 1048576))
copy_to=$((copy_total / 2))

copy() {
	[ "$1" != xfs ] || [ "$copy_mib" -gt 100 ] || copy_total=$((320 * 1048576))
	sc_disk "$1" "$copy_bytes" "$copy_total"
	guest copy
	sc_case
	{
		echo "FS=$1"
		echo "BYTES=$copy_bytes"
		echo "TO_OFFSET=$copy_to"
		echo "STRICT=${2-}"
		# conditions on another machine do not ask for it
		echo "COST=$SC_OWN"
	} >"$OUT/case/env"
	case $1 in
	raw) sc_modules nvme peerlane_gpu ;;
	ext4) sc_modules nvme ext4 peerlane_gpu ;;
	*)
		echo "$1" >"$OUT/case/extras"
		sc_modules nvme "$1" peerlane_gpu
		;;
	esac
	sc_boot 120

	case $1 in
	raw)
		SC_BLOCKS="0:$((copy_bytes / 512)) $((copy_to / 512)):$((copy_bytes / 512))"
		check "the copy is the file, seen from outside of the guest" \
			cmp -i "$copy_to:0" -n "$copy_bytes" "$OUT/disk0.img" "$SC_DATA"
		;;
	*)
		sc_data_blocks "$1" data copy
		check "the file system is clean" copy_fsck "$1"
		check "the copy can be taken out of the image" sc_take_out "$1" copy \
			"$OUT/taken-out" "$copy_bytes"
		check "the copy is the file, seen from outside of the guest" \
			cmp "$OUT/taken-out" "$SC_DATA"
		rm -f "$OUT/taken-out"
		;;
	esac
	sc_add --argjson bytes "$copy_bytes" --arg crc32c "$SC_CRC" '{$bytes, $crc32c}'
}

copy_fsck() {
	case $1 in
	ext4) e2fsck -fn "$OUT/disk0.img" ;;
	xfs) xfs_repair -n "$OUT/disk0.img" ;;
	esac
}

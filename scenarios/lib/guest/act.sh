# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The guest of one act (acts.sh): a copy through GPU memory, its labels and
# facts named by the act.  /case/env says CRC, the data's.

# shellcheck source=scenarios/lib/guest/guest.sh
. /case/lib/guest.sh
. /case/env
# shellcheck source=/dev/null
. /case/act

drive=$(drive_of disk0)
must test -b "$drive"
mkdir -p /mnt
mount_ext4 "$drive"

# act_copy: counted, and what the kernel said meanwhile
act_copy() {
	counted "$ACT" peerlane io copy --file /mnt/data --to /mnt/copy --gpu 0 \
		--crc --json >/tmp/copy.json 2>/tmp/copy.err
	check_eq "$ACT: peerlane io copies the file through GPU memory" 0 \
		"$counted_status"
	[ "$counted_status" -eq 0 ] || sed 's/^/# /' /tmp/copy.json /tmp/copy.err
	transfers "$ACT" /tmp/copy.json
	sync
	check_eq "$ACT: the copy is right" "${CRC:?}" \
		"$(peerlane io crc --file /mnt/copy --json |
			sed 's/.*"crc32c":"\([^"]*\)".*/\1/')"
	act_kernel
}

# act_kernel: what the kernel said
act_kernel() {
	said redirect 'ACS redirect is set'
	said refused 'cannot be used for peer-to-peer DMA'
	said iommu_faults 'DMAR:.*fault'
}

# said KEY REGEX: how often the kernel said it
said() {
	fact "kernel_$ACT.$1" "$(dmesg | grep -c "$2")"
}

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Block devices on others, in a guest with the extra "stack"; sourced after guest.sh
# as /case/lib/stack.sh.

# raid0 DRIVE DRIVE: /dev/md0, in stripes of 64 KiB, without a superblock
raid0() {
	must modprobe raid0
	[ -e /dev/md0 ] || echo md0 >/sys/module/md_mod/parameters/new_array
	must_appear /sys/block/md0/md
	stack_md=/sys/block/md0/md
	stack_slot=0
	must stack_put none metadata_version
	must stack_put raid0 level
	must stack_put 2 raid_disks
	must stack_put 65536 chunk_size
	for stack_drive in "${1##*/}" "${2##*/}"; do
		must stack_put "$(cat "/sys/class/block/$stack_drive/dev")" new_dev
		must stack_put "$(($(cat "/sys/class/block/$stack_drive/size") / 2))" "dev-$stack_drive/size"
		must stack_put "$stack_slot" "dev-$stack_drive/slot"
		stack_slot=$((stack_slot + 1))
	done
	must stack_put active array_state
	must test "$(cat /sys/block/md0/size)" -gt 0
	must_appear /dev/md0
}

# raid0_end: the drives are free again
raid0_end() {
	must stack_put clear array_state
}

stack_put() {
	printf '%s' "$1" >"$stack_md/$2"
}

# crypt DRIVE: /dev/dm-0, by AES with a key of zeros
crypt() {
	must modprobe dm_crypt
	stack_sectors=$(cat "/sys/class/block/${1##*/}/size")
	stack_zeros=$(printf '%0128d' 0)
	must dmsetup create crypt --noudevsync \
		--uuid CRYPT-PLAIN-crypt \
		--table "0 $stack_sectors crypt aes-xts-plain64 $stack_zeros 0 $1 0"
	must_appear /dev/dm-0
}

crypt_end() {
	must dmsetup remove --noudevsync --retry crypt
}

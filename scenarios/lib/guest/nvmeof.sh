# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The guests of cx-nvmeof and cx-nvmeof-staged: host b serves its drive by NVMe over Fabrics, host a writes and reads a file there,
# from and into GPU memory.
#
# shellcheck source=scenarios/lib/guest/hosts.sh
. /case/lib/hosts.sh
# shellcheck source=/dev/null
. /case/env

# Of the port on the wire, not of the network beside it
target=10.0.0.2
name=nqn.2026-11.peerlane:drive
nvmet=/sys/kernel/config/nvmet

# put FILE VALUE: into a file of the kernel
put() {
	echo "$2" >"$1" 2>/tmp/put.err || { fail "$1 takes $2" "$(cat /tmp/put.err)"; finish; }
}

# serve: the drive of host b, for others
serve() {
	must mount -t configfs none /sys/kernel/config
	must mkdir "$nvmet/subsystems/$name"
	put "$nvmet/subsystems/$name/attr_allow_any_host" 1
	must mkdir "$nvmet/subsystems/$name/namespaces/1"
	put "$nvmet/subsystems/$name/namespaces/1/device_path" "$drive"
	put "$nvmet/subsystems/$name/namespaces/1/enable" 1
	must mkdir "$nvmet/ports/1"
	put "$nvmet/ports/1/addr_trtype" rdma
	put "$nvmet/ports/1/addr_adrfam" ipv4
	put "$nvmet/ports/1/addr_traddr" "$target"
	put "$nvmet/ports/1/addr_trsvcid" 4420
	must ln -s "$nvmet/subsystems/$name" "$nvmet/ports/1/subsystems/$name"
}

# serve_no_more: the drive is host b's own again
serve_no_more() {
	must rm "$nvmet/ports/1/subsystems/$name"
	must rmdir "$nvmet/ports/1"
	put "$nvmet/subsystems/$name/namespaces/1/enable" 0
	must rmdir "$nvmet/subsystems/$name/namespaces/1"
	must rmdir "$nvmet/subsystems/$name"
}

# fabric_drive: $drive, the block device that came by the wire, within 10 s
fabric_drive() {
	drive=
	tries=0
	while [ -z "$drive" ]; do
		tries=$((tries + 1))
		must test "$tries" -le 200
		for disk in /sys/block/nvme*n1; do
			line=
			{ read -r line <"$disk/device/subsysnqn"; } 2>/dev/null
			# its path through one controller, nvme0c0n1, is no device of its own
			[ "$line" != "$name" ] || [ ! -b "/dev/${disk##*/}" ] || drive=/dev/${disk##*/}
		done
		[ -n "$drive" ] || sleep 0.05
	done
}

# ended SECONDS COMMAND…: its status, or 124 if it has not ended by then.  Where the kernel tries for ever, no signal ends
# it, and timeout would wait.
ended() {
	seconds=$1
	shift
	rm -f /tmp/ended
	{
		"$@"
		echo $? >/tmp/ended.new
		mv /tmp/ended.new /tmp/ended
	} &
	tries=0
	until [ -e /tmp/ended ]; do
		tries=$((tries + 1))
		[ "$tries" -le $((seconds * 20)) ] || return 124
		sleep 0.05
	done
	return "$(cat /tmp/ended)"
}

# io LABEL ARGUMENTS…: peerlane io on host a, counted by both hosts
io() {
	label=$1
	shift
	if [ "$HOST" = b ]; then
		counted_all "$label" true
		return
	fi
	counted_all "$label" ended 120 peerlane io "$@" --crc --json >/tmp/io.json 2>/tmp/io.err
	check_eq "$label: peerlane io ends well" 0 "$counted_status"
	sed "s/^/# /" /tmp/io.err
	[ "$counted_status" -ne 124 ] || finish
	transfers "$label" /tmp/io.json
}

rdma_up
mkdir -p /mnt
if [ "$HOST" = b ]; then
	drive=$(drive_of disk0)
	serve
	barrier served
else
	barrier served
	# keep-alives are for hardware: on a busy computer all of it can stand still for seconds
	must timeout 60 nvme connect -t rdma -a "$target" -s 4420 -n "$name" \
		-q nqn.2026-11.peerlane:a -I 8f5ae4a2-7c11-4a0e-9a51-000000000001 -i 1 -Q 32 -k 120
	fabric_drive
	must mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$drive"
	must mount -t ext4 "$drive" /mnt
fi
io write write --file /mnt/data --size "$BYTES" --pattern-fill 7 --sync
[ "$HOST" != a ] || echo 3 >/proc/sys/vm/drop_caches
io read read --file /mnt/data
export CUFILE_FORCE_COMPAT_MODE=1
io staged read --file /mnt/data
unset CUFILE_FORCE_COMPAT_MODE
if [ "$HOST" = a ]; then
	# What it foretells, in its first line
	peerlane doctor /mnt/data 0 >/tmp/doctor.out 2>/tmp/doctor.err
	text doctor "$(head -n 1 /tmp/doctor.out; cat /tmp/doctor.err)"
	ended 60 peerlane io read --file /mnt/data --size 1M --strict --json >/tmp/strict.json 2>/tmp/strict.err
	fact strict.status $?
	text strict.said "$(cat /tmp/strict.json /tmp/strict.err)"
	fact kernel.refusals "$(dmesg | grep -c "Failed to map data")"
	must umount /mnt
	must nvme disconnect -n "$name"
fi
barrier disconnected

# The drive is host b's own again: what is on it, by its processor
if [ "$HOST" = b ]; then
	serve_no_more
	must mount -t ext4 "$drive" /mnt
	peerlane io crc --file /mnt/data --json >/tmp/crc.json
	check_eq "host b reads the file, too" 0 $?
	fact file "$(cat /tmp/crc.json)"
	must umount /mnt
fi
finish

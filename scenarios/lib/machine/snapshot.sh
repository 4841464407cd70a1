#!/bin/sh
# SPDX-License-Identifier: MIT
#
# snapshot.sh STORE QEMU ARGS ALLOW CPIO…: boots a machine until its init waits for
# a case, and saves it in the folder STORE: ram (or a file for each NUMA node),
# state, console.log.  ARGS are QEMU's arguments with @DIR@, @RAM@, @SHARED@ for
# what differs between this machine and those that start from it; ALLOW is what may
# stand on its console (scan.sh); the CPIOs are the initramfs.  Does nothing when
# the snapshot is there. Of a machine that fails, the console stays beside ARGS.
#
# STORE.lock is held shared by those who start from it, and alone by who makes or
# removes it.  The caller runs this with a parent-death signal; so it runs QEMU.

set -u
store=$1
qemu=$2
args=$3
allow=$4
shift 4
lib=$(dirname "$0")
work=$store.partial.$$
pid=
watcher=

# shellcheck source=scenarios/lib/machine/watch.sh
. "$lib/watch.sh"
# shellcheck source=scenarios/lib/machine/scan.sh
. "$lib/scan.sh"

die() {
	echo "snapshot: $*" >&2
	[ ! -s "$work/qemu.log" ] || sed 's/^/snapshot: QEMU: /' "$work/qemu.log" >&2
	[ ! -s "$work/console.log" ] || {
		tail -n 15 "$work/console.log" >&2
		cp "$work/console.log" "${args%/*}/" && echo "snapshot: all of its console is in ${args%/*}/console.log" >&2
	}
	[ -z "$watcher" ] || kill "$watcher" 2>/dev/null
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
	rm -rf "$work"
	exit 1
}

# qmp JSON…: the last reply, within 20 s
qmp() {
	qmp_reply=$(timeout --foreground 20 sh "$lib/qmp-call.sh" "$work" "$@")
}

# remove DIR: unless somebody holds the lock of its key
remove() {
	remove_key=${1##*/}
	(
		flock -n 8 && mv "$1" "$1.gone.$$" && rm -rf "$1.gone.$$"
	) 8>>"${store%/*}/${remove_key%%.*}.lock"
}

# What a maker that was killed has left goes; and the snapshots that were used longest
# ago, while all together take more than $VM_SNAPSHOTS_MIB (32 GiB), or leave less than
# 8 GiB on their file system. The tests have some 100 machines, of 0.2 GiB each, and of
# 1 GiB where freed memory is poisoned: with room for fewer, each run makes most of
# them again.
prune() {
	for prune_dir in "${store%/*}"/*.partial.* "${store%/*}"/*.gone.*; do
		[ ! -d "$prune_dir" ] || remove "$prune_dir"
	done
	# shellcheck disable=SC2012 # names are hashes
	ls -dt "${store%/*}"/*/ 2>/dev/null | while IFS= read -r prune_dir; do
		du -sk "$prune_dir" 2>/dev/null
	done |
		awk -v max="$((${VM_SNAPSHOTS_MIB:-32768} * 1024))" \
			-v free="$(df -Pk "${store%/*}" | awk 'NR == 2 { print $4 }')" '
		{
			size[NR] = $1
			all += $1
			sub(/^[0-9]+\t/, "")
			name[NR] = $0
		}
		END {
			room = all + free - 8 * 1024 * 1024
			if (room < max)
				max = room
			for (i = 1; i <= NR; i++) {
				sum += size[i]
				# the newest is about to be used
				if (i > 1 && sum > max)
					print name[i]
			}
		}' | while IFS= read -r prune_dir; do
		remove "${prune_dir%/}"
	done
	return 0
}

mkdir -p "${store%/*}" || die "cannot make the folder ${store%/*}, for the reason above: set PEERLANE_CACHE to one that you can write to"
exec 9>>"$store.lock"
flock -w 700 9 || die "another run has held $store.lock for 700 s to make this snapshot: end that run, and try again"
[ ! -d "$store" ] || exit 0
rm -rf "$store" "$store".partial.*
mkdir "$work" || die "cannot make the folder $work, for the reason above: set PEERLANE_CACHE to one that you can write to"
echo "# vm: saves a snapshot of this machine, once for all its guests ..." >&2

{ cat "$@" >"$work/initrd" && printf '%-511s\n' wait >"$work/case.img" && truncate -s 1G "$work/case.img"; } || die "cannot write the initramfs and the case to ${store%/*}, for the reason above: free room there, or set PEERLANE_CACHE to a folder with 2 GiB"
mkfifo "$work/qmp.in" "$work/qmp.out" "$work/result.in" "$work/result.out" ||
	die "cannot make pipes in ${store%/*}, for the reason above: set PEERLANE_CACHE to a folder on a file system that has them"
# Open from here on: what is written while nobody reads is lost when its writer closes
exec 7<>"$work/result.out"
place=$(printf '%s\n' "$work" | sed 's/[&|\\]/\\&/g')
sed "s|@DIR@|$place|g; s|@RAM@|$place|g; s|@SHARED@|on|g; s|@CASE@|on|g" "$args" >"$work/qemu.args"
set --
while IFS= read -r arg; do
	set -- "$@" "$arg"
done <"$work/qemu.args"
# shellcheck disable=SC2016 # for the inner shell
setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$0" ] && exec "$@"' "$$" \
	"$qemu" "$@" 9>&- 7>&- </dev/null >"$work/qemu.log" 2>&1 &
pid=$!
(
	watch_end "$pid"
	# for those who wait
	echo 1 >"$work/qemu.rc"
	echo @ended 1<>"$work/result.out"
	echo '{"event":"EXITED"}' 1<>"$work/qmp.out"
) 9>&- 7>&- &
watcher=$!

# shellcheck disable=SC2016 # for the inner shell
# Debug kernels of several machines at once take minutes on a busy computer
said=$(timeout --foreground 600 sh -c '
	while IFS= read -r line; do
		case $line in
		@ready* | @ended* | init:*) echo "$line"; exit ;;
		esac
	done' <&7)
case $?,$said in
*,@ready*) ;;
124,*) die "the machine was not ready within 600 s: it hangs (its console is below), or this computer has too much other work; mend that, or try again with fewer guests at a time" ;;
*, | *,@ended*)
	complaint=$(scan_console "$work/console.log" "$allow" 2>/dev/null | sed -n '1s/^[0-9]*: //p')
	die "the machine ended before it was ready: ${complaint:-QEMU ended, with no complaint on its console}; correct the machine, QEMU's arguments ($args) or the kernel's command line"
	;;
*) die "the guest's init ended before it was ready: $said; correct the guest's image or the kernel's command line" ;;
esac
unsaved="QEMU cannot save the machine to ${store%/*} (free room there, or boot without a snapshot: PEERLANE_SNAPSHOT=0)"
qmp '{"execute":"qmp_capabilities"}' \
	'{"execute":"migrate-set-capabilities","arguments":{"capabilities":[{"capability":"x-ignore-shared","state":true},{"capability":"mapped-ram","state":true}]}}' \
	"$(jq -nc --arg uri "file:$work/state" '{execute: "migrate", arguments: {$uri}}')" ||
	die "$unsaved: ${qmp_reply:-QEMU does not reply}"
tries=0
while :; do
	qmp '{"execute":"query-migrate"}' || die "$unsaved: ${qmp_reply:-QEMU does not reply}"
	case $qmp_reply in
	*'"status": "completed"'*) break ;;
	*'"status": "failed"'*) die "$unsaved: $qmp_reply" ;;
	esac
	tries=$((tries + 1))
	[ "$tries" -lt 600 ] || die "$unsaved: 60 s were not enough"
	sleep 0.1
done
qmp '{"execute":"quit"}' || die "QEMU does not end when it is told to: ${qmp_reply:-it does not reply}; boot without a snapshot (PEERLANE_SNAPSHOT=0)"
timeout --foreground 20 tail --pid="$pid" -s 0.05 -f /dev/null || kill -KILL "$pid" 2>/dev/null
kill "$watcher" 2>/dev/null
scan_console "$work/console.log" "$allow" >"$work/complaints" ||
	die "its kernel complains while it boots, and so would each guest: $(cat "$work/complaints"); mend the cause, or allow the line (vm_allow)"
# Pages of zeros take no room
for file in "$work"/ram "$work"/node*-memory; do
	[ ! -e "$file" ] || fallocate --dig-holes "$file"
done
rm -f "$work/initrd" "$work/case.img" "$work"/*.in "$work"/*.out "$work/qemu.rc" "$work/complaints"
{ sync -f "$work" && mv "$work" "$store"; } || die "cannot write it out to $store, for the reason above: free room there, or set PEERLANE_CACHE to another folder"
exec 9>&-
prune

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# snapshot.sh STORE QEMU ARGS CPIO…: boots a machine until its init waits for a
# case, and saves it in the folder STORE: ram (or a file for each NUMA node),
# state, console.log.  ARGS are QEMU's arguments with @DIR@, @RAM@, @SHARED@ for
# what differs between this machine and those that start from it; the CPIOs are
# the initramfs.  Does nothing when the snapshot is there.
#
# The caller runs it with a parent-death signal; so does this script QEMU.

set -u
store=$1
qemu=$2
args=$3
shift 3
lib=$(dirname "$0")
work=$store.partial

# shellcheck source=scenarios/lib/machine/watch.sh
. "$lib/watch.sh"

die() {
	echo "snapshot: $*" >&2
	[ ! -s "$work/qemu.log" ] || sed 's/^/snapshot: QEMU: /' "$work/qemu.log" >&2
	[ ! -s "$work/console.log" ] || tail -n 15 "$work/console.log" >&2
	rm -rf "$work"
	exit 1
}

# qmp JSON…: the last reply, within 20 s
qmp() {
	qmp_reply=$(timeout --foreground 20 "$lib/qmp-call.sh" "$work" "$@") &&
		case $qmp_reply in
		*'"error": {'* | '{"error"'*) false ;;
		esac
}

# Old ones go when all of them take more than 8 GiB; those of the last ten
# minutes may be in use
prune() {
	prune_sum=0
	# shellcheck disable=SC2012 # names are hashes
	ls -dt "${store%/*}"/*/ 2>/dev/null | while IFS= read -r prune_dir; do
		prune_dir=${prune_dir%/}
		prune_sum=$((prune_sum + $(du -sk "$prune_dir" | cut -f 1)))
		if [ "$prune_sum" -gt 8388608 ] &&
			[ -n "$(find "$prune_dir" -maxdepth 0 -mmin +10)" ]; then
			rm -rf "$prune_dir" "$prune_dir.lock"
		fi
	done
}

mkdir -p "${store%/*}" || die "cannot make ${store%/*}"
exec 9>"$store.lock"
flock -w 300 9 || die "another run has made $store for 300 s"
[ ! -d "$store" ] || exit 0
rm -rf "$work"
mkdir "$work" || die "cannot make $work"
echo "# vm: saves a snapshot of this machine, once for all its guests ..." >&2

{ cat "$@" >"$work/initrd" && truncate -s 1G "$work/case.img"; } || die "no room in $work"
mkfifo "$work/qmp.in" "$work/qmp.out" "$work/result.in" "$work/result.out" || exit 1
place=$(printf '%s\n' "$work" | sed 's/[&|\\]/\\&/g')
sed "s|@DIR@|$place|g; s|@RAM@|$place|g; s|@SHARED@|on|g" "$args" >"$work/qemu.args"
set --
while IFS= read -r arg; do
	set -- "$@" "$arg"
done <"$work/qemu.args"
# shellcheck disable=SC2016 # for the inner shell
setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$0" ] && exec "$@"' "$$" \
	"$qemu" "$@" 9>&- </dev/null >"$work/qemu.log" 2>&1 &
pid=$!
(
	watch_end "$pid"
	# for those who wait
	echo 1 >"$work/qemu.rc"
	echo @ended 1<>"$work/result.out"
	echo '{"event":"EXITED"}' 1<>"$work/qmp.out"
) 9>&- &
watcher=$!

# shellcheck disable=SC2016 # for the inner shell
said=$(timeout --foreground 180 sh -c '
	while IFS= read -r line; do
		case $line in
		@ready* | @ended* | init:*) echo "$line"; exit ;;
		esac
	done' <"$work/result.out")
case $said in
@ready*) ;;
'') die "the machine was not ready within 180 s" ;;
*) die "the machine was not ready: $said" ;;
esac
qmp '{"execute":"qmp_capabilities"}' \
	'{"execute":"migrate-set-capabilities","arguments":{"capabilities":[{"capability":"x-ignore-shared","state":true}]}}' \
	"{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"file:$work/state\"}}" ||
	die "it cannot be saved: ${qmp_reply-}"
tries=0
while :; do
	qmp '{"execute":"query-migrate"}' || die "it cannot be saved: ${qmp_reply-}"
	case $qmp_reply in
	*'"status": "completed"'*) break ;;
	*'"status": "failed"'*) die "it cannot be saved: $qmp_reply" ;;
	esac
	tries=$((tries + 1))
	[ "$tries" -lt 600 ] || die "saving takes more than 60 s"
	sleep 0.1
done
qmp '{"execute":"quit"}' || die "QEMU does not end"
wait "$pid"
kill "$watcher" 2>/dev/null
# Pages of zeros take no room
for file in "$work"/ram "$work"/node*-memory; do
	[ ! -e "$file" ] || fallocate --dig-holes "$file"
done
rm -f "$work/initrd" "$work/case.img" "$work"/*.in "$work"/*.out "$work/qemu.rc"
mv "$work" "$store" || exit 1
prune

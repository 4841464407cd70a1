#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the bundle runs a program in other user lands, as nobody, without /sys and with a home that is read-only
# tags: build guest
# tier: nightly
# timeout: 1800

. "$TOP/scenarios/lib/case.sh"
. "$TOP/images/build/lib.sh"
# others read what is made here
umask 022
need_tool cc jq
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/overlay.cpio"
if [ "$(id -u)" != 0 ]; then
	skip "only root can become another user"
fi
find_stages
for land in debian-12 debian-13; do
	[ -f "$(land_root $land).mode" ] || skip "no root $land in the cache: run \`make lands\`"
done

bundle=$OUT/bundle
at_exit 'rm -rf "$OUT/bundle" "$OUT/tmp" "$OUT/busybox"'
check "the folder is made" "$TOP/images/bundle/make-bundle" --folder "$bundle" || finish
# what reaches the land is in here
mkdir -p tmp home busybox/bin busybox/proc busybox/dev busybox/tmp busybox/home busybox/mnt
chmod 555 home
cp /bin/busybox busybox/bin/
ln -s busybox busybox/bin/sh

cat >enter <<'EOF'
# LAND BUNDLE TMP HOME COMMAND...: there, with what a container has: /proc, /dev/null, a /tmp, a home
land=$1 bundle=$2 tmp=$3 home=$4
shift 4
mount --bind "$land" "$land" && mount -o remount,bind,ro "$land" && mount --bind "$bundle" "$land/mnt" && mount -o remount,bind,ro "$land/mnt" &&
	mount --bind "$tmp" "$land/tmp" && mount --bind "$home" "$land/home" && mount -o remount,bind,ro "$land/home" &&
	mount -t tmpfs none "$land/dev" && : >"$land/dev/null" && mount --bind /dev/null "$land/dev/null" && mount --rbind /proc "$land/proc" || exit 125
umask 022
cd "$land"
exec chroot "$land" /mnt/libexec/tools/setpriv --reuid 12345 --regid 12345 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
	/mnt/libexec/tools/env -i HOME=/home PATH=/usr/bin:/bin "$@"
EOF

check "a program is built" cc -o cufile-read "$TOP/userlib/examples/cufile-read.c" -I"$bundle/include" -idirafter "$bundle/include/peerlane-cuda" \
	-L"$bundle/lib" -L"$bundle/lib/stubs" -lcufile -lcuda || finish
for land in debian-11 debian-12 debian-13 debian-sid ubuntu-22.04 ubuntu-24.04 busybox; do
	root=$OUT/busybox
	if [ "$land" != busybox ]; then
		root=$(land_root $land)
		[ -f "$root.mode" ] || { skip_part "no root $land in the cache (make lands makes it where the mirror has its suite)"; continue; }
	fi
	rm -rf tmp
	mkdir -m 1777 tmp
	cp cufile-read tmp/
	head -c 1048576 /dev/urandom >tmp/data.bin
	here() { unshare --mount --net sh "$OUT/enter" "$root" "$bundle" "$OUT/tmp" "$OUT/home" "$@" </dev/null; }
	# by the land's own shell; a land without one, or another bundle, would not get here
	here /bin/sh -c 'while read -r key value rest; do case $key in CapEff: | CapBnd: | Uid:) echo "$value"; esac; done </proc/self/status' >rights
	check_eq "$land: no capability, and nobody's user" "12345 0000000000000000 0000000000000000" "$(xargs <rights)"
	check_fails "$land: its home is read-only" . here /bin/sh -c ': >/home/file'
	check_eq "$land: it has no /sys" '/sys/*' "$(here /bin/sh -c 'echo /sys/*')"
	here /bin/sh -c 'cd /tmp && /mnt/bin/peerlane-try --direct --json result.json --add cufile-read --add data.bin cufile-read data.bin' >"$land.log" 2>&1
	check_eq "$land: a program runs" 0 $? || diag "$(tail -n 30 "$land.log")"
	check_eq "$land: by the direct path, by library and counters" '[true,true,1048576,0,["p2p"]]' \
		"$(jq -c '[.met, .machines[0].direct, .machines[0].bytes, .machines[0].host_bytes, ([.machines[0].transfers[].path] | unique)]' tmp/result.json)"
done
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: make image makes a container image whose hashes are right and whose programs start, by umoci and runc where they are there
# tags: build guest
# tier: nightly
# timeout: 1800

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/stopwatch.sh"
need_tool jq
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/overlay.cpio"

at_exit 'rm -rf "$OUT/user" "$OUT/image.tar"'
check "the image is made" "$TOP/images/bundle/make-image" || finish
mv "$TOP/$(tail -n 1 .check)" image.tar
mkdir -p user/layout user/w user/run
tar -xf image.tar -C user/layout

# blob DIGEST: its file, with this hash and that size
blob() {
	jq -r .digest "$1" | sed 's|^sha256:|user/layout/blobs/sha256/|'
}
# right DESC DESCRIPTOR
right() {
	file=$(blob "$2")
	check_eq "$1 has the size and the hash that are said of it" "$(jq -r '"\(.size) \(.digest)"' "$2")" \
		"$(stat -c %s "$file") sha256:$(sha256sum "$file" | cut -d ' ' -f 1)"
}
check "it is an OCI layout" jq -e '.imageLayoutVersion == "1.0.0"' user/layout/oci-layout
jq '.manifests[0]' user/layout/index.json >manifest.of
right "the manifest" manifest.of
jq .config "$(blob manifest.of)" >config.of
right "the configuration" config.of
jq '.layers[0]' "$(blob manifest.of)" >layer.of
right "the layer" layer.of
config=$(blob config.of)
check_eq "the layer unpacked has the configuration's hash" "$(jq -r '.rootfs.diff_ids[]' "$config")" "sha256:$(gzip -dc "$(blob layer.of)" | sha256sum | cut -d ' ' -f 1)"
check "the list for docker load names the same" jq -e --slurpfile config config.of --slurpfile layer layer.of '
	def file: "blobs/" + (.digest | sub(":"; "/"));
	.[0].Config == ($config[0] | file) and .[0].Layers == [$layer[0] | file]' user/layout/manifest.json

# ---- started: by runc as a user without rights, with umoci's configuration; where they are missing, or root, in a root of its files ----
others=$PEERLANE_CACHE/third-party
runc=
if [ ! -x "$others/runc/runc" ] || [ ! -x "$others/umoci/umoci" ]; then
	skip_part "no runc and umoci, which start it as CI services do: run \`make third-party\`"
elif [ "$(id -u)" != 0 ]; then
	skip_part "only root can become another user, for whom runc starts it"
else
	runc=1
fi

# as_user COMMAND...: it has the folder "user" as /mnt, as those above need not be open to others, and a resolv.conf, which umoci
# wants a host to have. runc's container is in a session of its own and outlives runc: it ends with these process ids, of which sh
# is the first. sh stays, as a process that becomes another user would not end with unshare.
as_user() {
	# shellcheck disable=SC2016 # of the inner shell
	unshare --mount --pid --fork --kill-child --mount-proc sh -c 'mount --bind "$1" /mnt && mount -t tmpfs none /etc && : >/etc/resolv.conf && shift &&
		setpriv --reuid 12345 --regid 12345 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs env -i "$@"
		exit $?' sh "$OUT/user" HOME=/mnt PATH=/mnt:/usr/bin:/bin XDG_RUNTIME_DIR=/mnt/run "$@"
}
# unpacked REF NAME: the image as a folder that a runtime takes, and runs without a terminal, without a capability, with the
# user's folder at /w
unpacked() {
	as_user umoci unpack --rootless --image "/mnt/layout:$1" "/mnt/$2" || return
	jq --arg w "/mnt/w" '.process.terminal = false | .process.capabilities = {} |
		.mounts += [{destination: "/w", type: "bind", source: $w, options: ["rbind", "ro"]}]' "user/$2/config.json" >config || return
	cat config >"user/$2/config.json"
	cp config "$2.json"
}
# by_runc NAME [WORD...]: its own command, or another one in its place
by_runc() {
	by_runc_in=$1
	shift
	if [ $# -gt 0 ]; then
		jq '.process.args = $ARGS.positional' "$by_runc_in.json" --args -- "$@" >config
	else
		cp "$by_runc_in.json" config
	fi
	cat config >"user/$by_runc_in/config.json"
	as_user runc --root "/mnt/run" run --bundle "/mnt/$by_runc_in" "$by_runc_in" </dev/null
}
# in_root [WORD...]: the same of user/good/rootfs, without a runtime
cat >enter <<'END'
mount --bind "$1" "$1" && mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" || exit 125
root=$1
shift
cd "$root" && exec chroot "$root" /opt/peerlane/libexec/tools/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
END
in_root() {
	# shellcheck disable=SC2046 # words
	[ $# -gt 0 ] || set -- $(jq -r '.config.Cmd[]' "$config")
	# shellcheck disable=SC2046 # words
	set -- /opt/peerlane/libexec/tools/env -i $(jq -r '.config.Env[]' "$config") "$@"
	if [ "$(id -u)" = 0 ]; then
		unshare --mount --net sh enter "$OUT/user/good/rootfs" --reuid 12345 --regid 12345 --clear-groups "$@"
	else
		unshare --user --map-root-user --mount --net sh enter "$OUT/user/good/rootfs" "$@"
	fi
}
if [ -n "$runc" ]; then
	head -c 1048576 /dev/urandom >user/w/data.bin
	cp "$others/runc/runc" "$others/umoci/umoci" user/
	chown -R 12345:12345 user
	ref=$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' user/layout/index.json)
	check "umoci unpacks it" unpacked "$ref" good || finish
	check_eq "the runtime's environment is the image's" "$(jq -r '.config.Env[] | sub("=.*"; "")' "$config" | sort | xargs)" \
		"$(jq -r '.process.env[] | sub("=.*"; "") | select(IN("TERM", "HOME") | not)' good.json | sort | xargs)"
	started() { by_runc good "$@"; }
else
	mkdir -p user/good/rootfs
	check "its layer is unpacked" tar -xf "$(blob layer.of)" -C user/good/rootfs || finish
	check_eq "nobody's environment but its own" "PATH PEERLANE_CACHE" "$(jq -r '.config.Env[] | sub("=.*"; "")' "$config" | xargs)"
	started() { in_root "$@"; }
fi

started >listed 2>&1
check_eq "its command starts and ends well" 0 $? || diag "$(cat listed)"
check "… and lists gds-direct" grep -q '^gds-direct ' listed
check "a machine is drawn" started peerlane-draw same-switch
check "a pipe of its tools, and its version" started /bin/sh -c 'echo a job | grep -q job && cat /opt/peerlane/BUNDLE'
check "its cache is made" test -d user/good/rootfs/tmp/peerlane
[ -n "$runc" ] || finish

# shellcheck disable=SC2016 # of the inner shell
started /bin/sh -c 'while read -r key value rest; do case $key in CapEff: | CapBnd:) echo "$value"; esac; done </proc/self/status; pwd' >rights 2>&1
check_eq "a shell starts, as in CI: without a capability, in its folder" "0000000000000000 0000000000000000 /tmp" "$(xargs <rights)"
started peerlane-try --direct --add /w/data.bin peerlane io read --file data.bin --gpu 0 --size 1M --json >tried 2>&1
check_eq "a machine boots in it, and reads a file of the host by the direct path" 0 $? || diag "$(tail -n 30 tried)"
check "… as the GPU counted" grep -q '^the GPU counted: by other devices to its memory 1048576 bytes' tried

# Killed outright, as by the runner, it leaves nothing that runs. What is in the container has a lock, which ends with it.
started /bin/sh -c 'exec 9>/tmp/lock && flock 9 && : >/tmp/locked && sleep 60' >killed 2>&1 &
background=$!
at_exit 'kill -KILL "$background" 2>/dev/null'
check "a container runs" wait_for 60 test -e user/good/rootfs/tmp/locked || diag "$(cat killed)"
check_eq "… which has the lock" 1 "$(flock -n user/good/rootfs/tmp/lock true; echo $?)"
# shellcheck disable=SC2046 # as_user's unshare
kill -KILL $(cat "/proc/$background/task/$background/children")
wait "$background" 2>/dev/null
check "kill -9 ends it" wait_for 20 flock -n user/good/rootfs/tmp/lock true

# What would not do: a command that is not in it, and a layer with another byte
check "the command of a copy is another" as_user umoci config --image "/mnt/layout:$ref" --tag gone --config.cmd peerlane-gone
rm -rf user/good
check "… which can be unpacked" unpacked gone gone
check_fails "… and is not found" 'peerlane-gone.*executable file not found' by_runc gone
rm -rf user/gone
of_layer=user/layout/blobs/sha256/$(jq -r '.digest | sub("sha256:"; "")' layer.of)
printf 'other' | dd of="$of_layer" bs=1 seek=1000000 conv=notrunc status=none
check_fails "a layer with other bytes is refused" 'digest|corrupt|invalid|checksum' unpacked "$ref" bad
finish

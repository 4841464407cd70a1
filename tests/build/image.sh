#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: make image makes a container image whose hashes are right and whose programs start as it says
# tags: build
# tier: nightly
# timeout: 900

. "$TOP/scenarios/lib/case.sh"
need_tool jq
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/overlay.cpio"

at_exit 'rm -rf "$OUT/layout" "$OUT/layer" "$OUT/root" "$OUT/image.tar"'
check "the image is made" "$TOP/images/bundle/make-image" || finish
mv "$TOP/$(tail -n 1 .check)" image.tar
mkdir layout root
tar -xf image.tar -C layout

# blob DIGEST: its file, with this hash and that size
blob() {
	jq -r .digest "$1" | sed 's|^sha256:|layout/blobs/sha256/|'
}
# right DESC DESCRIPTOR
right() {
	file=$(blob "$2")
	check_eq "$1 has the size and the hash that are said of it" "$(jq -r '"\(.size) \(.digest)"' "$2")" \
		"$(stat -c %s "$file") sha256:$(sha256sum "$file" | cut -d ' ' -f 1)"
}
check "it is an OCI layout" jq -e '.imageLayoutVersion == "1.0.0"' layout/oci-layout
jq '.manifests[0]' layout/index.json >manifest.of
right "the manifest" manifest.of
jq .config "$(blob manifest.of)" >config.of
right "the configuration" config.of
jq '.layers[0]' "$(blob manifest.of)" >layer.of
right "the layer" layer.of
config=$(blob config.of)
gzip -dc "$(blob layer.of)" >layer
check_eq "the layer unpacked has the configuration's hash" "$(jq -r '.rootfs.diff_ids[]' "$config")" "sha256:$(sha256sum layer | cut -d ' ' -f 1)"
check "the list for docker load names the same" jq -e --slurpfile config config.of --slurpfile layer layer.of '
	def file: "blobs/" + (.digest | sub(":"; "/"));
	.[0].Config == ($config[0] | file) and .[0].Layers == [$layer[0] | file]' layout/manifest.json

# As a runtime starts it: its files as the root, its environment alone, its command found on its PATH; a user without rights
tar -xf layer -C root
jq -r '.config.Env[]' "$config" >environment
check_eq "nobody's environment but its own" "PATH= PEERLANE_CACHE=" "$(sed 's/=.*/=/' environment | xargs)"
cat >enter <<'END'
mount --bind "$1" "$1" && mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" || exit 125
root=$1
shift
cd "$root" && exec chroot "$root" /opt/peerlane/libexec/tools/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
END
started() {
	# shellcheck disable=SC2046 # words
	if [ "$(id -u)" = 0 ]; then
		unshare --mount --net sh enter "$OUT/root" --reuid 12345 --regid 12345 --clear-groups /opt/peerlane/libexec/tools/env -i $(cat environment) "$@"
	else
		unshare --user --map-root-user --mount --net sh enter "$OUT/root" /opt/peerlane/libexec/tools/env -i $(cat environment) "$@"
	fi
}
# shellcheck disable=SC2046 # words
started $(jq -r '.config.Cmd[]' "$config") >listed 2>&1
check_eq "its command ends well" 0 $?
check "… and lists gds-direct" grep -q '^gds-direct ' listed
check "a machine is drawn" started peerlane-draw same-switch
check "the shell that a CI service starts is there" started /bin/sh -c 'echo a job | grep -q job && cat /opt/peerlane/BUNDLE'
check "its cache is made" test -d root/tmp/peerlane
finish

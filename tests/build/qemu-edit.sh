#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: an edited device is in a new QEMU in at most 15 s; going back is instant
# tags: build
# tier: all
# timeout: 600
# exclusive

# Expressions for at_exit and for inner shells are meant to stay as they are.
# shellcheck disable=SC2016

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"

need_file "$BUILD/qemu/qemu-system-x86_64"
clone=$OUT/clone
copy_tree "$clone"
at_exit 'rm -rf "$clone"'
build() { "$clone/images/build/build-qemu" >build.log 2>&1 || { tail -n 30 build.log; return 1; }; }
check "unchanged: from the cache" build
cp "$clone/build/qemu/key" before

# The tree of objects may stand at another state (another checkout built last): bring it here first.
edit() { printf '\n__attribute__((used)) static const char build_test[] = "%s";\n' "$1" >>"$clone/hw-model/peerlane/peerlane-gpu.c"; }
added=
at_exit 'for key in $added; do rm -rf "$PEERLANE_CACHE/qemu-bin/$key"; done'
edit "first edit"
check "an edited device builds" build
added=$(cat "$clone/build/qemu/key")
sed -i '$d' "$clone/hw-model/peerlane/peerlane-gpu.c"
edit "second edit"
start=$(stopwatch)
check "edited again" build
within "a new QEMU" 15 "$start"
added="$added $(cat "$clone/build/qemu/key")"
check "has the edit" grep -aq "second edit" "$clone/build/qemu/qemu-system-x86_64"
check "and runs" "$clone/build/qemu/qemu-system-x86_64" --version
sed -i '$d' "$clone/hw-model/peerlane/peerlane-gpu.c"
sed -i '$d' "$clone/hw-model/peerlane/peerlane-gpu.c"
start=$(stopwatch)
check "the edit taken back" build
within "at once" 3 "$start"
check "gives the file from before" cmp "$clone/build/qemu/qemu-system-x86_64" "$BUILD/qemu/qemu-system-x86_64"

# A device that does not compile: an error, and the old binary is not passed off as new.
echo "this is not C" >>"$clone/hw-model/peerlane/peerlane-gpu.c"
check_fails "a device that does not compile fails the build, and says where" \
	"peerlane-gpu.c:[0-9]+:[0-9]+: error: unknown type name" build
finish

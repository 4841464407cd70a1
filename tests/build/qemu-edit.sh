#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: an edited device is in a new QEMU in at most 15 s; going back is instant
# tags: build
# tier: nightly
# timeout: 600

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
device=$clone/hw-model/peerlane/peerlane-gpu.c
cp "$device" device
# edit TEXT: in the device, and no other edit
edit() { { cat device; printf '\n__attribute__((used)) static const char build_test[] = "%s";\n' "$1"; } >"$device"; }
added=
at_exit 'for key in $added; do rm -rf "$PEERLANE_CACHE/qemu-bin/$key"; done'
edit "first edit"
check "an edited device builds" build
added=$(cat "$clone/build/qemu/key")
edit "second edit"
start=$(stopwatch)
check "edited again" build
within "a new QEMU" 15 "$start"
added="$added $(cat "$clone/build/qemu/key")"
check "has the edit" grep -aq "second edit" "$clone/build/qemu/qemu-system-x86_64"
check "and runs" "$clone/build/qemu/qemu-system-x86_64" --version
# Edited while the build waits for another one: it is kept as what it was made of.  The lock is taken, says this flock, and
# there is another edit before it is free.
mkdir bin
cat >bin/flock <<'END'
#!/bin/sh
PATH=${PATH#*:}
[ "$1" != -n ] || exit 1
sed -i 's/the edit before the wait/the edit while it waits/' "$WAITED_FOR"
exec flock "$@"
END
chmod +x bin/flock
edit "the edit before the wait"
# shellcheck disable=SC2317 # called through check
build_meanwhile() {
	PATH="$PWD/bin:$PATH" WAITED_FOR="$device" build
}
check "edited while the build waits: it builds" build_meanwhile
added="$added $(cat "$clone/build/qemu/key")"
check "... it has waited" grep -q "WAIT *qemu-" build.log
check "... what was there at its end" grep -aq "the edit while it waits" "$clone/build/qemu/qemu-system-x86_64"
edit "the edit before the wait"
check "the edit before the wait builds" build
added="$added $(cat "$clone/build/qemu/key")"
check "... and is not the other" grep -aq "the edit before the wait" "$clone/build/qemu/qemu-system-x86_64"
cat device >"$device"
start=$(stopwatch)
check "the edit taken back" build
within "at once" 3 "$start"
check "gives the file from before" cmp "$clone/build/qemu/qemu-system-x86_64" "$BUILD/qemu/qemu-system-x86_64"

# A device that does not compile: an error, and the old binary is not passed off as new.
echo "this is not C" >>"$device"
check_fails "a device that does not compile fails the build, and says where" \
	"peerlane-gpu.c:[0-9]+:[0-9]+: error: unknown type name" build
finish

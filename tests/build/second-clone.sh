#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a second clone builds from the cache, without a network, in seconds; an edit reaches the guest in seconds
# tags: build
# tier: nightly
# timeout: 600

# Expressions for at_exit and for inner shells are meant to stay as they are.
# shellcheck disable=SC2016

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"

need_tool strip
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/base.cpio" "$BUILD/wire/peerlane-wire" "$BUILD/scenarios/feed"
check_eq "there is no network here" lo "$(sed '1,2d;s/:.*//;s/ //g' /proc/net/dev)"
clone=$OUT/clone
copy_tree "$clone"
at_exit 'rm -rf "$clone"'
# The twins with sanitizers are in no guest
build() { make --no-print-directory SANITIZED= -j"$(nproc)" -C "$clone" "$@" >"$OUT/build.log" 2>&1; }

start=$(stopwatch)
check "the clone's QEMU comes from the cache" build qemu
within "at once" 5 "$start"
check_false "it was not compiled" grep compile build.log
check "it is the same file" cmp "$BUILD/qemu/qemu-system-x86_64" "$clone/build/qemu/qemu-system-x86_64"
check "the clone builds its modules, library and guest" build guest-7.2 || diag "$(tail -n 30 build.log)"
check "the base image is the same" cmp "$BUILD/guest/7.2/base.cpio" "$clone/build/guest/7.2/base.cpio"
# What a bundle has of both, which lie in different folders
check "the clone builds the other guest" build guest-6.12 || diag "$(tail -n 30 build.log)"
check "the clone builds the wire" build wire || diag "$(tail -n 30 build.log)"
check "the clone builds the scenarios' programs" build -C scenarios TOP="$clone" || diag "$(tail -n 30 build.log)"
for file in guest/7.2/overlay.cpio guest/7.2/tests.cpio guest/6.12/overlay.cpio guest/6.12/tests.cpio; do
	check "$file is the same" cmp "$BUILD/$file" "$clone/build/$file"
done
for file in wire/peerlane-wire userlib/peerlane $(cd "$BUILD/scenarios" && find . -type f -perm -u+x | sed 's|^|scenarios/|'); do
	strip -o here "$BUILD/$file"
	strip -o there "$clone/build/$file"
	check "$file is the same" cmp here there
done
start=$(stopwatch)
check "with nothing to do" build qemu guest-7.2
within "it takes little" 20 "$start"

# An edit that must show: a module parameter's description, and one string of the library.
edited=$clone/kernel/peerlane_gpu/main.c
if [ -f "$edited" ]; then
	printf '\nMODULE_INFO(build_test, "second-clone-was-here");\n' >>"$edited"
	start=$(stopwatch)
	check "an edited module builds" build guest-7.2 || diag "$(tail -n 30 build.log)"
	within "and is in a new guest" 10 "$start"
	check "it is in the image" grep -aq second-clone-was-here "$clone/build/guest/7.2/overlay.cpio"
	check_false "and not in the image of this checkout" grep -aq second-clone-was-here "$BUILD/guest/7.2/overlay.cpio"
else
	fail "kernel/peerlane_gpu/main.c is there to be edited"
fi
# shellcheck disable=SC2012
edited=$(ls "$clone"/userlib/cufile/*.c 2>/dev/null | head -n 1)
if [ -n "$edited" ]; then
	printf '\n__attribute__((used)) static const char build_test[] = "library-was-here";\n' >>"$edited"
	start=$(stopwatch)
	check "an edited library builds" build guest-7.2 || diag "$(tail -n 30 build.log)"
	within "and is in a new guest" 10 "$start"
	check "it is in the image" grep -aq library-was-here "$clone/build/guest/7.2/overlay.cpio"
else
	fail "userlib/cufile/*.c is there to be edited"
fi
finish

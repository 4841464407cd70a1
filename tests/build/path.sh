#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a checkout or a cache whose path has a blank or a colon is refused at once
# tags: build
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
need_tool make

# at PATH COMMAND...: in a checkout there, as on the host
at() {
	mkdir -p "$1/images" "$1/scenarios"
	cp "$TOP/Makefile" "$TOP/versions.mk" "$1/"
	cp -R "$TOP/images/build" "$1/images/"
	cp -R "$TOP/scenarios/lib" "$TOP/scenarios/run" "$1/scenarios/"
	(cd "$1" && shift && env -u PEERLANE_IN_ROOT -u PEERLANE_ROOT_KEY -u TOP -u BUILD -u OUT PEERLANE_CACHE="$OUT/cache" "$@")
}
for path in "a b" a:b; do
	check_fails "make in \"$path\"" 'neither the path of this checkout nor PEERLANE_CACHE may have a blank or a colon in it: ' at "$path" make
	check_fails "scenarios/run in \"$path\"" 'neither the path of this checkout nor ' at "$path" scenarios/run gds-direct
	check_fails "a cache in \"$path\"" 'neither the path of this checkout nor ' at good make PEERLANE_CACHE="$OUT/$path" -n qemu
done
check "a path without, with a dot and a plus: as ever" at good.c++ make help
check_eq "nothing was made" "" "$(find . -name cache -o -path '*/build/wire')"
finish

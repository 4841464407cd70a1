#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: modules of others come from a mirror, checked; what was put there by hand stays; the others come though one cannot be had
# tags: build
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool dpkg-deb xz

# A tree with a list of its own, and a mirror with one package, whose folders
# dpkg-deb wants to be readable
umask 022
mkdir -p tree/images/build pkg/DEBIAN pkg/usr/src src/modules/one/kept src/modules/one/left mirror/pool/o
cp "$TOP/images/build/lib.sh" "$TOP/images/build/third-party" tree/images/build/
cp "$TOP/images/build/packages.list" tree/images/build/
cp "$TOP/versions.mk" tree/
echo source >src/modules/one/kept/one.c
echo other >src/modules/one/left/two.c
tar -cJf pkg/usr/src/one.tar.xz -C src modules
printf 'Package: one\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: none\n' >pkg/DEBIAN/control
dpkg-deb --root-owner-group -b pkg mirror/pool/o/one_1_all.deb >deb.log 2>&1 || fail "a package to fetch" "$(cat deb.log)"
sum=$(sha256sum <mirror/pool/o/one_1_all.deb | cut -d' ' -f1)

cache=$OUT/cache
third_party() { # CHECKSUM POOL-PATH [ARCHIVE KEPT]
	printf '# a comment\n\none MIT %s %s %s %s\n' "$2" "$1" "${3-usr/src/one.tar.xz}" "${4-modules/one/kept}" >tree/images/build/third-party.list
	fetch
}
fetch() {
	env -u PEERLANE_ROOT_KEY -u PEERLANE_FETCH_KEY PEERLANE_CACHE="$cache" DEBIAN_MIRROR="copy:$OUT/mirror/" \
		sh tree/images/build/third-party >out 2>&1 && return
	third_party_status=$?
	cat out
	return "$third_party_status"
}
check_fails "before the build root there is nothing to fetch from: it says what comes first" 'make root' \
	third_party "$sum" pool/o/one_1_all.deb
mkdir -p "$cache/fetch-$(env -u PEERLANE_ROOT_KEY -u PEERLANE_FETCH_KEY PEERLANE_CACHE="$cache" TOP="$OUT/tree" sh -c '. "$TOP/images/build/lib.sh"; load_pins; fetch_key')"
: >"$(echo "$cache"/fetch-*)/sources.list"

# On a machine without xz, nothing is called wrong that was fetched
mkdir few
awk '!/^#/ && NF && $1 !~ /\// && $1 != "xz" { print $1 }' "$TOP/images/build/host-tools.list" | while read -r tool; do
	! command -v "$tool" >/dev/null || ln -s "$(command -v "$tool")" "few/$tool"
done
path=$PATH
# shellcheck disable=SC2123 # that is what it is for
PATH=$OUT/few
check_fails "without xz it names the package" '^peerlane: this host lacks xz, which unpacks what is fetched: install the package xz-utils' third_party "$sum" pool/o/one_1_all.deb
PATH=$path
check "a package of the mirror is fetched" third_party "$sum" pool/o/one_1_all.deb
check "and its licence is said" grep -q 'licence: MIT' out
check_eq "what the list names is kept" source "$(cat "$cache/third-party/one/kept/one.c")"
check "and nothing else" test ! -e "$cache/third-party/one/left"
check "a second time there is nothing to do" third_party "$sum" pool/gone.deb
check "and it says so" grep -q HAVE out

# Without an archive: files of the package itself, and a whole source
rm -rf "$cache/third-party/one"
check "a package is kept in part" third_party "$sum" pool/o/one_1_all.deb - usr/src/one.tar.xz
check_eq "... that part" one.tar.xz "$(ls "$cache/third-party/one")"
mkdir one-1
echo all >one-1/configure
tar -czf mirror/pool/o/one_1.orig.tar.gz one-1
source=$(sha256sum <mirror/pool/o/one_1.orig.tar.gz | cut -d' ' -f1)
check "a source takes its place" third_party "$source" pool/o/one_1.orig.tar.gz - .
check_eq "... without the folder that all is in" all "$(cat "$cache/third-party/one/configure")"
check_fails "what is not in the package: it says what was to be" 'cannot unpack it, which is to have - gone' \
	third_party "$sum" pool/o/one_1_all.deb - gone
check_eq "and the source is still there" all "$(cat "$cache/third-party/one/configure")"
check "the first one, again" third_party "$sum" pool/o/one_1_all.deb

wrong=$(echo wrong | sha256sum | cut -d' ' -f1)
check_fails "a package with another checksum is refused: it says where the log is" \
	"cannot fetch .*one_1_all.deb with checksum $wrong .*third-party.log" third_party "$wrong" pool/o/one_1_all.deb
check_eq "what was there is still there" source "$(cat "$cache/third-party/one/kept/one.c")"
check_fails "a package that has left the mirror: it says what to do" \
	"cannot fetch .*one_0_all.deb .*put a newer one into images/build/third-party.list" third_party "$wrong" pool/o/one_0_all.deb

# Each of three that cannot be had, then one that can
rm -rf "$cache/third-party/one"
cat >tree/images/build/third-party.list <<END
gone MIT pool/gone.deb $sum - usr/src
wrong MIT pool/o/one_1_all.deb $wrong - usr/src
empty MIT pool/o/one_1_all.deb $sum - usr/gone
one MIT pool/o/one_1_all.deb $sum usr/src/one.tar.xz modules/one/kept
END
check_fails "the others come all the same: it fails in the end, and says what is missing" '^peerlane: not fetched: gone wrong empty, for the reasons above\. make check-nightly .*-x third-party' fetch
check_eq "... what can be had is there" source "$(cat "$cache/third-party/one/kept/one.c")"
for each in gone wrong empty; do
	check "... and $each is not" test ! -e "$cache/third-party/$each"
done

rm "$cache/third-party/one/.sha256"
check "what was put there by hand is kept" third_party "$wrong" pool/o/one_1_all.deb
check "and it says so, too" grep -q KEEP out
check_eq "nothing is left of what failed" "" "$(ls "$cache/tmp")"
finish

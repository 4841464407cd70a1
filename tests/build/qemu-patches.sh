#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: git am takes the patches of QEMU on the pinned source, one after another, and the result is what we build
# tags: build
# tier: all
# timeout: 180

. "$TOP/scenarios/lib/case.sh"
. "$TOP/images/build/lib.sh"

need_tool git
load_resolved
need_file "$FETCHED/resolved"
patches=$TOP/hw-model/patches

# No more of the source than they touch
sed -n 's,^--- a/,*/,p' "$patches"/*.patch | sort -u >files
mkdir by-git
tar -C by-git --strip-components=1 --wildcards -T files -xJf "$(echo "$FETCHED"/qemu/qemu_*.orig.tar.xz)"
cp -r by-git by-patch
cd by-git || exit 1
as_us() { git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false "$@"; }
git init -q .
git add -A
as_us commit -q -m "the pinned source"
check "git am takes all of them" as_us am -q "$patches"/*.patch
count=$(find "$patches" -name '*.patch' | wc -l)
check_eq "each is a commit" "$count" "$(($(git rev-list --count HEAD) - 1))"
check "images/README.md says how many" grep -q "with the $count patches of" "$TOP/images/README.md"
check_eq "each author has signed off" "" "$(git log --format='%an <%ae>%n%(trailers:key=Signed-off-by,valueonly,separator=%x2c)' HEAD~"$count".. |
	while read -r author && read -r signed; do [ "$author" = "$signed" ] || echo "$author: $signed"; done)"
cd .. || exit 1
for patch in "$patches"/*.patch; do
	patch --batch --forward --no-backup-if-mismatch -p1 -d by-patch <"$patch" >>patch.log || fail "${patch##*/} applies" "$(tail -n 5 patch.log)"
done
check_eq "the build patches to the same, at the same places" "" "$(diff -r -x .git by-git by-patch; grep -E 'offset|fuzz' patch.log)"
finish

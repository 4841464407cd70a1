#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: make dist packs the last commit, the same bytes each time, and what is unpacked needs no git
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool git
[ -d "$TOP/.git" ] || skip "this is no git checkout of its own"

# a clone, so that only what is committed is there; an edit on top of it must not be packed
git -c safe.directory='*' clone -q "$TOP" clone 2>clone.log || {
	fail "the checkout can be cloned" "$(cat clone.log)"
	finish
}
version=$(clone/images/build/version)
git -C clone tag -f "v$version" >tag.log
git clone -q clone other
echo edited >>clone/README.md
check "make dist" make -s -C clone dist
cp .check said
check "it says that an edit is not in it" grep -q 'uncommitted changes are not in the tarball' said
tarball=clone/build/peerlane-$version.tar.gz
check "make dist in another clone" make -s -C other dist
check "is the same to the byte" cmp "other/build/peerlane-$version.tar.gz" "$tarball"
tar -xzf "$tarball"
check_eq "all of the commit is in it" "$(git -C clone ls-tree -r --name-only HEAD | LC_ALL=C sort)" \
	"$(cd "peerlane-$version" && find . -type f -o -type l | sed 's|^\./||' | LC_ALL=C sort)"
check_false "the edit is not" grep -qx edited "peerlane-$version/README.md"
check "make help works in it" make -s -C "peerlane-$version" help
check_fails "make dist does not, and says what it needs" 'dist needs a git checkout' \
	sh -c 'GIT_CEILING_DIRECTORIES=$PWD make -s -C "$1" dist' sh "peerlane-$version"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a second clone builds from the cache, without a network, in seconds, and makes the same bundle, image and packages as a third; an edit reaches the guest in seconds
# tags: build
# tier: nightly
# timeout: 1800

# Expressions for at_exit and for inner shells are meant to stay as they are.
# shellcheck disable=SC2016

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"
. "$TOP/images/build/lib.sh"

need_tool strip zstd jq
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/base.cpio" "$BUILD/wire/peerlane-wire" "$BUILD/scenarios/feed"
check_eq "there is no network here" lo "$(sed '1,2d;s/:.*//;s/ //g' /proc/net/dev)"
clone=$OUT/clone
third=$OUT/a-clone-in-another-folder
copy_tree "$clone"
copy_tree "$third"
# Of one commit with a time of its own: this checkout may be a worktree, whose history is elsewhere, or have none
unset SOURCE_DATE_EPOCH
in_clone() { GIT_COMMITTER_DATE='1234567890 +0000' git -C "$clone" -c user.name=a -c user.email=a@b.invalid "$@" >>"$OUT/git.log" 2>&1; }
check "the clone is a repository" in_clone init -q
check "... of all files" in_clone add -A
check "... in one commit" in_clone commit -q -m all
cp -R "$clone/.git" "$third/"
at_exit 'rm -rf "$clone" "$third"'
# build_in CLONE GOAL...; the twins with sanitizers are in no guest
build_in() {
	build_in=$1
	shift
	make --no-print-directory SANITIZED= -j"$(nproc)" -C "$build_in" "$@" >"$OUT/build.log" 2>&1
}
build() { build_in "$clone" "$@"; }

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

# Such a build, two overlays, and boots of both kernels, with and without a snapshot
check "its bench runs" env -u BUILD -u OUT -u SLOT TIER=none SANITIZED= "$clone/images/build/bench"
check_eq "... and says how long each of seven took, of this commit" "7 true $(git -C "$clone" rev-parse --short HEAD)" \
	"$(jq -r '"\(.build | length) \(all(.build[]; .seconds > 0 and (.target | tonumber) > 0)) \(.commit)"' "$clone"/build/bench/*.json)"

# What is handed out: each clone makes its own. How well a bundle is packed is that of build/bundle-archive.
export PEERLANE_BUNDLE_LEVEL=-1
# both_make WHAT PROGRAM: it names what it has made, a file to a line, and both clones have the same
both_make() {
	for each in "$clone" "$third"; do
		"$each/images/$2" >"$each.made" 2>"$each.log"
		check_eq "$1: $2 of ${each##*/} works" 0 $? || { diag "$(tail -n 30 "$each.log")"; return; }
	done
	check_eq "$1: files of the same names" "$(cat "$clone.made")" "$(cat "$third.made")"
	check "$1: there are some" test -s "$clone.made"
	while IFS= read -r file; do
		check "the clones' $file are the same, byte for byte" cmp "$clone/$file" "$third/$file"
	done <"$clone.made"
}
check "a third clone builds" build_in "$third" qemu guest-7.2 guest-6.12 wire || diag "$(tail -n 30 build.log)"
both_make "the bundle" bundle/make-bundle
check_eq "its files have the time of the commit" "2009-02-13 23:31:30" \
	"$(zstd -dc --long=27 "$clone/$(cat "$clone.made")" | tar -tv --utc --full-time | awk 'NR == 1 { print $4, $5 }')"
both_make "the image" bundle/make-image
find_stages
if [ "$(id -u)" != 0 ]; then
	skip_part "only root can enter another root in here, in which packages are built"
elif [ ! -f "$(land_root packages).mode" ]; then
	skip_part "no root packages in the cache, in which packages are built: run \`make lands\`"
else
	both_make "the packages" packages/make-packages
fi

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

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the bundle runs alone: in an empty root, from a folder with a blank in its name, as nobody
# tags: build guest
# tier: all
# timeout: 600

. "$TOP/scenarios/lib/case.sh"
# others read what is made here
umask 022
need_tool cc
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/overlay.cpio"

bundle=$OUT/root/"a folder"/bundle
at_exit 'rm -rf "$OUT/root"'
check "the folder is made" "$TOP/images/bundle/make-bundle" --folder "$bundle" || finish

# whole FOLDER: an expression for its name, not for a longer one that it is a part of
whole() { printf '(^|[^A-Za-z0-9._/-])%s($|[^A-Za-z0-9._-])' "$(printf %s "$1" | sed 's/[].[*^$+?(){}|\\]/\\&/g')"; }
size=$(du -s -B1 --apparent-size "$bundle" | cut -f 1)
check "its files have $((size / 1000000)) MB, at most 300" test "$size" -le 300000000
check_eq "nothing in it names the folders in which it was built" "" \
	"$(cd "$bundle" && LC_ALL=C grep -rlaE -e "$(whole "$TOP")" -e "$(whole "$PEERLANE_CACHE")" .)"
check_eq "nothing in it leads out of it" "" \
	"$(cd "$bundle" && find . -type l | while read -r link; do
		case $(readlink -f "$link") in
		"$bundle"/*) ;;
		*) echo "$link" ;;
		esac
	done)"
# what a program of the bundle loads, by the folders of their files
"$bundle/libexec/lib/ld-linux-x86-64.so.2" --inhibit-cache --library-path "$bundle/libexec/lib" --list "$bundle/libexec/bin/qemu-system-x86_64" >loads
check_eq "its emulator loads the bundle's libraries alone" "" \
	"$(grep -F '=>' loads | grep -vF "=> $bundle/libexec/lib/")"
check "there are five of them and more" test "$(grep -cF '=>' loads)" -ge 5

# licences
awk -F '\t' '!/^#/ && NF != 4' "$bundle/PACKAGES" >bad
check_eq "each line of PACKAGES has a name, a version, a source, and its version" "" "$(cat bad)"
for package in libc6 libglib2.0-0t64 busybox-static jq qemu perftest linux-image; do
	check "$package is in PACKAGES" grep -q "^$package" "$bundle/PACKAGES"
done
check_eq "each package has its licence" "" "$(sed '/^#/d' "$bundle/PACKAGES" | while IFS=$(printf '\t') read -r package rest; do
	: "$rest"
	[ -s "$bundle/licences/$package" ] || echo "$package"
done)"

# A program of the user's, built with what the bundle has
cp "$TOP/userlib/examples/cufile-read.c" my-program.c
check "a program is built with its headers and libraries" cc -D_GNU_SOURCE -o my-program my-program.c -I"$bundle/include" \
	-idirafter "$bundle/include/peerlane-cuda" -L"$bundle/lib" -L"$bundle/lib/stubs" -lcufile -lcuda
cat >cufile.c <<'END'
#include <cufile.h>
int main(void) { return cuFileDriverOpen().err; }
END
# pkgconf does not quote a blank behind -idirafter
ln -s "$bundle" plain
# shellcheck disable=SC2046 # a list
check "pkg-config finds it where it lies" cc -D_GNU_SOURCE -o cufile cufile.c \
	$(PKG_CONFIG_PATH=plain/lib/pkgconfig pkgconf --cflags --libs cufile)

# An empty root: the bundle, /proc, /dev/null, a home that is read-only, and /tmp; no shell, no C library, no user namespaces
mkdir -p root/proc root/dev root/home root/tmp root/mine
: >root/dev/null
cp my-program root/mine/
head -c 1048576 /dev/urandom >root/mine/data.bin
cat >enter <<'END'
# no namespaces of users either: the limit is of this one, and of what is in it
echo 0 >/proc/sys/user/max_user_namespaces || exit 125
! unshare --user true 2>/dev/null || exit 125
mount --bind "$1" "$1" && mount --bind "$1/a folder" "$1/a folder" && mount -o remount,bind,ro "$1/a folder" &&
	mount --rbind /proc "$1/proc" && mount --bind /dev/null "$1/dev/null" || exit 125
root=$1
shift
umask 022
cd "$root"
exec chroot "$root" "/a folder/bundle/libexec/tools/setpriv" --reuid 12345 --regid 12345 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \
	"/a folder/bundle/libexec/tools/env" -i HOME=/home "$@"
END
chmod 555 root/home
chmod 1777 root/tmp
nobody() {
	unshare --user --map-users=all --map-groups=all --mount --net sh "$OUT/enter" "$OUT/root" "$@"
}
bin="/a folder/bundle/bin"
tools="/a folder/bundle/libexec/tools"
for each in bin lib lib64 usr; do
	check_false "the root has no $each" test -e "$OUT/root/$each"
done
if [ "$(id -u)" != 0 ]; then
	skip_part "only root can become another user"
	finish
fi
nobody "$tools/cat" /proc/self/status >status
check_eq "there it has no capability and no other user's rights" "0000000000000000 0000000000000000 12345" \
	"$(sed -n 's/^CapEff:\t//p; s/^CapBnd:\t//p; s/^Uid:\t\([0-9]*\).*/\1/p' status | sort | xargs)"
check_fails "no home to write to, and no /tmp: it says what to set" 'set PEERLANE_CACHE.*' nobody TMPDIR=/home "$bin/peerlane-run" -l
check_fails "a cache that cannot be" '/home/x: it cannot be made' nobody PEERLANE_CACHE=/home/x "$bin/peerlane-run" -l
ln -s "../a folder/bundle/libexec/launch" root/mine/peerlane-nonsense
root/mine/peerlane-nonsense >nonsense 2>&1
check_eq "a program that is not there: the status" 127 $?
check "… and what it says" grep -q 'there is no program peerlane-nonsense' nonsense
nobody "$bin/peerlane-try" --help >help
check_eq "a usage names the programs as they are called there" "usage: peerlane-try [OPTION]... COMMAND [ARG]..." "$(head -n 1 help)"
for program in run try demo matrix draw report; do
	nobody "$bin/peerlane-$program" --help
done | grep -nE "(make|scenarios/(run|try|demo|matrix|draw|report))( |\$)" >help
check_eq "... and no other" "" "$(cat help)"
check_eq "so does its version" "peerlane-try $("$TOP/images/build/version" --commit)" "$(nobody "$bin/peerlane-try" --version)"
nobody "$bin/peerlane-try" --nonsense true >nonsense 2>&1
check "and a message" grep -qx "peerlane-try: unknown option --nonsense" nonsense
check_fails "what it goes without" '^# vm: the bundle has no build/guest/6.12/mlx5.cpio .*; a checkout has it$' nobody "$bin/peerlane-try" --kernel 6.12 --topology cx true
check_fails "a guest that it does not have" '^peerlane-try: the bundle has no guest with kernel 6[.]1; a checkout can build it' nobody "$bin/peerlane-try" --kernel 6.1 true
check_false "its README.md has no link to another file" grep -E '\]\([^#]' "$bundle/README.md"
check "it lists the scenarios" nobody "$bin/peerlane-run" -l
check "a machine is drawn" nobody "$bin/peerlane-draw" same-switch
touch started
nobody "$bin/peerlane-run" gds-direct --json /tmp/result.json >run.log 2>&1
check_eq "gds-direct runs" 0 $? || diag "$(tail -n 30 run.log)"
check "… by the direct path" jq -e '.verdict == "pass" and ([.transfers[].path] | unique) == ["p2p"]' root/tmp/result.json
nobody "$bin/peerlane-try" --add /mine/my-program --add /mine/data.bin my-program data.bin >try.log 2>&1
check_eq "so does a program" 0 $? || diag "$(tail -n 30 try.log)"
check "… and says what it did" grep -qx '1048576 bytes are in GPU memory, path p2p' try.log
check_eq "the bundle has written to its cache alone" "" "$(find root/home root/mine -newer started ! -type d)"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the bundle for arm64 hosts runs under an emulator of such a processor: every tool, device tests, a program in a machine
# tags: build guest
# tier: nightly
# timeout: 3600

. "$TOP/scenarios/lib/case.sh"
. "$TOP/images/build/lib.sh"
umask 022
need_tool cc jq zstd
find_stages
parts=$(arm64_parts)
[ -d "$parts" ] || skip "no compilers for arm64 in the cache: make arm64-parts fetches them"
need_file "$BUILD/qemu-arm64/qemu-system-x86_64" "$BUILD/guest/7.2/overlay.cpio"
emulator=$parts/cross/usr/bin/qemu-aarch64

bundle=$OUT/root/"a folder"/bundle
at_exit 'rm -rf "$OUT/root"'
check "the folder is made" "$TOP/images/bundle/make-bundle" --arm64 --folder "$bundle" || finish
size=$(du -s -B1 --apparent-size "$bundle" | cut -f 1)
check "its files have $((size / 1000000)) MB, at most 300" test "$size" -le 300000000
# as make-bundle packs it
size=$(tar -C "$OUT/root/a folder" -c bundle | zstd -q -12 --long=27 | wc -c)
check "packed they have $((size / 1000000)) MB, at most 100" test "$size" -le 100000000
# whole FOLDER: an expression for its name, not for a longer one that it is a part of
whole() { printf '(^|[^A-Za-z0-9._/-])%s($|[^A-Za-z0-9._-])' "$(printf %s "$1" | sed 's/[].[*^$+?(){}|\\]/\\&/g')"; }
check_eq "nothing in it names the folders in which it was built" "" \
	"$(cd "$bundle" && LC_ALL=C grep -rlaE -e "$(whole "$TOP")" -e "$(whole "$PEERLANE_CACHE")" .)"

# machine FILE...: the processor that each is for, a number of ELF
machine() {
	for file; do
		[ "$(LC_ALL=C head -c 4 "$file" | tr -d '\0' | od -An -c | tr -d ' ')" != 177ELF ] || od -An -tu2 -j18 -N2 "$file" | tr -d ' '
	done | sort | uniq -c | awk '{ print $2 ":" ($1 > 3 ? "many" : $1) }' | xargs
}
check_eq "what runs on the host is for arm64" "183:many" \
	"$(machine "$bundle"/libexec/bin/* "$bundle"/libexec/lib/* "$bundle/libexec/launch" "$bundle/bin/peerlane")"
check_eq "what programs are linked with is for guests" "62:many" "$(machine "$bundle"/lib/*.so.*[0-9] "$bundle"/lib/stubs/*.so.1)"
# shellcheck disable=SC2046 # words
check_eq "… and what scenarios run there" "62:many" "$(cd "$bundle/build/scenarios" && machine $(find . -type f))"
check_eq "each line of PACKAGES has a name, a version, a source, and its version" "" "$(awk -F '\t' '!/^#/ && NF != 4' "$bundle/PACKAGES")"
for package in libc6 libglib2.0-0t64 busybox-static jq xfsprogs qemu linux-image; do
	check "$package is in PACKAGES" grep -q "^$package" "$bundle/PACKAGES"
done
check_eq "each package has its licence" "" "$(sed '/^#/d' "$bundle/PACKAGES" | while IFS=$(printf '\t') read -r package rest; do
	: "$rest"
	[ -s "$bundle/licences/$package" ] || echo "$package"
done)"

# Device tests, by the emulator's binary of the bundle with its libraries
cat >emulated-qemu <<END
#!/bin/sh
exec "$emulator" "$bundle/libexec/lib/ld-linux-aarch64.so.1" --inhibit-cache --library-path "$bundle/libexec/lib" "$bundle/libexec/bin/qemu-system-x86_64" "\$@"
END
chmod +x emulated-qemu
for name in ops queues p2p late-writes switch-acs cx-commands; do
	mkdir "$name"
	env TIER=check QEMU="$OUT/emulated-qemu" OUT="$OUT/$name" sh -c 'cd "$OUT" && exec sh "$TOP/tests/qtest/$1.sh"' sh "$name" >"$name.log" 2>&1
	check_eq "qtest/$name passes with it" 0 $? || diag "$(grep -v '^ok' "$name.log" | tail -n 20)"
done

# As on such a host: an empty root with the bundle, /proc and /tmp; the kernel starts each arm64 program by the emulator. That it
# is told in a user namespace, for it alone.
mkdir -p root/proc root/dev root/tmp root/mine misc
: >root/dev/null
# the emulator refuses a getrandom() of nothing, by which QEMU asks if there is one; on an arm64 host it does without this file
: >root/dev/urandom
cat >enter <<'END'
# ROOT EMULATOR MISC COMMAND...
root=$1 emulator=$2 misc=$3
shift 3
mount -t binfmt_misc none "$misc" 2>/dev/null || { echo "this kernel has no binfmt_misc in a user namespace" >&2; exit 125; }
printf '%s' ":arm64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:$emulator:POCF" >"$misc/register" &&
	mount --bind "$root" "$root" && mount --rbind /proc "$root/proc" && mount --bind /dev/null "$root/dev/null" &&
	mount --bind /dev/urandom "$root/dev/urandom" || exit 125
umask 022
cd "$root"
exec chroot "$root" "/a folder/bundle/libexec/tools/setpriv" --bounding-set=-all --inh-caps=-all --no-new-privs \
	"/a folder/bundle/libexec/tools/env" -i PEERLANE_CACHE=/tmp/cache "$@"
END
arm() {
	unshare --user --map-root-user --mount --net sh "$OUT/enter" "$OUT/root" "$emulator" "$OUT/misc" "$@" </dev/null
}
bin="/a folder/bundle/bin"
tools="/a folder/bundle/libexec/tools"
arm "$tools/true" >said 2>&1
case $? in
125) skip_part "$(cat said)"; finish ;;
*) check_eq "the kernel starts its programs by the emulator" "0 " "$? $(cat said)" ;;
esac
check_eq "each tool starts" "" "$(arm "$tools/sh" -c 'cd "$1" && for tool in *; do
	./$tool --version >/tmp/said 2>&1
	case $? in 126 | 127) echo "$tool: $(cat /tmp/said)" ;; esac
done' sh "$tools")"
check "there are fifty of them and more" test "$(find "$bundle/libexec/tools" -type l | wc -l)" -ge 50
check_eq "the tool for hosts runs" "peerlane $("$TOP/images/build/version")" "$(arm "$bin/peerlane" --version)"
check "it lists the scenarios" sh -c 'echo "$1" | grep -q "^gds-direct "' sh "$(arm "$bin/peerlane-run" -l)"
check "a machine is drawn" arm "$bin/peerlane-draw" same-switch

# A program in a machine; a snapshot is not worth its while here. One emulator inside the other: Linux has to start; where the program
# comes to its end in time, it has gone directly.
check "a program is built with its headers and libraries" cc -o root/mine/cufile-read "$TOP/userlib/examples/cufile-read.c" \
	-I"$bundle/include" -idirafter "$bundle/include/peerlane-cuda" -L"$bundle/lib" -L"$bundle/lib/stubs" -lcufile -lcuda || finish
head -c 1048576 /dev/urandom >root/mine/data.bin
start=$(date +%s)
arm PEERLANE_SNAPSHOT=0 "$bin/peerlane-try" --timeout 1200 --direct --json /tmp/result.json --add /mine/cufile-read --add /mine/data.bin cufile-read data.bin >try.log 2>&1
got=$?
check "Linux starts in a machine" grep -q "Linux version" root/tmp/cache/out/try/guest/console.log || diag "$(tail -n 30 try.log)"
if [ "$got" = 124 ]; then
	skip_part "the machine had not ended the program after $(($(date +%s) - start)) s; the last line of its console: $(tail -n 1 root/tmp/cache/out/try/guest/console.log)"
	finish
fi
check_eq "the program ends well ($(($(date +%s) - start)) s)" 0 "$got" || diag "$(tail -n 30 try.log)"
check_eq "by the direct path, by library and counters" '[true,true,1048576,0,["p2p"]]' \
	"$(jq -c '[.met, .machines[0].direct, .machines[0].bytes, .machines[0].host_bytes, ([.machines[0].transfers[].path] | unique)]' root/tmp/result.json)"
finish

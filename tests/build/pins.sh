#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a pin that has vanished from the mirror falls forward with a warning; a wrong checksum stops
# tags: build
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"

# A mirror of our own: programs named as apt's answer from a list of what it holds.
mkdir bin
cat >bin/apt-get <<'END'
#!/bin/sh
[ -z "${ARGS-}" ] || echo "$*" >>"$ARGS"
for arg; do last=$arg; done
case " $* " in
*" update "*) ;;
*" download "*) [ -z "${FULL-}" ] || { echo "E: Write error - write (28: No space left on device)" >&2; exit 100; }; name=${last%%=*}; echo "not the real one" >"${name}_${last#*=}_amd64.deb" ;;
*" source "*) name=${last%%=*}; for end in dsc orig.tar.xz orig.tar.gz debian.tar.xz; do echo "not the real one" >"$name.$end"; done ;;
*) echo "apt-get stand-in: $*" >&2; exit 1 ;;
esac
END
cat >bin/apt-cache <<'END'
#!/bin/sh
for arg; do last=$arg; done
case " $* " in
*" madison "*) awk -v p="$last" '$1 == p { printf "%s | %s | mirror suite/main amd64 Packages\n", $1, $2 }' "$HOLDS" ;;
*" pkgnames "*) awk -v p="$last" 'index($1, p) == 1 { print $1 }' "$HOLDS" ;;
*" showsrc "*) awk -v p="src:$last" '$1 == p { print "Version: " $2 }' "$HOLDS" ;;
*) echo "apt-cache stand-in: $*" >&2; exit 1 ;;
esac
END
printf '#!/bin/sh\nexit 0\n' >bin/mmdebstrap
chmod 755 bin/*
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
need_file $keyring

# fetch CASE: with what stands in CASE.holds; leaves CASE.err and CASE/fetch-*/resolved
fetch() {
	fetch_case=$1
	shift
	rm -rf "$OUT/cache-$fetch_case"
	env -u PEERLANE_ROOT_KEY -u PEERLANE_FETCH_KEY PATH="$OUT/bin:$PATH" HOLDS="$OUT/$fetch_case.holds" DEBIAN_MIRROR=mirror.invalid/debian \
		PEERLANE_CACHE="$OUT/cache-$fetch_case" "$@" sh "$TOP/images/build/fetch" >"$fetch_case.out" 2>"$fetch_case.err" && return
	fetch_status=$?
	cat "$fetch_case.err"
	return "$fetch_status"
}
resolved() { cat "$OUT/cache-$1"/fetch-*/resolved; }

# What the pins are, from the file itself.
pin() { sed -n "s/^$1=//p" "$TOP/versions.mk"; }
k72=$(pin K7_2_RELEASE) k72v=$(pin K7_2_VERSION) k612=$(pin K6_12_RELEASE) k612v=$(pin K6_12_VERSION)
k61=$(pin K6_1_RELEASE) k61v=$(pin K6_1_VERSION) qemu=$(pin QEMU_VERSION) perftest=$(pin PERFTEST_VERSION)
cat >all.holds <<END
linux-binary-$k72 $k72v
linux-modules-$k72 $k72v
linux-image-$k612 $k612v
linux-headers-$k61 $k61v
src:qemu $qemu
src:perftest $perftest
END

# 1. All there, but the files are not those of the pins: the checksum stops the build.
check_fails "a file with a wrong checksum is refused, and named" "checksum differs from versions.mk" fetch all
check_eq "nothing is left that looks fetched" "" "$(find cache-all -maxdepth 1 -name 'fetch-*' 2>&1)"

# 2. Everything has moved on: newer ones of each series stand in, older and other ones do not.
cat >moved.holds <<END
linux-binary-7.2.99+deb13-amd64 7.2.99-1~bpo13+1
linux-modules-7.2.99+deb13-amd64 7.2.99-1~bpo13+1
linux-binary-7.2.100+deb13-amd64 7.2.100-1~bpo13+1
linux-modules-7.2.100+deb13-amd64 7.2.100-1~bpo13+1
linux-binary-7.2.100+deb13-rt-amd64 7.2.100-1~bpo13+1
linux-binary-7.2.100+deb13-cloud-amd64 7.2.100-1~bpo13+1
linux-binary-7.3.1+deb13-amd64 7.3.1-1~bpo13+1
linux-image-6.12.200+deb13-amd64 6.12.200-1
linux-headers-6.1.0-90-amd64 6.1.200-1
linux-headers-6.1.0-9-amd64 6.1.27-1
src:qemu 1:10.0.14+ds-0+deb13u1
src:qemu 1:10.0.20+ds-0+deb13u1
src:qemu 1:11.1.0+ds-1
src:perftest 24.10.0+0.65-1
src:perftest 25.01.0+0.80-2
src:perftest 26.01.0+0.1-1
END
check "a mirror that has moved on is accepted" fetch moved
resolved moved >moved.resolved
check "Linux 7.2 falls forward to the newest 7.2, by number" grep -qxF "K7_2_RELEASE='7.2.100+deb13-amd64'" moved.resolved
check "Linux 6.12 falls forward" grep -qxF "K6_12_VERSION='6.12.200-1'" moved.resolved
check "the 6.1 headers fall forward" grep -qxF "K6_1_RELEASE='6.1.0-90-amd64'" moved.resolved
check "QEMU stays in its series" grep -qxF "QEMU_VERSION='1:10.0.20+ds-0+deb13u1'" moved.resolved
check "so does perftest" grep -qxF "PERFTEST_VERSION='25.01.0+0.80-2'" moved.resolved
check "the warning names both kernels" grep -q "^WARNING: linux 7.2: .*$k72.*7.2.100+deb13-amd64" moved.err
check "the warning names both QEMUs" grep -qF "WARNING: qemu: pinned version $qemu is gone from the mirror; using 1:10.0.20+ds-0+deb13u1" moved.err
check_eq "one warning for each pin that moved" 5 "$(grep -c '^WARNING' moved.err)"
check_eq "and the warnings are kept for later runs" 5 "$(cat cache-moved/fetch-*/warnings | wc -l)"

# 3. The series has left backports: the newest above it, never one below.
sed '/7\.2\./d;s/^linux-binary-7.3.1+deb13-amd64.*/&\nlinux-binary-6.19.9+deb13-amd64 6.19.9-1~bpo13+1/' moved.holds >gone.holds
check "a series that has left is replaced by a newer one" fetch gone
check "it is 7.3" sh -c "grep -qxF \"K7_2_RELEASE='7.3.1+deb13-amd64'\" cache-gone/fetch-*/resolved"
check "with a warning" grep -q "^WARNING: linux 7.2: .*7.3.1" gone.err

# 4. Nothing suitable at all.
grep -v qemu moved.holds >none.holds
check_fails "no QEMU of the series: an error that says what was looked for" \
	"^peerlane: qemu: neither the pinned $(echo "$qemu" | sed 's/[+.]/[&]/g') nor another" fetch none

# 5. A pin overridden to a version that never was: the same.
cat moved.holds >over.holds
check "an override to an absent version falls forward" fetch over env PEERLANE_PIN_QEMU_VERSION=1:10.0.1+none-1
check "and is named" grep -qF "pinned version 1:10.0.1+none-1 is gone" over.err
# 6. Settings that are none are refused before anything is fetched.
cp moved.holds wrong.holds
check_fails "an override of a pin that does not exist" '^peerlane: PEERLANE_PIN_QEMU_VERSOIN: versions.mk has no QEMU_VERSOIN' \
	fetch wrong env PEERLANE_PIN_QEMU_VERSOIN=1
check_fails "a way to accelerate that does not exist" '^peerlane: PEERLANE_ACCEL is tcg or kvm, not "kwm"' \
	fetch wrong env PEERLANE_ACCEL=kwm
check_fails "a way into the root that does not exist" '^peerlane: PEERLANE_MODE is root, unshare or sudo, not "docker"' \
	fetch wrong env PEERLANE_MODE=docker

mkdir fedora arm
printf '#!/bin/sh\nexit 127\n' >fedora/dpkg
printf '#!/bin/sh\necho arm64\n' >arm/dpkg
chmod +x fedora/dpkg arm/dpkg
for host in fedora arm; do
	check_fails "a host that cannot build ($host) is told of the bundle" '^peerlane: the build needs Debian or Ubuntu on amd64; .* use the bundle, .*docs/how-to/use-the-bundle.md' \
		env PATH="$OUT/$host:$PATH" PEERLANE_CACHE="$OUT/cache-$host" sh "$TOP/images/build/build-root"
done

# 7. An archive of the past: its lists have expired, and are taken all the same, here and in the root; those of a mirror are not.
cp moved.holds past.holds
# expired ADDRESS: how many calls of apt, and settings of the root, take such lists, and how many do not
expired() {
	rm -f args
	fetch past env ARGS="$OUT/args" DEBIAN_MIRROR="$1" || return
	cat cache-past/fetch-*/aptopts >>args
	grep -qE ' update$' args || echo "apt was not asked"
	echo "$(grep -cE 'Check-Valid-Until(=| ")false' args) $(grep -E ' (update|download|source) ' args | grep -vc 'Check-Valid-Until=false')"
}
check_eq "of a mirror apt takes no list that has expired" "0" "$(expired mirror.invalid/debian | cut -d ' ' -f 1)"
expired mirror.invalid/archive/20261124T000000Z >past
check_eq "of an archive of the past it does, each time" 0 "$(cut -d ' ' -f 2 past)"
check "and in the root" grep -qx 'Acquire::Check-Valid-Until "false";' cache-past/fetch-*/aptopts

# 8. A disk that is full, before and while it fetches.
cp moved.holds full.holds
check_fails "a disk that gets full: the cause is in the line" \
	'^peerlane: download of linux-.* failed: .*No space left on device.* \(log: ' fetch full env FULL=1
cat >bin/df <<'END'
#!/bin/sh
echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "disk 1000000 692800 307200 70% /"
END
chmod 755 bin/df
check_fails "a disk with too little room: what is there and what it takes" \
	'^peerlane: .*cache-full has 300 MiB of disk left, and .* needs about [0-9]*: make room there, or set PEERLANE_CACHE' fetch full
finish

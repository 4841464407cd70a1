#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the Debian packages pass lintian, and install, work and go without a trace on Debian 12 and 13 and Ubuntu 24.04
# tags: build
# tier: nightly
# timeout: 1800

. "$TOP/scenarios/lib/case.sh"
. "$TOP/images/build/lib.sh"
umask 022
need_tool jq objdump dpkg-deb
if [ "$(id -u)" != 0 ]; then
	skip "only root can enter another root in here"
fi
find_stages
for land in packages debian-12 debian-13; do
	[ -f "$(land_root $land).mode" ] || skip "no root $land in the cache: run \`make lands\`"
done

at_exit 'rm -rf "$OUT/land" "$OUT/unpacked" "$OUT"/*.deb'
check "they are built" "$TOP/images/packages/make-packages" || finish
cp "$BUILD"/packages/*.* .
set -- *.deb
check_eq "all four" "libpeerlane-dev libpeerlane0 peerlane-dkms peerlane-tools" "$(for deb; do echo "${deb%%_*}"; done | sort | xargs)"
version=$("$BUILD/userlib/peerlane" --version | cut -d ' ' -f 2)
for deb; do
	check_eq "${deb%%_*} has the library's version" "$version" "$(dpkg-deb -f "$deb" Version)"
	dpkg-deb -x "$deb" unpacked
done
"$TOP/images/build/in-root" --land packages lintian --allow-root --fail-on error,warning --tag-display-limit 0 ./*.changes >lintian.log 2>&1
check_eq "lintian has no error and no warning" 0 $? || diag "$(cat lintian.log)"

# By name: what a C library of 2.34 does not have
find unpacked -type f \( -name '*.so.*' -o -perm -u+x \) >objects
check "they have programs and libraries" test "$(wc -l <objects)" -ge 7
check_eq "none needs a C library newer than 2.34" "" "$(while read -r object; do
	objdump -T "$object" 2>/dev/null | sed -n 's/.*GLIBC_2[.]\([0-9]*\).*/\1/p' | awk -v object="$object" '$1 > 34 { print object, "2." $1 }'
done <objects | sort -u)"
check_eq "nothing is where /usr was merged from" "" "$(cd unpacked && ls -d lib* bin sbin 2>/dev/null)"
check_eq "nothing takes the place of NVIDIA's" "" "$(cd unpacked && find . \( -name 'libcuda.so*' -o -name 'libnvidia-ml.so*' -o -name nvidia-smi -o \
	\( -name 'libcu*.so*' -a ! -path './usr/lib/peerlane/*' \) -o -path './usr/include/cu*' \))"

# in_land COMMAND...: in $OUT/land, without a network
in_land() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --net sh -c 'mount --bind "$1" "$1" && mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" || exit 125
		cd "$1" && shift && exec chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive "$@"' sh "$OUT/land" "$@" </dev/null
}
# apt finds what it needs in the root's own folder of packages, and anything else nowhere
apt() {
	in_land apt-get -q --yes --no-install-recommends -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 "$@"
}
# listed: every file of the land with its kind, rights and owner, and what is in /etc; but what package managers write, and depmod
# with its folders, and where Ubuntu's base-files diverts /lib to when a package has files there, as those of kernels have
listed() {
	(cd land && find . -xdev \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./tmp -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/dpkg -o \
		-path ./var/lib/apt -o -path './usr/lib/modules/*/modules.*' -o -path './lib.usr-is-merged' \) -prune -o ! \( -type d -path './usr/lib/modules*' \) -printf '%p %y %m %U:%G %l\n' | LC_ALL=C sort
	find etc -type f ! -name ld.so.cache -exec sha256sum {} + | LC_ALL=C sort)
}

# installed_for_it: DKMS has installed the module for the kernel of these headers
installed_for_it() {
	in_land dkms status peerlane >dkms.status
	grep -F "peerlane/$version, ${headers#linux-headers-}, " dkms.status | grep -w installed && return
	cat dkms.status
	return 1
}

printf '#define _GNU_SOURCE\n#include <cufile.h>\nint main(void)\n{\n\treturn cuFileDriverClose().err == 0;\n}\n' >close.c
"$BUILD/userlib/peerlane" doctor --from "$TOP/tests/doctor/records/cloud-vm-h100.rec" --json >expected.json
status=$?
check "doctor has findings of the recorded machine" jq -e '.findings != []' expected.json
for land in debian-12 debian-13 ubuntu-24.04; do
	[ -f "$(land_root $land).mode" ] || { skip_part "no root $land in the cache (make lands makes it where there is a mirror of it)"; continue; }
	rm -rf land
	cp -a "$(land_root $land)" land
	mkdir -p land/tmp/peerlane
	cp ./*.deb close.c "$TOP"/userlib/examples/*.c "$TOP/tests/doctor/records/cloud-vm-h100.rec" land/tmp/peerlane/
	# First what they depend on, so that the list before has it
	debs=$(cd land && printf '/%s\n' tmp/peerlane/*.deb)
	# shellcheck disable=SC2086 # a list
	needs=$(apt install --simulate $debs 2>needs.log | awk '$1 == "Inst" && $2 !~ /peerlane/ { print $2 }')
	check "$land: what they depend on is known" test -n "$needs" || { diag "$(cat needs.log)"; continue; }
	# and a compiler, and the kernel to build for
	more="gcc libc6-dev pkgconf"
	headers=$(cd land/var/cache/apt/archives && printf '%s\n' linux-headers-*-amd64_*.deb linux-headers-*-generic_*.deb | sed 's/_.*//; /[*]/d')
	# shellcheck disable=SC2086 # lists
	check "$land: apt installs that" apt install $needs $more || continue
	listed >before
	# shellcheck disable=SC2086 # a list
	check "$land: and the packages, with nothing else" apt install $debs || continue
	check_eq "$land: four of them" 4 "$(in_land dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep -c 'peerlane.* installed$')"
	check_eq "$land: the tool has the version" "peerlane $version" "$(in_land peerlane --version)"
	in_land peerlane doctor --from /tmp/peerlane/cloud-vm-h100.rec --json >doctor.json 2>doctor.err
	check_eq "$land: doctor says of a recorded machine what the library's build says: the status" "$status" $?
	check "$land: … and the findings" cmp doctor.json expected.json
	check "$land: its manual page is there" test -s land/usr/share/man/man1/peerlane-doctor.1.gz
	check "$land: so is completion" test -s land/usr/share/bash-completion/completions/peerlane
	check "$land: an example is compiled by pkg-config" in_land sh -c \
		'cd /tmp/peerlane && gcc -Wall -Werror -o nearest nearest.c $(pkg-config --cflags --libs libpeerlane)'
	check "$land: it finds the library" in_land sh -c 'ldd /tmp/peerlane/nearest | grep "libpeerlane.so.0 => /lib/x86_64-linux-gnu/"'
	check "$land: one with cuFile too" in_land sh -c \
		'cd /tmp/peerlane && gcc -Wall -Werror -c cufile-read.c $(pkg-config --cflags cufile) && gcc -o close close.c $(pkg-config --cflags --libs cufile)'
	check "$land: it runs with the library of the package" in_land env LD_LIBRARY_PATH=/usr/lib/peerlane /tmp/peerlane/close
	in_land ldconfig -p >libraries
	check "$land: the loader lists what it finds" grep -q 'libc\.so\.6' libraries
	check_false "$land: which is no libcufile" grep libcufile libraries
	check_eq "$land: DKMS has the module" "peerlane/$version" "$(in_land dkms status peerlane | sed 's/, /\//; s/[,:].*//' | sort -u)"
	if [ -n "$headers" ]; then
		check "$land: apt installs headers of a kernel that has P2PDMA" apt install "$headers"
		if grep -q '^CONFIG_MODVERSIONS=y' "land/usr/src/$headers/.config"; then
			# It is bound to a build of NVIDIA's driver; that is enough of one
			check_fails "$land: DKMS passes over it, without NVIDIA's driver" . installed_for_it
			mkdir land/usr/src/nvidia-0
			for function in get_pages put_pages free_page_table; do
				printf '0x11111111\tnvidia_p2p_%s\tnvidia\tEXPORT_SYMBOL\t\n' "$function"
			done >land/usr/src/nvidia-0/Module.symvers
			check "$land: with it, DKMS goes on" in_land dkms autoinstall -k "${headers#linux-headers-}"
			rm -r land/usr/src/nvidia-0
		fi
		check "$land: and DKMS builds the module for it" installed_for_it || diag "$(tail -n 20 land/var/lib/dkms/peerlane/*/build/make.log)"
		apt purge "$headers" >purge.log 2>&1
	else
		skip_part "$land has no headers of a kernel with P2PDMA: the module is not built there"
	fi
	check "$land: apt removes them" apt remove peerlane-tools libpeerlane0 libpeerlane-dev peerlane-dkms
	check "$land: and what was left" in_land dpkg --purge peerlane-tools libpeerlane0 libpeerlane-dev peerlane-dkms
	apt purge --autoremove >purge.log 2>&1
	listed >after
	check_eq "$land: no file is left, and none is lost" "" "$(diff before after)"
done
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: file -> real NVIDIA GPU -> file with our libcufile.so.0 (bounce path)
# tags: gpu
# tier: all
# timeout: 300
#
# Runs on the host, not in the build root: there is the GPU's own libcuda.so.1.
# libcufile.so.0 needs nothing but a C library of version 2.34 or later, so the
# very file that the guests use is tested.  Where it is not built, or does not
# load, the host's own compiler makes both it and the test.
#
#   O=DIR       a build to use when build/userlib has none
#   DIR=DIR     where the test files go      (TMPDIR or /var/tmp)
#   SECONDS_EACH=N  time for each speed      (1)
#   LIB=FILE    test this libcufile.so.0 instead, NVIDIA's for example
set -u

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
O=${O:-$top/build/userlib}
DIR=${DIR:-${TMPDIR:-/var/tmp}}

skip() {
	printf '1..0 # SKIP %s\n' "$*"
	exit 77
}

if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
	skip "no NVIDIA GPU here: there is no /dev/nvidiactl"
fi

usable() {
	test=$1/tests/cufile-gpu
	lib=$1/libcufile.so.0
	[ -x "$test" ] && [ -e "$lib" ] &&
		! LC_ALL=C ldd "$test" "$lib" 2>&1 | grep -q 'not found'
}
if usable "$top/build/userlib" || usable "$O"; then
	echo "# testing ${LIB:-$lib}, built before"
else
	cc=$(command -v cc || command -v gcc || command -v clang) ||
		skip "the build does not run here ($test), and there is no C compiler"
	O=${TMPDIR:-/tmp}/peerlane-check-gpu.$$
	trap 'rm -rf "$O"' EXIT INT TERM
	echo "# building with this host's $cc"
	make -s -C "$top/userlib/cufile" O="$O" CC="$cc" all \
		"$O/tests/cufile-gpu" >&2 || exit 1
	usable "$O" || exit 1
	echo "# testing ${LIB:-$lib}"
fi

echo "# sha256 $(sha256sum "${LIB:-$lib}" | cut -c1-16) $(uname -sr)"
"$test" --lib "${LIB:-$lib}" --dir "$DIR" --seconds "${SECONDS_EACH:-1}" "$@"

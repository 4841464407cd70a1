# SPDX-License-Identifier: MIT
# For cases that run on the host, not in the build root: there is the GPU's own
# libcuda.so.1.  libcufile.so.0 needs nothing but a C library of version 2.34 or
# later, so the very file that the guests use is tested.  Where it is not built, or
# does not load, the host's own compiler makes both it and the test.
# shellcheck shell=sh
# shellcheck disable=SC2034 # test and lib are for who reads this file

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
O=${O:-$top/build/userlib}
DIR=${DIR:-${TMPDIR:-/var/tmp}}

skip() {
	printf '1..0 # SKIP %s\n' "$*"
	exit 77
}

# usable BUILD PROGRAM: do they run here?
usable() {
	test=$1/tests/$2
	lib=$1/libcufile.so.0
	[ -x "$test" ] && [ -e "$lib" ] &&
		! LC_ALL=C ldd "$test" "$lib" 2>&1 | grep -q 'not found'
}

# build PROGRAM: it is $test from here on, and the library $lib
build() {
	if usable "$top/build/userlib" "$1" || usable "$O" "$1"; then
		echo "# testing ${LIB:-$lib}, built before"
		return
	fi
	cc=$(command -v cc || command -v gcc || command -v clang) ||
		skip "the build does not run here ($test), and there is no C compiler"
	O=${TMPDIR:-/tmp}/peerlane-$1.$$
	trap 'rm -rf "$O"' EXIT INT TERM
	echo "# building with this host's $cc"
	make -s -C "$top/userlib/cufile" O="$O" CC="$cc" all \
		"$O/tests/$1" >&2 || exit 1
	usable "$O" "$1" || exit 1
	echo "# testing ${LIB:-$lib}"
}

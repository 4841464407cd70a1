# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# For the programs that need a real NVIDIA GPU. They run on the host, not in the
# build root: there is the GPU's own libcuda.so.1.  The library and its programs
# need nothing but a C library of version 2.34 or later, so the very file that
# the guests use is run.  Where it is not built, or does not load, the host's own
# compiler makes both.
# shellcheck disable=SC2154 # top: who reads this file sets it
O=${O:-$top/build/userlib}

skip() {
	printf '1..0 # SKIP %s\n' "$*"
	exit 77
}

need_gpu() {
	[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] ||
		skip "no NVIDIA GPU here: there is no /dev/nvidiactl"
}

# find_program NAME: sets program and lib to tests/NAME and to libcufile.so.0
find_program() {
	for dir in "$top/build/userlib" "$O"; do
		usable "$dir" "$1" || continue
		echo "# $lib, built before"
		return
	done
	cc=$(command -v cc || command -v gcc || command -v clang) ||
		skip "the build does not run here ($program), and there is no C compiler"
	O=${TMPDIR:-/tmp}/peerlane-gpu.$$
	trap 'rm -rf "$O"' EXIT
	trap 'exit 130' INT TERM
	echo "# building with this host's $cc"
	make -s -C "$top/userlib/cufile" O="$O" CC="$cc" all \
		"$O/tests/$1" >&2 && usable "$O" "$1" || exit 1
}

usable() {
	program=$1/tests/$2
	lib=$1/libcufile.so.0
	[ -x "$program" ] && [ -e "$lib" ] &&
		! LC_ALL=C ldd "$program" "$lib" 2>&1 | grep -q 'not found'
}

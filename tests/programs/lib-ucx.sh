# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# UCX with CUDA, for cases that run it on two hosts.  A case sources this file.
#
#	ucx_case GUEST-SCRIPT MACHINE	built, and the guests' part; hosts_boot boots them
#	ucx_moved LABEL HOST KIND BYTES	what the wire has carried of HOST while LABEL was counted, in frames
#					of KIND (rc, ud), or by tcp, is at least so much
. "$TOP/tests/programs/lib.sh"

program_source ucx configure.ac
program_cuda

# Without nvcc, so without device code, which the emulated GPU would not run, and what needs it (gda)
build() {
	./autogen.sh
	./configure --prefix=/case/ucx --with-cuda="$cuda" NVCC= LDFLAGS="-Wl,-rpath-link,$BUILD/userlib" --enable-examples \
		--enable-test-apps --disable-static --disable-openmp --disable-doxygen-doc --without-bfd --without-go --without-java \
		--with-mlx5 --without-gda --without-rdmacm --without-mad --without-rocm --without-ze --without-gdrcopy --without-fuse3
	for part in src/ucm src/ucs src/uct src/ucp src/tools/perf; do
		make "-j$(nproc)" -C "$part"
		make -C "$part" install DESTDIR="$PWD/installed"
	done
	make -C examples ucp_hello_world
	make -C test/apps test_cuda_hook_dynamic
	mkdir -p "$tree/guest/bin" "$tree/guest/lib/ucx"
	for file in installed/case/ucx/bin/ucx_perftest $(find . -path '*/.libs/*' \( -name ucp_hello_world -o -name test_cuda_hook_dynamic \)); do
		strip -o "$tree/guest/bin/${file##*/}" "$file"
	done
	for file in libucp libuct libucs libucm ucx/libuct_cuda ucx/libuct_ib ucx/libuct_ib_mlx5 ucx/libucm_cuda ucx/libucx_perftest_cuda; do
		strip --strip-unneeded -o "$tree/guest/lib/$file.so.0" "installed/case/ucx/lib/$file.so.0"
	done
	cp -L /usr/lib/x86_64-linux-gnu/libmlx5.so.1 "$tree/guest/lib/"
}

ucx_case() {
	program_build ucx build "$TOP/tests/programs/lib-ucx.sh"
	program_hosts "$1" "$2" "$TOP/tests/programs/guest/lib-ucx.sh" "$BUILD/scenarios/mpi-gpu"
	cp -r "$tree/guest" case/ucx
	echo cxx >>case/extras
}

ucx_moved() {
	jq -en --arg host "$2" --arg kind "$3" --argjson bytes "$4" --slurpfile before "$2/$1.begin.wire" --slurpfile after "$2/$1.end.wire" '
		def carried: .ports[$host].out | if $kind == "tcp" then .bytes - .roce.payload_bytes else
			[.roce.opcodes | to_entries[] | select(.key | startswith("\($kind)-")) | .value.payload_bytes] | add // 0 end;
		($after[0] | carried) - ($before[0] | carried) >= $bytes'
}

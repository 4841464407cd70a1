#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: UCX with CUDA hooks our allocations, and moves GPU memory on one host and between two, by rc, ud and tcp
# tags: programs guest cuda rdma third-party
# tier: nightly
# timeout: 2400
. "$TOP/tests/programs/lib.sh"

program_source ucx configure.ac
program_cuda

# Without nvcc, so without device code: the emulated GPU would not run it
build() {
	./autogen.sh
	./configure --prefix=/case/ucx --with-cuda="$cuda" NVCC= LDFLAGS="-Wl,-rpath-link,$BUILD/userlib" --enable-examples \
		--enable-test-apps --disable-static --disable-openmp --disable-doxygen-doc --without-bfd --without-go --without-java \
		--without-mlx5 --without-rdmacm --without-mad --without-rocm --without-ze --without-gdrcopy --without-fuse3
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
	for file in libucp libuct libucs libucm ucx/libuct_cuda ucx/libuct_ib ucx/libucm_cuda ucx/libucx_perftest_cuda; do
		strip --strip-unneeded -o "$tree/guest/lib/$file.so.0" "installed/case/ucx/lib/$file.so.0"
	done
}
program_build ucx build

program_hosts ucx
cp -r "$tree/guest" case/ucx
echo cxx >>case/extras
hosts_boot 1500 2
# What the wire has carried while the programs counted: ten messages of 100000 bytes from each host, by the transport that
# they were told to use
for label in rc ud tcp; do
	for host in a b; do
		# shellcheck disable=SC2016 # jq's
		check "$label: the GPU memory of host $host went over the wire by $label" jq -en --arg host "$host" --arg label "$label" \
			--slurpfile before "$host/$label.begin.wire" --slurpfile after "$host/$label.end.wire" '
			def carried: .ports[$host].out | if $label == "tcp" then .bytes - .roce.payload_bytes else
				[.roce.opcodes | to_entries[] | select(.key | startswith("\($label)-")) | .value.payload_bytes] | add // 0 end;
			($after[0] | carried) - ($before[0] | carried) >= 10 * 100000'
	done
done
finish

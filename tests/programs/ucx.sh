#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: UCX built with CUDA patches our libcuda for its memory hooks, and moves GPU memory between two hosts
# tags: programs guest cuda rdma third-party
# tier: nightly
# timeout: 3000
. "$TOP/tests/programs/lib.sh"
. "$TOP/images/guest/files.sh"

program_source ucx configure.ac
program_cuda

# Without what runs on the GPU: there is no NVCC, and "gda" needs a submodule
build() {
	autoreconf -fi
	./contrib/configure-release --prefix=/case/ucx --with-cuda="$cuda" --without-java --without-go --disable-static \
		--disable-doxygen-doc --without-rocm --without-ze --without-gdrcopy --enable-logging --disable-numa --without-gda
	make "-j$(nproc)"
	make install DESTDIR="$tree"
	installed=$tree/case/ucx
	cc -O1 -DHAVE_CUDA -I"$cuda/include" -I"$installed/include" -Iexamples -o "$installed/bin/ucp_hello_world" \
		examples/ucp_hello_world.c -L"$installed/lib" -lucp -lucs -L"$cuda/lib64" -lcudart -lcuda -lpthread \
		-Wl,-rpath-link,"$installed/lib" -Wl,-rpath,/case/ucx/lib
	mkdir -p "$tree/guest/bin" "$tree/guest/lib/ucx"
	for file in bin/ucx_info bin/ucx_perftest bin/ucp_hello_world; do
		strip -o "$tree/guest/$file" "$installed/$file"
	done
	for file in "$installed"/lib/lib*.so.[0-9] "$installed"/lib/ucx/*.so.[0-9]; do
		strip --strip-unneeded -o "$tree/guest/${file#"$installed"/}" "$(readlink -f "$file")"
	done
	rm -rf "$tree/case"
}
program_build ucx build

program_hosts ucx
cp -r "$tree/guest" case/ucx
hosts_boot 300 2
# What the wire has carried meanwhile
roce() { # LABEL HOST: payload
	jq -n --slurpfile before "$2/$1.begin.wire" --slurpfile after "$2/$1.end.wire" --arg host "$2" \
		'[$before[0], $after[0]] | map(.ports[$host].out.roce.unique_payload_bytes // 0) | .[1] - .[0]'
}
for transport in rc_verbs ud_verbs; do
	sent=$(roce "$transport" a)
	check "$transport: 20 messages of 100000 bytes went over the wire as RoCE ($sent bytes)" test "$sent" -ge 2000000
done
sent=$(roce tcp a)
check "tcp: and none of them did ($sent bytes)" test "$sent" -eq 0
finish

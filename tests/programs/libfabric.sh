#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libfabric's own programs move GPU memory (FI_HMEM_CUDA) on our libraries, on one host and between two
# tags: programs guest cuda rdma third-party
# tier: nightly
# timeout: 2400
. "$TOP/tests/programs/lib.sh"
. "$TOP/images/guest/files.sh"

program_source libfabric configure.ac
program_cuda

build() {
	autoreconf -fi
	./configure --prefix=/case/libfabric --with-cuda="$cuda" --disable-static --enable-shm --enable-verbs --enable-tcp --enable-rxm \
		--disable-lnx --disable-psm2 --disable-psm3 --disable-opx --disable-efa --disable-usnic --disable-cxi --disable-ucx \
		--disable-lpp --disable-mrail --disable-sockets --disable-rxd --disable-udp --disable-sm2
	make "-j$(nproc)"
	make install DESTDIR="$tree"
	cd fabtests
	autoreconf -fi
	./configure --prefix=/case/libfabric --with-libfabric="$tree/case/libfabric" --with-cuda="$cuda" \
		LDFLAGS="-Wl,-rpath-link,$BUILD/userlib"
	make "-j$(nproc)" benchmarks/fi_rdm_tagged_pingpong
	cp "$(find benchmarks -name 'fi_rdm_tagged_pingpong' -type f | tail -n 1)" "$tree/case/libfabric/bin/"
	mkdir "$tree/guest"
	for file in fi_info fi_rdm_tagged_pingpong; do
		strip -o "$tree/guest/$file" "$tree/case/libfabric/bin/$file"
	done
	strip -o "$tree/guest/libfabric.so.1" "$tree/case/libfabric/lib/libfabric.so.1"
	# what this version needs of them
	for file in $(ldd_closure "$tree/guest/libfabric.so.1" | grep -E '/lib(hwloc|numa|udev|cap|uring|atomic)[-.]'); do
		cp "$file" "$tree/guest/"
	done
	rm -rf "$tree/case"
}
program_build libfabric build

program_hosts libfabric two-hosts-rxe
cp -r "$tree/guest" case/libfabric
hosts_boot 300 2
# What the wire has carried while the programs counted: GPU memory by verbs, as RoCE and by nothing else
for host in a b; do
	check "verbs: the GPU memory of host $host went over the wire as RoCE" jq -en --slurpfile before "$host/verbs.begin.wire" \
		--slurpfile after "$host/verbs.end.wire" --arg host "$host" \
		'[$before[0], $after[0]] | map(.ports[$host].out.roce.unique_payload_bytes) | .[1] - .[0] >= 5 * 65536'
done
finish

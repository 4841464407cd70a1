#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: fio's libcufile engine, built with our headers, writes, reads and verifies on the emulated GPU, directly
# tags: programs guest cuda cufile p2p third-party
# tier: nightly
# timeout: 1500
. "$TOP/tests/programs/lib.sh"

program_source fio configure
program_cuda

build() {
	export CPATH="$cuda/include" LIBRARY_PATH="$cuda/lib64"
	./configure --enable-libcufile --disable-native --disable-xnvme --disable-libblkio --disable-libzbc --disable-tcmalloc \
		--disable-rados --disable-rbd --disable-http --disable-gfapi --disable-libnfs --disable-pmem --disable-rdma
	grep -q '^CONFIG_LIBCUFILE=y' config-host.mak
	make "-j$(nproc)" fio
	mkdir -p "$tree"
	strip -o "$tree/fio" fio
}
program_build fio build

mkdir case case/lib case/fio
cp "$tree/fio" case/fio/
ldd "$tree/fio" | awk '$1 !~ /^lib(c|m|cuda|cudart|cufile)\.so/ && $3 ~ /^\// { print $3 }' | xargs -r cp -Lt case/fio
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
cp "$TOP/tests/programs/guest/fio" case/run
printf 'peerlane_gpu\nnvme\n' >case/modules
truncate -s 128M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run guest same-switch 7.2 "$PWD/case" 600
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
finish

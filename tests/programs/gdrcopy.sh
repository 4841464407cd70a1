#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GDRCopy's own tests pass on our libcuda and driver, but for those whose feature is documented as missing
# tags: programs guest cuda third-party
# tier: nightly
# timeout: 600
. "$TOP/tests/programs/lib.sh"

program_source gdrcopy tests/sanity.cpp
nvidia=$PEERLANE_CACHE/third-party/nvidia-open
[ -f "$nvidia/nvidia/nv-p2p.h" ] || skip "no nv-p2p.h, which gdrdrv is compiled with: run \`make third-party\`"
program_cuda

# Its driver, as its own build would configure it for such a kernel and NVIDIA's open modules; see kernel/gdrdrv
build() {
	make -C src lib
	LIBRARY_PATH=$cuda/lib64 make -C tests gdrcopy_sanity CUDA="$cuda"
	cat >src/gdrdrv/Kbuild <<KBUILD
obj-m := gdrdrv.o
ccflags-y := -I$nvidia/nvidia -I\$(src) -DGDRDRV_OPENSOURCE_NVIDIA -DGDRDRV_HAVE_VM_FLAGS_SET -DGDRDRV_HAVE_PROC_OPS
KBUILD
	make -C /usr/src/linux-7.2 M="$PWD/src/gdrdrv" KBUILD_EXTRA_SYMBOLS="$BUILD/kernel/7.2/peerlane_gpu/Module.symvers" modules
	mkdir -p "$tree"
	strip --strip-debug -o "$tree/gdrdrv.ko" src/gdrdrv/gdrdrv.ko
	cp -L src/libgdrapi.so.2 tests/gdrcopy_sanity "$tree/"
}
program_build gdrcopy build

mkdir case case/lib
cp "$tree"/* case/
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
cp "$TOP/tests/kernel/guest/strict.sh" case/
cp "$TOP/tests/programs/guest/gdrcopy" case/run
echo peerlane_gpu >case/modules
echo cxx >case/extras
vm_run guest no-drive 7.2 "$PWD/case" 500
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
finish

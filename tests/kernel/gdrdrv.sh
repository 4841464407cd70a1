#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: gdrdrv, unmodified, from GDRCopy's source: compiled with NVIDIA's header, programs reach GPU memory through it
# tags: kernel guest third-party
# tier: nightly
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# debug-gdrdrv.sh has another kernel
kver=${KVER:-7.2}
headers=/usr/src/linux-$kver
case $kver in
*-debug) headers=$BUILD/guest/$kver/headers ;;
esac
# Not ours to ship, and in no package of Debian
gdrcopy=$PEERLANE_CACHE/third-party/gdrcopy
nvidia=$PEERLANE_CACHE/third-party/nvidia-open
for file in gdrdrv.c gdrdrv.h; do
	[ -f "$gdrcopy/src/gdrdrv/$file" ] || skip "no source of gdrdrv: copy GDRCopy's source to $gdrcopy"
done
[ -f "$nvidia/nvidia/nv-p2p.h" ] || skip "no nv-p2p.h, which gdrdrv is compiled with: run \`make third-party\`"
mkdir "$OUT/gdr"
ln -s "$gdrcopy/src/gdrdrv/gdrdrv.c" "$gdrcopy/src/gdrdrv/gdrdrv.h" "$OUT/gdr/"
# What GDRCopy's own build finds out by trial about such a kernel, and about NVIDIA's open modules
cat >"$OUT/gdr/Kbuild" <<END
obj-m := gdrdrv.o
ccflags-y := -I$nvidia/nvidia -I\$(src) -DGDRDRV_OPENSOURCE_NVIDIA -DGDRDRV_HAVE_VM_FLAGS_SET -DGDRDRV_HAVE_PROC_OPS
END
built=$BUILD/kernel/$kver
check "it compiles, with NVIDIA's header, against our symbols" make -C "$headers" M="$OUT/gdr" \
	KBUILD_EXTRA_SYMBOLS="$built/peerlane_gpu/Module.symvers" modules
if [ -f "$OUT/gdr/gdrdrv.ko" ]; then
	strip --strip-debug "$OUT/gdr/gdrdrv.ko"
	DRIVER_FILES=$OUT/gdr/gdrdrv.ko
	case $kver in
	*-debug) debug_guest "$kver" driver gdrdrv 880 ;;
	*)
		VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
		driver_guest "$kver" driver gdrdrv 170
		;;
	esac
fi
finish

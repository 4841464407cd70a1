#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia-fs, unmodified, from NVIDIA's source: compiled with NVIDIA's header, it pins GPU memory, which is freed meanwhile, and is unloaded
# tags: kernel guest third-party
# tier: nightly
# timeout: 900
. "$TOP/tests/kernel/lib.sh"

# debug-nvidia-fs.sh has another kernel.  2.28.4 knows none as new as 7.2.
kver=${KVER:-6.12}
# Not ours to ship, and in no package of Debian
nvfs=$PEERLANE_CACHE/third-party/nvidia-fs
nvidia=$PEERLANE_CACHE/third-party/nvidia-open
[ -x "$nvfs/src/configure" ] || skip "no source of nvidia-fs: copy NVIDIA's gds-nvidia-fs to $nvfs"
[ -f "$nvidia/nvidia/nv-p2p.h" ] || skip "no nv-p2p.h, which nvidia-fs is compiled with: run \`make third-party\`"
need_file "$BUILD/guest/$kver/release"
read -r release <"$BUILD/guest/$kver/release"
headers=/lib/modules/$release/build
case $kver in
*-debug) headers=$BUILD/guest/$kver/headers ;;
esac
cp -R "$nvfs/src" "$OUT/nvfs"
# Its own build looks for NVIDIA's driver below /usr/src, and for the kernel's headers below /lib/modules; these are its other
# steps.  The first one builds some thirty modules to learn what the kernel has, which takes minutes; so what it has learnt is
# kept for this kernel and compiler.
known=$PEERLANE_CACHE/kernel-check/nvidia-fs-$({ cat "$nvfs/src/configure" "$headers/include/config/auto.conf"
	echo "$release"; cc --version; } | sha256sum | cut -c 1-16)
# shellcheck disable=SC2317 # called through check
configure() {
	if [ ! -s "$known" ]; then
		sed -i "s|^export KDIR=.*|export KDIR=$headers|" "$OUT/nvfs/configure"
		(cd "$OUT/nvfs" && ./configure "$release") || return
		mkdir -p "${known%/*}"
		cp "$OUT/nvfs/config-host.h" "$known.$$" && mv "$known.$$" "$known"
	else
		echo "as found before: $known"
		cp "$known" "$OUT/nvfs/config-host.h"
	fi
}
check "its configure" configure
check "it has learnt what the kernel has" grep -q '^#define HAVE_' "$OUT/nvfs/config-host.h"
built=$BUILD/kernel/$kver
flags="-DCONFIG_NVFS_STATS=y -DGDS_VERSION=$(cat "$nvfs/src/GDS_VERSION") -DNVFS_ENABLE_KERN_RDMA_SUPPORT -DNVFS_BATCH_SUPPORT=y"
check "it compiles, with NVIDIA's header, against our symbols" make -C "$headers" M="$OUT/nvfs" \
	NVIDIA_SRC_DIR="$nvidia/nvidia" CONFIG_NVFS_BATCH_SUPPORT=y CONFIG_NVFS_STATS=y KCPPFLAGS="$flags" \
	KBUILD_EXTRA_SYMBOLS="$built/peerlane_gpu/Module.symvers" modules
# The other side of its hooks is compiled with its header
mkdir "$OUT/disk"
ln -s "$TOP/kernel/test/nvfs_disk"/nvfs_disk.[ch] "$OUT/disk/"
cat >"$OUT/disk/Kbuild" <<END
obj-m := nvfs_disk.o
ccflags-y := -I$OUT/nvfs -I$nvidia/nvidia -I$TOP/kernel/test/peerlane_p2p_test
END
check "a disk with its hooks compiles" make -C "$headers" M="$OUT/disk" KCPPFLAGS="$flags" \
	KBUILD_EXTRA_SYMBOLS="$built/peerlane_p2p_test/Module.symvers" modules
if [ -f "$OUT/nvfs/nvidia-fs.ko" ] && [ -f "$OUT/disk/nvfs_disk.ko" ]; then
	strip --strip-debug "$OUT/nvfs/nvidia-fs.ko" "$OUT/disk/nvfs_disk.ko"
	DRIVER_FILES="$OUT/nvfs/nvidia-fs.ko $OUT/disk/nvfs_disk.ko"
	case $kver in
	*-debug)
		. "$TOP/scenarios/lib/machine/vm.sh"
		vm_allow 'sleeping function called .* __kmalloc_cache_noprof[+][^ ]* nvfs_update_alloc_gpustat[+][^ ]* \[nvidia_fs\]' \
			"nvidia-fs allocates the statistics of a GPU with GFP_KERNEL under its spin lock"
		vm_allow "kmemleak: 3 new suspected memory leaks" \
			"nvidia-fs keeps the shadow buffer whose pin it has refused; the guest looks at what is lost"
		debug_guest "$kver" p2p-abi nvidia-fs 880
		;;
	*)
		VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
		driver_guest "$kver" p2p-abi nvidia-fs 290
		;;
	esac
fi
[ "$case_failed" -ne 0 ] || rm -rf "$OUT/nvfs" "$OUT/disk"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia-fs, unmodified, from NVIDIA's source: compiled with NVIDIA's header, it pins GPU memory, which is freed meanwhile, and is unloaded
# tags: kernel guest third-party
# tier: nightly
# timeout: 900
. "$TOP/tests/kernel/lib.sh"

# Not ours to ship, and in no package of Debian.  2.28.4 knows no kernel as new as 7.2.
kver=6.12
nvfs=$PEERLANE_CACHE/third-party/nvidia-fs
nvidia=$PEERLANE_CACHE/third-party/nvidia-open
[ -x "$nvfs/src/configure" ] || skip "no source of nvidia-fs: copy NVIDIA's gds-nvidia-fs to $nvfs"
[ -f "$nvidia/nvidia/nv-p2p.h" ] || skip "no nv-p2p.h, which nvidia-fs is compiled with: run \`make third-party\`"
read -r release <"$BUILD/guest/$kver/release"
cp -R "$nvfs/src" "$OUT/nvfs"
# Its own build looks for NVIDIA's driver below /usr/src; these are its other steps.  The first one builds some thirty modules
# to learn what the kernel has, which takes minutes; so what it has learnt is kept for this kernel and compiler.
known=$PEERLANE_CACHE/kernel-check/nvidia-fs-$({ cat "$nvfs/src/configure" "/lib/modules/$release/build/.config"
	echo "$release"; cc --version; } | sha256sum | cut -c 1-16)
# shellcheck disable=SC2317 # called through check
configure() {
	if [ ! -s "$known" ]; then
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
check "it compiles, with NVIDIA's header, against our symbols" make -C "/lib/modules/$release/build" M="$OUT/nvfs" \
	NVIDIA_SRC_DIR="$nvidia/nvidia" CONFIG_NVFS_BATCH_SUPPORT=y CONFIG_NVFS_STATS=y \
	KCPPFLAGS="-DCONFIG_NVFS_STATS=y -DGDS_VERSION=$(cat "$nvfs/src/GDS_VERSION") -DNVFS_ENABLE_KERN_RDMA_SUPPORT -DNVFS_BATCH_SUPPORT=y" \
	KBUILD_EXTRA_SYMBOLS="$BUILD/kernel/$kver/peerlane_gpu/Module.symvers" modules
if [ -f "$OUT/nvfs/nvidia-fs.ko" ]; then
	strip --strip-debug "$OUT/nvfs/nvidia-fs.ko"
	DRIVER_FILES=$OUT/nvfs/nvidia-fs.ko
	VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
	driver_guest $kver driver nvidia-fs 170
fi
[ "$case_failed" -ne 0 ] || rm -rf "$OUT/nvfs"
finish

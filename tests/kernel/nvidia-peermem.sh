#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia-peermem, unmodified, from NVIDIA's source: compiled with its own header, it works on peerlane_gpu
# tags: kernel guest rdma third-party
# tier: nightly
# timeout: 300
. "$TOP/tests/kernel/lib.sh"

# debug-nvidia-peermem.sh has another kernel
kver=${KVER:-7.2}
headers=/usr/src/linux-$kver
case $kver in
*-debug) headers=$BUILD/guest/$kver/headers ;;
esac
# Not ours to ship: nvidia/ and nvidia-peermem/ of kernel-open/ of NVIDIA's open kernel modules
nvidia=$PEERLANE_CACHE/third-party/nvidia-open
for file in nvidia-peermem/nvidia-peermem.c nvidia-peermem/peer_mem.h nvidia/nv-p2p.h; do
	[ -f "$nvidia/$file" ] ||
		skip "no source of nvidia-peermem: run \`make third-party\`, or copy kernel-open/ of NVIDIA's open kernel modules to $nvidia"
done
mkdir "$OUT/nv"
: >"$OUT/nv/conftest.h"
ln -s "$nvidia/nvidia-peermem/nvidia-peermem.c" "$OUT/nv/"
cat >"$OUT/nv/Kbuild" <<END
obj-m := nvidia-peermem.o
ccflags-y := -I$nvidia/nvidia -I$nvidia/nvidia-peermem -I\$(src) \
	-DNV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT -DNV_VERSION_STRING=\"third-party\"
END
built=$BUILD/kernel/$kver
check "it compiles, with NVIDIA's header, against our symbols" make -C "$headers" M="$OUT/nv" \
	KBUILD_EXTRA_SYMBOLS="$built/peerlane_gpu/Module.symvers $built/peerlane_peercore_test/Module.symvers" modules
if [ -f "$OUT/nv/nvidia-peermem.ko" ]; then
	strip --strip-debug "$OUT/nv/nvidia-peermem.ko"
	DRIVER_FILES=$OUT/nv/nvidia-peermem.ko
	case $kver in
	*-debug)
		. "$TOP/scenarios/lib/machine/vm.sh"
		# Others of the kind are to be seen after it, too
		VM_CMDLINE=kasan_multi_shot
		vm_allow 'KASAN: slab-use-after-free in nv_get_p2p_free_callback[+]' \
			"nvidia-peermem writes to a region after it has told the core, which may release it then: ib_peer_mem.c leaves that to the client"
		debug_guest "$kver" p2p-abi nvidia-peermem 880
		;;
	*)
		VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
		driver_guest "$kver" p2p-abi nvidia-peermem 290
		;;
	esac
fi
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the stock mlx5 driver takes the emulated ConnectX; every verb of RC, XRC, UC and UD works, windows, all memory as one key, and a kernel user's keys
# tags: guest rdma
# tier: check
# timeout: 700
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio jq
need_file "$QEMU"

mkdir -p case/bin
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
	-o case/cx-verbs "$TOP/hw-model/test/cx-verbs.c" -libverbs || exit 1
cp "$TOP/tests/cx/guest/verbs" case/run
# Of the build's root, which is of the guest's release
for each in rc uc ud srq; do
	cp "/usr/bin/ibv_${each}_pingpong" case/bin/
done
printf '%s\n' rdma mlx5 >case/extras
printf '%s\n' mlx5_ib ib_uverbs >case/modules
for kver in 7.2 6.12; do
	# by day the programs of others are tried on one kernel
	pings=20
	[ "$kver" = 7.2 ] || pings=0
	[ "$TIER" != nightly ] || pings=200
	echo "PINGS=$pings" >case/env
	need_file "$BUILD/guest/$kver/mlx5.cpio" "$BUILD/kernel/$kver/peerlane_frwr_test.ko"
	vm_run "$kver" "$TOP/tests/cx/cx.topo" "$kver" "$OUT/case" 300 \
		-device peerlane-cx,id=cx0,bus=sw0.0
	status=$?
	ktap_from "$kver/result.log" "$kver"
	check_eq "$kver: the guest ended well" 0 "$status"
done
finish

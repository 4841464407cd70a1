#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: "rdma statistic" on the emulated ConnectX: counters of the port, and of queue pairs by kind, by process and one by one, with the stock driver
# tags: guest rdma
# tier: all
# timeout: 700
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio jq
need_file "$QEMU"

mkdir case
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
	-o case/cx-stats "$TOP/hw-model/test/cx-stats.c" -libverbs || exit 1
cp "$TOP/tests/cx/guest/statistic" case/run
printf '%s\n' rdma mlx5 >case/extras
printf '%s\n' mlx5_ib ib_uverbs >case/modules
for kver in 7.2 6.12; do
	need_file "$BUILD/guest/$kver/mlx5.cpio"
	vm_run "$kver" "$TOP/tests/cx/cx.topo" "$kver" "$OUT/case" 300 \
		-device peerlane-cx,id=cx0,bus=sw0.0
	status=$?
	ktap_from "$kver/result.log" "$kver"
	check_eq "$kver: the guest ended well" 0 "$status"
done
finish

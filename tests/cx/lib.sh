# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # of scenario.sh and hosts.sh
# Two hosts, of which some have a ConnectX instead of soft-RoCE.  A case sources this file.
#
#	cx_hosts HOST…		those have one; $CX_PORT are more of its properties.
#				$CX_KERNEL, set before this file is read, is the kernel
#	cx_run			two hosts say all of guest/pair, to their end
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/scenarios/lib/scenario.sh"
SC_SOURCE=$BUILD/out/data SC_TOPOLOGY=$TOP/tests/cx/cx.topo SC_KERNEL=${CX_KERNEL:-7.2} SC_GUEST=$TOP/tests/cx/guest/pair
. "$TOP/scenarios/lib/machine/hosts.sh"
need_tool cc jq cpio flock make
need_file "$BUILD/guest/$SC_KERNEL/mlx5.cpio" "$BUILD/guest/$SC_KERNEL/diags.cpio"

cx_hosts() {
	sc_build
	cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
		-o cx-pair "$TOP/hw-model/test/cx-pair.c" -libverbs || exit 1
	cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
		-o cx-mad "$TOP/hw-model/test/cx-mad.c" -libumad || exit 1
	hosts_case "$OUT/cx-pair" "$OUT/cx-mad"
	printf "%s\n" mlx5 diags >>"$OUT/case/extras"
	sc_modules virtio_net rdma_rxe mlx5_ib ib_uverbs ib_umad
	echo "CX_HOSTS='$*' CX_PORT=${CX_PORT-} TIER=${TIER:-check}" >"$OUT/case/cx"
	cx_lid=0
	for cx_each in a b; do
		cx_lid=$((cx_lid + 1))
		case " $* " in
		*" $cx_each "*) hosts_nic "$cx_each" "peerlane-cx,bus=sw0.0,lid=$cx_lid,trains=on${CX_PORT:+,$CX_PORT}" ;;
		esac
	done
}

# cx_run: the conversation of both hosts, of which the wire has lost and reordered packets, both ways
cx_run() {
	hosts_boot 850 2
	jq ".ports[] | {out: .out.drops.loss, in: .in.drops.loss, reordered: .in.reordered}" wire/counters.json
	check "packets got lost, both ways, by the counters of the wire" \
		jq -e ".ports | [.a.out.drops.loss + .b.in.drops.loss, .b.out.drops.loss + .a.in.drops.loss] | all(. > 0)" wire/counters.json
	check "packets overtook others, both ways" \
		jq -e "[.ports[] | .in.reordered > 0] | length == 2 and all" wire/counters.json
	finish
}

# host_moved HOST: bytes in host memory that its card has moved, of messages and in all
host_moved() {
	vm_qom_get "$1" /machine/peripheral/nic0 counters |
		jq -re '"ok \(.["data-host-read"] + .["data-host-write"]) \(.["dma-host-read"] + .["dma-host-write"])"'
}

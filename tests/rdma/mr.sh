#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GPU memory is registered by the best way that soft-RoCE takes, with reasons
# tags: guest rdma
# timeout: 400
. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
need_file "$BUILD/userlib/tests/mr_guest" "$TOP/tests/rdma/mr.guest"

# boot NAME TOPOLOGY: the guest's lines are this case's lines
boot() {
	mkdir -p "$OUT/$1.case"
	cp "$TOP/tests/rdma/mr.guest" "$OUT/$1.case/run"
	echo "$1" >"$OUT/$1.case/mode"
	printf '%s\n' rdma perftest >"$OUT/$1.case/extras"
	printf '%s\n' virtio_net rdma_rxe ib_uverbs peerlane_gpu >"$OUT/$1.case/modules"
	vm_run "$1" "$2" 7.2 "$OUT/$1.case" 180 \
		-netdev "dgram,id=n,local.type=unix,local.path=$OUT/$1.here,remote.type=unix,remote.path=$OUT/$1.there" \
		-device virtio-net-pci,netdev=n,romfile=,host_mtu=9000
	status=$?
	ktap_from "$OUT/$1/result.log" "$1"
	check_eq "$1: the guest ended well" 0 "$status"
	check "$1: with a plan" grep -q '^1\.\.[1-9]' "$OUT/$1/result.log"
}

boot window "$TOP/tests/cuda/two-gpus-window.topo"
boot staged "$TOP/tests/cuda/two-gpus.topo"
finish

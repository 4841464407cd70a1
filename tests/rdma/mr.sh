#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GPU memory is registered by the best way that soft-RoCE takes, with reasons
# tags: guest rdma
# timeout: 300
. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
need_file "$BUILD/userlib/tests/mr_guest"

# boot NAME TOPOLOGY: the program's lines are this case's lines.  The card has
# nobody at its other end; the queue pairs of the guest talk to each other.
boot() {
	mkdir -p "$OUT/$1.case"
	cat >"$OUT/$1.case/run" <<-END
		#!/bin/sh
		ip link set eth0 up &&
			ip addr add 10.0.0.1/24 dev eth0 &&
			rdma link add rxe0 type rxe netdev eth0 || exit 3
		exec /usr/lib/peerlane/tests/mr_guest $1
	END
	chmod +x "$OUT/$1.case/run"
	echo rdma >"$OUT/$1.case/extras"
	printf '%s\n' virtio_net rdma_rxe ib_uverbs peerlane_gpu >"$OUT/$1.case/modules"
	vm_run "$1" "$2" 7.2 "$OUT/$1.case" 130 \
		-netdev "dgram,id=n,local.type=unix,local.path=$OUT/$1.here,remote.type=unix,remote.path=$OUT/$1.there" \
		-device virtio-net-pci,netdev=n,romfile=
	status=$?
	ktap_from "$OUT/$1/result.log" "$1"
	check_eq "$1: the guest ended well" 0 "$status"
	check "$1: with a plan" grep -q '^1\.\.[1-9]' "$OUT/$1/result.log"
}

boot window "$TOP/tests/cuda/two-gpus-window.topo"
boot staged "$TOP/tests/cuda/two-gpus.topo"
finish

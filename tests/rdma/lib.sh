# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For the cases of this folder; sourced after scenarios/lib/case.sh and
# scenarios/lib/machine/vm.sh.

# mr_guest NAME MODE TOPOLOGY KVER: boots a guest with soft-RoCE, runs guest/mr
# in it with MODE, window or staged; its lines are this case's lines
mr_guest() {
	need_file "$BUILD/userlib/tests/mr_guest"
	mkdir -p "$OUT/$1.case"
	cp "$TOP/tests/rdma/guest/mr" "$OUT/$1.case/run"
	echo "$2" >"$OUT/$1.case/mode"
	printf '%s\n' rdma perftest >"$OUT/$1.case/extras"
	printf '%s\n' virtio_net rdma_rxe ib_uverbs peerlane_gpu >"$OUT/$1.case/modules"
	vm_run "$1" "$3" "$4" "$OUT/$1.case" 180 \
		-netdev "dgram,id=n,local.type=unix,local.path=$OUT/$1.here,remote.type=unix,remote.path=$OUT/$1.there" \
		-device virtio-net-pci,netdev=n,romfile=,host_mtu=9000
	mr_status=$?
	ktap_from "$OUT/$1/result.log" "$1"
	check_eq "$1: the guest ended well" 0 "$mr_status"
	check "$1: with a plan" grep -q '^1\.\.[1-9]' "$OUT/$1/result.log"
}

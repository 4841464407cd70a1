#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: perftest of Debian with dma-bufs of the emulated GPU on the emulated ConnectX: all data goes below the switch; RC, UC, UD and shared receives
# tags: guest rdma p2p switch
# tier: nightly
# timeout: 400
# shellcheck disable=SC2016,SC2317 # expressions of jq; vm.sh calls host_count
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cpio jq
need_file "$QEMU" "$BUILD/guest/7.2/mlx5.cpio" "$BUILD/guest/7.2/perftest.cpio"

mkdir -p case/lib
cp "$TOP/tests/cx/guest/perftest" case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
# of each tool
messages=40
[ "$TIER" != nightly ] || messages=100
echo "MESSAGES=$messages" >case/env
printf '%s\n' rdma mlx5 perftest >case/extras
printf '%s\n' mlx5_ib ib_uverbs peerlane_gpu >case/modules

# host_count GUEST LABEL
host_count() {
	vm_qom_get "$1" /machine/peripheral/cx0 counters | jq -c --arg label "$2" '{$label} + .' >>"$OUT/$1/counts" &&
		echo ok
}
vm_run perftest "$TOP/tests/cx/cx-gpu.topo" 7.2 "$OUT/case" 300 -device peerlane-cx,id=cx0,bus=sw0.1
status=$?
ktap_from perftest/result.log
check_eq "the guest ended well" 0 "$status"

# moved LABEL WHAT JQ: of what was counted between "before" and LABEL; $all are the bytes of the messages
moved() {
	check "$1: $2" jq -se --arg label "$1" --argjson messages "$messages" '
		($messages * 65536) as $all | (map(.label) | index($label)) as $i |
		if $i == null or .[$i - 1].label != "before" then error("not counted") else . end |
		def n: if type == "number" then . else error("not a number: \(.)") end;
		.[$i - 1] as $a | .[$i] | with_entries(select(.value | type == "number") | .value -= ($a[.key] | n)) |
		debug | [.["dma-peer-read"], .["dma-peer-write"] | n] as $peer |
		([.["dma-host-read"], .["dma-host-write"] | n] | add) as $host | '"$3" perftest/counts
}
for verb in write read send; do
	moved $verb-host "in host memory, no peer is touched" '$peer == [0, 0] and $host >= 2 * $all'
	moved $verb-gpu "each byte comes from the GPU and goes to it" '$peer[0] >= $all and $peer[1] >= $all'
	moved $verb-gpu "host memory has only queues" '$host < $all / 16'
	[ "$verb" = write ] || moved $verb-lat "likewise" '$peer[0] >= $all and $peer[1] >= $all and $host < $all / 16'
done
finish

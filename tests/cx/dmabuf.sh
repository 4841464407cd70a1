#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the stock mlx5 driver takes GPU memory as a dma-buf; data goes, also by queues of DEVX, below the switch, and none when the memory has gone
# tags: guest rdma p2p switch
# tier: all
# timeout: 600
# shellcheck disable=SC2016,SC2317 # expressions of jq; vm.sh calls host_count and host_bdf
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio jq
need_file "$QEMU" "$BUILD/userlib/libcuda.so.1" "$BUILD/userlib/libpeerlane.so.0"

mkdir -p case/lib
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$TOP/userlib/cufile" -I"$TOP/userlib/include" \
	-I"$TOP/scenarios/lib/guest" -o case/cx-dmabuf "$TOP/hw-model/test/cx-dmabuf.c" \
	"$BUILD/userlib/libpeerlane.so.0" "$BUILD/userlib/libcufile.so.0" "$BUILD/userlib/libcuda.so.1" -lmlx5 -libverbs || exit 1
cp "$TOP/tests/cx/guest/dmabuf" case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
printf '%s\n' rdma mlx5 >case/extras
printf '%s\n' mlx5_ib ib_uverbs peerlane_gpu >case/modules

# host_count GUEST LABEL: what the card, the GPU and the ports of both have counted, and how many page faults there were
host_count() {
	for each in cx0:counters gpu0:initiators sw0.0:counters sw0.1:counters; do
		vm_qom_get "$1" "/machine/peripheral/${each%:*}" "${each#*:}" || return
	done | jq -sc --arg label "$2" --argjson faults "$(grep -c peerlane_cx_fault "$OUT/$1/trace.log")" \
		'{$label, $faults, cx: .[0], gpu: (.[1] | map(select(.id == "cx0"))[0] // {read: 0, write: 0}), below: .[2], own: .[3]}' \
		>>"$OUT/$1/counts" && echo ok
}

host_bdf() { vm_bdf "$1" "$2"; }

# boot KVER PART…: cx0 is below the GPU's switch, cx1 is not
boot() {
	need_file "$BUILD/guest/$1/mlx5.cpio"
	kver=$1
	shift
	printf '%s\n' "$@" >case/parts
	vm_run "$kver" "$TOP/tests/cx/cx-gpu.topo" "$kver" "$OUT/case" 300 \
		-device peerlane-cx,id=cx0,bus=sw0.1 -device peerlane-cx,id=cx1,bus=rp1,lid=2
	status=$?
	ktap_from "$kver/result.log" "$kver"
	check_eq "$kver: the guest ended well" 0 "$status"
}

# moved NAME LABEL JQ: what was counted between "before" and LABEL; the expression must hold
moved() {
	check "$1: $2: $3" jq -se --arg label "$2" --argjson len 3145805 '
		(map(.label) | index($label)) as $i | .[$i - 1] as $a | .[$i] as $b |
		if $i == null or $a.label != "before" then error("not counted") else . end |
		def some(k): {key: k, value: ($b[k] | with_entries(select(.value | type == "number") | .value -= $a[k][.key]))};
		[some("cx"), some("gpu"), some("below"), some("own")] | from_entries + {faults: ($b.faults - $a.faults)} |
		debug | '"$4" "$1/counts"
}

# What was not there, told by the card: on demand, and where GPU memory has gone
VM_TRACE=peerlane_cx_fault
for kver in 7.2 6.12; do
	# the last one leaves the GPU without a driver
	boot "$kver" moves devx piece paged used freed barred unbound
	for verb in WRITE READ SEND DEVX; do
		for way in host-gpu:0:1 gpu-host:1:0 gpu-gpu2:1:1; do
			read=${way#*:} write=${way##*:} label=$verb-${way%%:*}
			read=${read%:*}
			moved "$kver" "$label" "the data passes between card and GPU below the switch" \
				"[\$len * $read, \$len * $write] as \$want |
				[.cx.\"dma-peer-read\", .cx.\"dma-peer-write\"] == \$want and
				[.own.\"peer-read\", .own.\"peer-write\"] == \$want and
				[.below.\"target-read\", .below.\"target-write\"] == \$want and
				[.gpu.read, .gpu.write] == \$want and
				[.own | .refused, .other, .\"upstream-peer-read\", .\"upstream-peer-write\"] == [0, 0, 0, 0]"
			# Queue entries and completions are in host memory
			moved "$kver" "$label" "host memory sees only what is its own of it" \
				"[.cx.\"dma-host-read\" - \$len * $((1 - read)), .cx.\"dma-host-write\" - \$len * $((1 - write))] |
				all(. >= 0 and . < 65536)"
		done
	done
	moved "$kver" WRITE-gpu-host "no page fault where the pages are there" '.faults == 0'
	for label in WRITE WRITE-from; do
		moved "$kver" "$label" "with the memory gone no byte is moved" \
			'[.cx["dma-peer-read"], .cx["dma-peer-write"], .gpu.read, .gpu.write] == [0, 0, 0, 0] and
			.cx["dma-host-write"] >= 0 and .cx["dma-host-write"] < 65536'
		moved "$kver" "$label" "the card asked for the pages, and was told that there are none" '.faults > 0'
	done
done
finish

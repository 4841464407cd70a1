#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what peerlane topo says of a pair is what kernel and switch do; counters agree
# tags: guest topo switch
# tier: all
# timeout: 180

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool jq cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

BYTES=4194304
mkdir -p case/lib
cp "$TOP/tests/topo/guest.guest" case/run
chmod +x case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
echo "BYTES=$BYTES" >case/env
printf '%s\n' nvme peerlane_gpu ext4 >case/modules
awk -v n=$((BYTES / 512)) 'BEGIN { for (i = 0; i < n; i++) printf "%-511d\n", i }' >data

# boot NAME TOPOLOGY KERNEL-PARAMETERS: facts in NAME.json, a record in NAME.rec
boot() {
	now=$1
	cp data disk.img
	truncate -s $((2 * BYTES)) disk.img
	vm_images=
	vm_image disk0 "$OUT/disk.img"
	VM_TRACE='' VM_CMDLINE=$3
	vm_run "$1" "$TOP/tests/topo/$2.topo" 7.2 "$OUT/case" 60 -device intel-iommu
	boot_rc=$?
	tr -d '\r' <"$OUT/$1/result.log" >"$1.log"
	ktap_from "$1.log" "$1"
	check_eq "$1: the guest is content" 0 "$boot_rc"
	sed -n 's/^@file rec //p' "$1.log" >"$1.rec"
	{
		sed -n 's/^@transfer copy /transfer /p; s/^@fact //p; s/^@file json /topo /p
			s/^@file nobody /nobody /p' "$1.log" | while read -r key value; do
			jq -nc --arg k "$key" --argjson v "$value" '{key: $k, value: $v}'
		done
	} | jq -sc '
		def one(k): map(select(.key == k).value)[0];
		def ports(k): map(select(.key == k).value | {key: .port, value: .counters}) | from_entries;
		def seen(k): one(k) | .ports | sort_by(.address) | map(.counters);
		ports("before") as $b | ports("after") as $a |
		{topo: one("topo"), nobody: one("nobody"),
		 paths: [.[] | select(.key == "transfer").value.path],
		 outside: [$a.sw0, $a["sw0.0"], $a["sw0.1"]], inside: seen("after_seen"),
		 moved: ($a | with_entries(.key as $p | .value |= with_entries(.value -= $b[$p][.key])))}
		| .pair = .topo.pairs[0] | .nobody_pair = .nobody.pairs[0]' >"$1.json"
	diag "$1: $(jq -c '[.pair, .paths, .nobody_pair, .nobody.missing]' "$1.json")"
	is "the tool sees a GPU and a drive, a switch with ACS above them" \
		'[.topo.devices[].label] == ["GPU0", "NVME0"] and .topo.devices[1].drives == ["nvme0n1"]
		 and [.topo.bridges[].port] == ["root port", "upstream port", "downstream port", "downstream port"]
		 and (.topo.bridges[2:] | all(.acs.present and .acs.capability == "407f"))'
	is "everybody sees that they are near" \
		'.pair.relation == "PIX" and .nobody_pair.relation == "PIX" and .pair.distance == 4'
	is "the tool knows that the kernel has P2PDMA" '.topo.machine.p2pdma'
	is "what the ports counted is the same from inside and outside" \
		'.inside == .outside and (.outside | add | add > 0)'
}

# is DESC JQ-CONDITION, of the last boot
is() {
	check "$now: $1" jq -e --argjson n $BYTES "$2" "$now.json"
}

boot direct switch "pci=disable_acs_redir=pci:1234:9e73"
is "the verdict is direct" '.pair.verdict == "direct"'
is "and that is what was done" '(.paths | length == 2 and all(. == "p2p"))
	and .moved["sw0.1"]["peer-write"] == $n and .moved.sw0["upstream-peer-write"] == 0'
is "without root the verdict is unknown, and why" \
	'.nobody_pair.verdict == "unknown" and (.nobody.missing | any(test("needs root")))'

boot staged switch "intel_iommu=on"
is "the verdict is staged, for the host bridge" \
	'.pair.verdict == "staged" and (.pair.reason | test("8086:29c0.*not on the list"))
	 and (.pair.redirects | length == 2)'
is "and that is what was done" '(.paths | length == 2 and all(. != "p2p"))
	and .moved["sw0.1"]["host-write"] >= $n and .moved["sw0.1"]["peer-write"] == 0'
is "the IOMMU's mode is known" '.topo.devices | all(.iommu == "translated")'

boot root-complex switch-epyc "intel_iommu=on iommu=pt"
is "the verdict is through the root complex, for the CPU" \
	'.pair.verdict == "root-complex" and (.pair.reason | test("AMD Zen"))'
is "and that is what was done" '(.paths | length == 2 and all(. == "p2p"))
	and .moved.sw0["upstream-peer-write"] == $n and .moved.sw0["target-write"] == $n
	and .moved["sw0.1"]["peer-write"] == 0'
is "the IOMMU's mode is known" '.topo.devices | all(.iommu == "passthrough")'
finish

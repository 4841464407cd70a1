#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what the kernel decides about peers under ACS and an IOMMU is what the switch does
# tags: guest p2p switch
# tier: check
# timeout: 180

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool jq cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

BYTES=16777216
mkdir -p case/lib
cp "$TOP/tests/fabric/guest-acs.guest" case/run
chmod +x case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
echo "BYTES=$BYTES" >case/env
printf '%s\n' nvme peerlane_gpu >case/modules
# 16 MiB in which no two sectors are alike, and as much room
awk -v n=$((BYTES / 512)) 'BEGIN { for (i = 0; i < n; i++) printf "%-511d\n", i }' >data

# boot NAME TOPOLOGY KERNEL-PARAMETERS: the facts in NAME.json
boot() {
	cp data disk.img
	truncate -s $((2 * BYTES)) disk.img
	vm_images=
	vm_image disk0 "$OUT/disk.img"
	VM_TRACE='' VM_CMDLINE=$3
	vm_run "$1" "$TOP/tests/fabric/$2.topo" 7.2 "$OUT/case" 60 -device intel-iommu
	boot_rc=$?
	ktap_from "$OUT/$1/result.log" "$1"
	check_eq "$1: the guest is content" 0 "$boot_rc"
	check "$1: the copy is the data, seen from outside" \
		cmp -i "$BYTES:0" -n "$BYTES" disk.img data
	{
		sed -n 's/\r$//; s/^@transfer copy /transfer /p; s/^@fact //p' \
			"$OUT/$1/result.log" | while read -r key value; do
			jq -nc --arg k "$key" --argjson v "$value" '{key: $k, value: $v}'
		done
	} | jq -sc '
		def ports(k): map(select(.key == k).value | {key: .port, value: .counters}) | from_entries;
		ports("before") as $b | ports("after") as $a |
		{paths: [.[] | select(.key == "transfer").value.path]}
		+ (map(select(.key | IN("acs", "in_guest", "dmar_faults", "redirect_said", "refused_said"))) | from_entries)
		+ {after: $a, ports: ($a | with_entries(.key as $p | .value |= with_entries(.value -= $b[$p][.key])))}' \
		>"$1.json"
	diag "$1: $(jq -c 'del(.after)' "$1.json")"
}

# is DESC JQ-CONDITION, of the last boot
is() {
	check "$1" jq -e --argjson n $BYTES "$2" "$now.json"
}

now=redirect-off
boot $now switch "intel_iommu=on pci=disable_acs_redir=pci:1234:9e73"
is "$now: the kernel has left redirect off" '.acs | IN("0000", "0011")'
is "$now: the kernel took the direct path" '.paths | length > 0 and all(. == "p2p")'
is "$now: the switch turned all bytes round" \
	'.ports["sw0.1"] | .["peer-write"] == $n and .["peer-read"] == $n'
is "$now: the GPU's port let them in" \
	'.ports["sw0.0"] | .["target-write"] == $n and .["target-read"] == $n'
is "$now: no peer traffic went above the switch" \
	'.ports.sw0 | .["upstream-peer-read"] + .["upstream-peer-write"] + .["target-read"] + .["target-write"] == 0'
is "$now: no data went to host memory" '.ports["sw0.1"] | .["host-write"] < 65536'
is "$now: nothing was refused, by the IOMMU neither" \
	'.dmar_faults == 0 and ([.ports[] | .refused + .other] | add) == 0'
is "$now: the guest reads the same from the port's capability" \
	'.in_guest.magic == "534e4c50" and .in_guest["peer-write"] == .after["sw0.1"]["peer-write"]'

now=redirect-on
boot $now switch "intel_iommu=on"
is "$now: the kernel has set redirect" '.acs == "001d"'
is "$now: the kernel refused peers, and said why" \
	'.redirect_said > 0 and .refused_said > 0 and (.paths | all(. != "p2p"))'
is "$now: no byte went from peer to peer by the drive" \
	'.ports["sw0.1"] | .["peer-read"] + .["peer-write"] + .["upstream-peer-read"] + .["upstream-peer-write"] == 0'
is "$now: the data went through host memory" \
	'.ports["sw0.1"] | .["host-read"] >= $n and .["host-write"] >= $n'
is "$now: nothing was refused, by the IOMMU neither" \
	'.dmar_faults == 0 and ([.ports[] | .refused + .other] | add) == 0'

now=redirect-on-epyc
boot $now switch-epyc "intel_iommu=on"
is "$now: the kernel has set redirect" '.acs == "001d"'
is "$now: the kernel took the path through the root complex, and said so" \
	'.redirect_said > 0 and (.paths | length > 0 and all(. == "p2p"))'
is "$now: the switch turned nothing round" \
	'.ports["sw0.1"] | .["peer-read"] + .["peer-write"] == 0'
is "$now: all bytes went up from the drive" \
	'.ports["sw0.1"] | .["upstream-peer-write"] == $n and .["upstream-peer-read"] == $n'
is "$now: and came down again to the GPU, twice over the switch's uplink" \
	'.ports.sw0 | .["upstream-peer-write"] == $n and .["target-write"] == $n and
	 .["upstream-peer-read"] == $n and .["target-read"] == $n'
is "$now: nothing was refused, by the IOMMU neither" \
	'.dmar_faults == 0 and ([.ports[] | .refused + .other] | add) == 0'
is "$now: the guest reads the same from the port's capability" \
	'.in_guest["upstream-peer-write"] == .after["sw0.1"]["upstream-peer-write"]'
finish

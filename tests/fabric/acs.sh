#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: under ACS and an IOMMU: what topo and doctor report, the kernel decides and the switch does is the same; cures cure
# tags: guest topo doctor p2p switch
# tier: nightly
# timeout: 400
#
# Each machine and command line is booted once; doctor, topo, peerlane io and the
# ports are asked in the same guest.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/tests/doctor/lib.sh"
need_tool jq cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

BYTES=4194304
mkdir -p case/lib
cp "$TOP/tests/fabric/guest/acs" case/run
cp "$TOP/tests/doctor/guest/foretell" case/foretell
chmod +x case/run case/foretell
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
echo "BYTES=$BYTES" >case/env
printf '%s\n' nvme peerlane_gpu ext4 >case/modules
mv case acs.case
# 4 MiB in which no two sectors are alike; on the drive room before and behind them
awk -v n=$((BYTES / 512)) 'BEGIN { for (i = 0; i < n; i++) printf "%-511d\n", i }' >data

# boot NAME TOPOLOGY KERNEL-PARAMETERS: what doctor reported in NAME.json and
# NAME-machine.json, the rest in NAME-fabric.json
boot() {
	now=$1
	rm -f disk.img
	truncate -s $((4 * BYTES)) disk.img
	dd if=data of=disk.img bs=$BYTES seek=2 conv=notrunc 2>/dev/null
	vm_images=
	vm_image disk0 "$OUT/disk.img"
	VM_TRACE='' VM_CMDLINE=$3
	vm_run "$1" "$TOP/tests/fabric/$2" 7.2 "$OUT/acs.case" 120 -device intel-iommu
	boot_rc=$?
	tr -d '\r' <"$OUT/$1/result.log" >"$1.log"
	ktap_from "$1.log" "$1"
	check_eq "$1: the guest is content" 0 "$boot_rc"
	check "$1: the copy is the data, seen from outside" \
		cmp -i $((3 * BYTES)):0 -n "$BYTES" disk.img data
	foretold_facts
	sed -n 's/^@transfer copy //p' "$1.log" | jq -sc . >"$1-copy.json"
	facts_from "$1.log" | jq -c --slurpfile copy "$1-copy.json" '
		def ports: map({key: .port, value: .counters}) | from_entries;
		(.before | ports) as $b | (.after | ports) as $a |
		{topo, nobody, acs, in_guest, dmar_faults, redirect_said, refused_said,
		 paths: ($copy[0] | map(.path)),
		 outside: [$a.sw0, $a["sw0.0"], $a["sw0.1"]],
		 inside: (.after_seen.ports | sort_by(.address) | map(.counters)),
		 after: $a, ports: ($a | with_entries(.key as $p | .value |= with_entries(.value -= $b[$p][.key])))}
		| .pair = .topo.pairs[0] | .nobody_pair = .nobody.pairs[0]' >"$1-fabric.json"
	diag "$1: $(jq -c '[.pair, .paths, .nobody_pair, .nobody.missing, .acs, .ports]' "$1-fabric.json")"
	fabric "topo sees a GPU and a drive, a switch with ACS above them" \
		'[.topo.devices[].label] == ["GPU0", "NVME0"] and .topo.devices[1].drives == ["nvme0n1"]
		 and [.topo.bridges[].port] == ["root port", "upstream port", "downstream port", "downstream port"]
		 and (.topo.bridges[2:] | all(.acs.present and .acs.capability == "407f"))'
	fabric "everybody sees that they are near" \
		'.pair.relation == "PIX" and .nobody_pair.relation == "PIX" and .pair.distance == 4'
	fabric "topo knows that the kernel has P2PDMA" '.topo.machine.p2pdma'
	fabric "without root topo's verdict is unknown, and why" \
		'.nobody_pair.verdict == "unknown" and (.nobody.missing | any(test("needs root")))'
	fabric "what the ports counted is the same from inside and outside" \
		'.inside == .outside and sum(.outside[][]) > 0'
	fabric "the guest reads the same from the port's capability" \
		'.in_guest.magic == "534e4c50" and .in_guest["peer-write"] == .after["sw0.1"]["peer-write"] and
		 .in_guest["upstream-peer-write"] == .after["sw0.1"]["upstream-peer-write"]'
	fabric "nothing was refused, by the IOMMU neither" \
		'.dmar_faults == 0 and sum(.ports[] | .refused, .other) == 0'
	agrees
}

# fabric DESC JQ-CONDITION, of the last boot; with the words of expect.jq
fabric() {
	check "$now: $1" jq -e -L "$VM_ACCOUNTING" --argjson n $BYTES "include \"expect\"; $2" "$now-fabric.json"
}

# cure WORD: the kernel parameter with WORD that doctor gave in the last guest
cure() {
	jq -r --arg word "$1" '[.[0].doctor.findings[] |
		select(.id == "acs-redirect").cure |
		capture("(?<p>pci=" + $word + "=[^\" ]+)").p][0] // ""' "$now.json"
}

# healthy: doctor has nothing to complain about
healthy() {
	is "doctor's verdict is direct, with nothing to complain about" '.[0] | .status == 0 and
		.doctor.answer.gpus[0].verdict == "direct" and
		all(.doctor.findings[]; .severity == "info")'
}

# direct: the path below the switch, and nothing to complain about
direct() {
	fabric "topo's verdict is direct" '.pair.verdict == "direct"'
	healthy
	fabric "the kernel took the direct path" '.paths | length == 2 and all(. == "p2p")'
	fabric "the switch turned all bytes round" \
		'.ports["sw0.1"] | .["peer-write"] == $n and .["peer-read"] == $n'
	fabric "the GPU's port let them in" \
		'.ports["sw0.0"] | .["target-write"] == $n and .["target-read"] == $n'
	fabric "no peer traffic went above the switch" \
		'sum(.ports.sw0 | .["upstream-peer-read"], .["upstream-peer-write"], .["target-read"], .["target-write"]) == 0'
	fabric "no data went to host memory" 'below(.ports["sw0.1"]["host-write"]; 65536)'
}

# through_root: up to the root complex and down again
through_root() {
	fabric "the kernel has set redirect" '.acs == "001d"'
	fabric "topo's verdict is through the root complex, for the CPU" \
		'.pair.verdict == "root-complex" and (.pair.reason | test("AMD Zen"))'
	fabric "the kernel took that path, and said so" \
		'.redirect_said > 0 and (.paths | length == 2 and all(. == "p2p"))'
	fabric "the switch turned nothing round" \
		'sum(.ports["sw0.1"] | .["peer-read"], .["peer-write"]) == 0'
	fabric "all bytes went up from the drive" \
		'.ports["sw0.1"] | .["upstream-peer-write"] == $n and .["upstream-peer-read"] == $n'
	fabric "and came down again to the GPU, twice over the switch's uplink" \
		'.ports.sw0 | .["upstream-peer-write"] == $n and .["target-write"] == $n and
		 .["upstream-peer-read"] == $n and .["target-read"] == $n'
}

# The root complex is not trusted with peers
boot refused switch.topo "intel_iommu=on"
fabric "the kernel has set redirect" '.acs == "001d"'
fabric "topo's verdict is staged, for the host bridge" \
	'.pair.verdict == "staged" and (.pair.reason | test("8086:29c0.*not on the list"))
	 and (.pair.redirects | length == 2)'
fabric "topo knows the IOMMU's mode" '.topo.devices | all(.iommu == "translated")'
fabric "the kernel refused peers, and said why" \
	'.redirect_said > 0 and .refused_said > 0 and (.paths | length == 2 and all(. != "p2p"))'
fabric "no byte went from peer to peer by the drive" \
	'sum(.ports["sw0.1"] | .["peer-read"], .["peer-write"], .["upstream-peer-read"], .["upstream-peer-write"]) == 0'
fabric "the data went through host memory" \
	'.ports["sw0.1"] | .["host-read"] >= $n and .["host-write"] >= $n'
is "doctor names both ports of the switch, and it is an error" '.[0].doctor.findings[] |
	select(.id == "acs-redirect") | .severity == "error" and
	(.what | test("does not trust")) and .where == ["0000:02:00.0", "0000:02:01.0"]'
is "the machine's own words agree" '.[0].io | .path == "bounce" and
	(.reason | test("EREMOTEIO|EINVAL"))'
old=$(cure disable_acs_redir)
new=$(cure config_acs)

boot cured switch.topo "intel_iommu=on $old"
fabric "$old: the kernel has left redirect off" '.acs | IN("0000", "0011")'
direct

# The other cure: doctor and a read are enough
foretold cured-by-config "$TOP/tests/fabric/switch.topo" 7.2 "intel_iommu=on $new" "" -device intel-iommu
agrees
healthy

# It is trusted
boot translated switch.topo,cpu=EPYC "intel_iommu=on"
through_root
is "both ports of the switch are named" '.[0].doctor.findings[] |
	select(.id == "acs-redirect") | .severity == "warning" and
	.where == ["0000:02:00.0", "0000:02:01.0"]'
check_eq "$now: the cures are the same" "$old $new" "$(cure disable_acs_redir) $(cure config_acs)"
is "the way is p2p, through the root complex: degraded" '.[0] |
	.status == 1 and .doctor.answer.path == "p2p" and
	.doctor.answer.gpus[0].verdict == "root-complex"'
is "the IOMMU is told, too" '.[0].doctor.findings[] |
	select(.id == "iommu-translated").severity == "warning"'
machine "the machine is degraded" '.status == 1 and .doctor.verdict == "degraded"'

# By day doctor/findings has that parameter, and scenarios/acs-trap what an IOMMU does that passes addresses through
if [ "$TIER" = nightly ]; then
	boot wrong-cure switch.topo,cpu=EPYC "intel_iommu=on iommu=pt pci=disable_acs_redir=pci:1234:0001"
	through_root
	fabric "topo knows the IOMMU's mode" '.topo.devices | all(.iommu == "passthrough")'
	is "a parameter that names no port is noticed" \
		'.[0].doctor.findings | map(.id) | index("acs-parameter-unheeded")'
fi

# QEMU's own switch: what the kernel takes for direct, the IOMMU refuses
sed 's/ports=2.*/ports=2 model=x3130/' "$TOP/tests/fabric/switch.topo" >x3130.topo
foretold x3130 "$OUT/x3130.topo" 7.2 "intel_iommu=on" "" -device intel-iommu
is "doctor foretells that it fails: the program is told of success, and the GPU has got nothing" '.[0] | .status == 2 and
	.doctor.answer.path == "fails" and .moved == 0 and .io.ok and .io.path == "p2p" and
	.after["bar1-dma-write"] == .before["bar1-dma-write"]'
finish

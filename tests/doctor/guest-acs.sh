#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor names the ports that redirect, and the cures that it tells do cure
# tags: doctor guest p2p switch
# tier: all
# timeout: 400

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/tests/doctor/lib.sh"
need_tool cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"
topologies=$TOP/scenarios/topologies

# cure WORD: the kernel parameter with WORD that the last guest was told
cure() {
	jq -r --arg word "$1" '[.[0].doctor.findings[] |
		select(.id == "acs-redirect").cure |
		capture("(?<p>pci=" + $word + "=[^\" ]+)").p][0] // ""' "$now.json"
}

foretold translated "$topologies/iommu-translated.topo" 7.2 "" ""
agrees
is "both ports of the switch are named" '.[0].doctor.findings[] |
	select(.id == "acs-redirect") | .severity == "warning" and
	.where == ["0000:02:00.0", "0000:02:01.0"]'
is "the way is p2p, through the root complex: degraded" '.[0] |
	.status == 1 and .doctor.answer.path == "p2p" and
	.doctor.answer.gpus[0].verdict == "root-complex"'
is "the IOMMU is told, too" '.[0].doctor.findings[] |
	select(.id == "iommu-translated").severity == "warning"'
machine "the machine is degraded" '.status == 1 and .doctor.verdict == "degraded"'
old=$(cure disable_acs_redir)
new=$(cure config_acs)

foretold cured "$topologies/iommu-translated.topo" 7.2 "$old" ""
agrees
is "$old: direct, and nothing to complain about" '.[0] | .status == 0 and
	.doctor.answer.gpus[0].verdict == "direct" and
	all(.doctor.findings[]; .severity == "info")'

foretold cured-by-config "$topologies/iommu-translated.topo" 7.2 "$new" ""
agrees
is "$new: direct, and nothing to complain about" '.[0] | .status == 0 and
	.doctor.answer.gpus[0].verdict == "direct" and
	all(.doctor.findings[]; .severity == "info")'

foretold wrong-cure "$topologies/iommu-passthrough.topo" 7.2 \
	"pci=disable_acs_redir=pci:1234:0001" ""
agrees
is "a parameter that names no port is noticed" \
	'.[0].doctor.findings | map(.id) | index("acs-parameter-unheeded")'

foretold refused "$TOP/tests/fabric/switch.topo" 7.2 "intel_iommu=on" "" \
	-device intel-iommu
agrees
is "where the root complex is not trusted it is an error" '.[0].doctor.findings[] |
	select(.id == "acs-redirect") | .severity == "error" and
	(.what | test("does not trust"))'
is "the machine's own words agree" '.[0].io | .path == "bounce" and
	(.reason | test("EREMOTEIO|EINVAL"))'

# QEMU's own switch: what the kernel takes for direct, the IOMMU refuses
sed 's/ports=2.*/ports=2 model=x3130/' "$TOP/tests/fabric/switch.topo" >x3130.topo
foretold x3130 "$OUT/x3130.topo" 7.2 "intel_iommu=on" "" -device intel-iommu
is "doctor foretells that it fails, and it fails" '.[0] | .status == 2 and
	.doctor.answer.path == "fails" and .moved == 1 and (.io.ok | not)'
finish

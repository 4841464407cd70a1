#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor names the ports that redirect, and the cures that it tells do cure
# tags: doctor guest p2p switch
# timeout: 300

. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
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
is "$old: direct, and nothing to complain about" '.[0] | .status == 0 and
	.doctor.answer.gpus[0].verdict == "direct" and
	all(.doctor.findings[]; .severity == "info")'

foretold cured-by-config "$topologies/iommu-translated.topo" 7.2 "$new" ""
is "$new: direct, and nothing to complain about" '.[0] | .status == 0 and
	.doctor.answer.gpus[0].verdict == "direct" and
	all(.doctor.findings[]; .severity == "info")'

foretold wrong-cure "$topologies/iommu-passthrough.topo" 7.2 \
	"pci=disable_acs_redir=pci:1234:0001" ""
is "a parameter that names no port is noticed" \
	'.[0].doctor.findings | map(.id) | index("acs-parameter-unheeded")'

foretold refused "$TOP/tests/fabric/switch.topo" 7.2 "intel_iommu=on" "" \
	-device intel-iommu
is "where the root complex is not trusted it is an error" '.[0].doctor.findings[] |
	select(.id == "acs-redirect") | .severity == "error" and
	(.what | test("does not trust"))'
is "the machine's own words agree" '.[0].io | .path == "bounce" and
	(.reason | test("EREMOTEIO|EINVAL"))'
finish

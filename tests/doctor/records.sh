#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor on large machines, of which only the PCI tree is known
# tags: doctor quick
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

# tree NAME ACS: what doctor says of tests/topo/records/NAME.map
tree() {
	awk -v acs="$2" -f "$TOP/tests/topo/record.awk" \
		"$TOP/tests/topo/records/$1.map" >"$1.rec"
	doctor "$3" --from "$1.rec" --json
	jq -c '.findings[] | {id, severity, what}' out | sed 's/^/# /'
}

# what a record does not say is unknown, not absent
quiet='all(.findings[].section; IN("acs", "host-bridge", "iommu", "environment")) and
	(.missing | length) > 3 and all(.missing[]; .error == "ENODATA")'

tree dgx-a100 0000 1
json "a DGX A100: nothing is said of what is not known" "$quiet"
json "two GPUs have no drive below their switch" '.findings[] |
	select(.id == "pair-root-complex") | (.where | length) == 2 and
	(.what | test("^2 of 8 GPUs have no drive"))'
json "no port redirects" 'all(.findings[]; .id != "acs-redirect")'

tree dgx-a100 001d 1
json "with redirect on: a warning, as the kernel trusts the root complex" '
	.findings[] | select(.id == "acs-redirect") | .severity == "warning"'
json "each port between a GPU and a peer is named, once" '
	.findings[] | select(.id == "acs-redirect").where |
	length > 8 and length == (unique | length) and
	all(test("^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$"))'
json "… and all of them are in the list of the cure" '
	.findings[] | select(.id == "acs-redirect") | . as $f |
	all(.where[]; . as $port | $f.cure | contains($port))'
json "and the cure is a parameter that the kernel has" '
	.findings[] | select(.id == "acs-redirect").cure |
	test("\"pci=disable_acs_redir=pci:[0-9a-f]{4}:[0-9a-f]{4}[\";]") or
	test("\"pci=disable_acs_redir=[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7][\";]")'
json "still only two GPUs lack a drive" '.findings[] |
	select(.id == "pair-root-complex").where | length == 2'

tree dgx-h100 0000 1
json "a DGX H100: nothing is said of what is not known" "$quiet"

# the same fault of all GPUs is one finding
grep -oE '^D /sys/bus/pci/devices .*' dgx-h100.rec | tr ' ' '\n' |
	grep : | sed 's,.*,E @PCI/&/p2pmem/size ENOENT,' >no-pages.patch
record dgx-h100.rec no-pages.patch >no-pages.rec
doctor 1 --from no-pages.rec --json
json "one finding, eight places" '[.findings[] | select(.id == "gpu-no-p2p-pages")] |
	length == 1 and (.[0].where | length == 8 and length == (unique | length))'
finish

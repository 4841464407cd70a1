#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor on records of whole machines: DGX, a cloud VM, a workstation
# tags: doctor
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

# ---- a DGX whose firmware has left ACS redirect on at the ports of two GPUs, 0 and 2 ----
awk -v acs_at=0000:06:00.0=001d,0000:46:00.0=001d -f "$TOP/tests/topo/record.awk" \
	"$TOP/tests/topo/records/dgx-a100.map" >two-ports.rec
for gpu in '' 0 2; do
	doctor 1 --from two-ports.rec --json ${gpu:+--gpu $gpu}
	cp out "two-ports$gpu.json"
done
doctor 0 --from two-ports.rec --json --gpu 1
cp out two-ports1.json
# redirected FILE PORTS: the ports that acs-redirect names there
redirected() {
	check_eq "$1: ports that redirect" "$2" \
		"$(jq -r '[.findings[] | select(.id == "acs-redirect").where[]] | sort | join(" ")' "$1.json")"
}
redirected two-ports "0000:06:00.0 0000:46:00.0"
redirected two-ports0 0000:06:00.0
redirected two-ports1 ""
redirected two-ports2 0000:46:00.0
cp two-ports.json out
json "the cure is for these two ports alone" '.findings[] | select(.id == "acs-redirect").cure |
	[scan("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]")] | unique == ["0000:06:00.0", "0000:46:00.0"]'

# ---- a cloud VM: virtio disks, a GPU passed through, a kernel without P2PDMA, in a container ----
doctor 2 --from "$TOP/tests/doctor/records/cloud-vm-h100.rec" --json
json "a cloud VM: the kernel is the error, and the only one" '[.findings[] | select(.severity == "error").id] ==
	["kernel-no-p2pdma"]'
json "… it is a virtual machine without an NVMe drive" '[.findings[].id] | contains(["env-virtual", "nvme-none"])'
json "… and nothing is said of BAR1, ACS or links, which are well" 'all(.findings[];
	.section | IN("bar1", "acs", "iommu", "host-bridge") | not)'
doctor 2 --from "$TOP/tests/doctor/records/cloud-vm-h100.rec" --json /model.bin 0
json "… a file there: staged, as its disk is no NVMe drive" '.answer.path == "bounce" and (.answer.reason | test("vda"))'

# ---- a workstation: GeForce, md RAID 1, LUKS ----
record "$TOP/tests/doctor/records/workstation.desc" >workstation.rec
doctor 2 --from workstation.rec --json
json "a workstation: kernel, driver and host bridge are the errors" '[.findings[] | select(.severity == "error").id] ==
	["kernel-no-user-p2pdma", "gpu-closed-modules", "host-bridge-untrusted"]'
json "… BAR1 is as large as the memory, and ACS is off" 'all(.findings[]; .section | IN("bar1", "acs") | not)'
json "… its GPU is idle, and has half of its lanes, as the slot does: no warning" '[.findings[] | select(.id == "link-slow")] |
	length == 1 and (.[0] | .severity == "info" and .where == ["0000:01:00.0"] and (.what | test("8 lanes.*, but its slot cannot$")))'
json "… GeForce, LUKS and md are warned of" '[.findings[] | select(.severity == "warning").id] |
	contains(["gpu-geforce", "fs-crypt", "fs-raid"])'
json "… nothing is missing" '.missing == []'
doctor 2 --from workstation.rec --json /home/me/model.bin 0
json "… a file on LUKS: staged, for that reason" '.answer.path == "bounce" and (.answer.reason | test("encrypted"))'
json "… all that lies below it is a step" '[.answer.steps[] | select(.step == "block" or .step == "drive").says |
	split(" ")[0]] == ["dm-0", "md0", "nvme0n1", "nvme1n1"]'
doctor 2 --from workstation.rec --json /boot/x 0
json "… one that is not: staged, as the processor does not pass it on" '.answer.path == "bounce" and
	(.answer.reason | test("host bridge")) and all(.findings[]; .id != "fs-crypt")'
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the machines that scenarios rely on are there, with all that they are made of
# tags: harness
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool awk

# has NAME GPUS DRIVES SWITCHES ROOT-PORTS HOST-BRIDGES [WORD-IN-A-LINE…]
has() {
	name=$1
	want="$2 gpu, $3 nvme, $4 switch, $5 root-port, $6 host-bridge"
	shift 6
	awk -v mode=devices -f "$TOP/scenarios/lib/machine/topology.awk" \
		"$TOP/scenarios/topologies/$name.topo" >devices 2>&1
	check_eq "$name" "$want" "$(awk '{ n[$2]++ } END {
		printf "%d gpu, %d nvme, %d switch, %d root-port, %d host-bridge",
		n["gpu"], n["nvme"], n["switch"], n["root-port"], n["host-bridge"] }' devices)"
	for word in "$@"; do
		check "$name: $word" grep -q -e " $word\( \|\$\)" devices
	done
}

has same-switch 1 1 1 1 0 acs=on
has two-switches 1 1 2 1 0
has two-root-ports 1 1 0 2 0 cpu=max
has epyc-two-root-ports 1 1 0 2 0 cpu=EPYC
has acs-redirect 1 1 1 1 0 acs=redirect
has iommu-off 1 1 1 1 0 iommu=off
has iommu-passthrough 1 1 1 1 0 iommu=passthrough
has iommu-translated 1 1 1 1 0 iommu=translated
has small-bar1 1 1 1 1 0 bar1=64M
has two-gpus 2 1 1 1 0
has two-gpus-two-nvme 2 4 2 2 0
has numa 2 2 2 2 2 nodes=2 node=0 node=1
has dgx 8 8 4 4 2 nodes=2
check_eq "dgx: two GPUs and two drives on each switch" "2 2 2 2 2 2 2 2" \
	"$(awk '$2 == "gpu" || $2 == "nvme" { sub(/[.].*/, "", $3); n[$3 " " $2]++ }
	END { for (k in n) printf "%s%d", s++ ? " " : "", n[k] }' devices)"
for file in "$TOP"/scenarios/topologies/*.topo; do
	check "${file##*/} has its expectation beside it" test -s "${file%.topo}.expect"
done
finish

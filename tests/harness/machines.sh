#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the machines that scenarios rely on are there, with all that they are made of; overrides change them
# tags: harness
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool awk
# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"

# has MACHINE GPUS DRIVES SWITCHES ROOT-PORTS HOST-BRIDGES [WORD-IN-A-LINE…]
has() {
	name=$1
	want="$2 gpu, $3 nvme, $4 switch, $5 root-port, $6 host-bridge"
	shift 6
	topology devices "$name" >listed 2>&1
	check_eq "$name" "$want" "$(awk '{ n[$2]++ } END {
		printf "%d gpu, %d nvme, %d switch, %d root-port, %d host-bridge",
		n["gpu"], n["nvme"], n["switch"], n["root-port"], n["host-bridge"] }' listed)"
	for word in "$@"; do
		check "$name: $word" grep -q -e " $word\( \|\$\)" listed
	done
}

has same-switch 1 1 1 1 0 acs=on coherent=off cpu=max
has two-switches 1 1 2 1 0
has two-root-ports 1 1 0 2 0 cpu=max
has epyc-two-root-ports 1 1 0 2 0 cpu=EPYC
has acs-redirect 1 1 1 1 0 acs=redirect cpu=EPYC
has iommu-off 1 1 1 1 0 iommu=off cpu=EPYC
has iommu-passthrough 1 1 1 1 0 iommu=passthrough cpu=EPYC
has iommu-translated 1 1 1 1 0 iommu=translated cpu=EPYC
has small-bar1 1 1 1 1 0 vram=16G bar1=64M
has two-drives 1 2 1 1 0
has two-gpus 2 1 1 1 0
has two-gpus-two-nvme 2 4 2 2 0
has numa 2 2 2 2 2 nodes=2 node=0 node=1
has dgx 8 8 4 4 2 nodes=2
has no-drive 1 0 0 1 0
has two-hosts-rxe 1 1 1 1 0 coherent=on
has cx 1 0 1 1 0 coherent=off cpu=max lid=1
has cx-two-root-ports 1 0 0 2 0 cpu=max lid=1
has two-hosts-rxe-no-window 1 1 1 1 0 coherent=off
has small-hosts-rxe 1 0 0 1 0 memory=512M cpus=1 vram=64M bar1=64M coherent=on
check_eq "and no others" "$(grep -cE '^has [a-z]' "$0")" "$(topology_names | wc -l)"
topology devices dgx >listed
check_eq "dgx: two GPUs and two drives on each switch" "2 2 2 2 2 2 2 2" \
	"$(awk '$2 == "gpu" || $2 == "nvme" { sub(/[.].*/, "", $3); n[$3 " " $2]++ }
	END { for (k in n) printf "%s%d", s++ ? " " : "", n[k] }' listed)"

# --- overrides ------------------------------------------------------------------

changed() { # MACHINE: its lines that are not those of same-switch
	topology devices same-switch >was
	topology devices "$1" >is
	diff was is | sed -n 's/^> //p'
}
check_eq "a key of the machine" "machine q35 - memory=1G cpus=2 cpu=EPYC iommu=off nodes=1" \
	"$(changed same-switch,cpu=EPYC)"
check_eq "a key of a device, which has it in the file, and one that it has not" \
	"gpu0 gpu sw0.0 vram=2G bar1=512M coherent=on" \
	"$(changed same-switch,gpu0.vram=2G,gpu0.bar1=512M,gpu0.coherent=on)"
check_eq "the last one counts" "sw0 switch rp0 ports=4 model=peerlane acs=off" \
	"$(changed same-switch,sw0.acs=redirect,sw0.acs=off)"
check_eq "an alias can be changed, too" "$(topology devices iommu-translated)" \
	"$(topology devices iommu-off,iommu=translated)"
cp "$topology_dir/same-switch.topo" mine.topo
check_eq "and a file" "$(changed same-switch,cpu=EPYC)" "$(changed ./mine.topo,cpu=EPYC)"
check_eq "a short name" mine,cpu=EPYC "$(topology_short ./mine.topo,cpu=EPYC)"
check_eq "what a machine is" "The GPU and the drive behind one PCIe switch: peers can reach each other, with cpu=EPYC" \
	"$(topology_title same-switch,cpu=EPYC)"
check_eq "what an alias is" "As two-root-ports, with a processor whose root complex Linux trusts with peer traffic" \
	"$(topology_title epyc-two-root-ports)"

refused() { # MACHINE WORDS: one line, status 2
	topology devices "$1" >out 2>err
	check_eq "refused: $1" "2 0 1" "$? $(wc -l <out) $(wc -l <err)"
	check "because: $2" grep -qE -e "$2" err
}
refused same-switch,colour=red 'topo:3: a q35 has no key "colour" .it has: memory '
refused same-switch,gpu0.bar2=1G 'topo:6: a gpu has no key "bar2" .it has: vram '
refused same-switch,gpu1.vram=1G 'no device is called "gpu1", to have vram=1G'
refused same-switch,gpu0.bar1=3G 'bar1=3G is no power of two'
for word in fast =1 cpu= gpu0.=1; do
	refused "same-switch,$word" "\"$word\" is not KEY=VALUE or DEVICE.KEY=VALUE"
done
finish

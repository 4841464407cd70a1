#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: overrides change a machine, an alias and a file; what cannot be is refused
# tags: harness
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool awk
# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"

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

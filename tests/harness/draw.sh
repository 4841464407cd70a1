#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: machines are drawn as text, SVG and JSON, and what cannot be drawn is said in a line
# tags: harness
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"

need_tool jq xmllint
draw=$TOP/scenarios/draw

# "NAME PARENT" of each device, as the file has them
written() { # FILE
	sed 's/#.*//' "$1" | awk 'NF && $2 != "q35" { print $1, $3 }'
}

# "NAME PARENT" of each line of a drawing: the parent is the last line above
# whose name stands further left.  A port that is no device is left out.
drawn() { # DRAWING
	awk '
	/^root complex / { begun = 1; name[0] = "pcie.0"; next }
	!begun || !/-- / { next }
	{
		match($0, /-- /)
		level = (RSTART - 2) / 4 + 1
		split(substr($0, RSTART + 3), word, " ")
		name[level] = word[1]
		if (word[1] != "memory" && word[1] !~ /\.[0-9]+$/)
			print word[1], name[level - 1]
	}' "$1"
}

well_formed() { xmllint --noout --nonet "$1"; }
printf "<a><b></a></b>\n" >bad.xml
check_eq "what is not well-formed is seen" 1 "$(well_formed bad.xml 2>/dev/null; echo $?)"

# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"
for name in $(topology_names); do
	topology_resolve "$name"
	file=$topology_file
	"$draw" "$name" >out 2>err
	check_eq "$name is drawn" "0 " "$? $(cat err)"
	check_eq "$name: every device once, below its parent" \
		"$(written "$file" | sort)" "$(drawn out | sort)"
	check "$name: as JSON" "$draw" "$name" --json
	check_eq "$name: which has the same devices" "$(written "$file")" \
		"$("$draw" "$name" --json | jq -r '.devices[] | "\(.name) \(.parent)"')"
	check "$name: as SVG" "$draw" "$name" --svg "$name.svg"
	check "$name: which is well-formed" well_formed "$name.svg"
	check_eq "$name: and has a box for every device, root complex and memory" \
		"$({ written "$file" | sed 's/ .*//'; echo host memory; echo root complex; } | sort)" \
		"$(sed -n 's/.*<text class="name"[^>]*>\([^<]*\)<.*/\1/p' "$name.svg" |
			sed 's/ (coherent)//' | sort)"
	check_eq "$name: whose words fit their boxes" "" \
		"$(sed -n 's/.*<text class="more"[^>]*>\([^<]*\)<.*/\1/p' "$name.svg" |
			awk 'length > 22')"
done
colours=$(sed 's/var(/\n&/g' dgx.svg | sed -n 's/^var(\(--[a-z]*\)).*/\1/p' | sort -u)
for colour in $colours; do
	check_eq "the colour $colour is one for light and one for dark" 2 \
		"$(sed "s/$colour:#/\\n&/g" dgx.svg | grep -c "^$colour:#")"
done

cat >t.topo <<'END'
# SPDX-License-Identifier: MIT
# What\it "is",
#	<at\n last>. And more
# of it.
m    q35         -      memory=2G cpus=4 cpu=a"b\c iommu=passthrough nodes=2
hb1  host-bridge pcie.0 node=1
rp0  root-port   hb1
sw0  switch      rp0    ports=3 acs=redirect
gpu0 gpu         sw0.2  vram=16G bar1=64M coherent=on
sw1  switch      sw0.0  ports=1 model=x3130
n    nvme        sw1.0  image=disk3
rp1  root-port   pcie.0
sw2  switch      rp1    ports=1 gen=4
c    cx          sw2.0
END
"$draw" ./t.topo >out 2>err
check_eq "a drawing is this" "$(cat <<'END'
t: What\it "is", <at\n last>

root complex  4 processors a"b\c, IOMMU passes through (intel_iommu=on iommu=pt)
|-- memory  2G, and the processors, in 2 equal NUMA nodes
|-- hb1  host bridge, NUMA node 1
|   `-- rp0  root port
|       `-- sw0  switch, model peerlane
|           |-- sw0.0  port, ACS redirect left on by firmware
|           |   `-- sw1  switch, model x3130
|           |       `-- sw1.0  port, no ACS
|           |           `-- n  NVMe drive, image disk3
|           |-- sw0.1  port, ACS redirect left on by firmware, empty
|           `-- sw0.2  port, ACS redirect left on by firmware
|               `-- gpu0  GPU, VRAM 16G, BAR1 64M, coherent window
`-- rp1  root port
    `-- sw2  switch, model peerlane, modelled links: generation 4, x16
        `-- sw2.0  port, ACS redirect turned on by Linux for the IOMMU
            `-- c  ConnectX, LID 1
END
)" "$(cat out)"
check_eq "JSON is this" "$(cat <<'END' | jq -S .
{"topology":"t","title":"What\\it \"is\", <at\\n last>","kernel_parameters":"intel_iommu=on iommu=pt",
"machine":{"memory":2147483648,"cpus":4,"cpu":"a\"b\\c","iommu":"passthrough","nodes":2},
"devices":[
{"name":"hb1","kind":"host-bridge","parent":"pcie.0","node":1},
{"name":"rp0","kind":"root-port","parent":"hb1"},
{"name":"sw0","kind":"switch","parent":"rp0","ports":3,"model":"peerlane","acs":"redirect"},
{"name":"gpu0","kind":"gpu","parent":"sw0.2","vram":17179869184,"bar1":67108864,"coherent":true},
{"name":"sw1","kind":"switch","parent":"sw0.0","ports":1,"model":"x3130","acs":"off"},
{"name":"n","kind":"nvme","parent":"sw1.0","image":"disk3"},
{"name":"rp1","kind":"root-port","parent":"pcie.0"},
{"name":"sw2","kind":"switch","parent":"rp1","ports":1,"model":"peerlane","acs":"on","gen":4,"width":16,"latency":0},
{"name":"c","kind":"cx","parent":"sw2.0","lid":1}]}
END
)" "$("$draw" ./t.topo --json | jq -S .)"
check "a picture of it" "$draw" ./t.topo --svg t.svg
check "is well-formed" well_formed t.svg
check_eq "-l has every topology and what it is" \
	"$(topology_names | sed 's/$/ +/')" \
	"$("$draw" -l | awk '{ print $1, (NF > 3 ? "+" : "-") }')"
sed -i 's/passthrough/translated/' t.topo
"$draw" ./t.topo >out 2>err
check_eq "a machine that corrupts data is drawn, with a warning" \
	"0 $OUT/t.topo:10: warning: behind model=x3130 and an IOMMU that translates, transfers between devices go wrong" "$? $(cat err)"
check_eq "--help says how" "usage: scenarios/draw MACHINE [OPTION]..." \
	"$("$draw" --help | head -n 1)"

refused() { # REGEX ARGUMENTS…
	refused_why=$1
	shift
	"$draw" "$@" >out 2>err
	check_eq "refused with status 64: $*" 64 $?
	check "and it says: $refused_why" grep -qE -e "$refused_why" err
	check_eq "and no more than that" "0 1" "$(wc -l <out) $(grep -cE '^(scenarios/draw|[^ ]*bad.topo:1): ' err)"
}
refused 'no topology is called "nothing" .there are:.* same-switch' nothing
refused 'no topology is called "t.topo"' t.topo
refused 'no topology file ./nothing' ./nothing
refused 'no topology file t.topo/' t.topo/
refused 'unknown option --png' --png same-switch
refused 'one topology at a time' same-switch numa
refused '--svg needs a value' same-switch --svg
refused '--svg needs a value' same-switch --svg ''
refused '--svg and --json' same-switch --svg x.svg --json
refused 'cannot write no/such.svg' same-switch --svg no/such.svg
"$draw" >out 2>err
check_eq "no argument: usage, status 64" "64 usage:" "$? $(cut -d ' ' -f 1 err | head -n 1)"
echo "gpu0 gpu rp0" >bad.topo
refused '/bad.topo:1: the first line is the machine' ./bad.topo --svg bad.svg
check_false "a mistake leaves no picture" test -e bad.svg
finish

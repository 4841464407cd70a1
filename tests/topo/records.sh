#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: machines of others: the matrix is what nvidia-smi said there, and the ways follow
# tags: topo
# tier: check
# timeout: 60
#
# records/NAME.map describes a machine for record.awk, NAME.rec is a record of
# one; NAME.smi is what nvidia-smi topo -m said of it.
set -u
. "$TOP/scenarios/lib/case.sh"
need_tool jq
tool=$BUILD/userlib/peerlane
need_file "$tool"
dir=$TOP/tests/topo

# look NAME FILE: into NAME.json
look() {
	now=$1
	check "$now: is read" "$tool" topo --from "$2" --json
	"$tool" topo --from "$2" --json >"$now.json"
	check "$now: has nothing missing" jq -e '.missing == []' "$now.json"
}
# generate NAME [AWK-OPTION…]: a record from a description
generate() {
	map=$1
	shift
	check "$map: becomes a record" awk "$@" -f "$dir/record.awk" "$dir/records/$map.map"
	awk "$@" -f "$dir/record.awk" "$dir/records/$map.map" >"$map.rec"
}
# pairs of a matrix, ours or theirs, as "A B RELATION"
smi_pairs() {
	awk '/^#/ { next }
		!cols { cols = split($0, col); next }
		{
			if (NF != cols + 1) { print "row " $1 " has " NF - 1 " cells"; next }
			for (i = 2; i <= NF; i++) {
				a = $1; b = col[i - 1]
				sub(/^NIC/, "mlx5_", a); sub(/^NIC/, "mlx5_", b)
				if ($i !~ /^NV/) print a, b, $i
			}
		}' "$1" | sort
}
our_pairs() {
	jq -r '(.devices | map({(.label): (if .kind == "nic" then .name else .label end)}) | add) as $n
		| (.pairs[] | "\($n[.a]) \($n[.b]) \(.relation)", "\($n[.b]) \($n[.a]) \(.relation)"),
		  ($n[] | "\(.) \(.) X")' "$1" | sort
}
matrix() {
	smi_pairs "$dir/records/$now.smi" >"$now.theirs"
	our_pairs "$now.json" >"$now.all"
	cut -d' ' -f 1,2 "$now.theirs" >"$now.known"
	awk 'NR == FNR { known[$0]; next } ($1 " " $2) in known' "$now.known" "$now.all" >"$now.ours"
	check "$now: nvidia-smi knows $1 cells" test "$(wc -l <"$now.theirs")" -eq "$1"
	check "$now: the matrix is nvidia-smi's" diff "$now.theirs" "$now.ours"
}
# is DESC JQ-CONDITION; way(A; B) is the verdict of a pair
is() {
	check "$now: $1" jq -e "def pair(\$x; \$y): .pairs[] | select(.a == \$x and .b == \$y);
		def way(\$x; \$y): pair(\$x; \$y).verdict; $2" "$now.json"
}

generate dgx-a100
look dgx-a100 dgx-a100.rec
matrix 180
is "8 GPUs, 12 NICs, 6 drives" '[.devices[].kind] | group_by(.) | map(length) == [8, 12, 6]'
is "GPU and NIC below the same switches: direct" 'pair("GPU0"; "NIC0") | .verdict == "direct" and (.reason | test("BAR1") | not)'
is "GPU and drive, too" 'pair("GPU0"; "NVME1") | .verdict == "direct" and (.reason | test("static BAR1"))'
is "across sockets: Zen forwards" 'way("GPU0"; "NVME5") == "root-complex"'
check_eq "$now: the nearest GPU to a drive" "GPU4 PXB" \
	"$(jq -r '[.pairs[] | select(.b == "NVME4")] | sort_by(.distance) | .[0] | "\(.a) \(.relation)"' "$now.json")"

generate dgx-a100 -v acs=001d
mv dgx-a100.rec redirected.rec
look redirected redirected.rec
is "ACS redirect: nothing is direct" '[.pairs[].verdict] | index("direct") == null'
is "and the ports that do it are named: all downstream ports between" 'pair("GPU0"; "NIC0").redirects
	== ["0000:06:00.0", "0000:04:00.0", "0000:02:00.0", "0000:0b:00.0", "0000:02:01.0"]'
is "and no other, for NIC1" 'pair("GPU0"; "NIC1").redirects
	== ["0000:06:00.0", "0000:04:00.0", "0000:02:00.0", "0000:11:00.0", "0000:02:02.0"]'
# egress control alone counts, for the kernel; translation blocking does not
generate dgx-a100 -v acs=0020
look dgx-a100 dgx-a100.rec
is "egress control is taken for redirect" 'way("GPU0"; "NVME0") == "root-complex"'
generate dgx-a100 -v acs=0053
look dgx-a100 dgx-a100.rec
is "SV, TB, UF and DT are not" 'way("GPU0"; "NVME0") == "direct"'

generate dgx-h100
look dgx-h100 dgx-h100.rec
matrix 212
is "GPU and its NIC: direct" 'way("GPU0"; "NIC0") == "direct"'
is "a drive of another root port: the host bridge is on the list" \
	'way("GPU0"; "NVME0") == "root-complex" and (pair("GPU0"; "NVME0").reason | test("8086:09a2 is on the list"))'
is "passthrough" '[.devices[].iommu] | unique == ["passthrough"]'

generate eight-phb
look eight-phb eight-phb.rec
matrix 109
is "the IOMMU translates: NVIDIA's addresses go up" \
	'pair("GPU0"; "NIC0") | .verdict == "root-complex" and (.reason | test("IOMMU translates"))'
is "no P2PDMA in the kernel: drives are staged" \
	'pair("GPU4"; "NVME0") | .verdict == "staged" and (.reason | test("no CONFIG_PCI_P2PDMA ./boot/config-6.8"))'

# Recorded in guests of ours: what the machine then did is in guest.sh
for way in direct staged root-complex; do
	look guest-$way "$dir/records/guest-$way.rec"
	is "the verdict is what the machine then did" "way(\"GPU0\"; \"NVME0\") == \"$way\" and pair(\"GPU0\"; \"NVME0\").relation == \"PIX\""
done
# A virtual machine with two H200 on its root bus
look h200 "$dir/records/h200.rec"
matrix 2
is "two GPUs of NVIDIA" '[.devices[] | .vendor + ":" + .device + " " + .driver] == ["10de:2335 nvidia", "10de:2335 nvidia"]'
is "a host bridge between them, and the kernel is not asked" 'pair("GPU0"; "GPU1")
	| .relation == "PHB" and .verdict == "root-complex" and (.reason | test("NVLink"))'
is "no IOMMU, no P2PDMA" '([.devices[].iommu] == ["off", "off"]) and .machine.p2pdma == false'
# A virtual machine without any such device
look no-device "$dir/records/no-device.rec"
is "nothing is found" '.devices == [] and .pairs == []'
check "$now: and it says so" sh -c "$tool topo --from $dir/records/no-device.rec | grep -q 'no GPU'"
finish

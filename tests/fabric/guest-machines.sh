#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a guest sees the machine that its topology file describes: order, nodes, pairs, IOMMU
# tags: guest topology
# tier: all
# timeout: 240

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool jq cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

mkdir -p case/lib
cp "$TOP/tests/fabric/guest/machines" case/run
chmod +x case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
printf '%s\n' nvme peerlane_gpu >case/modules

# Where QEMU says that the guest has numbered each device, "NAME ADDRESS"
# shellcheck disable=SC2317 # the guest asks for it
host_where() {
	vm_qmp "$1" '{"execute":"query-pci"}' | jq -r '
		[.. | objects | select(.qdev_id? // "" != "")]
		| unique_by(.qdev_id)[] | "\(.qdev_id) \(.bus) \(.slot)"' |
		while read -r id bus slot; do
			printf '%s 0000:%02x:%02x.0\n' "$id" "$bus" "$slot"
		done >"$OUT/$1/where"
	echo ok
}

boot() { # NAME TOPOLOGY-FILE
	now=$1
	topo=$2
	vm_run "$now" "$topo" 7.2 "$OUT/case" 100
	boot_rc=$?
	ktap_from "$OUT/$now/result.log" "$now"
	check_eq "$now: the guest is content" 0 "$boot_rc" || finish
	sed -n 's/\r$//; s/^@device //p' "$now/result.log" >"$now.devices"
	devices=$now.devices
}

said() { # KEY, of this guest's lines
	sed -n "s/\\r\$//; s/^@$1 //p" "$now/result.log"
}

# every device where the file has it
places() {
	check_eq "$now: the guest's GPU N is the file's, and drives are told by name" \
		"$(awk '$2 == "gpu" || $2 == "nvme" { print $1 }' "$now/machine" | sort |
			join - "$now/where")" \
		"$(awk '{ print $1, $2 }' "$devices" | sort)"
	# The file's chain of parents, in the guest's PCI addresses, is sysfs's path
	check_eq "$now: above each device are the ports that the file has" \
		"$(awk '
		NR == FNR { at[$1] = $2; next }
		{ up[$1] = $3; kind[$1] = $2 }
		$2 == "host-bridge" { bus[$1] = 32 * ++n }
		END {
			for (d in kind) {
				if (kind[d] != "gpu" && kind[d] != "nvme")
					continue
				path = at[d]
				for (p = up[d]; p in at && kind[p] != "host-bridge"; p = up[p]) {
					path = at[p] "/" path
					if (p ~ /[.]/) {
						sub(/[.].*/, "", p)
						path = at[p] "/" path
					}
				}
				printf "%s pci0000:%02x/%s\n", d, bus[p], path
			}
		}' "$now/where" "$now/machine" | sort)" \
		"$(awk '{ print $1, $6 }' "$devices" | sort)"
}

boot dgx "$TOP/scenarios/topologies/dgx.topo"
places
check_eq "dgx: 8 GPUs and 8 drives" "8 8" "$(grep -c ^gpu "$devices") $(grep -c ^nvme "$devices")"
check_eq "dgx: the first half is on node 0, the second on node 1" \
	"$(for i in 0 1 2 3 4 5 6 7; do
		echo "gpu$i $((i / 4))"; echo "nvme$i $((i / 4))"; done | sort)" \
	"$(awk '{ print $1, $3 }' "$devices" | sort)"
check_eq "dgx: one processor on each node" "0 0 1 1" \
	"$(said node | awk '{ print $1, $2 }' | tr '\n' ' ' | sed 's/ $//')"
check_eq "dgx: and about half of the memory" "" \
	"$(said node | awk '$3 < 400 * 1024 || $3 > 512 * 1024')"
check_eq "dgx: no IOMMU" none "$(awk '{ print $4 }' "$devices" | sort -u)"
check_eq "dgx: ACS is there at 16 ports, and off" "16 0000" \
	"$(said acs | awk '{ n++; seen[$2] } END { for (s in seen) printf "%d %s\n", n, s }')"
check_eq "dgx: nothing about an IOMMU on the kernel's command line" "" \
	"$(said cmdline | grep iommu)"

boot passthrough "$TOP/tests/fabric/machines.topo"
places
check_eq "passthrough: nodes are those of the host bridges, pcie.0 has none" \
	"gpu0 -1 gpu1 1 gpu2 0 nvme0 1 nvme1 1 nvme2 1" \
	"$(awk '{ print $1, $3 }' "$devices" | sort | tr '\n' ' ' | sed 's/ $//')"
check_eq "passthrough: every device is in an identity domain" identity \
	"$(awk '{ print $4 }' "$devices" | sort -u)"
# Linux 7.2 looks no further: it does not join the ports of such a switch
check_eq "passthrough: only devices below ports without ACS are in their port's group" \
	"gpu1 nvme1" "$({ said acs; cat "$devices"; } | awk '
	NF == 3 { port[$1] = $3; next }
	{ n = split($6, path, "/") }
	port[path[n - 1]] == $5 { print $1 }' | sort | tr '\n' ' ' | sed 's/ $//')"
check_eq "passthrough: Linux has turned redirect on where ACS is" 001d \
	"$(said acs | awk '$2 != "0000" { print $2 }' | sort -u)"

sed 's/iommu=passthrough/iommu=translated/' "$TOP/tests/fabric/machines.topo" >translated.topo
boot translated "$OUT/translated.topo"
places
check_eq "translated: every device is in a domain that translates" DMA-FQ \
	"$(awk '{ print $4 }' "$devices" | sort -u)"
finish

# SPDX-License-Identifier: MIT
#
# What Linux makes of a machine, as lines of an .expect file (expect.awk): which way
# data goes between gpu0 and the drive with the image disk0.  The input is what
# topology.awk prints with mode=devices.  The rules are those of the kernel's
# drivers/pci/p2pdma.c and of its ACS set-up, not what a run has printed:
#
# 1. A kernel without CONFIG_PCI_P2PDMA, which 6.12 is: staged.
# 2. Both devices below one switch, and no port of it on the way redirects: p2p.
# 3. Else through the host bridge, when Linux trusts it, as it does AMD's (cpu=EPYC):
#    p2p-root; when not: staged.
# 4. A port redirects when firmware left that on, or when it has ACS and there is an
#    IOMMU: Linux turns it on then.

{
	kind[$1] = $2
	parent[$1] = $3
	for (i = 4; i <= NF; i++)
		if ((at = index($i, "=")))
			key[$1, substr($i, 1, at - 1)] = substr($i, at + 1)
}
$2 == "q35" { machine = $1 }
$2 == "nvme" && / image=disk0$/ { drive = $1 }

# the ports from NAME up to the root complex: path[n, 1], path[n, 2], ...
function way_up(name, n, port) {
	for (port = parent[name]; port in parent || sub(/[.][0-9]+$/, "", port) && port in parent; port = parent[port]) {
		if (kind[port] == "switch")
			path[n, ++length_of[n]] = port
	}
}

END {
	if (drive == "") {
		print "* skip skip no drive"
		exit
	}
	if (kind["gpu0"] != "gpu")
		exit 2
	way_up("gpu0", 1)
	way_up(drive, 2)
	# the lowest switch that both ways go through, and the switches below it
	for (i = 1; i <= length_of[1] && !common; i++) {
		for (j = 1; j <= length_of[2]; j++)
			if (path[1, i] == path[2, j])
				break
		common = j <= length_of[2]
		for (n = 1; n <= j && common; n++)
			on_way[path[2, n]]
		on_way[path[1, i]]
	}
	for (name in on_way) {
		redirect += key[name, "acs"] == "redirect" || key[name, "acs"] == "on" && key[machine, "iommu"] != "off"
	}
	if (common && !redirect)
		print "* p2p p2p"
	else if (key[machine, "cpu"] == "EPYC")
		print "* p2p-root p2p-root"
	else
		print "* bounce bounce cannot be used for peer-to-peer DMA"
	print "*@6.12 bounce bounce P2PDMA"
}

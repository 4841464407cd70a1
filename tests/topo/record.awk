# SPDX-License-Identifier: MIT
#
# A record of a machine, peerlane-record(5), from a description of its PCI
# Express tree:
#
#	machine KERNEL CPU-VENDOR FAMILY P2PDMA IOMMU	y or n; off, identity, DMA
#	bus     pciDDDD:BB NUMA-NODE ID		a host bridge; device 00.0 of its bus
#	switch  BUS PARENT ID			upstream port, at BUS:00.0
#	gpu     BUS[.FUNCTION] PARENT ID [DRIVER]
#	nic     BUS[.FUNCTION] PARENT ID NAME
#	nvme    BUS[.FUNCTION] PARENT ID NAME
#
# PARENT is a bus or a switch's BUS; the root port or downstream port comes by
# itself.  ID is VENDOR:DEVICE.  -v acs=CCCC sets the ACS control word of all
# downstream ports (0000), -v acs_at=ADDRESS=CCCC,… that of some.

function put(path, line) { out[++lines] = sprintf(line, path) }

# little-endian
function word(hex) { return substr(hex, 3, 2) substr(hex, 1, 2) }

# function ADDRESS below PATH: class BBSSPP, PCI Express type, ID, NUMA, driver
function add(address, path, class, type, id, numa, driver, ctrl,    d, i) {
	d = "/sys/bus/pci/devices/" address
	split(id, i, ":")
	if (address in seen) {
		print FILENAME ": " address " is there twice" >"/dev/stderr"
		exit failed = 1
	}
	seen[address]
	put(d, "L %s " path)
	put(d "/class", "F %s 0x" class "\\n")
	put(d "/vendor", "F %s 0x" i[1] "\\n")
	put(d "/device", "F %s 0x" i[2] "\\n")
	put(d "/numa_node", "F %s " numa "\\n")
	put(d "/driver", driver == "" ? "E %s ENOENT" : "L %s /sys/bus/pci/drivers/" driver)
	if (mode == "off") {
		put(d "/iommu_group", "E %s ENOENT")
	} else {
		put(d "/iommu_group", "L %s /sys/kernel/iommu_groups/" groups)
		put("/sys/kernel/iommu_groups/" groups++ "/type", "F %s " mode "\\n")
	}
	put(d "/config", "X %s " word(i[1]) word(i[2]) "00001000" "00" substr(class, 5, 2) \
		substr(class, 3, 2) substr(class, 1, 2) "0000" (class ~ /^0604/ ? "01" : "00") \
		"(37)40(11)" "1000" type "200" \
		(ctrl == "" ? "(4028)" : "(188)0d0001005f00" word(ctrl) "(3832)"))
}

# The port that a device or switch goes on: sets port_path and port_numa
function port_on(parent,    address) {
	if (parent in bus_numa) {
		address = sprintf("%s:%s:%02x.%d", substr(parent, 4, 4), substr(parent, 9, 2),
			1 + int(roots[parent] / 8), roots[parent]++ % 8)
		port_numa = bus_numa[parent]
		port_path = "/sys/devices/" parent "/" address
		children[parent] = children[parent] " " address
		add(address, port_path, "060400", "4", bus_port[parent], port_numa, "pcieport", "001d")
	} else if (parent in switch_path) {
		address = sprintf("0000:%02x:%02x.0", hex(parent) + 1, ports[parent]++)
		port_numa = switch_numa[parent]
		port_path = switch_path[parent] "/" address
		add(address, port_path, "060400", "6", switch_id[parent], port_numa, "pcieport", control_of(address))
	} else {
		print FILENAME ":" FNR ": no parent " parent >"/dev/stderr"
		exit failed = 1
	}
}

function hex(s) {
	return 16 * (index("0123456789abcdef", substr(s, 1, 1)) - 1) \
		+ index("0123456789abcdef", substr(s, 2, 1)) - 1
}

function endpoint(class, driver,    bus, fn) {
	bus = substr($2, 1, 2)
	fn = $2 ~ /\./ ? substr($2, 4) : 0
	if (!((bus, "path") in slot)) {
		port_on($3)
		slot[bus, "path"] = port_path
		slot[bus, "numa"] = port_numa
	}
	address = "0000:" bus ":00." fn
	add(address, slot[bus, "path"] "/" address, class, "0", $4, slot[bus, "numa"], driver)
}

function control_of(address) { return address in exception ? exception[address] : acs }

BEGIN {
	if (acs == "")
		acs = "0000"
	groups = 0
	for (n = split(acs_at, at, ","); n > 0; n--) {
		split(at[n], half, "=")
		exception[half[1]] = half[2]
	}
}

/^#/ || !NF { next }
$1 == "machine" {
	mode = $6
	put("/proc/sys/kernel/osrelease", "F %s " $2)
	put("/proc/cpuinfo#vendor_id", "F %s " $3)
	put("/proc/cpuinfo#cpu\\x20family", "F %s " $4)
	put("/proc/config.gz#CONFIG_PCI_P2PDMA", "E %s ENOENT")
	put("/boot/config-" $2 "#CONFIG_PCI_P2PDMA", $5 == "y" ? "F %s y" : "E %s ENOKEY")
	put("/sys/module/nvidia_fs", "E %s ENOENT")
	next
}
$1 == "bus" {
	bus_numa[$2] = $3
	bus_port[$2] = $4 ~ /^1022/ ? "1022:1483" : "8086:352a"
	children[$2] = " " substr($2, 4) ":00.0"
	address = substr($2, 4) ":00.0"
	add(address, "/sys/devices/" $2 "/" address, "060000", "0", $4, $3, "")
	next
}
$1 == "switch" {
	port_on($3)
	address = "0000:" $2 ":00.0"
	add(address, port_path "/" address, "060400", "5", $4, port_numa, "pcieport")
	switch_path[$2] = port_path "/" address
	switch_numa[$2] = port_numa
	switch_id[$2] = $4
	next
}
$1 == "gpu" { endpoint("030200", NF > 4 ? $5 : "nvidia"); next }
$1 == "nic" {
	endpoint("020700", "mlx5_core")
	put("/sys/bus/pci/devices/" address "/infiniband", "D %s " $5)
	next
}
$1 == "nvme" {
	endpoint("010802", "nvme")
	put("/sys/bus/pci/devices/" address "/nvme", "D %s " $5)
	put("/sys/bus/pci/devices/" address "/nvme/" $5, "D %s " $5 "n1")
	next
}
{ print FILENAME ":" FNR ": what is \"" $1 "\"?" >"/dev/stderr"; exit failed = 1 }

END {
	if (failed)
		exit 1
	print "# SPDX-License-Identifier: MIT"
	print "V 1"
	for (i = 1; i <= lines; i++)
		print out[i]
	for (bus in children)
		print "D /sys/devices/" bus children[bus]
	for (address in seen) {
		for (i = n++; i && name[i] > address; i--)
			name[i + 1] = name[i]
		name[i + 1] = address
	}
	printf "D /sys/bus/pci/devices"
	for (i = 1; i <= n; i++)
		printf " %s", name[i]
	print ""
}

# SPDX-License-Identifier: MIT
#
# A topology file to QEMU's arguments, one to a line; docs/reference/topology.md
# describes the files.  Errors are one line, FILE:LINE: what is wrong.
#
#	awk -v images='disk0=/path ...' -v mode=args \
#		-v overrides='cpu=EPYC,gpu0.coherent=on' -f topology.awk FILE
#
# overrides: keys of the machine, and of devices with their names in front, that
# count instead of the file's.
#
# mode=args	QEMU's arguments; warnings on standard error, as with warnings=1.  With -v ram=DIR
#		the memory of the machine is files in DIR, with share=@SHARED@ for the caller to fill in
# mode=cmdline	what the machine adds to the kernel's command line
# mode=images	the names of the images that its drives take
# mode=devices	lines "NAME KIND PARENT KEY=VALUE...", with defaults filled in

function die(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 2
}

# without a line to blame
function stop(text) {
	printf "%s: %s\n", ARGV[1], text > "/dev/stderr"
	failed = 1
	exit 2
}

function warn(text) {
	if (mode == "args" || warnings)
		printf "%s:%d: warning: %s\n", FILENAME, FNR, text > "/dev/stderr"
}

function bytes(text, n, unit) {
	if (text !~ /^[1-9][0-9]*[KMGT]?$/)
		return -1
	n = text + 0
	unit = substr(text, length(text))
	if (unit == "K")
		n *= 1024
	else if (unit == "M")
		n *= 1024 * 1024
	else if (unit == "G")
		n *= 1024 * 1024 * 1024
	else if (unit == "T")
		n *= 1024 * 1024 * 1024 * 1024
	return n
}

function power_of_two(n) {
	while (n > 1) {
		if (n % 2)
			return 0
		n /= 2
	}
	return n == 1
}

function arg(text) {
	args[nargs++] = text
}

function known_keys(kind, list, i, n, key) {
	n = split(list, allowed, " ")
	for (key in value) {
		for (i = 1; i <= n; i++)
			if (allowed[i] == key)
				break
		if (i > n)
			die("a " kind " has no key \"" key "\"" \
			    (n ? " (it has: " list ")" : ""))
	}
}

function take(key, other) {
	return key in value ? value[key] : other
}

function take_size(key, other, text) {
	text = take(key, other)
	if (bytes(text) < 0)
		die(key "=" text " is no size (examples: 256M, 1G)")
	return text
}

# take_word("acs", "on", "on off"): one of these words
function take_word(key, other, list, text, i, n) {
	text = take(key, other)
	n = split(list, allowed, " ")
	for (i = 1; i <= n; i++)
		if (allowed[i] == text)
			return text
	gsub(/ /, ", ", list)
	sub(/, [^,]*$/, " or" substr(list, match(list, / [^ ]*$/)), list)
	die(key "=" text " is not " list)
}

function take_number(key, other, low, high, text) {
	text = take(key, other)
	if (text !~ /^[0-9]+$/ || text + 0 < low || text + 0 > high)
		die(key "=" text " is no number from " low " to " high)
	return text + 0
}

# PCIe ports hold one device each; a root complex holds root ports only
function plug(name, kind, parent) {
	if (!(parent in port)) {
		if (parent in root_of && !(parent in host))
			die(name ": " parent " is no port" (kind_of[parent] == \
			    "switch" ? "; its ports are " parent ".0 and so on" : ""))
		if (parent in host)
			die(name " needs a root-port or a switch's port, not " parent)
		die(name ": no port is called \"" parent "\" above this line")
	}
	if (port[parent] != "")
		die(name ": port " parent " already holds " port[parent])
	port[parent] = name
	root_of[name] = root_of[parent]
	kind_of[name] = kind
}

# Of the 32 slots of pcie.0 the first and the last are the chipset's, and one is of
# the memory that brings the case.  A host-bridge has fewer bus numbers than slots.
function take_slot(parent) {
	if (parent == "pcie.0" && ++slots > 29)
		die("pcie.0 has no slot left for " name)
}

# The secondary bus of a bridge.  The firmware numbers the buses below a host
# bridge upwards from its own, so each has a share of the 256 numbers.
function take_bus(root, share) {
	share = nhosts > 1 ? BUSES : 256
	if (++buses[root] > share)
		die("there are more than " share " PCI buses below " root)
}

function open_port(name, root) {
	port[name] = ""
	root_of[name] = root
	take_bus(root)
	chassis++
}

function add_host(name) {
	host[name] = nhosts++
	root_of[name] = name
	buses[name] = 1
}

# Firmware has to find 64-bit addresses for them, naturally aligned, and Linux
# has 64 bytes of memory for each of their pages: a quarter of it is enough
function take_aperture(size, n) {
	for (n = 1; n < size; n *= 2)
		;
	apertures += n
	if (apertures > APERTURES)
		die("the apertures of all GPUs are more than " \
		    APERTURES / 1073741824 "G")
	if (apertures > 16 * bytes(memory))
		die("the apertures of all GPUs are more than 16 times memory=" memory)
}

BEGIN {
	if (mode == "")
		mode = "args"
	BUSES = 32
	APERTURES = 256 * 1024 * 1024 * 1024
	# of one GPU by default, and of all: what the devices accept
	RUNS = 512
	ALL_RUNS = 1536
	nimages = split(images, pair, " ")
	for (i = 1; i <= nimages; i++) {
		at = index(pair[i], "=")
		image[substr(pair[i], 1, at - 1)] = substr(pair[i], at + 1)
	}
	noverrides = split(overrides, word, ",")
	for (i = 1; i <= noverrides; i++) {
		at = index(word[i], "=")
		over_key[i] = substr(word[i], 1, at - 1)
		over_value[i] = substr(word[i], at + 1)
		at = index(over_key[i], ".")
		over_device[i] = substr(over_key[i], 1, at - (at > 0))
		over_key[i] = substr(over_key[i], at + 1)
		if (over_key[i] == "" || over_value[i] == "")
			stop("\"" word[i] "\" is not KEY=VALUE or DEVICE.KEY=VALUE")
	}
	add_host("pcie.0")
	# other ends of transfers in results and drawings
	split("host memory", word, " ")
	for (i in word)
		reserved[word[i]]
}

{
	sub(/\r$/, "")
	sub(/#.*/, "")
}

NF == 0 { next }

NF < 3 {
	die("a line is NAME KIND PARENT [key=value...], and this has " NF \
	    (NF == 1 ? " word" : " words"))
}

{
	name = $1
	kind = $2
	parent = $3
	if (name !~ /^[A-Za-z][A-Za-z0-9_-]*$/)
		die("\"" name "\" is no name (a letter, then letters, digits, - and _)")
	if (name in reserved)
		die("no device can be called " name)
	if (name in seen)
		die("the name " name " is already used in line " seen[name])
	seen[name] = FNR
	delete value
	line = name " " kind " " parent
	for (i = 4; i <= NF; i++) {
		at = index($i, "=")
		if (at < 2 || at == length($i))
			die("\"" $i "\" is not key=value")
		key = substr($i, 1, at - 1)
		if (key in value)
			die("the key " key " stands twice")
		value[key] = substr($i, at + 1)
		if (value[key] ~ /,/)
			die("a value has no comma: " $i)
	}
	for (i = 1; i <= noverrides; i++)
		if (over_device[i] == (kind == "q35" ? "" : name)) {
			value[over_key[i]] = over_value[i]
			over_done[i] = 1
		}
}

kind == "q35" {
	if (have_machine)
		die("there is already a machine")
	if (parent != "-")
		die("the machine's parent is -, not " parent)
	known_keys(kind, "memory cpus cpu iommu nodes")
	have_machine = 1
	memory = take_size("memory", "1G")
	if (bytes(memory) < 256 * 1048576)
		die("memory=" memory " is less than the 256M that a guest needs")
	cpus = take_number("cpus", 2, 1, 64)
	cpu = take("cpu", "max")
	iommu = take_word("iommu", "off", "off passthrough translated")
	nodes = take_number("nodes", 1, 1, 8)
	arg("-machine"); arg("q35")
	# Hot-plug is that of the ports themselves, as on real machines
	arg("-global"); arg("ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")
	# BARs go to the top of the address space; the last 12 GiB before 1 TiB
	# are reserved on AMD's processors, and 39 bits end below
	arg("-cpu"); arg(cpu ",phys-bits=39")
	# a node is a socket: Linux believes no cache that spans nodes
	arg("-smp"); arg(cpus (nodes > 1 ? ",sockets=" nodes : ""))
	arg("-m"); arg(memory)
	if (nodes > 1)
		add_nodes()
	else if (ram != "") {
		arg("-object"); arg(backend("ram", memory))
		arg("-machine"); arg("memory-backend=ram")
	}
	if (iommu != "off") {
		# before every PCI device, or those before it have no IOMMU
		arg("-device"); arg("intel-iommu")
		cmdline = "intel_iommu=on" (iommu == "passthrough" ? " iommu=pt" : "")
	}
	nmachine = nargs
	devices[ndevices++] = line " memory=" memory " cpus=" cpus " cpu=" cpu \
		" iommu=" iommu " nodes=" nodes
	next
}

# A memory backend
function backend(id, size) {
	if (ram == "")
		return "memory-backend-ram,id=" id ",size=" size
	return "memory-backend-file,id=" id ",size=" size ",mem-path=" ram "/" \
		id ",share=@SHARED@"
}

function add_nodes(i, share, each) {
	if (cpus % nodes)
		die("cpus=" cpus " cannot be divided equally among " nodes " nodes")
	share = bytes(memory) / nodes / 1048576
	if (share != int(share))
		die("memory=" memory " cannot be divided equally among " nodes \
		    " nodes, in whole MiB")
	each = cpus / nodes
	for (i = 0; i < nodes; i++) {
		arg("-object")
		arg(backend("node" i "-memory", share "M"))
		arg("-numa")
		arg("node,nodeid=" i ",memdev=node" i "-memory,cpus=" i * each \
		    (each > 1 ? "-" (i + 1) * each - 1 : ""))
	}
}

!have_machine { die("the first line is the machine: NAME q35 - ...") }

kind == "host-bridge" {
	known_keys(kind, "node")
	if (parent != "pcie.0")
		die("a host-bridge belongs on pcie.0, not on " parent)
	node = take_number("node", 0, 0, 7)
	if (node >= nodes)
		die("node=" node " is none of the machine's " \
		    (nodes > 1 ? nodes " nodes" : "nodes (it has nodes=1)"))
	take_slot(parent)
	if (nhosts * BUSES >= 256)
		die("there are more than " 256 / BUSES - 1 " host-bridges")
	add_host(name)
	kind_of[name] = kind
	if (buses["pcie.0"] > BUSES)
		die("there are more than " BUSES " PCI buses below pcie.0, which a host-bridge leaves it")
	host_arg[host[name]] = "pxb-pcie,id=" name ",bus=pcie.0,bus_nr=" \
		host[name] * BUSES (nodes > 1 ? ",numa_node=" node : "")
	devices[ndevices++] = line " node=" node
	next
}

kind == "root-port" {
	known_keys(kind, "")
	if (!(parent in host))
		die("a root-port belongs on pcie.0 or a host-bridge, not on " parent)
	take_slot(parent)
	kind_of[name] = kind
	open_port(name, parent)
	arg("-device")
	arg("pcie-root-port,id=" name ",bus=" parent ",chassis=" chassis \
	    ",slot=" chassis)
	devices[ndevices++] = line
	next
}

kind == "switch" {
	known_keys(kind, "ports model acs gen width latency")
	plug(name, kind, parent)
	ports = take_number("ports", 2, 1, 32)
	model = take_word("model", "peerlane", "peerlane x3130")
	if (model == "x3130" && "acs" in value)
		die("the model x3130 has no ACS; model=peerlane has")
	link = link_model()
	acs = model == "x3130" ? "off" : take_word("acs", "on", "on off redirect")
	if (model == "x3130" && iommu == "translated")
		warn("behind model=x3130 and an IOMMU that translates, transfers between devices go wrong")
	up = model == "peerlane" ? "peerlane-switch-upstream" : "x3130-upstream"
	down = model == "peerlane" ? "peerlane-switch-downstream,acs=" \
	    (acs == "off" ? "off" : "on") : "xio3130-downstream"
	# what firmware may leave behind: SV, RR, CR and UF
	if (acs == "redirect")
		down = down ",acs-control=0x1d"
	take_bus(root_of[name])
	arg("-device")
	arg(up link ",id=" name ",bus=" parent)
	for (i = 0; i < ports; i++) {
		open_port(name "." i, root_of[name])
		arg("-device")
		arg(down link ",id=" name "." i ",bus=" name \
		    ",chassis=" chassis ",slot=" chassis)
	}
	devices[ndevices++] = line " ports=" ports " model=" model " acs=" acs \
		(link == "" ? "" : " gen=" gen " width=" width " latency=" latency)
	next
}

# The links of a switch have time when they have a generation
function link_model() {
	if (!("gen" in value)) {
		if ("width" in value || "latency" in value)
			die("width and latency need gen=")
		return ""
	}
	if (model != "peerlane")
		die("the model " model " has no links with time; model=peerlane has")
	gen = take_number("gen", 0, 1, 5)
	width = take_word("width", "16", "1 2 4 8 16 32")
	latency = take_number("latency", 0, 0, 1000000)
	return ",link-gen=" gen ",link-width=" width ",link-latency=" latency
}

kind == "gpu" {
	known_keys(kind, "vram bar1 rebar coherent queues vendor-id device-id uuid")
	plug(name, kind, parent)
	vram = take_size("vram", "1G")
	if (bytes(vram) < 1048576 || bytes(vram) % 65536)
		die("vram=" vram " is no multiple of 64K from 1M")
	bar1 = take_size("bar1", vram)
	if (!power_of_two(bytes(bar1)) || bytes(bar1) < 65536)
		die("bar1=" bar1 " is no power of two from 64K")
	rebar = take_word("rebar", "off", "on off")
	if (rebar == "on" && bytes(bar1) < 1048576)
		die("with rebar=on bar1=" bar1 " is less than 1M")
	coherent = take_word("coherent", "off", "on off")
	queues = take_number("queues", 4, 1, 16)
	# a guest can make it as large as vram
	take_aperture(rebar == "on" && bytes(vram) > bytes(bar1) ? bytes(vram) : bytes(bar1))
	if (coherent == "on")
		take_aperture(bytes(vram))
	text = "peerlane-gpu,id=" name ",bus=" parent ",vram-size=" vram \
		",bar1-size=" bar1 ",coherent=" coherent ",queues=" queues
	if (rebar == "on")
		text = text ",rebar=on"
	for (key in value)
		if (key == "vendor-id" || key == "device-id" || key == "uuid")
			text = text "," key "=" value[key]
	arg("-device")
	gpu_arg[ngpus++] = nargs
	arg(text)
	devices[ndevices++] = line " vram=" vram " bar1=" bar1 \
		(rebar == "on" ? " rebar=on" : "") " coherent=" coherent
	next
}

kind == "nvme" {
	known_keys(kind, "image")
	plug(name, kind, parent)
	disk = take("image", "")
	if (disk == "")
		die("an nvme needs image=NAME")
	if (disk !~ /^[A-Za-z0-9_-]+$/)
		die("image=" disk " is no name of an image (letters, digits, - and _)")
	if (disk in used)
		die("the image " disk " already belongs to " used[disk])
	used[disk] = name
	disks[ndisks++] = disk
	if (mode == "args") {
		if (!(disk in image))
			die("the scenario gives no image called " disk)
		at = index(image[disk], ":writes=")
		writes = at ? substr(image[disk], at + 8) : ""
		path = at ? substr(image[disk], 1, at - 1) : image[disk]
		at = index(path, ":blkdebug=")
		rules = at ? substr(path, at + 10) : ""
		if (at)
			path = substr(path, 1, at - 1)
		arg("-blockdev")
		# Nobody needs it on the host's medium.  Of that node alone: those above
		# get each flush
		arg("driver=file,node-name=" name "-file,filename=" path ",cache.no-flush=on")
		under = name "-file"
		# below the faults: what they fail was never written
		if (writes != "") {
			arg("-blockdev")
			arg("driver=file,node-name=" name "-log,filename=" writes ",cache.no-flush=on")
			arg("-blockdev")
			arg("driver=blklogwrites,node-name=" name "-writes,file=" under ",log=" name "-log")
			under = name "-writes"
		}
		if (rules != "") {
			arg("-blockdev")
			arg("driver=blkdebug,node-name=" name "-faults,image=" under ",config=" rules)
			under = name "-faults"
		}
		arg("-blockdev")
		arg("driver=raw,node-name=" name "-disk,file=" under)
		arg("-device")
		arg("nvme,id=" name ",bus=" parent ",serial=" name ",drive=" \
		    name "-disk")
	}
	devices[ndevices++] = line " image=" disk
	next
}

kind == "cx" {
	known_keys(kind, "lid link")
	plug(name, kind, parent)
	link = take_word("link", "infiniband", "infiniband ethernet")
	# that of each differs, and by it the address
	lid = take_number("lid", ++ncards, 1, 49151)
	if (lid in lids)
		die("lid=" lid " is that of \"" lids[lid] "\", too")
	lids[lid] = name
	arg("-device")
	arg("peerlane-cx,id=" name ",bus=" parent ",lid=" lid sprintf(",guid=0x0200c9fffe%06x", lid) (link == "ethernet" ? ",link-layer=ethernet" : ""))
	devices[ndevices++] = line " lid=" lid (link == "ethernet" ? " link=ethernet" : "")
	next
}

{
	die("\"" kind "\" is no kind of device (q35, host-bridge, root-port, switch, gpu, cx, nvme)")
}

END {
	if (failed)
		exit 2
	if (!have_machine) {
		printf "%s: there is no machine in it\n", FILENAME > "/dev/stderr"
		exit 2
	}
	for (i = 1; i <= noverrides; i++)
		if (!(i in over_done))
			stop("no device is called \"" over_device[i] "\", to have " over_key[i] "=" over_value[i])
	if (mode == "devices")
		for (i = 0; i < ndevices; i++)
			print devices[i]
	else if (mode == "cmdline")
		print cmdline
	else if (mode == "images")
		for (i = 0; i < ndisks; i++)
			print disks[i]
	else {
		if (ngpus * RUNS > ALL_RUNS)
			for (i = 0; i < ngpus; i++)
				args[gpu_arg[i]] = args[gpu_arg[i]] \
					",bar1-runs=" int(ALL_RUNS / ngpus)
		for (i = 0; i <= nargs; i++) {
			# The last host bridge that QEMU hears of is the first
			# that its ACPI tables name and Linux scans
			if (i == nmachine)
				for (j = nhosts - 1; j > 0; j--)
					print "-device\n" host_arg[j]
			if (i < nargs)
				print args[i]
		}
	}
}

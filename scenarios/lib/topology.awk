# SPDX-License-Identifier: MIT
#
# A topology file to QEMU's arguments, one to a line; docs/reference/topology.md
# describes the files.  Errors are one line, FILE:LINE: what is wrong.
#
#	awk -v images='disk0=/path ...' -v mode=args -f topology.awk FILE
#
# mode=args prints arguments; mode=devices prints lines "NAME KIND PARENT
# KEY=VALUE...", with defaults filled in, for the report.

function die(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 2
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
			die("a " kind " has no key \"" key "\" (it has: " list ")")
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

function take_switch(key, other, text) {
	text = take(key, other)
	if (text != "on" && text != "off")
		die(key "=" text " is neither on nor off")
	return text
}

function take_number(key, other, low, high, text) {
	text = take(key, other)
	if (text !~ /^[0-9]+$/ || text + 0 < low || text + 0 > high)
		die(key "=" text " is no number from " low " to " high)
	return text + 0
}

# PCIe ports hold one device each; pcie.0 holds root ports only
function plug(name, kind, parent) {
	if (kind == "root-port") {
		if (parent != "pcie.0")
			die("a root-port belongs on pcie.0, not on " parent)
		return
	}
	if (parent == "pcie.0")
		die(name " needs a root-port or a switch's port, not pcie.0")
	if (!(parent in port))
		die(name ": no port is called \"" parent "\" above this line")
	if (port[parent] != "")
		die(name ": port " parent " already holds " port[parent])
	port[parent] = name
}

function open_port(name) {
	port[name] = ""
}

BEGIN {
	nimages = split(images, pair, " ")
	for (i = 1; i <= nimages; i++) {
		at = index(pair[i], "=")
		image[substr(pair[i], 1, at - 1)] = substr(pair[i], at + 1)
	}
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
}

kind == "q35" {
	if (have_machine)
		die("there is already a machine")
	if (parent != "-")
		die("the machine's parent is -, not " parent)
	known_keys(kind, "memory cpus cpu")
	have_machine = 1
	memory = take_size("memory", "1G")
	cpus = take_number("cpus", 2, 1, 64)
	cpu = take("cpu", "max")
	arg("-machine"); arg("q35")
	arg("-cpu"); arg(cpu)
	arg("-smp"); arg(cpus)
	arg("-m"); arg(memory)
	devices[ndevices++] = line " memory=" memory " cpus=" cpus " cpu=" cpu
	next
}

!have_machine { die("the first line is the machine: NAME q35 - ...") }

kind == "root-port" {
	known_keys(kind, "")
	plug(name, kind, parent)
	open_port(name)
	chassis++
	arg("-device")
	arg("pcie-root-port,id=" name ",bus=pcie.0,chassis=" chassis ",slot=" chassis)
	devices[ndevices++] = line
	next
}

kind == "switch" {
	known_keys(kind, "ports model acs")
	plug(name, kind, parent)
	ports = take_number("ports", 2, 1, 32)
	model = take("model", "x3130")
	if (model != "x3130" && model != "peerlane")
		die("model=" model " is neither x3130 nor peerlane")
	if (model == "x3130" && "acs" in value)
		die("the model x3130 has no ACS; model=peerlane has")
	acs = take_switch("acs", "on")
	up = model == "peerlane" ? "peerlane-switch-upstream" : "x3130-upstream"
	down = model == "peerlane" ? "peerlane-switch-downstream,acs=" acs : \
	    "xio3130-downstream"
	arg("-device")
	arg(up ",id=" name ",bus=" parent)
	for (i = 0; i < ports; i++) {
		open_port(name "." i)
		chassis++
		arg("-device")
		arg(down ",id=" name "." i ",bus=" name \
		    ",chassis=" chassis ",slot=" chassis)
	}
	devices[ndevices++] = line " ports=" ports " model=" model
	next
}

kind == "gpu" {
	known_keys(kind, "vram bar1 coherent queues vendor-id device-id uuid")
	plug(name, kind, parent)
	vram = take_size("vram", "1G")
	bar1 = take_size("bar1", vram)
	if (!power_of_two(bytes(bar1)))
		die("bar1=" bar1 " is no power of two")
	coherent = take_switch("coherent", "off")
	queues = take_number("queues", 4, 1, 16)
	text = "peerlane-gpu,id=" name ",bus=" parent ",vram-size=" vram \
		",bar1-size=" bar1 ",coherent=" coherent ",queues=" queues
	for (key in value)
		if (key == "vendor-id" || key == "device-id" || key == "uuid")
			text = text "," key "=" value[key]
	arg("-device"); arg(text)
	devices[ndevices++] = line " vram=" vram " bar1=" bar1 " coherent=" coherent
	next
}

kind == "nvme" {
	known_keys(kind, "image")
	plug(name, kind, parent)
	disk = take("image", "")
	if (disk == "")
		die("an nvme needs image=NAME")
	if (disk in used)
		die("the image " disk " already belongs to " used[disk])
	used[disk] = name
	if (mode != "devices") {
		if (!(disk in image))
			die("the scenario gives no image called " disk)
		at = index(image[disk], ":blkdebug=")
		if (at) {
			path = substr(image[disk], 1, at - 1)
			rules = substr(image[disk], at + 10)
			arg("-blockdev")
			arg("driver=file,node-name=" name "-file,filename=" path)
			arg("-blockdev")
			arg("driver=blkdebug,node-name=" name "-faults,image=" \
			    name "-file,config=" rules)
			arg("-blockdev")
			arg("driver=raw,node-name=" name "-disk,file=" name "-faults")
		} else {
			arg("-blockdev")
			arg("driver=file,node-name=" name "-file,filename=" image[disk])
			arg("-blockdev")
			arg("driver=raw,node-name=" name "-disk,file=" name "-file")
		}
		arg("-device")
		arg("nvme,id=" name ",bus=" parent ",serial=" name ",drive=" \
		    name "-disk")
	}
	devices[ndevices++] = line " image=" disk
	next
}

{ die("\"" kind "\" is no kind of device (q35, root-port, switch, gpu, nvme)") }

END {
	if (failed)
		exit 2
	if (!have_machine) {
		printf "%s: there is no machine in it\n", FILENAME > "/dev/stderr"
		exit 2
	}
	if (mode == "devices")
		for (i = 0; i < ndevices; i++)
			print devices[i]
	else
		for (i = 0; i < nargs; i++)
			print args[i]
}

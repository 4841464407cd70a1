# SPDX-License-Identifier: MIT
#
# The devices of a machine (topology.awk, mode=devices) to a tree of text or
# to SVG; scenarios/draw calls it, with tree.awk.

function count(n, one, more) {
	return n " " (n == 1 ? one : more)
}

# What stands behind a device's name
function words(dev, kind) {
	kind = kind_of[dev]
	if (kind == "host-bridge")
		return "host bridge" (key["nodes"] > 1 ? ", NUMA node " of[dev, "node"] : "")
	if (kind == "root-port")
		return "root port"
	if (kind == "switch")
		return "switch, model " of[dev, "model"] ((dev, "gen") in of ? \
		    ", modelled links: generation " of[dev, "gen"] ", x" of[dev, "width"] : "")
	if (kind == "gpu")
		return "GPU, VRAM " of[dev, "vram"] ", BAR1 " of[dev, "bar1"] \
			(of[dev, "coherent"] == "on" ? ", coherent window" : "")
	if (kind == "cx")
		return "ConnectX, LID " of[dev, "lid"]
	return "NVMe drive, image " of[dev, "image"]
}

function acs_words(acs) {
	if (acs == "off")
		return "no ACS"
	if (acs == "redirect")
		return "ACS redirect left on by firmware"
	return "ACS redirect " (key["iommu"] == "off" ? "off" : \
	    "turned on by Linux for the IOMMU")
}

function print_line(indent, last, text) {
	print indent (last ? "`-- " : "|-- ") text
}

function deeper(indent, last) {
	return indent (last ? "    " : "|   ")
}

# A port and what it holds
function print_port(name, indent, last, text) {
	print_line(indent, last, name "  " text (name in below ? "" : ", empty"))
	if (name in below)
		print_device(below[name], deeper(indent, last), 1)
}

function print_device(dev, indent, last, i, n) {
	if (kind_of[dev] == "root-port") {
		print_port(dev, indent, last, "root port")
		return
	}
	print_line(indent, last, dev "  " words(dev))
	indent = deeper(indent, last)
	if (kind_of[dev] == "switch") {
		n = of[dev, "ports"]
		for (i = 0; i < n; i++)
			print_port(dev "." i, indent, i == n - 1, \
			    "port, " acs_words(of[dev, "acs"]))
		return
	}
	for (i = 0; i < nchildren[dev]; i++)
		print_device(child[dev, i], indent, i == nchildren[dev] - 1)
}

function iommu_words() {
	if (key["iommu"] == "off")
		return "no IOMMU"
	return "IOMMU " (key["iommu"] == "translated" ? "translates" : \
	    "passes through") " (" params ")"
}

function print_text(i, n) {
	print name ": " title
	print ""
	print "root complex  " count(key["cpus"], "processor", "processors") \
	    " " key["cpu"] ", " iommu_words()
	n = nchildren["pcie.0"]
	print_line("", !n, "memory  " key["memory"] (key["nodes"] > 1 ? \
	    ", and the processors, in " key["nodes"] " equal NUMA nodes" : ""))
	for (i = 0; i < n; i++)
		print_device(child["pcie.0", i], "", i == n - 1)
}

function print_svg(i, dev, svg) {
	tree_reset()
	for (i = 0; i < nlines; i++)
		tree_device(lines[i])
	for (i = 0; i < tree_n; i++) {
		dev = tree_order[i]
		if (tree_port[dev] ~ /\.[0-9]+$/ && tree_up[dev] != "host")
			tree_note(dev, tree_port[dev], "")
	}
	svg = tree_svg("machine", "Topology " name, title ". CPU " key["cpu"] ", " \
	    iommu_words() ".")
	i = index(svg, "</desc>\n") + 7
	print "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
	print "<!-- SPDX-License-Identifier: MIT -->"
	print substr(svg, 1, i) "<style>\n" tree_css() \
	    "svg{background:var(--paper)}\n</style>"
	printf "%s", substr(svg, i + 1)
}

BEGIN {
	# -v would take backslashes for escapes
	name = ENVIRON["NAME"]
	title = ENVIRON["TITLE"]
}

{
	lines[nlines++] = $0
	kind_of[$1] = $2
	for (i = 4; i <= NF; i++) {
		at = index($i, "=")
		of[$1, substr($i, 1, at - 1)] = substr($i, at + 1)
		if ($2 == "q35")
			key[substr($i, 1, at - 1)] = substr($i, at + 1)
	}
	if ($2 == "host-bridge" || $2 == "root-port")
		child[$3, nchildren[$3]++] = $1
	else
		below[$3] = $1
}

END {
	if (mode == "svg")
		print_svg()
	else
		print_text()
}

# SPDX-License-Identifier: MIT
#
# The tree of a machine's devices, and its drawing: functions for report.awk and
# draw.awk (awk -f tree.awk -f …).
#
#	tree_reset()				a new machine
#	tree_device(LINE)			a line of topology.awk, mode=devices
#	tree_stroke(NODE, CLASS, SHARE, TITLE)	what the link above NODE carried, as a
#						stroke as thick as SHARE (0 to 1)
#	tree_note(NODE, ABOVE, BELOW)		words on that link
#	tree_svg(ID, TITLE, DESC)		the drawing
#	tree_css()				its style rules
#
# The nodes are tree_order[0 … tree_n - 1], parents first; tree_kind, tree_up
# (the parent node; "host" is the root complex), tree_port (the parent as
# written: "sw0.1"), tree_title, tree_text, tree_nchild and tree_child[NODE, i]
# are by node.

function tree_esc(s) {
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	gsub(/"/, "\\&quot;", s)
	return s
}

function tree_human(n) {
	if (n >= 1073741824)
		return sprintf("%.1f GiB", n / 1073741824)
	if (n >= 1048576)
		return sprintf("%.1f MiB", n / 1048576)
	if (n >= 1024)
		return sprintf("%.1f KiB", n / 1024)
	return sprintf("%d B", n)
}

function tree_reset() {
	split("", tree_order); split("", tree_kind); split("", tree_up)
	split("", tree_port); split("", tree_title); split("", tree_text)
	split("", tree_child); split("", tree_nchild); split("", tree_x)
	split("", tree_y); split("", tree_strokes); split("", tree_above)
	split("", tree_below)
	tree_n = tree_rows = tree_deepest = 0
	tree_body = ""
}

function tree_add(name, kind, parent, title, text,    up) {
	up = parent
	sub(/\.[0-9]+$/, "", up)
	if (up == "pcie")
		up = "host"
	tree_order[tree_n++] = name
	tree_kind[name] = kind
	tree_up[name] = up
	tree_port[name] = parent
	tree_title[name] = title
	tree_text[name] = text
	tree_child[up, tree_nchild[up]++] = name
}

# Root complex and host memory are nodes too
function tree_device(line,    word, n, i, at, value, kind, text) {
	n = split(line, word, " ")
	kind = word[2]
	for (i = 4; i <= n; i++) {
		at = index(word[i], "=")
		value[substr(word[i], 1, at - 1)] = substr(word[i], at + 1)
	}
	if (kind == "q35") {
		tree_title["host"] = "root complex"
		text = "CPU " value["cpu"]
		if (value["iommu"] != "off")
			text = text ", IOMMU " (value["iommu"] == "translated" ? "on" : "pt")
		tree_text["host"] = text
		tree_kind["host"] = "host"
		tree_add("memory", "memory", "pcie.0", "host memory", value["memory"])
		return
	}
	text = kind
	if (kind == "root-port")
		text = "root port"
	else if (kind == "host-bridge")
		text = "host bridge, node " value["node"]
	else if (kind == "cx")
		text = "ConnectX, LID " value["lid"]
	else if (kind == "nvme")
		text = "NVMe drive"
	else if (kind == "switch")
		text = value["model"] == "x3130" ? "switch x3130" : \
		    "switch, ACS " value["acs"]
	else if (kind == "gpu")
		text = "GPU " value["vram"] ", BAR1 " value["bar1"]
	tree_add(word[1], kind, word[3], \
	    word[1] (value["coherent"] == "on" ? " (coherent)" : ""), text)
}

function tree_stroke(name, class, share, title) {
	tree_strokes[name]++
	tree_strokes[name, tree_strokes[name], "class"] = class
	tree_strokes[name, tree_strokes[name], "width"] = 1.5 + 7.5 * share
	tree_strokes[name, tree_strokes[name], "title"] = title
}

function tree_note(name, above, below) {
	tree_above[name] = above
	tree_below[name] = below
}

# A device to a row, its parent beside the middle of its children
function tree_place(name, level,    i, n) {
	if (level > tree_deepest)
		tree_deepest = level
	tree_x[name] = 10 + 264 * level
	n = tree_nchild[name]
	if (!n) {
		tree_y[name] = 10 + 64 * tree_rows++
		return
	}
	for (i = 0; i < n; i++)
		tree_place(tree_child[name, i], level + 1)
	tree_y[name] = (tree_y[tree_child[name, 0]] + \
	    tree_y[tree_child[name, n - 1]]) / 2
}

function tree_path(class, width, x1, y1, x2, y2, title,    path) {
	path = y1 == y2 ? sprintf("M%d %dH%d", x1, y1, x2) : \
	    sprintf("M%d %dH%dV%dH%d", x1, y1, x1 + 12, y2, x2)
	tree_body = tree_body sprintf("<path class=\"%s\" stroke-width=\"%.1f\" d=\"%s\">%s</path>\n", \
	    class, width, path, title == "" ? "" : "<title>" tree_esc(title) "</title>")
}

# The strokes of a link lie beside each other
function tree_link(name,    n, i, all, at, w) {
	n = tree_strokes[name]
	if (!n)
		tree_path("idle", 1, tree_x[tree_up[name]] + 150, \
		    tree_y[tree_up[name]] + 22, tree_x[name], tree_y[name] + 22, "")
	for (i = 1; i <= n; i++)
		all += tree_strokes[name, i, "width"] + (i > 1)
	at = -all / 2
	for (i = 1; i <= n; i++) {
		w = tree_strokes[name, i, "width"]
		tree_path(tree_strokes[name, i, "class"], w, \
		    tree_x[tree_up[name]] + 150, tree_y[tree_up[name]] + 22 + at + w / 2, \
		    tree_x[name], tree_y[name] + 22 + at + w / 2, \
		    tree_strokes[name, i, "title"])
		at += w + 1
	}
	if (tree_above[name] != "")
		tree_say("bytes", tree_x[name] - 6, tree_y[name] + 21 - all / 2 - 3, \
		    tree_above[name])
	if (tree_below[name] != "")
		tree_say("bytes", tree_x[name] - 6, tree_y[name] + 22 + all / 2 + 13, \
		    tree_below[name])
}

function tree_say(class, x, y, text) {
	tree_body = tree_body sprintf("<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", \
	    class, x, y, tree_esc(text))
}

function tree_box(name) {
	tree_body = tree_body sprintf("<rect class=\"box %s\" x=\"%d\" y=\"%d\" width=\"150\" height=\"44\" rx=\"6\"/>\n", \
	    tree_esc(tree_kind[name]), tree_x[name], tree_y[name])
	tree_say("name", tree_x[name] + 75, tree_y[name] + 18, tree_title[name])
	tree_say("more", tree_x[name] + 75, tree_y[name] + 35, tree_text[name])
}

function tree_svg(id, title, desc,    i) {
	tree_place("host", 0)
	for (i = 0; i < tree_n; i++)
		tree_link(tree_order[i])
	tree_box("host")
	for (i = 0; i < tree_n; i++)
		tree_box(tree_order[i])
	# not by sprintf: its buffer is small in some awks
	return "<svg xmlns=\"http://www.w3.org/2000/svg\"" \
	    sprintf(" viewBox=\"0 0 %d %d\" width=\"%d\" style=\"min-width:%dpx\"", 264 * tree_deepest + 170, \
	    64 * tree_rows, 264 * tree_deepest + 170, .8 * (264 * tree_deepest + 170)) \
	    sprintf(" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n", id, id) \
	    "<title id=\"" id "-t\">" tree_esc(title) "</title>\n<desc id=\"" id "-d\">" \
	    tree_esc(desc) "</desc>\n" tree_body "</svg>\n"
}

function tree_css() {
	return ":root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--rule:#d0d7de;--paper:#fff;--box:#f6f8fa;--peer:#1a7f37;--root:#9a6700;--host:#cf222e;--drive:#0969da}\n" \
	    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--rule:#3d444d;--paper:#0d1117;--box:#151b23;--peer:#3fb950;--root:#d29922;--host:#ff7b72;--drive:#4493f8}}\n" \
	    "svg{max-width:100%;height:auto}svg text{fill:var(--ink);font:14px system-ui,sans-serif;text-anchor:middle}\n" \
	    "svg text.more{fill:var(--dim);font-size:12px}svg text.bytes{text-anchor:end;font-size:12px;font-weight:600}\n" \
	    "svg path{fill:none}.box{fill:var(--box);stroke:var(--rule);stroke-width:1.5}.box.gpu{stroke:var(--peer);stroke-width:2.5}.box.nvme,.box.cx{stroke:var(--drive);stroke-width:2.5}\n" \
	    "path.idle{stroke:var(--rule)}path.peer{stroke:var(--peer)}path.redirected{stroke:var(--root);stroke-dasharray:24 3}path.host{stroke:var(--host);stroke-dasharray:8 3}path.unknown{stroke:var(--dim);stroke-dasharray:4 4}\n"
}

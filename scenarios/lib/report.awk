# SPDX-License-Identifier: MIT
#
# Facts about scenario runs, one to a line (see scenarios/report), to a page.

function esc(s) {
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	gsub(/"/, "\\&quot;", s)
	return s
}

function human(n) {
	if (n >= 1073741824)
		return sprintf("%.1f GiB", n / 1073741824)
	if (n >= 1048576)
		return sprintf("%.1f MiB", n / 1048576)
	if (n >= 1024)
		return sprintf("%.1f KiB", n / 1024)
	return sprintf("%d B", n)
}

function reset(    key) {
	split("", kind); split("", up); split("", label); split("", titled); split("", child)
	split("", nchild); split("", x); split("", depth); split("", peer)
	split("", staged); split("", order)
	nnodes = 0
	leaves = 0
	deepest = 0
	body = ""
	transfers = ""
	routes = ""
}

function add_node(name, what, parent, text, title) {
	sub(/\.[0-9]+$/, "", parent)
	if (parent == "pcie" || parent == "pcie.0")
		parent = "host"
	order[nnodes++] = name
	kind[name] = what
	up[name] = parent
	label[name] = text
	titled[name] = title
	child[parent, nchild[parent]++] = name
}

# Leaves left to right, a parent over the middle of its children
function place(name, level,    i, sum) {
	depth[name] = level
	if (level > deepest)
		deepest = level
	if (!nchild[name]) {
		x[name] = 90 + 170 * leaves++
		return
	}
	for (i = 0; i < nchild[name]; i++) {
		place(child[name, i], level + 1)
		sum += x[child[name, i]]
	}
	x[name] = sum / nchild[name]
}

# Bytes of one route, on every link between its two ends
function carry(from, to, bytes, through_memory,    a, b, on) {
	split("", on)
	for (a = from; a in up; a = up[a])
		on[a] = 1
	for (b = to; b in up; b = up[b])
		if (b in on)
			delete on[b]
		else
			on[b] = 1
	for (a in on)
		if (through_memory)
			staged[a] += bytes
		else
			peer[a] += bytes
}

function line(x1, y1, x2, y2, class, width, text) {
	body = body sprintf("<line class=\"%s\" stroke-width=\"%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"><title>%s</title></line>\n", \
	    class, width, x1, y1, x2, y2, esc(text))
}

function thick(bytes) {
	return bytes ? 3 + int(log(bytes) / log(16)) : 1
}

function link(name,    x1, y1, x2, y2, note, mid) {
	x1 = x[up[name]]
	y1 = 74 + 100 * depth[up[name]]
	x2 = x[name]
	y2 = 30 + 100 * depth[name]
	if (!peer[name] && !staged[name])
		line(x1, y1, x2, y2, "idle", 1, name ": no file data")
	if (staged[name])
		line(x1 + 5 * (peer[name] > 0), y1, x2 + 5 * (peer[name] > 0), y2, \
		    "staged", thick(staged[name]), \
		    name ": " human(staged[name]) " through host memory")
	if (peer[name])
		line(x1 - 5 * (staged[name] > 0), y1, x2 - 5 * (staged[name] > 0), y2, \
		    "peer", thick(peer[name]), name ": " human(peer[name]) " between devices")
	note = peer[name] + staged[name]
	if (note) {
		mid = (y1 + y2) / 2 + 4
		body = body sprintf("<text class=\"bytes%s\" x=\"%d\" y=\"%d\">%s</text>\n", \
		    x2 < x1 ? " left" : "", (x1 + x2) / 2 + (x2 < x1 ? -12 : 12), \
		    mid, human(note))
	}
}

function box(name, cx, cy, class, text, more) {
	body = body sprintf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"150\" height=\"44\" rx=\"6\"/>\n", class, cx - 75, cy)
	body = body sprintf("<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", cx, cy + 18, esc(text))
	body = body sprintf("<text class=\"more\" x=\"%d\" y=\"%d\">%s</text>\n", cx, cy + 35, esc(more))
}

function draw(    i, name, width, height, mx, id, used, svg) {
	place("host", 0)
	mx = x["host"] + 190
	width = 170 * leaves + 10
	if (width < mx + 90)
		width = mx + 90
	height = 100 * deepest + 90
	id = "d" nruns
	used = staged["memory"]
	if (used) {
		line(x["host"] + 75, 52, mx - 75, 52, "staged", thick(used), \
		    "host memory: " human(used))
		body = body sprintf("<text class=\"bytes\" x=\"%d\" y=\"20\">%s</text>\n", \
		    x["host"] + 70, human(used))
	} else
		line(x["host"] + 75, 52, mx - 75, 52, "idle", 1, "host memory: no file data")
	for (i = 0; i < nnodes; i++)
		link(order[i])
	box("host", x["host"], 30, "box", "root complex", "CPU")
	box("memory", mx, 30, used ? "box hot" : "box", "host memory", used ? human(used) : "no file data")
	for (i = 0; i < nnodes; i++) {
		name = order[i]
		box(name, x[name], 30 + 100 * depth[name], "box " kind[name], titled[name], label[name])
	}
	svg = sprintf("<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n", width, height, width, id, id)
	svg = svg sprintf("<title id=\"%s-t\">Topology %s</title>\n<desc id=\"%s-d\">", id, esc(topology), id)
	for (i = 0; i < nroutes; i++)
		svg = svg esc(said[i]) ". "
	return svg "</desc>\n" body "</svg>\n"
}

BEGIN {
	FS = "\t"
	print "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
	print "<meta name=\"viewport\" content=\"width=device-width\">"
	print "<title>Peerlane: where the bytes went</title>\n<style>"
	print ":root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--rule:#d0d7de;--paper:#fff;--box:#f6f8fa;--peer:#1a7f37;--staged:#cf222e}"
	print "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--rule:#3d444d;--paper:#0d1117;--box:#151b23;--peer:#3fb950;--staged:#ff7b72}}"
	print "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:2rem auto;padding:0 1rem}"
	print "table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--rule);vertical-align:top}"
	print "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	print ".pass{color:var(--peer);font-weight:600}.fail{color:var(--staged);font-weight:600}.skip{color:var(--dim)}"
	print "svg{max-width:100%;height:auto}svg text{fill:var(--ink);font:14px system-ui,sans-serif;text-anchor:middle}"
	print "svg text.more{fill:var(--dim);font-size:12px}svg text.bytes{text-anchor:start;font-size:13px;font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:4px}svg text.bytes.left{text-anchor:end}"
	print ".box{fill:var(--box);stroke:var(--rule);stroke-width:1.5}.gpu{stroke:var(--peer);stroke-width:2.5}.nvme{stroke:#0969da;stroke-width:2.5}.hot{stroke:var(--staged);stroke-width:2.5}"
	print "line.idle{stroke:var(--rule)}line.peer{stroke:var(--peer)}line.staged{stroke:var(--staged)}"
	print ".key{display:inline-block;width:2rem;height:.4rem;vertical-align:middle;margin:0 .4rem 0 1rem}"
	print "section{border-top:1px solid var(--rule);margin-top:2rem}p.dim{color:var(--dim)}"
	print "</style>\n</head>\n<body>\n<h1>Where the bytes went</h1>"
	print "<p>Each picture shows what the emulated devices counted: the drive&#8217;s DMA addresses, and the GPU&#8217;s own counters. Times are those of an emulated machine; they compare paths here and say nothing about hardware.</p>"
	print "<p><span class=\"key\" style=\"background:var(--peer)\"></span>between devices, no host memory"
	print "<span class=\"key\" style=\"background:var(--staged)\"></span>through host memory"
	print "<span class=\"key\" style=\"background:var(--rule)\"></span>no data</p>"
}

$1 == "run" {
	reset()
	nroutes = 0
	nruns++
	topology = $4
	head = sprintf("<section id=\"r%d\">\n<h2>%s <span class=\"%s\">%s</span></h2>\n", \
	    nruns, esc($2), esc($7), esc($7))
	if ($3 != "")
		head = head "<p>" esc($3) "</p>\n"
	head = head sprintf("<p class=\"dim\">Topology <code>%s</code>, guest kernel %s, accelerator %s, %.1f s.</p>\n", \
	    esc($4), esc($5), esc($6), $8)
	if ($9 != "")
		head = head "<p>" esc($9) "</p>\n"
	scenario = $2
	verdict = $7
	rows = 0
}

$1 == "transfer" {
	per = $4 > 0 ? sprintf("%.2f", $6 * 1073741824 / $4) : ""
	transfers = transfers sprintf("<tr><td>%s</td><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td>%s</td></tr>\n", \
	    esc($2), esc($3), human($4), human($5), per,
	    $7 == "" && $3 == "p2p" ? "nothing stood in the way" : esc($7))
	table = table sprintf("<tr><td>%s</td><td>%s</td><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"%s\">%s</td></tr>\n", \
	    rows ? "" : "<a href=\"#r" nruns "\">" esc(scenario) "</a>", esc($2), \
	    esc($3), human($4), human($5), per, esc(verdict), rows++ ? "" : esc(verdict))
}

$1 == "route" {
	said[nroutes++] = human($4) " from " $2 " to " $3 ($5 == "" ? "" : " (" $5 ")")
	from[nroutes] = $2
	to[nroutes] = $3
	amount[nroutes] = $4
}

$1 == "node" && $2 != "machine" {
	text = $3
	name = $2
	for (i = 5; i <= NF; i++)
		if ($i ~ /^(vram|bar1)=/)
			text = text " " $i
		else if ($i == "coherent=on")
			name = name " (coherent)"
	sub(/^gpu /, "", text)
	sub(/^root-port$/, "root port", text)
	sub(/^nvme$/, "NVMe drive", text)
	add_node($2, $3, $4, text, name)
}

$1 == "draw" {
	up["memory"] = "host"
	for (i = 1; i <= nroutes; i++) {
		if (!((from[i] in kind) || from[i] == "memory") || \
		    !((to[i] in kind) || to[i] == "memory")) {
			print "report.awk: a route of " scenario " ends at no device of " topology ": " from[i] " to " to[i] > "/dev/stderr"
			failed = 1
			exit 1
		}
		carry(from[i], to[i], amount[i], from[i] == "memory" || to[i] == "memory")
	}
	if (!rows)
		table = table sprintf("<tr><td><a href=\"#r%d\">%s</a></td><td></td><td></td><td></td><td></td><td></td><td class=\"%s\">%s</td></tr>\n", \
		    nruns, esc(scenario), esc(verdict), esc(verdict))
	sections = sections head draw()
	if (transfers != "")
		sections = sections "<table><thead><tr><th>transfer</th><th>path</th><th class=\"n\">bytes</th><th class=\"n\">through host memory</th><th class=\"n\">CPU s per GiB</th><th>why this path</th></tr></thead><tbody>\n" transfers "</tbody></table>\n"
	if (nroutes) {
		sections = sections "<ul>\n"
		for (i = 0; i < nroutes; i++)
			sections = sections "<li>" esc(said[i]) "</li>\n"
		sections = sections "</ul>\n"
	}
	sections = sections "</section>\n"
}

END {
	if (failed)
		exit 1
	print "<table><thead><tr><th>scenario</th><th>transfer</th><th>path</th><th class=\"n\">bytes</th><th class=\"n\">through host memory</th><th class=\"n\">CPU s per GiB</th><th>verdict</th></tr></thead><tbody>"
	printf "%s</tbody></table>\n%s</body>\n</html>\n", table, sections
}

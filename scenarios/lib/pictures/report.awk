# SPDX-License-Identifier: MIT
#
# Facts about scenario runs, one to a line (see scenarios/report), to a page.
# Used with tree.awk, wire.awk and times.awk.

# What was not counted has no bytes, and is said so
function said(bytes) {
	return bytes == "" ? "not counted" : tree_human(bytes)
}

function cell(text, class) {
	return "<td" (class == "" ? "" : " class=\"" class "\"") ">" text "</td>"
}

# The first row of a table: names with tabs between; of numbers they begin with "#"
function columns(names,    i, n, name, text) {
	n = split(names, name, "\t")
	for (i = 1; i <= n; i++)
		text = text (sub(/^#/, "", name[i]) ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">") \
		    tree_esc(name[i]) "</th>"
	return "<thead><tr>" text "</tr></thead>"
}

# A table or drawing may be wider than the window: then it scrolls, by keys too
function wide(what, name) {
	return "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"" \
	    tree_esc(name) "\">" what "</div>\n"
}

function table_of(class, caption, names, rows,    text) {
	text = "<table" (class == "" ? "" : " class=\"" class "\"") "><caption>" \
	    tree_esc(caption) "</caption>" columns(names) "<tbody>\n" rows "</tbody></table>"
	sub(/[;:].*/, "", caption)
	return wide(text, caption)
}

function reset() {
	transfers = routes = hosts = hosts_drawn = wires = host = plot = same_as = ""
	nstaged = ndirect = moved = through = 0
	rows = nhosts = 0
	reset_machine()
}

function reset_machine() {
	tree_reset()
	times_reset()
	links = modelled = requesters = said_of_links = ""
	nlinks = most = memory_up = memory_down = 0
	memory_known = 1
	split("", carried)
}

# One kind of bytes on one link; the largest in the machine is the thickest
function carry(node, kind, bytes) {
	carried[node, kind] += bytes
	if (carried[node, kind] > most)
		most = carried[node, kind]
}

function strokes(node,    i, kind, bytes, text) {
	for (i = 1; i <= nkinds; i++) {
		kind = kinds[i]
		bytes = carried[node, kind]
		if (bytes > 0) {
			text = node ": " tree_human(bytes) " " meaning[kind]
			tree_stroke(node, kind, bytes / most, text)
			said_of_links = said_of_links text ". "
		}
	}
}

function draw(    i, node, desc) {
	if (memory_known) {
		carry("memory", "host", memory_up + memory_down)
		if (memory_up + memory_down)
			tree_note("memory", "\342\206\220 " tree_human(memory_up), \
			    "\342\206\222 " tree_human(memory_down))
	} else
		tree_note("memory", "not counted", "")
	for (i = 0; i < tree_n; i++)
		strokes(tree_order[i])
	for (i = 1; i <= nroutes && host == ""; i++)
		desc = desc route[i] ". "
	return wide(tree_svg("d" nruns "h" nhosts, (host == "" ? "" : "Host " host ", ") "topology " \
	    (host == "" ? topology : topology_of), desc said_of_links), "drawing")
}

function link_tables(    text, i) {
	if (nlinks)
		text = table_of("links", "What each link carried; of two numbers, the first went up, towards the root complex, the second down", \
		    "link\t#up\t#down\t#between devices in a switch\t#between devices through the root complex\t#host memory\t#refused\tcounted by", links)
	else
		text = "<p class=\"dim\">Nothing was counted on the links.</p>\n"
	if (modelled != "")
		text = text table_of("links", "Modelled links: what a link of this speed would have needed; nothing was measured, and nothing delayed. Of two numbers, the first is up, the second down", \
		    "link\t#modelled speed and latency\t#payload\t#modelled bytes on the link\t#modelled time busy\t#modelled time queued (all transfers)", modelled) \
		    (requesters == "" ? "" : "<ul>\n" requesters "</ul>\n")
	for (i = 1; i <= times_labels; i++)
		text = text "<h4>Modelled time line: " tree_esc(times_label[i]) "</h4>\n" \
		    wide(times_svg("t" nruns "h" nhosts "l" i, times_label[i]), "modelled time line of " times_label[i])
	if (times_labels)
		text = text "<p class=\"dim\">The higher a bar, the longer the link was busy in that time. The times are the link model's; nothing was measured, and nothing delayed.</p>\n"
	return text
}

BEGIN {
	FS = "\t"
	nkinds = split("peer redirected host unknown", kinds, " ")
	meaning["peer"] = "between devices, turned round in a switch"
	meaning["redirected"] = "between devices, through the root complex"
	meaning["host"] = "from or to host memory"
	meaning["unknown"] = "between devices"
	path_is["p2p"] = "straight between a device and the GPU&#8217;s memory, through its aperture"
	path_is["kernel"] = "straight between a device and the GPU&#8217;s memory, by the kernel module <code>peerlane</code>"
	path_is["coherent"] = "straight, by the coherent window that shows the GPU&#8217;s memory to the processor"
	path_is["bounce"] = "staged: copied through host memory"
	path_is["posix"] = "memory of the host, without a GPU"
	path_is["cache"] = "the GPU&#8217;s engine read the page cache, in host memory"
	path_is["host"] = "from or to host memory, counted by the device: no program reported a path"
	path_is["mixed"] = "part of the bytes went one way, part another"
	print "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>"
	print "<meta name=\"viewport\" content=\"width=device-width\"/>"
	print "<title>Peerlane: where the bytes went</title>\n<style>"
	printf "%s", tree_css()
	print "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:68rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}"
	print "table{border-collapse:collapse;width:100%;margin:1rem 0}caption{text-align:left;color:var(--dim)}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--rule);vertical-align:top}"
	print "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}table.links{font-size:14px}td:first-child,td:nth-child(2){white-space:nowrap}.wide{overflow-x:auto}"
	# what is wider than the screen says so
	print "@media screen and (max-width:40rem){.wide::after{content:\"wider than the screen: scroll sideways\";position:sticky;left:0;color:var(--dim);font-size:14px}}"
	# there a transfer, its path and its bytes through host memory stand first and need no scrolling; report-layout.sh adds the widths up
	print "@media screen and (max-width:40rem){table.first{table-layout:fixed;width:40rem;font-size:14px}table.first th,table.first td{box-sizing:border-box;padding:.3rem .25rem;white-space:normal}"
	print ".first th:nth-child(1){width:66px}.first th:nth-child(2){width:68px}.first th:nth-child(3){width:70px}.first th:nth-child(4){width:150px}"
	print ".first.all th:nth-child(1){width:93px}.first.all th:nth-child(2){width:66px}.first.all th:nth-child(3){width:68px}.first.all th:nth-child(4){width:70px}.first.all th:nth-child(5){width:61px}}"
	print ".pass{color:var(--peer);font-weight:600}.fail{color:var(--host);font-weight:600}.skip{color:var(--dim)}"
	print ".key{display:inline-block;width:2rem;height:.4rem;vertical-align:middle;margin:0 .4rem 0 1rem}"
	printf "%s", wire_css()
	printf "%s", times_css()
	print ".key.dashed{height:0;border-top:3px dashed var(--dim)}.wide:focus-visible{outline:2px solid var(--drive)}table{min-width:30rem}"
	# two columns, one below the other where there is no room
	print ".beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:0 2rem}.beside>div{min-width:0}"
	print "section{border-top:1px solid var(--rule);margin-top:2rem}p.dim{color:var(--dim)}.plot{min-width:48rem;width:100%;background:#fff}"
	# on paper nothing scrolls, and a drawing stays on one page
	print "@media print{body{margin:0;max-width:none;font-size:11px;print-color-adjust:exact}.wide{overflow:visible}table,table.links{min-width:0;font-size:9px}svg,.plot{min-width:0!important;max-height:24cm}svg,tr{break-inside:avoid}h2,h3,caption{break-after:avoid}}"
	print "</style>\n</head>\n<body>\n<main>\n<h1>Where the bytes went</h1>"
	print "<p>The pictures show what the emulated devices counted: ports of switches, GPUs, and the drive&#8217;s DMA addresses. A line is as thick as the bytes that it stands for; &#8592; is towards the root complex. Times are those of an emulated machine; they compare paths here and say nothing about hardware.</p>"
	print "<p><span class=\"key\" style=\"background:var(--peer)\"></span>between devices, turned round in a switch"
	print "<span class=\"key\" style=\"background:repeating-linear-gradient(90deg,var(--root) 0 24px,transparent 24px 27px)\"></span>between devices, through the root complex"
	print "<span class=\"key\" style=\"background:repeating-linear-gradient(90deg,var(--host) 0 8px,transparent 8px 11px)\"></span>from or to host memory"
	print "<span class=\"key\" style=\"background:var(--drive)\"></span>on the wire between hosts"
	print "<span class=\"key dashed\"></span>between devices, and not known which way"
	print "<span class=\"key\" style=\"background:var(--rule)\"></span>nothing, or not counted</p>"
}

# matrix, topology, scenario@kernel, read, write, expected, verdict, why
$1 == "matrix" {
	if (!($2 in have))
		have[$2] = rowname[++nrows] = $2
	if (!($3 in have))
		have[$3] = columnname[++ncolumns] = $3
	at_cell[$2, $3] = cell(tree_esc($4 == $5 ? $4 : $4 " / " $5) \
	    ($7 == "pass" ? "" : " (expected " tree_esc($6) ")"), tree_esc($7))
	if ($7 != "pass")
		whys = whys "<li>" tree_esc($2 ", " $3 ": " $8) "</li>\n"
}

function matrix(    i, j, names, text) {
	names = "topology"
	for (j = 1; j <= ncolumns; j++)
		names = names "\t" columnname[j]
	for (i = 1; i <= nrows; i++) {
		text = text "<tr>" cell(tree_esc(rowname[i]))
		for (j = 1; j <= ncolumns; j++)
			text = text ((rowname[i], columnname[j]) in at_cell ? \
			    at_cell[rowname[i], columnname[j]] : cell(""))
		text = text "</tr>\n"
	}
	return table_of("", "The path of each scenario (and kernel) on each topology; p2p-root: peer to peer through the root complex", \
	    names, text) (whys == "" ? "" : "<ul>\n" whys "</ul>\n")
}

$1 == "run" {
	reset()
	nroutes = 0
	nruns++
	topology = $4
	kernel = $5
	same_as = $10
	head = sprintf("<section id=\"r%d\">\n<h2>%s <span class=\"%s\">%s</span></h2>\n", \
	    nruns, tree_esc($2), tree_esc($7), tree_esc($7))
	if ($3 != "")
		head = head "<p>" tree_esc($3) "</p>\n"
	head = head sprintf("<p class=\"dim\">Topology <code>%s</code>, guest kernel %s, accelerator %s, %.1f s.</p>\n", \
	    tree_esc($4), tree_esc($5), tree_esc($6), $8)
	if ($9 != "")
		head = head "<p>" tree_esc($9) "</p>\n"
	scenario = $2
	verdict = $7
	ended[verdict]++
}

$1 == "transfer" {
	per = $4 > 0 && $6 != "" ? sprintf("%.2f", $6 * 1073741824 / $4) : ""
	taken[$3] = 1
	moved += $4
	through += $5
	if ($5 > 0 || $3 ~ /^(bounce|posix|cache|mixed|host)$/)
		nstaged++
	else if ($3 ~ /^(p2p|kernel|coherent)$/)
		ndirect++
	if ($7 != "")
		staged($2, $3, $7, $8, $5)
	transfers = transfers "<tr>" cell(tree_esc($2)) cell(tree_esc($3)) \
	    cell(tree_human($5), "n") cell($7 == "" && $3 == "p2p" ? "nothing stood in the way" : tree_esc($7)) \
	    cell(tree_esc($8)) cell(tree_human($4), "n") cell(per, "n") "</tr>\n"
	table = table "<tr>" \
	    cell(rows ? "" : "<a href=\"#r" nruns "\">" tree_esc(scenario) "</a>") \
	    cell(tree_esc($2)) cell(tree_esc($3)) cell(tree_human($5), "n") \
	    cell(rows ? "" : tree_esc(verdict), tree_esc(verdict)) cell(tree_human($4), "n") cell(per, "n") \
	    cell(rows ? "" : tree_esc(topology)) "</tr>\n"
	rows++
}

$1 == "route" {
	route[++nroutes] = tree_human($4) " from " $2 " to " $3 ($5 == "" ? "" : " (" $5 ")")
	routes = routes "<li>" tree_esc(route[nroutes]) "</li>\n"
}

$1 == "device" { tree_device($2) }

# link, node below, up, down, peer up and down, redirected, host, refused, from
$1 == "link" {
	node = $3
	if (!(node in tree_kind)) {
		print program ": the result of " scenario " is not whole: its link " $2 " leads to " node ", which is none of its devices; run the scenario again with --json" > "/dev/stderr"
		failed = 1
		exit 1
	}
	nlinks++
	links = links "<tr>" cell(tree_esc($2) " \342\200\223 " tree_esc(node)) \
	    cell(said($4), "n") cell(said($5), "n") \
	    cell(said($6) "<br/>" said($7), "n") cell(said($8) "<br/>" said($9), "n") \
	    cell(said($10) "<br/>" said($11), "n") cell(said($12), "n") \
	    cell($13 == "" ? "nobody" : tree_esc($13)) "</tr>\n"
	if ($4 == "" || $5 == "")
		tree_note(node, "not counted", "")
	else if ($4 + $5)
		tree_note(node, "\342\206\220 " tree_human($4), "\342\206\222 " tree_human($5))
	# what a root port carries goes on to the root complex and to memory
	unknown = ($6 == "" ? $4 - $10 : 0) + ($7 == "" ? $5 - $11 : 0)
	for (at = node; at == node || tree_kind[at] ~ /^(root-port|host-bridge)$/; at = tree_up[at]) {
		carry(at, "host", $10 + $11)
		carry(at, "redirected", $8 + $9)
		carry(at, "unknown", unknown)
		if (at == node)
			carry(at, "peer", $6 + $7)
	}
	if (tree_kind[tree_up[node]] == "root-port") {
		if ($10 == "" || $11 == "")
			memory_known = 0
		memory_down += $10
		memory_up += $11
	}
}

# link, node below, bytes per second, latency; payload, on the wire, busy, queued
# (up, then down)
$1 == "modelled" {
	modelled = modelled "<tr>" cell(tree_esc($2) " \342\200\223 " tree_esc($3)) \
	    cell(sprintf("%.2f GB/s, %d ns", $4 / 1e9, $5), "n") \
	    cell(tree_human($6) "<br/>" tree_human($10), "n") \
	    cell(tree_human($7) "<br/>" tree_human($11), "n") \
	    cell(sprintf("%.2f ms<br/>%.2f ms", $8 / 1e6, $12 / 1e6), "n") \
	    cell(sprintf("%.2f ms<br/>%.2f ms", $9 / 1e6, $13 / 1e6), "n") "</tr>\n"
}

# label, device, bytes per second, elapsed, payload, transfers, late
$1 == "requester" {
	requesters = requesters "<li>" tree_esc($2 ", " $3) ": modelled " \
	    ($4 == "" ? "bandwidth not known" : sprintf("%.2f GB/s", $4 / 1e9)) \
	    sprintf(", %s in modelled %.2f ms; the emulator was late with %d of %d transfers</li>\n", \
	    tree_human($6), $5 / 1e6, $8, $7)
}

# label, link, node below, up or down, when the first slice began, how long each is, busy in each
$1 == "when" { times_add($2, $3, $4, $5, $6, $7, $8) }

$1 == "host" {
	reset_machine()
	host = $2
	hostname[++nhosts] = host
	topology_of = $3
}

$1 == "hosted" {
	drawing = draw()
	hosts_drawn = hosts_drawn "<h4>Host " tree_esc(host) "</h4>\n" drawing
	hosts = hosts "<h3>Host " tree_esc(host) "</h3>\n<p class=\"dim\">Topology <code>" \
	    tree_esc(topology_of) "</code>.</p>\n" drawing link_tables()
}

# label, host; sent: frames, RoCE payload, of it for the first time, frames again,
# dropped; received: frames, RoCE payload, dropped, overtaken
$1 == "wire" {
	if ($2 == "total") {
		wire_sent[$3] = $5
		wire_received[$3] = $10
		wire_words[$3] = sprintf("host %s sent %d frames with %s of RoCE payload, %d of them again, %d were dropped; it received %d frames with %s, %d were dropped", \
		    $3, $4, tree_human($5), $7, $8, $9, tree_human($10), $11)
	}
	wires = wires "<tr>" cell(tree_esc($2 == "total" ? "the whole run" : $2)) \
	    cell(tree_esc($3)) cell(frames($4), "n") cell(tree_human($5), "n") cell(tree_human($6), "n") \
	    cell(frames($7), "n") cell(frames($8), "n") cell(frames($9), "n") cell(tree_human($10), "n") \
	    cell(frames($11), "n") cell(frames($12), "n") "</tr>\n"
}

# A number, whatever the result says
function frames(n) {
	return sprintf("%d", n)
}

# title, SVG in base64: as an image it cannot run anything
$1 == "plot" {
	plot = wide("<img class=\"plot\" alt=\"" tree_esc($2) "\" src=\"data:image/svg+xml;base64," $3 "\"/>", "plot: " $2)
}

# Why a transfer was not direct, once for all transfers of a run that say the same
function staged(what, path, why, todo, bytes,    key) {
	key = nruns FS path FS why
	staged_bytes[key] += bytes
	if (staged_seen[key, what]++)
		return
	if (key in staged_what) {
		staged_what[key] = staged_what[key] ", " what
		return
	}
	staged_what[key] = what
	staged_key[++nreasons] = key
	staged_run[key] = "<a href=\"#r" nruns "\">" tree_esc(scenario) "</a>"
	staged_todo[key] = todo
}

function reasons(    i, key, part, text) {
	for (i = 1; i <= nreasons; i++) {
		key = staged_key[i]
		split(key, part, FS)
		text = text "<li>" staged_run[key] ", " tree_esc(staged_what[key]) ": <b>" tree_esc(part[2]) "</b>, <b>" \
		    tree_human(staged_bytes[key]) "</b> through host memory, because " \
		    tree_esc(part[3]) (staged_todo[key] == "" ? "" : ". <b>What to do:</b> " tree_esc(staged_todo[key])) "</li>\n"
	}
	return text == "" ? "" : "<h2>Not direct, and why</h2>\n<ul>\n" text "</ul>\n"
}

# The drawing of this run, or those of its hosts, beside that of the first run with the same transfers that went the other way
function beside(drawing,    way) {
	way = !rows ? "" : ndirect == rows ? "Direct" : nstaged == rows ? "Staged" : ""
	if (way == "" || (same_as, way) in half)
		return
	gsub("\"d" nruns "h", "\"b" nruns "h", drawing)
	gsub("#d" nruns "h", "#b" nruns "h", drawing)
	gsub(" d" nruns "h", " b" nruns "h", drawing)
	half[same_as, way] = "<div><h3>" way ": <a href=\"#r" nruns "\">" tree_esc(scenario) \
	    "</a></h3>\n<p>" tree_human(moved) ", of them <b>" tree_human(through) "</b> through host memory.</p>\n<p class=\"dim\">Topology <code>" \
	    tree_esc(topology) "</code>, guest kernel " tree_esc(kernel) ".</p>\n" drawing "</div>\n"
	if ((same_as, "Direct") in half && (same_as, "Staged") in half)
		pairs = pairs "<div class=\"beside\">\n" half[same_as, "Direct"] half[same_as, "Staged"] "</div>\n"
}

$1 == "results" { saved = $2 }

$1 == "draw" {
	if (!rows)
		table = table "<tr>" cell("<a href=\"#r" nruns "\">" tree_esc(scenario) "</a>") \
		    cell("") cell("") cell("") \
		    cell(tree_esc(verdict), tree_esc(verdict)) cell("") cell("") cell(tree_esc(topology)) "</tr>\n"
	drawing = host == "" ? draw() : wire_drawing() wire_table()
	beside(host == "" ? drawing : hosts_drawn)
	sections = sections head drawing
	if (transfers != "")
		sections = sections table_of("first", "Transfers of " scenario, \
		    "transfer\tpath\t#through host memory\twhy this path\twhat to do\t#bytes\t#emulated CPU s per GiB", transfers)
	if (routes != "")
		sections = sections "<ul>\n" routes "</ul>\n"
	sections = sections plot (host == "" ? link_tables() : hosts) "</section>\n"
}

# What came of all runs, and the words of the paths that they took
function summary(    i, n, part, text) {
	n = split("pass fail skip", part, " ")
	for (i = 1; i <= n; i++)
		if (ended[part[i]])
			text = text (text == "" ? "" : ", ") ended[part[i]] " " part[i]
	text = "<p><strong>" nruns (nruns == 1 ? " run: " : " runs: ") text ".</strong></p>\n"
	if (made != "")
		text = text "<p class=\"dim\">" tree_esc(made) ".</p>\n"
	n = split("p2p kernel coherent bounce posix cache host mixed", part, " ")
	for (i = 1; i <= n; i++)
		if (part[i] in taken)
			text = text "<p><b>" part[i] "</b>: " path_is[part[i]] ".</p>\n"
	return text
}

END {
	if (failed)
		exit 1
	print summary()
	print "<p><a download=\"peerlane-results.json\" href=\"data:application/json;base64," saved "\">Save the results as JSON</a></p>"
	print reasons()
	if (pairs != "")
		print "<h2>The same transfers, direct and staged</h2>\n" pairs
	if (nrows)
		print matrix()
	print table_of("first all", "All transfers", \
	    "scenario\ttransfer\tpath\t#through host memory\tverdict\t#bytes\t#emulated CPU s per GiB\ttopology", table) \
	    sections "</main>\n</body>\n</html>"
}

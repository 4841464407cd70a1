# SPDX-License-Identifier: MIT
#
# The wire between hosts, for report.awk: a drawing and a table.  It has put the
# hosts into hostname[1 … nhosts], RoCE payload of the whole run into
# wire_sent[HOST] and wire_received[HOST], words into wire_words[HOST], and rows of
# the table into wires.

function wire_css() {
	return "path.wire{stroke:var(--drive)}.box.wire{stroke:var(--drive);stroke-width:2.5}svg text.into{text-anchor:start}\n"
}

function wire_stroke(x, bytes, most, title) {
	tree_body = tree_body sprintf("<path class=\"%s\" stroke-width=\"%.1f\" d=\"M%d 54V120\">", \
	    bytes ? "wire" : "idle", bytes ? 1.5 + 7.5 * bytes / most : 1, x) \
	    "<title>" tree_esc(title) "</title></path>\n"
}

# Hosts below, the wire across all of them; what a host sends goes up
function wire_drawing(    i, x, most, width) {
	tree_reset()
	for (i = 1; i <= nhosts; i++) {
		if (wire_sent[hostname[i]] > most)
			most = wire_sent[hostname[i]]
		if (wire_received[hostname[i]] > most)
			most = wire_received[hostname[i]]
	}
	width = 240 * nhosts
	for (i = 1; i <= nhosts; i++) {
		x = 240 * i - 120
		wire_stroke(x - 16, wire_sent[hostname[i]], most, wire_words[hostname[i]])
		wire_stroke(x + 16, wire_received[hostname[i]], most, wire_words[hostname[i]])
		tree_say("bytes", x - 24, 91, "\342\206\221 " tree_human(wire_sent[hostname[i]]))
		tree_say("bytes into", x + 24, 91, "\342\206\223 " tree_human(wire_received[hostname[i]]))
		tree_kind[hostname[i]] = "host"
		tree_x[hostname[i]] = x - 75
		tree_y[hostname[i]] = 120
		tree_title[hostname[i]] = "host " hostname[i]
		tree_text[hostname[i]] = "10.0.0." i
		tree_box(hostname[i])
	}
	tree_body = tree_body sprintf("<rect class=\"box wire\" x=\"10\" y=\"10\" width=\"%d\" height=\"44\" rx=\"6\"/>\n", \
	    width - 20)
	tree_say("name", width / 2, 28, "wire")
	tree_say("more", width / 2, 45, "RoCE payload of the whole run")
	return "<svg xmlns=\"http://www.w3.org/2000/svg\"" \
	    sprintf(" viewBox=\"0 0 %d 176\" width=\"%d\"", width, width) \
	    sprintf(" role=\"img\" aria-labelledby=\"w%d-t\">\n", nruns) \
	    "<title id=\"w" nruns "-t\">The wire between the hosts</title>\n" \
	    tree_body "</svg>\n"
}

function wire_table() {
	return "<div class=\"wide\"><table class=\"links\"><caption>What crossed the wire, counted by the wire; frames that it dropped are not among those that passed. Between a network card and memory nobody counts: in software RDMA the processor copies, also from and to a GPU&#8217;s memory</caption><thead><tr><th>label</th><th>host</th><th class=\"n\">frames sent</th><th class=\"n\">RoCE payload</th><th class=\"n\">of it first sent</th><th class=\"n\">frames sent again</th><th class=\"n\">dropped</th><th class=\"n\">frames received</th><th class=\"n\">RoCE payload</th><th class=\"n\">dropped</th><th class=\"n\">overtaken</th></tr></thead><tbody>\n" \
	    wires "</tbody></table></div>\n"
}

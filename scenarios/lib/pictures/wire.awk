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
function wire_drawing(    i, x, most, width, words) {
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
		words = words wire_words[hostname[i]] ". "
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
	return wide("<svg xmlns=\"http://www.w3.org/2000/svg\"" \
	    sprintf(" viewBox=\"0 0 %d 176\" width=\"%d\" style=\"min-width:%dpx\"", width, width, width * .8) \
	    sprintf(" role=\"img\" aria-labelledby=\"w%d-t w%d-d\">\n", nruns, nruns) \
	    "<title id=\"w" nruns "-t\">The wire between the hosts</title>\n" \
	    "<desc id=\"w" nruns "-d\">" tree_esc(words) "</desc>\n" \
	    tree_body "</svg>", "drawing of the wire")
}

function wire_table() {
	return table_of("links", "What crossed the wire, counted by the wire; frames that it dropped are not among those that passed. Between a network card and memory nobody counts: in software RDMA the processor copies, also from and to a GPU's memory", \
	    "label\thost\t#frames sent\t#RoCE payload sent\t#of it for the first time\t#frames sent again\t#frames dropped on the way out\t#frames received\t#RoCE payload received\t#frames dropped on the way in\t#frames overtaken", wires)
}

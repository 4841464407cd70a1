# SPDX-License-Identifier: MIT
#
# When each modelled link was busy: functions for report.awk and text.awk.
#
#	times_reset()				nothing is known
#	times_add(LABEL, LINK, BELOW, WAY, FIRST, SLICE, BUSY)
#						one direction of a link: nanoseconds when the
#						first slice began, how long each is, and those
#						that it was busy in each, with blanks between
#	times_svg(ID, LABEL)			the drawing of a label: a row for each direction,
#						a bar for each slice; the highest is that
#						of the slice that was busiest, which is named
#	times_text(LABEL)			the same for a terminal; a sentence where no link
#						was busy enough to be drawn
#	times_css()				its style rules
#
# The labels are times_label[1 … times_labels].

function times_reset() {
	split("", times_rows); split("", times_label); split("", times_begin); split("", times_end); split("", times_most)
	times_labels = 0
}

function times_add(label, link, below, way, first, slice, busy,    n, i, part, row, last) {
	n = split(busy, part, " ")
	if (!(label in times_rows)) {
		times_label[++times_labels] = label
		times_begin[label] = first
		times_end[label] = 0
	}
	row = label SUBSEP (++times_rows[label])
	times_name[row] = link " \342\200\223 " below ", " way
	times_first[row] = first
	times_slice[row] = slice
	times_sum[row] = times_n[row] = 0
	for (i = 1; i <= n; i++) {
		times_busy[row, i] = part[i]
		times_sum[row] += part[i]
		if (part[i] > 0)
			times_n[row] = i
		if (part[i] / slice > times_most[label])
			times_most[label] = part[i] / slice
	}
	last = first + times_n[row] * slice
	if (first < times_begin[label])
		times_begin[label] = first
	if (last > times_end[label])
		times_end[label] = last
}

# At least a nanosecond: what is busy for less has none
function times_all(label,    all) {
	all = times_end[label] - times_begin[label]
	return all < 1 ? 1 : all
}

function times_ms(ns) {
	return sprintf(ns && ns < 1e5 ? "%.4f ms" : "%.2f ms", ns / 1e6)
}

function times_percent(share) {
	return sprintf(share < .1 ? "%.1f %%" : "%.0f %%", 100 * share)
}

# A row in words
function times_words(label, row,    all) {
	all = times_all(label)
	return times_name[row] ": busy for " times_ms(times_sum[row]) " (" times_percent(times_sum[row] / all) ")" ", between " \
	    times_ms(times_first[row] - times_begin[label]) " and " \
	    times_ms(times_first[row] + times_n[row] * times_slice[row] - times_begin[label])
}

function times_svg(id, label,    i, j, row, all, scale, y, x, w, h, text, desc) {
	all = times_all(label)
	scale = 480 / all
	for (i = 1; i <= times_rows[label]; i++) {
		row = label SUBSEP i
		y = 28 * i
		text = text sprintf("<text class=\"row\" x=\"0\" y=\"%d\">", y - 4) tree_esc(times_name[row]) "</text>\n" \
		    sprintf("<path class=\"idle\" d=\"M200 %dH680\"/>\n<g class=\"busy\"><title>", y) tree_esc(times_words(label, row)) "</title>\n"
		desc = desc times_words(label, row) ". "
		for (j = 1; j <= times_n[row]; j++) {
			x = 200 + scale * (times_first[row] + (j - 1) * times_slice[row] - times_begin[label])
			w = scale * times_slice[row]
			h = times_busy[row, j] ? 22 * times_busy[row, j] / times_slice[row] / times_most[label] : 0
			if (h > 0)
				text = text sprintf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", \
				    x, y - (h < 1 ? 1 : h), w < 1 ? 1 : w, h < 1 ? 1 : h)
		}
		text = text "</g>\n"
	}
	y = 28 * times_rows[label] + 20
	return sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 690 %d\" width=\"690\" style=\"min-width:552px\"", y + 6) \
	    sprintf(" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n", id, id) "<title id=\"" id "-t\">" \
	    tree_esc("modelled time line of " label) "</title>\n<desc id=\"" id "-d\">" tree_esc(desc) "</desc>\n" text \
	    sprintf("<text class=\"row\" x=\"200\" y=\"%d\">0</text>\n<text class=\"bytes\" x=\"680\" y=\"%d\">modelled %s; the highest bar is %s busy</text>\n</svg>\n", \
	    y, y, times_ms(all), times_percent(times_most[label]))
}

function times_text(label,    i, j, k, row, all, column, from, to, part, busy, most, text) {
	all = times_all(label)
	column = all / 60
	for (i = 1; i <= times_rows[label]; i++) {
		row = label SUBSEP i
		for (k = 0; k < 60; k++) {
			busy[i, k] = 0
			for (j = 1; j <= times_n[row]; j++) {
				from = times_first[row] - times_begin[label] + (j - 1) * times_slice[row] - k * column
				to = from + times_slice[row]
				from = from < 0 ? 0 : from
				to = to > column ? column : to
				if (to > from)
					busy[i, k] += times_busy[row, j] * (to - from) / times_slice[row]
			}
			if (busy[i, k] > most)
				most = busy[i, k]
		}
	}
	# A few commands, of which a scale to the busiest would make a full line
	if (most / column < .0005)
		return "  modelled time line of " label ": " times_ms(all) ", each link busy for less than 0.05 % of it\n"
	text = "  modelled time line of " label ": " times_ms(all) ", " times_ms(column) " in a column; busy . : - = + * #, # is " \
	    times_percent(most / column) "\n"
	for (i = 1; i <= times_rows[label]; i++) {
		# what a dash has of bytes is not what it has of columns
		part = times_name[label SUBSEP i]
		sub(/ \342\200\223 /, " - ", part)
		text = text sprintf("  %-26s|", part)
		for (k = 0; k < 60; k++) {
			j = most ? int(7 * busy[i, k] / most + .999) : 0
			text = text substr(" .:-=+*#", 1 + (j > 7 ? 7 : j), 1)
		}
		text = text "|\n"
	}
	return text
}

function times_css() {
	return "svg text.row{text-anchor:start}g.busy{fill:var(--drive)}\n"
}

# SPDX-License-Identifier: MIT
#
# What would be hard to read on a page of scenarios/report: words outside of their drawing, words over other words, letters
# below 9 px, drawings and tables that cannot scroll, pale colours, what has to be seen first and is not on a telephone.  Prints one line for each, at the end "drawings=N".
# The width of words is estimated from the widths of DejaVu Sans, which is wide.

function width_of(text, size,    i, c, w) {
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		w += c ~ /[iljtfrI.,:;'|() ]/ ? .33 : c ~ /[mwMW%]/ ? .9 : c ~ /[A-Z0-9]/ ? .65 : .6
	}
	return w * size
}

function attribute(tag, name,    at) {
	at = index(tag, " " name "=\"")
	if (!at)
		return ""
	tag = substr(tag, at + length(name) + 3)
	return substr(tag, 1, index(tag, "\"") - 1)
}

# as the Web Content Accessibility Guidelines count
function light(hex,    i, c, sum, weight) {
	split(".2126 .7152 .0722", weight, " ")
	if (length(hex) == 3)
		hex = substr(hex, 1, 1) substr(hex, 1, 1) substr(hex, 2, 1) substr(hex, 2, 1) substr(hex, 3, 1) substr(hex, 3, 1)
	for (i = 0; i < 3; i++) {
		c = (index("0123456789abcdef", substr(hex, 2 * i + 1, 1)) - 1) * 16
		c = (c + index("0123456789abcdef", substr(hex, 2 * i + 2, 1)) - 1) / 255
		sum += weight[i + 1] * (c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ^ 2.4)
	}
	return sum
}

function contrast(front, back, least,    a, b) {
	a = light(colour[front])
	b = light(colour[back])
	if (!(front in colour && back in colour) || (a > b ? a + .05 : b + .05) / (a > b ? b + .05 : a + .05) < least)
		print "pale: " front " on " back
}

# A line with :root{…} has the colours of one scheme, light or dark
/:root\{/ {
	split("", colour)
	for (rest = $0; match(rest, /--[a-z]+:#[0-9a-f]+/); rest = substr(rest, RSTART + RLENGTH)) {
		rule = substr(rest, RSTART + 2, RLENGTH - 2)
		colour[substr(rule, 1, index(rule, ":") - 1)] = substr(rule, index(rule, "#") + 1)
	}
	schemes++
	for (i = split("ink dim", front, " "); i; i--) {
		contrast(front[i], "paper", 4.5)
		contrast(front[i], "box", 4.5)
	}
	contrast("peer", "paper", 4.5)
	contrast("host", "paper", 4.5)
	contrast("root", "paper", 3)
	contrast("drive", "paper", 3)
}

/<(svg|table)[ >]/ && !/<div class="wide"[^>]*><(svg|table)[ >]/ {
	print "cannot scroll: " substr($0, 1, 60)
}

/<svg / {
	drawings++
	words = 0
	split(attribute($0, "viewBox"), box, " ")
	match($0, /min-width:[0-9]+px/)
	if (RSTART == 0 || substr($0, RSTART + 10) / box[3] * 12 < 9)
		print drawings ": small letters"
}

/^<text / {
	text = $0
	sub(/^[^>]*>/, "", text)
	sub(/<\/text>.*/, "", text)
	gsub(/&[a-z]+;/, "m", text)
	gsub("\342\206\220|\342\206\221|\342\206\222|\342\206\223", "m", text) # arrows
	class = attribute($0, "class")
	size = class == "name" ? 14 : 12
	w = width_of(text, size) * (class ~ /bytes/ ? 1.08 : 1)
	words++
	left[words] = attribute($0, "x") - (class == "bytes" ? w : class ~ /^(bytes into|row)$/ ? 0 : w / 2)
	right[words] = left[words] + w
	top[words] = attribute($0, "y") - .8 * size
	bottom[words] = attribute($0, "y") + .2 * size
	said[words] = text
	if (w == 0 || left[words] < 0 || right[words] > box[3] || top[words] < 0 || bottom[words] > box[4])
		print drawings ": outside: " text
	for (i = 1; i < words; i++)
		if (left[i] < right[words] && left[words] < right[i] && top[i] < bottom[words] && top[words] < bottom[i])
			print drawings ": overlap: " text " / " said[i]
}

# On a telephone, 390 px less the page's edges, these columns of a table of transfers are to be seen without scrolling, and their words
# fit: letters of 14 px, in heads thicker ones, and 8 px of a column around them
/^\.first/ {
	for (rest = $0; match(rest, /\.first(\.all)? th:nth-child\([0-9]+\)\{width:[0-9]+px/); rest = substr(rest, RSTART + RLENGTH)) {
		rule = substr(rest, RSTART, RLENGTH)
		column = rule
		gsub(/.*child\(|\).*/, "", column)
		sub(/.*:/, "", rule)
		wide_of[substr(rest, RSTART, 10) == ".first.all" ? "first all" : "first", column] = rule + 0
	}
}

function fits(text, column, thick,    n, part) {
	gsub(/&[a-z#0-9]+;/, "m", text)
	for (n = split(text, part, /[ -]/); n; n--)
		if (width_of(part[n], 14 * thick) > wide_of[class, column] - 8)
			print "too wide for its column on a telephone: " part[n]
}

/<table/ {
	class = attribute(substr($0, index($0, "<table")), "class")
	transfers = class ~ /^first/
	if (!transfers)
		next
	tables++
	split("", seen)
	sum = 0
	n = split($0, part, /<th [^>]*>/)
	for (i = 2; i <= n && (class, i - 1) in wide_of; i++) {
		sub(/<.*/, "", part[i])
		name_of[i - 1] = part[i]
		seen[part[i]]
		fits(part[i], i - 1, 1.1)
		if ((sum += wide_of[class, i - 1]) > 390 - 32)
			print "not seen first on a telephone: " part[i]
	}
	heads = i - 2
	for (i = split("transfer,path,through host memory" (class == "first all" ? ",verdict" : ""), part, ","); i; i--)
		if (!(part[i] in seen))
			print "not seen first on a telephone: " part[i]
}
transfers && /^<tr>/ {
	n = split($0, part, /<td[^>]*>/)
	for (i = 2; i <= heads + 1; i++)
		if (name_of[i - 1] !~ /^why/) {
			gsub(/<[^>]*>/, "", part[i])
			fits(part[i], i - 1, 1)
		}
}
/<\/table>/ { transfers = 0 }

# On a telephone the page is as wide as the screen, and a path in a reason is broken
/<meta name="viewport" content="width=device-width"/ {
	viewport = 1
}
/^body\{[^}]*overflow-wrap:anywhere/ {
	broken = 1
}

END {
	if (!viewport)
		print "wider than the screen: no viewport"
	if (!broken)
		print "wider than the screen: a long word"
	if (!tables)
		print "not seen first on a telephone: no table of transfers"
	print "schemes=" schemes " drawings=" drawings
}

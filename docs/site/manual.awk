# SPDX-License-Identifier: MIT
#
# What mandoc writes, as a part of a page: headings one level lower, and links to the other pages, whose names are in pages.

BEGIN {
	n = split(pages, name, " ")
	for (i = 1; i <= n; i++)
		have[name[i]]
}
{
	line = $0
	gsub(/<h2/, "<h3", line)
	gsub(/<\/h2>/, "</h3>", line)
	gsub(/<h1/, "<h2", line)
	gsub(/<\/h1>/, "</h2>", line)
	out = ""
	while (match(line, /<b>[A-Za-z0-9_.-]+<\/b>\([1-8]\)/)) {
		found = substr(line, RSTART, RLENGTH)
		out = out substr(line, 1, RSTART - 1)
		line = substr(line, RSTART + RLENGTH)
		to = found
		gsub(/<\/?b>|\)/, "", to)
		sub(/\(/, ".", to)
		out = out (to in have ? "<a href=\"" to ".html\">" found "</a>" : found)
	}
	print out line
}

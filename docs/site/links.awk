# SPDX-License-Identifier: MIT
#
# Links of a site's pages that lead nowhere, and what a page would fetch from a network: awk -f links.awk FILES PAGE.html…
# FILES is a list of the site's files.  The exit status says whether there are any.

BEGIN { RS = "<" }

function attribute(name,    value) {
	if (!match($0, "[ \t\n]" name "=\"[^\"]*\""))
		return ""
	value = substr($0, RSTART, RLENGTH - 1)
	sub(/^[^"]*"/, "", value)
	gsub(/&amp;/, "\\&", value)
	return value
}

function wrong(page, what) {
	print page ": " what
	bad = 1
}

# The file that a link means, seen from its page
function resolve(page, path) {
	sub(/[^\/]*$/, "", page)
	path = page path
	while (match(path, /(^|\/)\.\//))
		path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH - (RSTART > 1))
	while (match(path, /[^\/]+\/\.\.\//))
		path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
	return path
}

FNR == NR {
	n = split($0, name, "\n")
	for (i = 1; i <= n; i++)
		have[name[i]]
	next
}
{
	id = attribute("id")
	if (id != "")
		ids[FILENAME "#" id]
	link = attribute("href")
	if (link == "")
		link = attribute("src")
	if (link == "")
		next
	if (link ~ /^([a-z]+:)?\/\// || link ~ /^[a-z]+:/) {
		if ($0 !~ /^a[ \t\n]/ && link !~ /^data:/)
			wrong(FILENAME, "it would fetch " link)
		next
	}
	from[++links] = FILENAME
	to[links] = link
}
END {
	for (i = 1; i <= links; i++) {
		anchor = match(to[i], /#.*/) ? substr(to[i], RSTART + 1) : ""
		path = to[i]
		sub(/[#?].*/, "", path)
		path = path == "" ? from[i] : resolve(from[i], path)
		if (!(path in have))
			wrong(from[i], "no file for the link " to[i])
		else if (anchor != "" && path ~ /[.]html$/ && !((path "#" anchor) in ids))
			wrong(from[i], "no such place for the link " to[i])
	}
	exit bad
}

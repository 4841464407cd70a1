# SPDX-License-Identifier: MIT
#
# A document with its links as they are on the site:
#
#	awk -v file=docs/tutorial.md -v linked=LIST -f stage.awk KNOWN docs/tutorial.md
#
# KNOWN has a line TYPE<tab>PATH for each file (f) and folder (d) of the tree.  On a forge a link can lead to any of them; on the
# site a folder is its README.md, a manual page's source is the page, and another file or folder is a page below source/.
# Their names are added to LIST.  A link to something that does not exist stays, for the generator to complain about.
#
# With order=1: lines CAPTION<tab>PAGE, the documents to which the file has a link, once each, below its headings.

BEGIN { FS = "\t" }

# a/./b/../c is a/c
function normal(path,    part, n, i, kept, out) {
	n = split(path, part, "/")
	for (i = 1; i <= n; i++) {
		if (part[i] == "" || part[i] == ".")
			continue
		if (part[i] == ".." && kept)
			kept--
		else
			part[++kept] = part[i]
	}
	for (i = 1; i <= kept; i++)
		out = out (i > 1 ? "/" : "") part[i]
	return out
}

# The page for a path, or "" if the link is right as it is
function page(path) {
	if (!(path in type) || path ~ /[.](md|rst|svg|png)$/)
		return ""
	if (path ~ /^docs\/man(\/|$)/)
		return type[path] == "d" ? "docs/man/README.md" : path ".md"
	if (type[path] == "d" && (path "/README.md") in type)
		return path "/README.md"
	print path >>linked
	return "source/" path ".md"
}

function target(link,    anchor, path, to) {
	if (link ~ /^([a-z]+:|#)/)
		return link
	anchor = match(link, /#.*/) ? substr(link, RSTART) : ""
	path = normal(folder substr(link, 1, length(link) - length(anchor)))
	to = page(path)
	if (order && (to != "" ? to : path) ~ /[.](md|rst)$/)
		listed(to != "" ? to : path)
	return to == "" ? link : up to anchor
}

function listed(path) {
	if (path != "README.md" && path !~ /^source\// && path !~ /^docs\/man\/.*[.][1-8][.]md$/ && !(path in had)) {
		had[path]
		print caption FS path
	}
}

FNR == NR {
	type[$2] = $1
	next
}
FNR == 1 {
	folder = file
	sub(/[^\/]*$/, "", folder)
	up = folder
	gsub(/[^\/]+\//, "../", up)
	if (order)
		linked = "/dev/null"
}
/^ *```/ { code = !code }
order && /^## / { caption = substr($0, 4) }
code || file !~ /[.]md$/ {
	if (!order)
		print
	next
}
{
	line = $0
	out = ""
	while (match(line, /\]\([^) ]+\)/)) {
		link = substr(line, RSTART + 2, RLENGTH - 3)
		out = out substr(line, 1, RSTART + 1)
		line = substr(line, RSTART + RLENGTH)
		out = out target(link) ")"
	}
	if (!order)
		print out line
}

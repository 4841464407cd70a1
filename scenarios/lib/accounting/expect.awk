# SPDX-License-Identifier: MIT
#
# A topology's .expect file: what cells of scenarios/matrix should be.
#
#	awk -v cells='SCENARIO@KERNEL …' -v scenarios='NAME …' -f expect.awk FILE
#
# prints "SCENARIO KERNEL READ WRITE REASON" for each cell, fields separated by
# tabs.  docs/how-to/run-the-matrix.md describes the file.  Errors are one line,
# FILE:LINE: what is wrong.

function die(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 2
}

function way(text) {
	if (text !~ /^(p2p|p2p-root|kernel|coherent|bounce|posix|skip)$/)
		die("\"" text "\" is no path (p2p, p2p-root, kernel, coherent, bounce, posix, skip)")
	return text
}

BEGIN {
	ncells = split(cells, cell, " ")
	n = split(scenarios, word, " ")
	for (i = 1; i <= n; i++)
		known[word[i]] = 1
}

{ sub(/\r$/, "") }
/^[ \t]*(#|$)/ { next }

{
	if (NF < 3)
		die("a line is SCENARIO READ WRITE [REASON], and this has " NF (NF == 1 ? " word" : " words"))
	at = index($1, "@")
	name = at ? substr($1, 1, at - 1) : $1
	kernel = at ? substr($1, at + 1) : ""
	if (name != "*" && !(name in known))
		die("no scenario is called " name)
	if (at && kernel !~ /^[0-9]+[.][0-9]+$/)
		die("\"" kernel "\" is no kernel (example: " name "@6.12)")
	read = way($2)
	write = way($3)
	if ((read == "skip") != (write == "skip"))
		die("a run is skipped as a whole: read and write are skip, or neither")
	reason = $0
	sub(/^[ \t]*[^ \t]+[ \t]+[^ \t]+[ \t]+[^ \t]+[ \t]*/, "", reason)
	sub(/[ \t]+$/, "", reason)
	if (reason ~ /\t/)
		die("a reason has no tab")
	# the last line that fits counts
	for (i = 1; i <= ncells; i++) {
		split(cell[i], part, "@")
		if ((name == "*" || name == part[1]) && \
		    (kernel == "" || kernel == part[2]))
			want[i] = read "\t" write "\t" reason
	}
}

END {
	if (failed)
		exit 2
	for (i = 1; i <= ncells; i++) {
		if (!(i in want)) {
			printf "%s: no line fits %s\n", FILENAME, cell[i] > "/dev/stderr"
			exit 2
		}
		split(cell[i], part, "@")
		print part[1] "\t" part[2] "\t" want[i]
	}
}

# SPDX-License-Identifier: MIT
#
# Results of scenario runs as a table for terminals. Lines with tabs: "run", scenario, path, bytes, host bytes,
# CPU seconds, verdict; "why", scenario, transfer, path, reason, what to do; "when" as
# in report.awk, with the scenario before the label. Used with tree.awk and times.awk.

function human(n) {
	if (n >= 1048576)
		return sprintf("%.0f MiB", n / 1048576)
	if (n >= 1024)
		return sprintf("%.0f KiB", n / 1024)
	return sprintf("%.0f", n)
}

# "label  text", folded at blanks
function fold(label, text,    n, word, i, line) {
	n = split(text, word, " ")
	line = sprintf("  %-6s", label)
	for (i = 1; i <= n; i++) {
		if (length(line) + length(word[i]) + 1 > 100 && line !~ /^ *$/) {
			print line
			line = "        " word[i]
		} else
			line = line " " word[i]
	}
	print line
}

BEGIN {
	FS = "\t"
	row = "%-21s %-19s %9s %20s %13s  %s\n"
	printf row, "scenario", "path", "moved", "through host memory", "CPU s per GiB", "verdict"
}

$1 == "run" {
	printf row, $2, $3, human($4), human($5), ($4 ? sprintf("%.2f", $6 / ($4 / 1073741824)) : "-"), $7
}

# the same of several transfers is told once
$1 == "why" {
	key = $2 FS $4 FS $5
	if (seen[key, $3]++)
		next
	if (!(key in of)) {
		of[key] = $3
		list[++n] = key
		todo[key] = $6
	} else
		of[key] = of[key] ", " $3
}

$1 == "when" { times_add($2, $3, $4, $5, $6, $7, $8) }

END {
	for (i = 1; i <= n; i++) {
		split(list[i], part, FS)
		printf "\n%s: %s: %s\n", part[1], of[list[i]], part[2]
		fold("why", part[3])
		fold("do", todo[list[i]])
	}
	for (i = 1; i <= times_labels; i++)
		printf "\n%s", times_text(times_label[i])
}

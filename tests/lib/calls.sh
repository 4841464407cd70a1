# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Which file needs which, by the symbols of their objects.

# calls <WHAT-NM-A-SAYS: pairs of files, the first of which uses the second
calls() {
	sed 's|^[^:]*/||; s|\.o:| |' | awk '
	$3 ~ /^[BDRTVW]$/ { home[$4] = $1 }
	$2 == "U" { n++; symbol[n] = $3; user[n] = $1 }
	END {
		for (i = 1; i <= n; i++)
			if (symbol[i] in home && home[symbol[i]] != user[i])
				print user[i], home[symbol[i]]
	}' | sort -u
}

# check_no_cycle WHAT: of the pairs in the file "pairs"
check_no_cycle() {
	check "$1: its files use each other" test -s pairs
	check "$1: and no two of them need each other, in however many steps" tsort pairs
	awk '{ print } NR == 1 { print $2, $1 }' pairs >cycle
	check_fails "$1: a cycle is seen" "loop" tsort cycle
}

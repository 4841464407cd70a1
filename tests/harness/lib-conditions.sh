# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# conditions NAME: those of this scenario, a line each, without running anything.  They are
# behind lines "expect ..." and "... || expect ..."; any other use of expect becomes a line
# that is no condition.  Source it with TOP set.

# shellcheck disable=SC2034 # for options.sh
PROGRAM=conditions
# shellcheck source=scenarios/lib/options.sh
. "$TOP/scenarios/lib/options.sh"

conditions() {
	awk -v sets="$TOP/scenarios/lib/conditions/" '
	here {
		if ($0 == "LINES")
			here = 0
		else
			print
		next
	}
	sub(/^(.* \|\| )?expect /, "") {
		for (i = 1; i <= NF && $i != "-"; i++)
			while ((getline line <(sets $i)) > 0)
				print line
		here = $i == "-"
		next
	}
	/^([^#]*[^#a-z])?expect [a-z-]/ { print "not read: " $0 }
	' "$(scenario_file "$1")"
}

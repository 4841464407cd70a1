# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# judge FILE RESULT...: judges the conditions of FILE, which has a line "WHEN | DESCRIPTION | CONDITION" for each
# (expect.jq).  For each RESULT it prints an array on a line: for each condition what is wrong with it, or "".  It fails
# when one of them is no program.  One jq for all: a scenario has dozens.  Source it with TOP set.

judge() { judge_by judge "$@"; }

# judge_by FUNCTION FILE RESULT...: by another function of expect.jq
judge_by() {
	judge_by=$1
	judge_lines=$2
	shift 2
	jq -c -L "$TOP/scenarios/lib/accounting" --rawfile lines "$judge_lines" "$(awk -v by="$judge_by" '
	BEGIN {
		print "include \"expect\"; [$lines | split(\"\\n\")[:-1][] | sub(\"^.*? [|] .*? [|] \"; \"\")] as $texts | ["
	}
	{
		sub(/^[^|]* [|] /, "")
		printf "%s([" by "(%s; $texts[%d])] | join(\"\\n\"))\n", (NR > 1 ? "," : ""), substr($0, index($0, " | ") + 3), NR - 1
	}
	END { print "]" }' "$judge_lines")" "$@"
}

# holds FILE CONDITION [OPTION...]: the condition, of one jq with these options, holds on the JSON in FILE, and fails
# without any key that it names
holds() {
	holds_file=$1
	holds_condition=$2
	shift 2
	holds_wrong=$(jq -nr -L "$TOP/scenarios/lib/accounting" "$@" --arg holds_text "$holds_condition" \
		"include \"expect\"; of(1; inputs) | judge($holds_condition; \$holds_text)" "$holds_file") || return
	[ -z "$holds_wrong" ] || {
		echo "$holds_wrong"
		return 1
	}
}

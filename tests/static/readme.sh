#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what documents quote and count is so: the demo, the cases, the matrix, hosts, kernels
# tags: quick static
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"

cd "$TOP" || exit 1

# ---- the README's demo: the scenarios of make demo in their order, with their titles ----
demo=$(sed -n 's/^scenarios=${\*:-\(.*\)}$/\1/p' scenarios/demo)
for name in $demo; do
	printf '%-21s %s\n' "$name" "$(sed -n 's/^# //p' "scenarios/$name/README.md" | head -n 1)"
done >"$OUT/titles"
check "the demo has scenarios" test "$(wc -l <"$OUT/titles")" -ge 5
shown() { # FILE: what it shows of what the demo says, its lines, and the first column of its table
	sed -n 's/^    \(Each scenario boots\)/\1/; /^Each scenario boots/,/^$/s/^ *//p' "$1"
	sed -n 's/^ *ok      //p' "$1"
	awk '/^ *scenario  *path  / { table = 1; next } table && NF == 0 { exit } table { print $1 }' "$1"
}
want() {
	sed -n 's/^echo "\(.*\)"$/\1/p' scenarios/demo
	echo
	cat "$OUT/titles"
	echo "$demo" | tr " " "\n"
}
check_eq "README.md shows the demo as it is" "$(want)" "$(shown README.md)"

# ---- numbers ----
word() {
	echo two three four five six seven eight nine ten eleven twelve | cut -d ' ' -f $(($1 - 1))
}

cases=$(tests/run -l | wc -l)
quoted_cases() { # FILE: a round number that is at most ten off
	quoted=$(sed -n 's/.*about \([0-9]*\) cases.*/\1/p' "$1")
	[ -n "$quoted" ] && [ "$quoted" -ge $((cases - 10)) ] && [ "$quoted" -le $((cases + 10)) ]
}
check "README.md says about how many cases there are ($cases)" quoted_cases README.md

cells=$(scenarios/matrix -l --out "$OUT/matrix" | wc -l)
quoted_cells() { # FILE
	[ "$(grep -oE '^1/[0-9]+|^[0-9]+ as expected' "$1" | grep -oE '[0-9]{2,}' | sort -u)" = "$cells" ]
}
check "run-the-matrix.md says how many cells there are ($cells)" quoted_cells docs/how-to/run-the-matrix.md

most=$(scenarios/try --help | sed -n 's/.*(2 to \([0-9]*\)).*/\1/p')
quoted_hosts() { # FILE
	grep -qE "two to $(word "$most") emulated hosts" "$1" && grep -qE "up to $(word "$most")[, ]" "$1"
}
check "README.md says how many hosts there can be ($most)" quoted_hosts README.md

kernels=$(sed -n 's/^GUEST_KERNELS=//p' versions.mk)
quoted_kernels() { # FILE
	grep -qE "Linux ${kernels%,*} \(P2PDMA\) or ${kernels#*,} \(no P2PDMA\)" "$1"
}
check "README.md says which kernels the guests have ($kernels)" quoted_kernels README.md

# ---- these can fail ----
# bad WHAT CHECK FILE EDIT: the document with this edit does not pass
bad() {
	sed "$4" "$3" >"$OUT/bad.md"
	check_false "a page can be wrong about $1" cmp -s "$3" "$OUT/bad.md"
	check_false "... and that is seen" "$2" "$OUT/bad.md"
}
shows_demo() { [ "$(want)" = "$(shown "$1")" ]; }
bad "the table: a scenario too few" shows_demo README.md '/^ *gds-small-bar1 /d'
bad "what the demo says" shows_demo README.md 's/It takes a minute/It takes an hour/'
bad "a title" shows_demo README.md 's/Peers that cannot/Peers who cannot/'
bad "a scenario" shows_demo README.md 's/gds-raw  /gds-row  /'
bad "the number of cases" quoted_cases README.md "s/about [0-9]* cases/about $((cases + 11)) cases/"
bad "the number of cells" quoted_cells docs/how-to/run-the-matrix.md 's/^[0-9]* as expected/57 as expected/'
bad "the number of hosts" quoted_hosts README.md 's/two to eight/two to nine/'
bad "the kernels" quoted_kernels README.md 's/or 6\.12/or 6.13/'
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: no condition of any scenario holds when nothing was measured, or without a key that it names
# tags: quick harness
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
need_tool jq

# shellcheck source=tests/harness/lib-conditions.sh
. "$TOP/tests/harness/lib-conditions.sh"
accounting=$TOP/scenarios/lib/accounting

# what a run knows before anything is measured
jq -n '{bytes: 33554432, crc32c: "0x12345678", planted: 16777216, transfers: [], routes: [],
	devices: [], links: [], facts: {}, counted: {}}' >nothing
echo null >null
# and what it knew in the end, once: tests/harness/shrink-result makes a line of it
results=$TOP/tests/harness/results.jsonl

for name in $(scenario_names); do
	conditions "$name" >lines
	check "$name: it asks for something" grep -q '^always |' lines
	grep -vE '^(#|$)' lines >asked
	check_eq "$name: each line can be read" '' "$(grep -vE '^(always|here) \| [^|]+ \| .' asked)"
	jq -c --arg name "$name" 'select(.scenario == $name).result' "$results" >result
	check_eq "$name: tests/harness/results.jsonl has a result of it" 1 "$(wc -l <result)"
	# one program of all of them, with a line of what is wrong with each, for each of the results
	awk '{
		sub(/^[^|]+ \| [^|]+ \| /, "")
		text = $0
		gsub(/["\\]/, "\\\\&", text)
		printf "%s [judge(%s\n; \"%s\")]", NR == 1 ? "include \"expect\";" : ",", $0, text
	}' asked >program
	check_eq "$name: each condition is a program" '' \
		"$(jq -c -L "$accounting" -f program nothing null result 2>&1 >judged)"
	# it holds, and without any key that it names it does not
	check_eq "$name: each holds on what was measured, and on nothing less" '' "$(awk '
		FNR == NR { name[++n] = $0; next }
		FNR <= 2 * n && !/^\["result:/ { print name[(FNR - 1) % n + 1] ": it holds with nothing measured" }
		FNR > 2 * n && $0 != "[]" { print name[FNR - 2 * n] ": " $0 }
		END { if (FNR != 3 * n) print FNR " verdicts on " n " conditions" }' asked judged)"
done
check_eq "and there are no other results" "$(scenario_names | LC_ALL=C sort)" \
	"$(jq -r '.scenario // empty' "$results" | LC_ALL=C sort)"

# --- how conditions are judged ----------------------------------------------------

cat >result <<'END'
{"bytes": 5, "crc": "x", "counted": {"gpu0": {"in": 5, "out": 0, "host-read": 12}},
 "list": [{"ok": true, "n": 3, "label": "a"}, {"ok": true, "n": 4, "label": "b"}], "transfers": [{"crc": "x", "bytes": 5}]}
END
# says CONDITION WORDS: '' when it is a good one and holds
says() {
	got=$(jq -r -L "$accounting" --arg text "$1" "include \"expect\"; judge($1; \$text)" result 2>&1 | head -n 1)
	case $2 in
	'') check_eq "holds: $1" '' "$got" ;;
	*)
		case $got in
		*"$2"*) pass "$2: $1" ;;
		*) fail "$2: $1" "$got" ;;
		esac
		;;
	esac
}
says '.counted.gpu0.in == 5' ''
says 'same(.counted.gpu0.in; .bytes)' ''
says 'below(.counted.gpu0["host-read"], .counted.gpu0.out; 65536)' ''
says 'every(.list[] | .ok)' ''
says 'sum(.list[].n) == 7' ''
says '[.list[] | {n, label}] == [{n: 3, label: "a"}, {n: 4, label: "b"}]' ''
says 'at_least(of(2; .list[].n); 3) and above(.list[].n; 2)' ''
says '.counted.gpu0.in == 6' 'result: false'
says 'below(of(3; .list[].n); 9)' '2 values instead of 3'
says 'below(.list[] | select(.label == "c") | .n; 9)' 'there is nothing of it'
says 'below(.crc; 9)' 'not counted: \"x\"'
says 'same(.list[].n; 3)' 'result: false'
says 'same([.list[0].m]; [null])' 'something is missing'
says '.list[].ok' 'result: true, true'
says 'empty' 'result: '
says '.bytes' 'result: 5'
# what is loose, as many conditions once were
says '.counted.gpu0["host-read"] < 65536' 'it holds without any "counted", too'
says '.counted.gpu0["host-rd"] < 65536' 'it holds without any "counted", too'
says '.transfers[0].crc == .crc' 'it holds without any "crc", too'
says '[.list[] | .n] | max < 9' 'it holds without any "n", too'
says 'all(.list[]; .ok != false)' 'it holds without any "ok", too'
says '.counted.gpu0 | .["host-write"] + .out == 0' 'the result has no "host-write", and it holds all the same'
says '.counted.gpu0.wrong == null' 'it holds without any "counted", too'
says 'true' 'it names no key of the result'
finish

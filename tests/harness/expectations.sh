#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: no condition of any scenario holds when nothing was measured, or without a key that it names
# tags: harness
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
need_tool jq

# shellcheck source=tests/harness/lib-conditions.sh
. "$TOP/tests/harness/lib-conditions.sh"
# shellcheck source=scenarios/lib/accounting/judge.sh
. "$TOP/scenarios/lib/accounting/judge.sh"

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
	check "$name: each condition is a program" judge asked nothing null result
	judge asked nothing null result >judged
	# it holds, and without any key that it names it does not
	check_eq "$name: each holds on what was measured, and on nothing less" '' "$(jq -rs --rawfile asked asked '
		[[$asked | split("\n")[:-1][]]] + . | transpose[] | . as [$line, $nothing, $null, $result]
		| if all($nothing, $null; startswith("result:")) | not then "\($line): it holds with nothing measured" else empty end,
			if $result != "" then "\($line): \($result)" else empty end' judged 2>&1)"
	# nor with a wrong value
	judge_by indifferent asked result >judged
	jq -r --arg name "$name" '.[] | split("\n")[] | "\($name) \(.)"' judged >>any-value
done
check_eq "and there are no other results" "$(scenario_names | LC_ALL=C sort)" \
	"$(jq -r '.scenario // empty' "$results" | LC_ALL=C sort)"

# Each needs a control or an amount of work, which only widens its limit
check_eq "a wrong value makes a condition fail, of each key that it needs" "$(LC_ALL=C sort <<'END'
cx-allreduce messages
page-cache control_ms
rdma-perf descriptors
rdma-staged bytes
END
)" "$(LC_ALL=C sort any-value)"

# What has gone wrong once, or could in a way that a limit may not see
grep -v '^#' "$TOP/tests/harness/wrong-results.list" | grep . >wrong
while IFS= read -r line; do
	name=${line%% | *}
	condition=${line##* | }
	change=${line#"$name | "}
	change=${change% | "$condition"}
	conditions "$name" | sed 's/^[^|]* | /always | /' | awk -v begins="always | $condition" 'index($0, begins) == 1' >asked
	check_eq "$name has one condition \"$condition\"" 1 "$(wc -l <asked)"
	jq -c --arg name "$name" 'select(.scenario == $name).result' "$results" >result
	jq -c "$(echo "$change" | sed 's/\\|/|/g')" result >wrong-result
	check_eq "$name: it holds, and not with $change" "true true" \
		"$(judge asked result wrong-result | jq -rs '"\(.[0][0] == "") \(.[1][0] | startswith("result: "))"')"
done <wrong

# --- how conditions are judged ----------------------------------------------------

cat >result <<'END'
{"bytes": 5, "crc": "x", "counted": {"gpu0": {"in": 5, "out": 0, "host-read": 12}},
 "list": [{"ok": true, "n": 3, "label": "a"}, {"ok": true, "n": 4, "label": "b"}], "transfers": [{"crc": "x", "bytes": 5}]}
END
# says CONDITION WORDS: '' when it is a good one and holds
says() {
	echo "always | it holds | $1" >asked
	got=$(judge asked result | jq -r '.[0] | split("\n")[0] // ""')
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
# holds(), for what is no scenario
check "holds: a condition, and what it is given" holds result 'below(.bytes; $most)' --argjson most 9
check_fails "it fails without a key" 'the result has no "host-rd"' holds result '.counted.gpu0 | .["host-rd"] < 9'
check_fails "and where it does not hold" "^result: false" holds result '.bytes > 5'
check_fails "and on a null, which it takes for a number" "has no .bytes." holds null '.bytes < 5'
: >empty
check_fails "and on nothing at all" "0 values instead of 1" holds empty 'below(.bytes; 5)'
check_fails "and if it is no condition" "syntax error" holds result '.bytes <'
# any CONDITION KEYS: those whose values do not matter
any() {
	echo "always | it holds | $1" >asked
	check_eq "any value of ${2:-no key}: $1" "$2" "$(judge_by indifferent asked result | jq -r '.[0] | split("\n") | join(" ")')"
}
any '.counted.gpu0.in == 5' ''
any '.counted.gpu0 | at_least(.in, .out; 0)' 'in out'
any '.counted.gpu0 | below(.in; (.out | n) + 100)' 'out'
any '.counted.gpu0 | below(.in; 100 + 100 * ((.["host-read"] | n) + 1))' 'host-read'
any '.transfers[0].crc as $got | ($got | type) == "string" and $got != "y"' ''
any '.list[0] | (.ok | type) == "boolean" and at_least(.n; 3)' 'ok'
any '[.list[].n] | max >= 4' ''
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two files with seconds are compared, case by case and in total
# tags: harness
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

compare=$TOP/tests/bench-compare

# what make bench writes, and what tests/run --json does
jq -n '{commit: "old", build: [{what: "make", seconds: 3, target: 20}],
	tests: {cases: [
		{name: "x/quicker", verdict: "pass", seconds: 10.5}, {name: "x/slower", verdict: "pass", seconds: 2},
		{name: "x/gone", verdict: "pass", seconds: 1}, {name: "x/failed", verdict: "fail", seconds: 99}]}}' >old.json
jq -n '{cases: [
	{name: "x/slower", verdict: "pass", seconds: 2.5}, {name: "x/quicker", verdict: "pass", seconds: 4.25},
	{name: "x/new", verdict: "pass", seconds: 7}, {name: "x/failed", verdict: "pass", seconds: 1}]}' >new.json
check_eq "the largest change comes first; the total is that of what both have" \
	"OLD NEW CHANGE NAME
10.5 4.25 -6.25 x/quicker
2 2.5 +0.5 x/slower
12.5 6.75 -5.75 all 2 of both
3 -  make
1 -  x/gone
- 1  x/failed
- 7  x/new" "$("$compare" old.json new.json | tr '\t' ' ')"
echo '{}' >empty.json
check_fails "a file without times is refused" 'no times in the second file' "$compare" old.json empty.json
check_fails "so is one that is not there" 'Could not open nothing.json' "$compare" nothing.json new.json
check_fails "and one file alone" '^usage:' "$compare" old.json
finish

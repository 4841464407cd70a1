#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a scenario on another machine: data right, and the result tells the difference
# tags: scenario guest p2p
# timeout: 180

. "$TOP/tests/lib/case.sh"

need_tool jq

elsewhere() { # NAME TOPOLOGY PATH HOST-BYTES
	if "$TOP/scenarios/run" "$1" --topology "$2" --out "$OUT/$2" \
		--json "$2.json" >"$2.log" 2>&1; then
		pass "$1 on $2 is right"
	else
		fail "$1 on $2 is right" "$(tail -n 20 "$2.log")"
		return
	fi
	check_eq "its path" "$3" "$(jq -r '[.transfers[].path] | unique | join(" ")' \
		"$2.json")"
	check_eq "its bytes through host memory" "$4" \
		"$(jq '[.transfers[].host_bytes] | add' "$2.json")"
	check_eq "the topology in the result" "$2" "$(jq -r .topology "$2.json")"
}

# a processor that Linux trusts makes two root ports as good as a switch
elsewhere gds-direct epyc-two-root-ports p2p 0
elsewhere gds-direct two-root-ports bounce 536870912

# what only the scenario's own machine must do is not asked elsewhere, and is
# asked there: a result that says otherwise fails
check_not "no such scenario" "$TOP/scenarios/run" no-such
check_not "no such topology" "$TOP/scenarios/run" gds-direct \
	--out "$OUT/none" --topology no-such
finish

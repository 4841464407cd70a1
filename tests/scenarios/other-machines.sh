#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a scenario on other machines takes the paths that are expected of them
# tags: scenario guest p2p
# tier: nightly
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
need_tool jq

# staged; through two switches; through an IOMMU that translates
"$TOP/scenarios/matrix" --scenario gds-direct --kernel 7.2 -j 1 --out "$OUT" \
	--topology two-root-ports --topology two-switches \
	--topology iommu-translated --json matrix.json >shown 2>&1 || diag "$(cat shown)"
check_eq "three cells are as expected" "3 0" \
	"$(jq -r '"\(.passed) \(.failed)"' matrix.json)"
for topology in two-root-ports two-switches iommu-translated; do
	check "gds-direct on $topology" jq -e --arg t "$topology" \
		'.cells[] | select(.topology == $t).verdict == "pass"' matrix.json
done
check_eq "staged: all bytes went through host memory, both ways" true \
	"$(jq '([.transfers[].host_bytes] | add) == 2 * .bytes and .bytes >= 33554432' two-root-ports/gds-direct@7.2/result.json)"
check "there is a page of it" grep -q '<h2>gds-direct' matrix.html
finish

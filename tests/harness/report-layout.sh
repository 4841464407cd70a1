#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the report is readable with every topology and the longest words: nothing overlaps, is small, pale or too wide
# tier: check
# tags: harness
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/topology.sh"
need_tool jq

# every topology, with the longest words on every link
cat > small.jq <<'E2'
[inputs | split(" ") | {name: .[0], kind: .[1], parent: .[2]} + (.[3:]
 | map(split("=") | {key: .[0], value: .[1]}) | from_entries)] as $devices |
{up: 1073741823, down: 1073741823} as $pair |
{when: {first_ns: 0, slice_ns: 1000000000, busy_ns: [999999999, 0, 1]}} as $busy |
{scenario: $t, title: "t", topology: $t, kernel: "7.2", accel: "tcg",
 verdict: "pass", seconds: 2.5,
 transfers: [{what: "read", path: "p2p", bytes: 268435456, host_bytes: 0,
  cpu_seconds: 0.5, reason: "the drive reaches BAR1"}], devices: $devices,
 links: [$devices[] | select(.kind | test("^(q35|host-bridge|root-port)$") | not)
  | {link: .parent, below: .name, peer: $pair, redirected: $pair, host: $pair,
     refused: 0, other: 0, from: "port counters"} + $pair]}
| .counted = {"a label of some length": {links: [.links[] | {link, below, modelled: {up: $busy, down: $busy}}]}}
E2
set --
for name in $(topology_names); do
	topology devices "$name" |
		jq -nR --arg t "$name" -f small.jq > "t-$name.json"
	set -- "$@" "t-$name.json"
done
# and eight hosts with a wire
jq -n --slurpfile all t-two-hosts-rxe.json '$all[0] as $t |
	{frames: 1073741823, roce: {payload_bytes: 1073741823, unique_payload_bytes: 1073741823,
	 repeated: 1073741823}, drops: {loss: 1073741823}, reordered: 1073741823} as $way |
	$t + {devices: [], links: [], hosts: ([("a","b","c","d","e","f","g","h") | {key: ., value: $t}]
	 | from_entries)} | .wire.total = (.hosts | map_values({in: $way, out: $way}))' > t-hosts.json
set -- "$@" t-hosts.json
check "the page is made, every topology in it" "$TOP/scenarios/report" page.html "$@"

looked() {
	awk -f "$TOP/tests/harness/report-layout.awk" "$1"
}
# each machine has a time line of its modelled links, too; eight hosts and a wire are nine drawings and eight time lines
check_eq "every drawing is whole and readable, in light and in dark mode" "schemes=2 drawings=$((2 * $# + 15))" "$(looked page.html)"
check_eq "the keyboard reaches everything that scrolls" \
	"$(grep -c 'class="wide"' page.html)" "$(grep -c '<div class="wide" role="region" tabindex="0" aria-label="[^"]' page.html)"

# what is wrong is seen
bad() { # WHAT EDIT
	sed "$2" page.html > bad.html
	check "a page that is wrong: $1" sh -c 'echo "$1" | grep -q "$2"' sh "$(looked bad.html)" "$1"
}
bad "not seen first on a telephone: verdict" 's/\(<th scope="col">verdict<.th>\)\(<th scope="col" class="n">bytes<.th>\)/\2\1/'
bad "not seen first on a telephone: through host memory" 's/nth-child(3){width:70px}/nth-child(3){width:370px}/'
bad "too wide for its column on a telephone: coherent" 's/<td>p2p</<td>coherent</; s/nth-child(2){width:68px}/nth-child(2){width:60px}/; s/nth-child(3){width:68px}/nth-child(3){width:60px}/'
bad "pale: dim on paper" 's/--dim:#57606a/--dim:#a7b0ba/'
bad "small letters" 's/min-width:[0-9]*px/min-width:300px/'
bad "wider than the screen: a long word" "s/overflow-wrap:anywhere//"
bad "wider than the screen: no viewport" "s/width=device-width//"
bad "cannot scroll" 's/<div class="wide"[^>]*><table/<div><table/'
bad "cannot scroll: <div><svg" '/modelled time line/s/<div class="wide"[^>]*><svg/<div><svg/'
bad "overlap: modelled" 's/<text class="row" x="200"/<text class="row" x="600"/'
bad "outside: " 's/<text class="name" x="[0-9]*"/<text class="name" x="0"/'
bad "overlap: " 's/\(<text class="bytes" x="[0-9]*"\) y="[0-9]*"/\1 y="60"/'
finish

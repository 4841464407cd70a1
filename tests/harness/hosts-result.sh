#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the result of several hosts has each one's counts, and the wire's from the first look to the last
# tags: harness wire
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

need_tool jq

# look N FRAMES-OF-A: the wire's counters; b has received as many, in an operation
# that is only known since the third look
look() {
	jq -nc --argjson n "$1" --argjson f "$2" '
	def way($frames): {frames: $frames, drops: {loss: ($frames / 10 | floor)}, rules_left: 3,
		roce: {opcodes: (if $n < 3 then {} else {"rc-send-only": {frames: $frames}} end)}};
	{look: $n, seed: 1, ports: {
		a: {link: "up", queued: 5, queued_most: $n, pauses: ($n * $n), out: way($f), in: way(0)},
		b: {link: "down", queued: 0, queued_most: 0, pauses: 0, out: way(0), in: way($f)}}}'
}
# a begins first, b ends last
for i in 1 2 3 4; do
	look "$i" $((i * i * 10)) >"look$i"
done
look 9 1000 >total
jq -nc --slurpfile a look1 --slurpfile b look3 '{label: "put", begin: $a[0], end: $b[0]}' >looks
jq -nc --slurpfile a look2 --slurpfile b look4 '{label: "put", begin: $a[0], end: $b[0]}' >>looks
jq -nc --slurpfile a look4 --slurpfile b look4 '{label: "alone", begin: $a[0], end: $b[0]}' >>looks
cat >hosts <<'END'
{"a": {"topology": "t", "devices": [1], "links": [2], "facts": {"x": 1},
 "transfers": [{"what": "rdma-source", "bytes": 7}], "routes": [{"from": "gpu0", "to": "memory", "bytes": 7}]}}
{"b": {"topology": "u", "devices": [3], "links": [4], "facts": {"x": 2}, "transfers": [], "routes": []}}
END
printf '%s\n' '{"devices":[9]}' '{"bytes":7}' '{"facts":{"own":true}}' >extra

result() { # LOOKS
	jq -L "$TOP/scenarios/lib/accounting" -nc --slurpfile hosts hosts --slurpfile looks "$1" \
		--slurpfile total total --slurpfile extra extra \
		'include "hosts"; hosts_result($hosts; $looks; $total[0]; $extra)'
}
result looks >result.json
is() { # DESC WANT JQ
	check_eq "$1" "$2" "$(jq -c "$3" result.json)"
}
is "a label is from the first begin to the last end" 150 .wire.put.a.out.frames
is "what the other received, too" 150 .wire.put.b.in.frames
is "drops are differences" 15 .wire.put.a.out.drops.loss
is "what was not counted at the beginning was nothing" 160 '.wire.put.a.out.roce.opcodes["rc-send-only"].frames'
is "a link is as it was at the end" '["up","down"]' '[.wire.put[].link]'
is "the most that waited is no difference" 4 .wire.put.a.queued_most
is "how often it waited is one" 15 .wire.put.a.pauses
is "rules that wait are no result" false '.wire.put.a.out | has("rules_left")'
is "two looks at the same are nothing" 0 .wire.alone.a.out.frames
is "the whole run is all that was counted" 1000 .wire.total.b.in.frames
is "each host has its own" '[1,2]' '[.hosts.a.facts.x, .hosts.b.facts.x]'
is "and its topology" '["t","u"]' '[.hosts[].topology]'
is "transfers have their host" '[{"host":"a","what":"rdma-source","bytes":7}]' .transfers
is "ends of routes have it too" '["a:gpu0","a:memory"]' '[.routes[] | .from, .to]'
is "devices and links belong to hosts" '[[],[]]' '[.devices, .links]'
is "what the scenario adds is there" '[7,{"own":true}]' '[.bytes, .facts]'
: >nothing
result nothing >result.json
is "without labels there is the whole run" '["total"]' '.wire | keys'
finish

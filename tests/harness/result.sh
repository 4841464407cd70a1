#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what results must have is what their page says, and each break of it is seen
# tags: harness
# tier: check
# timeout: 60
# shellcheck disable=SC2016 # jq programs
. "$TOP/scenarios/lib/case.sh"

need_tool jq

page=$TOP/docs/reference/results.md
lib=$TOP/scenarios/lib

# --- the page and the shapes name the same keys ------------------------------------

# section HEADING: the page's lines below it; without one, those before the first
section() {
	awk -v want="${1:+## }$1" '
	/^## / { here = $0 }
	here == want' "$page"
}
# said HEADING: every word in backquotes there
said() {
	section "$1" | grep -o '`[^`]*`' | grep -oE '[A-Za-z_]+(\.[a-z_]+)*' | sort -u
}
# columns HEADING: those in the first columns of its tables
columns() {
	section "$1" | sed -n 's/^| \(`[^|]*`\) |.*/\1/p' | grep -oE '[a-z_]+(\.[a-z_]+)*' | sort -u
}
# shapes EXPRESSION: the keys of these shapes
shapes() {
	jq -L "$lib/accounting" -rn "include \"result\"; [$1] | map(keys[] | rtrimstr(\"?\")) | unique[]
		| select(IN(\"*\", \"or null\") | not)" | sort -u
}
# agree HEADING TABLES MORE: all keys of the shapes are said; what stands in tables is a
# key of TABLES
agree() {
	shapes "$2${3:+, $3}" >keys
	check "${1:-all}: there are keys" test -s keys
	said "$1" >words
	check_eq "${1:-all}: every key is described" '' "$(comm -23 keys words | xargs)"
	shapes "$2" >keys
	columns "$1" >words
	check_eq "${1:-all}: every key that is described can be there" '' \
		"$(comm -13 keys words | xargs)"
}
agree '' result_of_hosts 'result.checks, route, device, result["search?"]["*"]["*"], result["plot?"]'
agree transfers transfer
agree counted counted_label 'counted_label.nvme["*"], counted_label.nvme["*"].data'
agree links link 'both_ways, modelled, modelled_way'
agree 'Several hosts' 'port, (port.out | del(.roce)), (port.out.roce | with_entries(.key |= "roce." + .))' \
	'{hosts: 1, wire: 1, host: 1}, machine, way.drops'
# a page that says less, or more, is seen
sed 's/`queued_most`/queued_most/; s/^| `corrupted`,/| `crumpled`, `corrupted`,/' "$page" >page.bad
page=$PWD/page.bad
said 'Several hosts' >words
shapes port >keys
check_eq "a key that the page forgets" queued_most "$(comm -23 keys words | xargs)"
shapes 'port, port.out, (port.out.roce | with_entries(.key |= "roce." + .))' >keys
columns 'Several hosts' >words
check_eq "a key that it invents" crumpled "$(comm -13 keys words | xargs)"

# --- a result made by hand, and what can be wrong with it ------------------------------

jq -n '{scenario: "s", title: "t", topology: "m", kernel: "7.2", accel: "tcg", verdict: "pass",
	reason: "", seconds: 1.5, checks: {passed: 1, failed: 0}, own: {of: "the scenario"},
	devices: [{name: "gpu0", kind: "gpu", parent: "rp0", vram: "1G"}],
	routes: [{from: "nvme0", to: "gpu0", bytes: 5, what: "x"}],
	transfers: [{what: "read", path: "p2p", bytes: 5, cpu_seconds: 0.1, reason: "", label: "copy",
		host_bytes: 0, metadata_bytes: 0, crc32c: "0x1"}],
	links: [{link: "rp0", below: "gpu0", up: 1, down: 2, peer: null, redirected: {up: 0, down: null},
		host: {up: 1, down: 2}, refused: null, other: null, from: "endpoint counters", modelled: null}]}
	| .counted = {copy: {nvme: {host: {data: {read: 1, write: 0}, metadata: {read: 0, write: 0}}},
		gpus: {gpu0: {resets: 0}}, initiators: {gpu0: {nvme0: {read: 0, write: 5}}}, ports: {},
		modelled: {}, modelled_requesters: {}, moving: false, links: .links}}' >one
jq '. as $one | def way: {datagrams: 1, frames: 1, bytes: 60, corrupted: 0, duplicated: 0, reordered: 0, delayed: 0, marked: 0,
		drops: {runt: 0, oversize: 0, link: 0, loss: 0, rule: 0, queue: 0, peer: 0, own: 0, full: 0},
		roce: {frames: 1, payload_bytes: 4, dropped: 0, opcodes: {"rc-send-only": {frames: 1, payload_bytes: 4}}}};
	.devices = [] | .links = [] | del(.counted) | .transfers[].host = "a"
	| .search = {a: {put: {seed: 1, bytes: 16, found: 0, longest_run: 0}}}
	| .hosts = {a: ($one | {topology, devices, links, transfers, routes, counted})}
	| .wire = {put: {a: {link: "up", queued_most: 1, pauses: 0, in: way,
		out: (way | .roce += {unique_payload_bytes: 4, repeated: 0})}}}' one >two

unfit() { # FILE JQ: what is wrong with it then
	jq "$2" "$1" | jq -r -L "$lib/accounting" 'include "result"; unfit' 2>&1
}
check_eq "one machine's result is fit" '' "$(unfit one .)"
check_eq "several hosts' result is fit" '' "$(unfit two .)"
check_eq "an early end's result is fit" '' \
	"$(unfit one '.verdict = "fail" | .transfers = [] | .links = [] | .routes = [] | del(.counted)')"

# seen FILE JQ WORDS
seen() {
	check_eq "seen: $2" "$3" "$(unfit "$1" "$2")"
}
seen one 'del(.seconds)' '.seconds is missing'
seen one '.seconds = "1"' '.seconds is not a number: "1"'
seen one '.verdict = "passed"' '.verdict is not one of pass|fail|skip: "passed"'
seen one '.checks = [1, 0]' '.checks is not an object: [1,0]'
seen one '.checks.skipped = 0' '.checks.skipped is nowhere described'
seen one '.transfers = {}' '.transfers is not a list: {}'
seen one '.transfers[0].path = "direct"' \
	'.transfers[0].path is not one of p2p|kernel|coherent|bounce|posix|cache|mixed: "direct"'
seen one '.transfers[0].host_bytes = null' '.transfers[0].host_bytes is not a number: null'
seen one 'del(.transfers[0].label)' '.transfers[0].label is missing'
seen one '.devices[0].vram = 1' '.devices[0].vram is not a string: 1'
seen one '.routes[0].count = 1' '.routes[0].count is nowhere described'
seen one '.links[0].up = "1"' '.links[0].up is not a number|null: "1"'
seen one '.links[0].from = "a guess"' \
	'.links[0].from is not one of port counters|endpoint counters|null: "a guess"'
seen one 'del(.links[0].host.down)' '.links[0].host.down is missing'
seen one 'del(.counted.copy.gpus)' '.counted.copy.gpus is missing'
seen one '.counted.copy.gpus.gpu0.resets = "0"' '.counted.copy.gpus.gpu0.resets is not a number: "0"'
seen one 'del(.counted.copy.nvme.host.data.read)' '.counted.copy.nvme.host.data.read is missing'
seen one '.counted.copy.cpu = {}' '.counted.copy.cpu is nowhere described'
seen two 'del(.transfers[0].host)' '.transfers[0].host is missing'
seen two 'del(.wire)' '.wire is missing'
seen two 'del(.hosts)' '.hosts is missing'
seen two 'del(.hosts.a.devices)' '.hosts.a.devices is missing'
seen two '.hosts.a.counted.copy.links[0].up = true' \
	'.hosts.a.counted.copy.links[0].up is not a number|null: true'
seen two '.wire.put.a.link = "cut"' '.wire.put.a.link is not one of up|down: "cut"'
seen two 'del(.wire.put.a.out.roce.unique_payload_bytes)' \
	'.wire.put.a.out.roce.unique_payload_bytes is missing'
seen two '.wire.put.a.in.roce.repeated = 0' '.wire.put.a.in.roce.repeated is nowhere described'
seen two 'del(.wire.put.a.in.drops.loss)' '.wire.put.a.in.drops.loss is missing'
seen two '.search.a.put.found = "all"' '.search.a.put.found is not a number: "all"'

# --- and a run with such a result fails ---------------------------------------------------

# ends JQ [ACCEL]: how a scenario ends whose measured result is changed so
ends() {
	(
		OUT=$PWD/sc SC_NAME=fixture SC_TITLE=Fixture SC_TOPOLOGY=two-hosts-rxe SC_KERNEL=7.2
		SC_KEEP='' SC_JSON='' SC_HOSTS='' PEERLANE_ACCEL=${2-}
		case_checks=0 case_failed=0 case_reason=''
		mkdir -p "$OUT"
		# shellcheck source=scenarios/lib/machine/vm.sh
		. "$lib/machine/vm.sh"
		# shellcheck source=scenarios/lib/scenario.sh
		. "$lib/scenario.sh"
		trap case_end EXIT # of this shell
		SC_DEVICES=[]
		sc_started=1
		jq "{transfers, routes, links, counted} | $1" one >"$OUT/measured.json"
		at_exit sc_end
		pass "all is well"
		finish
	) >ended
	echo "$?"
}
check_eq "a fit result ends a run well" 0 "$(ends .)"
check_eq "and is written" '["pass",1]' "$(jq -c '[.verdict, .checks.passed]' sc/result.json)"
check_eq "by TCG" tcg "$(jq -r .accel sc/result.json)"
check_eq "with KVM it ends well, too" 0 "$(ends . kvm,kernel-irqchip=split)"
check_eq "and is called untested" "kvm, untested" "$(jq -r .accel sc/result.json)"
check_eq "an unfit one does not" 1 "$(ends '.transfers[0].path = "direct"')"
check "the run says why" grep -q '^# [.]transfers.0..path is not one of' ended
check_eq "and so does the result" '["fail","the result is as docs/reference/results.md describes it"]' \
	"$(jq -c '[.verdict, .reason]' sc/result.json)"
finish

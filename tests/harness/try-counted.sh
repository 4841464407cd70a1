#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what scenarios/try calls direct is what devices have counted, whatever a library reports
# tags: harness
# tier: check
# timeout: 60
# shellcheck disable=SC2016 # jq programs
. "$TOP/scenarios/lib/case.sh"
need_tool jq

# row HOST WHAT PATH BYTES: what libcufile reports; of a single host, no HOST
row() {
	jq -nc --arg host "$1" --arg what "$2" --arg path "$3" --argjson bytes "$4" '
		(if $host == "" then {} else {$host} end) + {program: "p", $what, $path, $bytes, errors: 0, reason: ""}'
}
# machine COUNTED: with the lines of the file "rows"
machine() {
	jq -sc -L "$TOP/scenarios/lib/accounting" --argjson counted "$1" 'include "try"; machine(.; $counted)' rows >machine.json
}
# is DESC FILTER WANT
is() {
	check_eq "$1" "$3" "$(jq -c "$2" machine.json)"
}
gpu() { # IN OUT ENGINE-IN ENGINE-OUT
	printf '{"bar1-dma-write":%d,"bar1-dma-read":%d,"coherent-dma-write":0,"coherent-dma-read":0,"engine-host-read":%d,"engine-host-write":%d}' "$@"
}

row '' read p2p 100 >rows
machine "{\"guest\":{\"gpu0\":$(gpu 100 0 8 8)}}"
is "p2p, and the GPU counted it" '[.bytes, .host_bytes, .direct, .transfers[0].reason]' '[100,0,true,""]'
machine "{\"guest\":{\"gpu0\":$(gpu 0 0 100 8)}}"
is "p2p, and the GPU counted nothing: all went through host memory" '[.bytes, .host_bytes, .direct]' '[100,100,false]'
is "… which the row says" '.transfers[0] | [.path, .host_bytes, .reason]' '["p2p",100,"the library says p2p, but the GPUs counted only 0 bytes"]'
row '' read coherent 100 >rows
machine "{\"guest\":{\"gpu0\":$(gpu 0 0 8 8 | jq -c '.["coherent-dma-write"] = 100')}}"
is "by the coherent window, and the GPU counted it" '[.host_bytes, .direct]' '[0,true]'
row '' read p2p 100 >rows
machine "{\"guest\":{\"gpu0\":$(gpu 0 100 8 8)}}"
is "the other direction does not count" '[.host_bytes, .direct]' '[100,false]'
machine '{"guest":{}}'
is "a GPU that is gone has counted nothing" '[.host_bytes, .direct]' '[100,false]'

{ row '' read p2p 100; row '' write kernel 40; row '' read bounce 30; } >rows
machine "{\"guest\":{\"gpu0\":$(gpu 60 40 100 8),\"gpu1\":$(gpu 40 0 0 0)}}"
is "two GPUs count together; what is reported as staged is" '[.bytes, .host_bytes, [.transfers[].host_bytes], .direct]' '[170,30,[0,0,30],false]'
machine "{\"guest\":{\"gpu0\":$(gpu 60 30 100 8)}}"
is "a part is missing in each direction" '[.host_bytes, [.transfers[].host_bytes]]' '[80,[40,10,30]]'
row '' - none 0 >rows
machine "{\"guest\":{\"gpu0\":$(gpu 0 0 0 0)}}"
is "nothing has moved" '[.bytes, .host_bytes, .direct]' '[0,0,false]'

{ row a read p2p 100; row b read p2p 100; } >rows
machine "{\"a\":{\"gpu0\":$(gpu 200 0 0 0)},\"b\":{\"gpu0\":$(gpu 0 0 0 0)}}"
is "what one host counted is not the other's" '[.host_bytes, [.transfers[] | [.host, .host_bytes]], .direct]' '[100,[["a",0],["b",100]],false]'

machine "{\"a\":{\"gpu0\":$(gpu 100 0 0 0)}}"
is "of a host whose counters are missing, all is staged" '[.host_bytes, .direct]' '[100,false]'

# Nothing is reported: a signal ended the program, or it uses RDMA
: >rows
machine "{\"guest\":{\"gpu0\":$(gpu 0 0 0 0)}}"
is "no transfer at all has no sums" '[.transfers, .bytes, .host_bytes, .direct]' '[[],null,null,false]'
machine "{\"guest\":{\"gpu0\":$(gpu 100 0 0 8)}}"
is "what the devices counted stands for it" '[.transfers[] | [.program, .what, .path, .bytes, .host_bytes]]' \
	'[["gpu0","in","p2p",100,0],["gpu0","out","host",8,8]]'
is "… and is not what --direct asks for" '[.host_bytes, .direct]' '[8,false]'
machine "{\"a\":{\"gpu0\":$(gpu 0 100 8 8),\"cx0\":{\"data-host-read\":0,\"data-host-write\":0,\"data-peer-read\":100}},
	\"b\":{\"gpu0\":$(gpu 0 0 8 8),\"cx0\":{\"data-host-read\":0,\"data-host-write\":100}}}"
is "a card's messages, and not the engine's operands" '[.transfers[] | [.host, .program, .what, .path, .bytes, .host_bytes]]' \
	'[["a","gpu0","out","p2p",100,0],["b","cx0","in","host",100,100]]'
row a read p2p 100 >rows
machine "{\"a\":{\"gpu0\":$(gpu 100 0 0 0)},\"b\":{\"gpu0\":$(gpu 0 0 8 8)}}"
is "--direct is about files: a host that has read none changes nothing" '[.direct, [.transfers[].host]]' '[true,["a","b","b"]]'

# What the page of a machine is drawn of
# drawn HEAD SEEN WIRE: of machine.json, with the lines SEEN of the hosts
drawn() {
	jq -c -L "$TOP/scenarios/lib/accounting" --argjson seen "$1" --argjson wire "$2" \
		'include "try"; . + {topology: "t", kernel: "7.2"} | page($seen; $wire; {title: "x", accel: "tcg", seconds: 1})' machine.json >page.json
}
of_page() {
	check_eq "$1" "$3" "$(jq -c "$2" page.json)"
}
{ row '' read p2p 100; row '' write bounce 30 | jq -c '.reason = "none fits"'; } >rows
machine "{\"guest\":{\"gpu0\":$(gpu 60 0 0 0)}}"
drawn '[{"host": "guest", "devices": [{"name": "gpu0"}], "counted": {"run": {"links": [{"link": "rp0", "below": "gpu0", "up": 1}]}}}]' null
of_page "each row has its program and its reason; what the GPU lacks is one" '.transfers | map([.what, .path, .bytes, .host_bytes, .reason])' \
	'[["p read","p2p",100,40,"the library says p2p, but the GPUs counted only 60 bytes"],["p write","bounce",30,30,"none fits"]]'
of_page "the machine and its links" '[.scenario, .topology, .title, .devices[0].name, .links]' '["t","t","x","gpu0",[{"link":"rp0","below":"gpu0","up":1}]]'
: >rows
machine "{\"guest\":{\"gpu0\":$(gpu 100 0 8 0)}}"
drawn '[{"host": "guest", "devices": [], "counted": {}}]' null
of_page "that no program has reported is no reason for what went directly" '.transfers | map([.what, .reason != ""])' '[["gpu0 in",false],["gpu0 in",true]]'
of_page "nobody could look at the links" .links '[]'
row b read p2p 100 >rows
machine "{\"a\":{\"gpu0\":$(gpu 0 0 0 0)},\"b\":{\"gpu0\":$(gpu 100 0 0 0)}}"
drawn '[{"host": "a", "devices": [{"name": "x"}], "counted": {}}, {"host": "b", "devices": [], "counted": {}}]' \
	'{"ports": {"a": {"pauses": 0, "out": {"frames": 3}, "in": {}}, "b": {"pauses": 0, "out": {}, "in": {}}}}'
of_page "of several hosts, each is a machine, with the wire between them" \
	'[.devices, (.hosts | map_values(.devices | length)), (.transfers | map([.host, .what])), .wire.total.a.out.frames]' '[[],{"a":1,"b":0},[["b","p read"]],3]'

# What failed is told, beside whatever path the rest took
{ row '' read p2p 100; row '' write bounce 30 | jq -c '.reason = "unaligned at 512"'; row '' - none 0; } | jq -c '.errors = 3' >rows
machine "{\"guest\":{\"gpu0\":$(gpu 100 0 0 0)}}"
drawn '[{"host": "guest", "devices": [], "counted": {"run": {"nvme": {"host": {}}, "links": []}}}]' null
of_page "transfers that failed are told, with a reason and without one" '.transfers | map([.path, .reason])' \
	'[["p2p","3 failed"],["bounce","3 failed: unaligned at 512"],["none","3 failed"]]'
check_eq "the reason's cure is the same" "begin and end transfers at whole blocks, in the file and in GPU memory: multiples of 4096 bytes" \
	"$(jq -r -L "$TOP/scenarios/lib/pictures" 'include "cure"; .transfers[1] | cure' page.json)"
of_page "no page has what a drive's trace says, as most machines have none" '.counted' '{"run":{"links":[]}}'
{ row '' read p2p 100 | jq -c '.reason = "r"'; } >rows
machine "{\"guest\":{\"gpu0\":$(gpu 100 0 0 0)}}"
drawn '[{"host": "guest", "devices": [], "counted": {}}]' null
of_page "where none failed, a direct path has no reason" '.transfers | map(.reason)' '[""]'
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the bytes of each link come from what counted them, and are not guessed
# tags: harness
# tier: check
# timeout: 60
# shellcheck disable=SC2016 # jq programs
. "$TOP/scenarios/lib/case.sh"
need_tool jq

lib=$TOP/scenarios/lib

# machine TEXT: its devices as the results have them, in "devices"
machine() {
	printf 'm q35 - memory=1G %s\n%s\n' "$2" "$1" >machine.topo
	awk -v mode=devices -f "$lib/machine/topology.awk" machine.topo |
		jq -Rnc '[inputs | split(" ") | {name: .[0], kind: .[1], parent: .[2]}
			+ (.[3:] | map(split("=") | {key: .[0], value: .[1]})
			| from_entries)]' >devices
}

# looks NAME LINE…: what sc_snapshot writes; a line is "port NAME COUNTER=BYTES…", "cx …",
# "gpu NAME COUNTER=BYTES…" or "by GPU DEVICE READ WRITE"
looks() {
	name=$1
	shift
	printf '%s\n' "$@" | jq -Rnc '
	[inputs | split(" ")] as $lines |
	def numbers($names): reduce .[2:][] as $w ($names | map({key: ., value: 0})
		| from_entries; . + ($w | split("=") | {(.[0]): (.[1] | tonumber)}));
	$lines[] | select(.[0] != "by") | .[1] as $name |
	if .[0] == "moving" then {kind: "moving"}
	elif .[0] == "port" then {kind: "port", name: $name, modelled: {}, counters: numbers(["peer-read",
		"peer-write", "host-read", "host-write", "upstream-peer-read",
		"upstream-peer-write", "target-read", "target-write", "other", "refused"])}
	elif .[0] == "cx" then {kind: "cx", name: $name, counters: numbers(["dma-host-read",
		"dma-host-write", "dma-peer-read", "dma-peer-write"])}
	else {kind: "gpu", name: $name, counters: numbers(["engine-host-read",
		"engine-host-write", "engine-peer-read", "engine-peer-write",
		"bar1-dma-read", "bar1-dma-write", "coherent-dma-read",
		"coherent-dma-write"]), initiators: [$lines[]
		| select(.[0] == "by" and .[1] == $name) | {id: .[2], bdf: "x",
		  read: (.[3] | tonumber), write: (.[4] | tonumber)}]} end' >"$name"
}

# trace GPU-READ GPU-WRITE HOST-READ HOST-WRITE: bytes of the drive's commands
trace() {
	nvme="{\"gpu0\":{\"data\":{\"read\":$1,\"write\":$2},\"metadata\":{\"read\":0,\"write\":0}},
\"host\":{\"data\":{\"read\":$3,\"write\":$4},\"metadata\":{\"read\":0,\"write\":0}}}"
}

count() {
	jq -L "$lib/accounting" -nc --slurpfile a begin --slurpfile b end \
		--slurpfile d devices --argjson nvme "$nvme" \
		'include "links"; counted($a; $b; $d[0]; $nvme)' >counted ||
		fail "this can be counted"
}

# link PORT: from, up, down, and up/down of peer, redirected, host
link() {
	jq -r --arg p "$1" '.links[] | select(.link == $p) | [.from, .up, .down,
		(.peer, .redirected, .host | "\(.up)/\(.down)")] | map(tostring)
		| join(" ")' counted
}

# traced PORT…: the drives whose links only a trace tells of, where these ports count
traced() {
	jq -c -L "$lib/accounting" 'include "links"; ($ARGS.positional | map({(.): true}) | add) as $ports | [traced($ports)]' \
		devices --args "$@"
}

wrong() {
	jq -r -L "$lib/accounting" --slurpfile d devices \
		'include "links"; inconsistent($d[0])[]' counted
}

# --- below one switch ----------------------------------------------------------

machine 'rp0 root-port pcie.0
sw0 switch rp0 ports=4
gpu0 gpu sw0.0 vram=1G
nvme0 nvme sw0.1 image=disk0'
looks begin 'gpu gpu0 bar1-dma-write=5 engine-host-read=1' 'by gpu0 nvme0 0 5' \
	'port sw0' 'port sw0.0 target-write=5' 'port sw0.1 peer-write=5 host-read=3'
looks end 'gpu gpu0 bar1-dma-write=105 bar1-dma-read=20 engine-host-read=8' \
	'by gpu0 nvme0 20 105' 'port sw0 host-read=47 host-write=9' \
	'port sw0.0 target-write=105 target-read=20 host-read=7' \
	'port sw0.1 peer-write=105 peer-read=20 host-read=43 host-write=9 refused=6'
trace 100 20 8 30
count
check_eq "the drive: what it writes goes up, what it reads comes down" \
	"port counters 109 60 100/20 0/0 9/40" "$(link sw0.1)"
check_eq "the GPU: what is written to it comes down" \
	"port counters 20 107 20/100 0/0 0/7" "$(link sw0.0)"
check_eq "above the switch there is host memory only" \
	"port counters 9 47 0/0 0/0 9/47" "$(link rp0)"
check_eq "what was refused is told apart" 6 \
	"$(jq '.links[] | select(.link == "sw0.1").refused' counted)"
check_eq "a link for each, no more" '["rp0","sw0.0","sw0.1"]' \
	"$(jq -c '[.links[].link]' counted)"
check_eq "all that adds up" '' "$(wrong)"

# each rule can fail
broken() { # WHAT WORDS JQ
	cp counted counted.right
	jq -c "$3" counted.right >counted || fail "$3"
	check_eq "$1 is seen" "$2" "$(wrong)"
	mv counted.right counted
}
broken "a byte that only the upstream port saw" \
	'sw0, host-read: its upstream port, and the ports below: 48 and 47' \
	'.ports.sw0["host-read"] += 1'
broken "a redirected byte that it did not see" \
	'sw0, upstream-peer-write: its upstream port, and the ports below: 0 and 1
nvme0, writes of GPUs: counted by its port, and by them: 101 and 100' \
	'.ports["sw0.1"]["upstream-peer-write"] += 1'
broken "a byte for a peer that did not arrive" \
	'sw0, writes: sent to its devices, and arrived there: 100 and 99
gpu0, writes by others: counted by its port, and by it: 99 and 100' \
	'.ports["sw0.0"]["target-write"] -= 1'
broken "a byte that the GPU did not count" \
	'gpu0, reads by others: counted by its port, and by it: 20 and 19' \
	'.gpus.gpu0["bar1-dma-read"] -= 1'
broken "another drive's bytes" \
	'nvme0, reads of GPUs: counted by its port, and by them: 20 and 10
nvme0, reads of GPUs: in its trace, and by them: 20 and 10' \
	'.initiators.gpu0.nvme0.read = 10'
broken "a byte more than was refused, of both ways together" \
	'nvme0, reads of GPUs: in its trace, and by them: 23 and 20
nvme0, writes of GPUs: in its trace, and by them: 104 and 100' \
	'.nvme.gpu0.data |= (.write += 3 | .read += 4)'
broken "that bytes which were refused, both ways, are no fault" '' '.nvme.gpu0.data |= (.write += 3 | .read += 3)'
broken "less at the port than in the trace" \
	'nvme0, writes of host memory: 9 at its port, and 10 in its trace' \
	'.nvme.host.metadata.read = 2'
# a card counts all that it does, so nothing is left over
machine 'rp0 root-port pcie.0
sw0 switch rp0 ports=2
gpu0 gpu sw0.0 vram=1G
cx0 cx sw0.1'
looks begin 'gpu gpu0' 'cx cx0 dma-host-read=1' 'port sw0' 'port sw0.0' 'port sw0.1 host-read=5'
looks end 'gpu gpu0 bar1-dma-write=30 bar1-dma-read=20' 'by gpu0 cx0 20 30' \
	'cx cx0 dma-host-read=7 dma-host-write=4 dma-peer-read=20 dma-peer-write=30' \
	'port sw0 host-read=6 host-write=4' 'port sw0.0 target-read=20 target-write=30' \
	'port sw0.1 host-read=11 host-write=4 peer-read=20 peer-write=30'
trace 0 0 0 0
count
check_eq "a card: its port knows" "port counters 34 26 30/20 0/0 4/6" "$(link sw0.1)"
check_eq "and it has counted the same" '' "$(wrong)"
broken "a byte of host memory that a card did not count" \
	'cx0, reads of host memory: counted by its port, and by it: 6 and 5' '.cx.cx0["dma-host-read"] -= 1'
broken "a byte of a GPU's that it did not" \
	'cx0, writes of GPUs: counted by its port, and by it: 30 and 29' '.cx.cx0["dma-peer-write"] -= 1'
broken "that numbers of different moments are other ones" '' '.cx.cx0["dma-peer-write"] -= 1 | .moving = true'
machine 'rp0 root-port pcie.0
rp1 root-port pcie.0
gpu0 gpu rp0 vram=1G
cx0 cx rp1'
looks begin 'gpu gpu0' 'cx cx0'
looks end 'gpu gpu0 bar1-dma-write=30' 'by gpu0 cx0 0 30' 'cx cx0 dma-host-read=7 dma-host-write=4 dma-peer-write=30'
count
check_eq "the sum of labels of several machines: each link once, in its place" \
	'[["rp0","gpu0",3,null],["rp1","cx0",5,7],["rp2","cx0",1,1]]' "$(jq -L "$lib/accounting" -nc '
	include "links"; def l($a; $b; $up; $down): {link: $a, below: $b, up: $up, down: $down};
	[[l("rp0"; "gpu0"; 1; 2), l("rp1"; "cx0"; 5; 7)], [l("rp0"; "gpu0"; 2; null), l("rp2"; "cx0"; 1; 1)]]
	| links_sum | map([.link, .below, .up, .down])')"
check_eq "at a root port it is asked itself" "endpoint counters 34 7 0/0 30/0 4/7" "$(link rp1)"

machine 'rp0 root-port pcie.0
sw0 switch rp0 ports=4
gpu0 gpu sw0.0 vram=1G
nvme0 nvme sw0.1 image=disk0'
looks begin 'moving -' 'gpu gpu0' 'port sw0' 'port sw0.0' 'port sw0.1'
looks end 'gpu gpu0' 'port sw0 host-read=50' 'port sw0.0' 'port sw0.1 host-read=47'
trace 0 0 0 0
count
check_eq "it is known that these are numbers of different moments" true \
	"$(jq .moving counted)"
check_eq "numbers of different moments are not compared" '' "$(wrong)"

# --- redirected ----------------------------------------------------------------

looks begin 'gpu gpu0' 'port sw0' 'port sw0.0' 'port sw0.1'
looks end 'gpu gpu0 bar1-dma-write=100' 'by gpu0 nvme0 0 100' \
	'port sw0 upstream-peer-write=100 target-write=100' \
	'port sw0.0 target-write=100' 'port sw0.1 upstream-peer-write=100'
trace 100 0 0 0
count
check_eq "redirected: from the drive up" \
	"port counters 100 0 0/0 100/0 0/0" "$(link sw0.1)"
check_eq "redirected: up and down again above the switch" \
	"port counters 100 100 0/0 100/100 0/0" "$(link rp0)"
check_eq "redirected: down to the GPU" \
	"port counters 0 100 0/0 0/100 0/0" "$(link sw0.0)"
check_eq "and that adds up" '' "$(wrong)"
looks end 'gpu gpu0 bar1-dma-write=150' 'by gpu0 nvme0 0 150' \
	'port sw0 upstream-peer-write=100 target-write=100' \
	'port sw0.0 target-write=150' 'port sw0.1 upstream-peer-write=100 peer-write=50'
count
check_eq "both ways: the drive's port tells them apart" \
	"port counters 150 0 50/0 100/0 0/0" "$(link sw0.1)"
check_eq "both ways: the GPU's does not, and says so" \
	"port counters 0 150 0/null 0/null 0/0" "$(link sw0.0)"

looks end 'gpu gpu0' 'port sw0 target-write=5' 'port sw0.1 target-write=10' \
	'port sw0.0 peer-write=10 target-write=5'
count
check_eq "what a port sends to a peer does not come back to it" \
	"port counters 10 5 10/0 0/5 0/0" "$(link sw0.0)"

# --- a switch below a switch -----------------------------------------------------

machine 'rp0 root-port pcie.0
sw0 switch rp0
gpu0 gpu sw0.0 vram=1G
sw1 switch sw0.1
nvme0 nvme sw1.0 image=disk0'
ports='port sw0:port sw0.0:port sw0.1:port sw1:port sw1.0:gpu gpu0'
IFS=:
# shellcheck disable=SC2086 # lines
looks begin $ports
unset IFS
looks end 'gpu gpu0 bar1-dma-read=70' 'by gpu0 nvme0 70 0' 'port sw0' \
	'port sw0.0 target-read=70' 'port sw0.1 peer-read=70' \
	'port sw1 upstream-peer-read=70' 'port sw1.0 upstream-peer-read=70'
trace 0 70 0 0
count
check_eq "it turned round in the upper switch: peer" \
	"port counters 0 70 0/70 0/0 0/0" "$(link sw1.0)"
check_eq "on the link between the switches too" \
	"port counters 0 70 0/70 0/0 0/0" "$(link sw0.1)"
check_eq "that adds up" '' "$(wrong)"
looks end 'gpu gpu0 bar1-dma-read=70' 'by gpu0 nvme0 70 0' \
	'port sw0 upstream-peer-read=70 target-read=70' \
	'port sw0.0 target-read=70' 'port sw0.1 upstream-peer-read=70' \
	'port sw1 upstream-peer-read=70' 'port sw1.0 upstream-peer-read=70'
count
check_eq "redirected by the upper switch: redirected" \
	"port counters 0 70 0/0 0/70 0/0" "$(link sw1.0)"
check_eq "and that adds up" '' "$(wrong)"
looks end 'gpu gpu0 bar1-dma-read=70' 'by gpu0 nvme0 70 0' \
	'port sw0 upstream-peer-read=30 target-read=30' 'port sw0.0 target-read=70' \
	'port sw0.1 upstream-peer-read=30 peer-read=40' \
	'port sw1 upstream-peer-read=70' 'port sw1.0 upstream-peer-read=70'
count
check_eq "both: the lower switch cannot tell" \
	"port counters 0 70 0/null 0/null 0/0" "$(link sw1.0)"

# --- no ports that count -----------------------------------------------------------

machine 'rp0 root-port pcie.0
rp1 root-port pcie.0
gpu0 gpu rp0 vram=1G
nvme0 nvme rp1 image=disk0'
looks begin 'gpu gpu0'
looks end 'gpu gpu0 engine-host-read=11 engine-host-write=12 bar1-dma-read=20 bar1-dma-write=100' \
	'by gpu0 nvme0 20 100'
trace 100 20 300 40
count
check_eq "a GPU at a root port: its own counters" \
	"endpoint counters 32 111 0/0 20/100 12/11" "$(link rp0)"
check_eq "a drive at a root port: its trace" \
	"endpoint counters 400 60 0/0 100/20 300/40" "$(link rp1)"
check_eq "that adds up" '' "$(wrong)"
broken "a byte that the GPU did not see" \
	'nvme0, writes of GPUs: in its trace, and by them: 100 and 99' \
	'.initiators.gpu0.nvme0.write = 99'

machine 'rp0 root-port pcie.0
rp1 root-port pcie.0
rp2 root-port pcie.0
gpu0 gpu rp0 vram=1G
nvme0 nvme rp1 image=disk0
nvme1 nvme rp2 image=disk1'
count
check_eq "with two drives, nobody knows whose commands they were" \
	"null null null null/null null/null null/null" "$(link rp1)"

# The trace of a machine grows with its IO: who draws needs it only where a link is a trace's
check_eq "of two drives no trace is needed" '[]' "$(traced)"
machine 'rp0 root-port pcie.0
sw0 switch rp0 model=peerlane
nvme0 nvme sw0.1 image=disk0'
check_eq "nor below a port that counts" '[]' "$(traced sw0 sw0.1)"
check_eq "it is below one that does not" '["nvme0"]' "$(traced)"

machine 'rp0 root-port pcie.0
sw0 switch rp0 model=x3130
gpu0 gpu sw0.0 vram=1G
nvme0 nvme sw0.1 image=disk0'
count
check_eq "a switch that does not count: its own link is not known" \
	"null null null null/null null/null null/null" "$(link rp0)"
check_eq "and on those below, how peers reached each other is not" \
	"endpoint counters 400 60 null/null null/null 300/40" "$(link sw0.1)"

# --- an IOMMU that translates: the trace has IOVAs -----------------------------------

machine 'rp0 root-port pcie.0
sw0 switch rp0
gpu0 gpu sw0.0 vram=1G
nvme0 nvme sw0.1 image=disk0' iommu=translated
trace 0 0 150 30
looks begin 'gpu gpu0' 'port sw0' 'port sw0.0' 'port sw0.1'
looks end 'gpu gpu0 bar1-dma-read=20 bar1-dma-write=100' 'by gpu0 nvme0 20 100' \
	'by gpu0 gpu1 1 2' 'port sw0' 'port sw0.0' 'port sw0.1'
count
check_eq "the GPU says which bytes were its own, the rest is host memory" \
	'{"read":100,"write":20} {"read":50,"write":10}' \
	"$(jq -rc '"\(.nvme.gpu0.data) \(.nvme.host.data)"' counted)"

# --- modelled links ------------------------------------------------------------------

machine 'rp0 root-port pcie.0
sw0 switch rp0
gpu0 gpu sw0.0 vram=1G
sw1 switch sw0.1
nvme0 nvme sw1.0 image=disk0'
# books PORT COUNT: as QEMU's property has them, each number its own multiple
books() {
	printf '{"kind":"port","name":"%s","counters":%s,"modelled":{"modelled-bytes-per-second":4000000000,"modelled-latency-ns":100,
"modelled-up":{"transfers":%d,"payload-bytes":%d,"wire-bytes":%d,"busy-ns":%d,"queued-ns":%d,"free-ns":77},
"modelled-down":{"transfers":0,"payload-bytes":0,"wire-bytes":0,"busy-ns":0,"queued-ns":%d,"free-ns":88}}}\n' \
		"$1" "$zeroes" "$2" $(($2 * 2)) $(($2 * 3)) $(($2 * 5)) $(($2 * 7)) $(($2 * 11))
}
looks none 'port x'
zeroes=$(jq -c .counters none)
trace 0 0 0 0
for look in begin:1 end:101; do
	looks "${look%:*}" 'gpu gpu0' 'port sw0' 'port sw0.0'
	for port in sw0.1 sw1 sw1.0; do
		books $port $((${look#*:} * ${#port}))
	done >>"${look%:*}"
done
printf '{"kind":"requesters","list":[{"requester":"%s","modelled-transfers":%d,"modelled-payload-bytes":%d,"modelled-first-ns":%d,"modelled-finish-ns":%d,"modelled-queued-ns":%d,"late":%d}]}\n' \
	nvme0 12 3000 1000 2500 9 4 gpu0 1 8 700 700 0 0 >>end
count
modelled() {
	jq -c --arg p "$1" '.links[] | select(.link == $p).modelled' counted
}
check_eq "differences; speed and latency as they are" \
	'{"bytes_per_second":4000000000,"latency_ns":100,"up":{"transfers":500,"payload_bytes":1000,"wire_bytes":1500,"busy_ns":2500,"queued_ns":3500},"down":{"transfers":0,"payload_bytes":0,"wire_bytes":0,"busy_ns":0,"queued_ns":5500}}' \
	"$(modelled sw1.0)"
check_eq "of a link between switches, the lower one's port keeps the books" 300 \
	"$(modelled sw0.1 | jq .up.transfers)"
check_eq "modelled bandwidth of a device: its bytes by its time" \
	'{"transfers":12,"payload_bytes":3000,"queued_ns":9,"elapsed_ns":1500,"bytes_per_second":2000000000,"late":4}' \
	"$(jq -c .modelled_requesters.nvme0 counted)"
check_eq "without slices it is not said when a link was busy" 0 "$(jq "[.links[].modelled?.up?.when? // empty] | length" counted)"
check_eq "without time there is none" null \
	"$(jq .modelled_requesters.gpu0.bytes_per_second counted)"
check_eq "a link that is not modelled has none" null "$(modelled sw0.0)"
# the books that tell when
jq -c 'if .name == "sw1.0" then .modelled["modelled-up"] += {"first-ns": 40, "slice-ns": 1000, slices: [3, 0, 9]} else . end' end >end.new
mv end.new end
count
check_eq "when a link was busy is that of the label" '{"first_ns":40,"slice_ns":1000,"busy_ns":[3,0,9]}' "$(modelled sw1.0 | jq -c .up.when)"
check_eq "and no part of the sum of labels" null "$(jq -c -L "$lib/accounting" 'include "links"; [.links, .links] | links_sum
	| .[] | select(.link == "sw1.0").modelled.up.when' counted)"
check_eq "labels add up, the speed stays" "600 4000000000" \
	"$(jq -r -L "$lib/accounting" 'include "links"; [.links, .links] | links_sum
		| .[] | select(.link == "sw0.1").modelled
		| "\(.up.transfers) \(.bytes_per_second)"' counted)"

# --- sums ----------------------------------------------------------------------------

check_eq "labels add up, and what one does not know, the sum does not" \
	'[{"link":"a","up":3,"peer":{"up":null},"from":"x"},{"link":"b","up":7,"peer":{"up":9},"from":null}]' \
	"$(jq -L "$lib/accounting" -nc 'include "links"; [
		[{link: "a", up: 1, peer: {up: 1}, from: "x"}, {link: "b", up: 3, peer: {up: 4}, from: "x"}],
		[{link: "a", up: 2, peer: {up: null}, from: "x"}, {link: "b", up: 4, peer: {up: 5}, from: "y"}]]
		| links_sum')"
check_eq "no label, no links" '[]' \
	"$(jq -L "$lib/accounting" -nc 'include "links"; [] | links_sum')"
finish

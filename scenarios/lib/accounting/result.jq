# SPDX-License-Identifier: MIT
#
# What a scenario's result has, docs/reference/results.md as a program.  In a
# shape a word is a type, or several with | in between; a word with = is one of
# these texts; a list has elements of its one shape.  A key with ? may be absent,
# * stands for all keys that are not named, and "or null" is no key.

def bytes: {read: "number", write: "number"};
def both_ways: {"or null": 1, up: "number|null", down: "number|null"};
def modelled_way: {transfers: "number", payload_bytes: "number",
	wire_bytes: "number", busy_ns: "number", queued_ns: "number",
	"when?": {first_ns: "number", slice_ns: "number", busy_ns: ["number"]}};
def modelled: {"or null": 1, bytes_per_second: "number", latency_ns: "number",
	up: modelled_way, down: modelled_way};
def link: {link: "string", below: "string", up: "number|null", down: "number|null",
	peer: both_ways, redirected: both_ways, host: both_ways,
	refused: "number|null", other: "number|null",
	from: "=port counters|endpoint counters|null", modelled: modelled};
def counted_label: {
	nvme: {"*": {data: bytes, metadata: bytes}},
	gpus: {"*": {"*": "number"}},
	"cx?": {"*": {"*": "number"}},
	initiators: {"*": {"*": bytes}},
	ports: {"*": {"*": "number"}},
	modelled: {"*": {"*": "any"}},
	modelled_requesters: {"*": {"*": "any"}},
	links: [link],
	moving: "boolean"};
def transfer: {what: "=read|write|rdma-source|rdma-target",
	path: "=p2p|kernel|coherent|bounce|posix|cache|mixed", bytes: "number",
	cpu_seconds: "number", reason: "string", label: "string",
	host_bytes: "number", metadata_bytes: "number", "*": "any"};
def route: {from: "string", to: "string", bytes: "number", what: "string"};
def device: {name: "string", kind: "string", parent: "string", "*": "string"};
def machine: {topology: "string", devices: [device], "facts?": {"*": "any"},
	"counted?": {"*": counted_label}, links: [link], transfers: [transfer], routes: [route]};
def roce: {frames: "number", payload_bytes: "number", dropped: "number",
	opcodes: {"*": {frames: "number", payload_bytes: "number"}}};
def way: {datagrams: "number", frames: "number", bytes: "number", drops: {runt: "number",
	oversize: "number", link: "number", loss: "number", rule: "number",
	queue: "number", peer: "number", own: "number", full: "number"}, corrupted: "number",
	duplicated: "number", reordered: "number", delayed: "number", marked: "number",
	roce: roce};
def port: {link: "=up|down", queued_most: "number", pauses: "number", in: way, out: (way |
	.roce += {unique_payload_bytes: "number", repeated: "number"})};
def result: machine + {scenario: "string", title: "string", kernel: "string",
	accel: "=tcg|kvm, untested", verdict: "=pass|fail|skip", reason: "string",
	seconds: "number", checks: {passed: "number", failed: "number"},
	"search?": {"*": {"*": {seed: "number", bytes: "number", found: "number",
		longest_run: "number"}}},
	"plot?": {title: "string", svg: "string"},
	# what a scenario adds
	"*": "any"};
def result_of_hosts: result + {transfers: [transfer + {host: "string"}],
	hosts: {"*": machine}, wire: {"*": {"*": port}}};

def unfit($shape; $where):
	def not_($want): "\($where) is not \($want): \(tojson | .[:60])";
	type as $type | ($shape | type) as $is |
	if $is == "string" then
		if $shape == "any" then empty
		elif $shape[:1] == "=" then
			select(IN(tostring; $shape[1:] | split("|")[]) | not)
			| not_("one of " + $shape[1:])
		else select(IN($type; $shape | split("|")[]) | not) | not_("a " + $shape) end
	elif $is == "array" then
		if $type != "array" then not_("a list")
		else to_entries[] | .key as $i | .value | unfit($shape[0]; "\($where)[\($i)]") end
	elif $type == "null" and ($shape | has("or null")) then empty
	elif $type != "object" then not_("an object")
	else
		($shape | del(.["or null"], .["*"]) | with_entries(.key |= rtrimstr("?"))) as $named |
		($shape | keys - (["or null", "*"] + ($named | keys))
			| map(rtrimstr("?"))) as $may |
		(($named | keys) - keys - $may | .[] | "\($where).\(.) is missing"),
		(to_entries[] | .key as $k | .value
			| if $named | has($k) then unfit($named[$k]; "\($where).\($k)")
			elif $shape | has("*") then unfit($shape["*"]; "\($where).\($k)")
			else "\($where).\($k) is nowhere described" end)
	end;

# what is not as it must be, a line for each
def unfit: unfit(if has("hosts") or has("wire") then result_of_hosts else result end; "");

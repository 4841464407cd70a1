# SPDX-License-Identifier: MIT
#
# What each PCIe link of a machine carried, from what devices counted.
#
# links($devices; $c): one entry for each link, named by its upper port.
# $devices is [{name, kind, parent, …}], $c an entry of "counted":
# {ports: {PORT: counters}, gpus: {GPU: counters}, cx: {CARD: counters},
# nvme: what nvme_route_bytes prints}.
#
# Bytes are data, by the way they moved: what the device below reads goes down.
# Bytes between two devices are "peer" when they turned round in a switch,
# "redirected" when they went through the root complex.  null: not known.

# traced($ports): the name of the drive of whose link only the trace of its commands tells; nothing where several drives
# share a trace, or one of these ports counts
def traced($ports): map(select(.kind == "nvme")) | select(length == 1)[] | select($ports[.parent] | not).name;

def links($devices; $c):
	($devices | map({key: .name, value: .}) | from_entries) as $device |
	$c.ports as $ports |

	# the switch that a port belongs to, or null
	def switch_of($port): $device[$port | sub("[.][0-9]+$"; "")]
		| if .kind == "switch" then . else null end;

	# Requests to devices that left SWITCH upwards: where did they turn round?
	def turned($switch; $op):
		$device[$switch].parent as $port | switch_of($port) as $above |
		if $above == null then "redirected"
		elif $ports[$port] == null then null
		elif $ports[$port]["upstream-peer-" + $op] == 0 then "peer"
		else turned($above.name; $op) as $there |
			if $ports[$port]["peer-" + $op] == 0 or $there == "peer"
			then $there else null end
		end;

	# Requests of others that came down PORT: where had they turned round?
	def came($port; $op):
		switch_of($port) as $switch |
		if $switch == null then "redirected"
		elif $ports[$switch.name] == null then null
		elif $ports[$switch.name]["target-" + $op] == 0 then "peer"
		else came($switch.parent; $op) as $there |
			([$ports | to_entries[] | select(.key != $port and
				(.key | startswith($switch.name + ".")))
				| .value["peer-" + $op]] | add // 0) as $siblings |
			if $siblings == 0 or $there == "peer" then $there else null end
		end;

	# PARTS: [{bytes, way}], way being host, peer, redirected or null
	def direction($parts):
		def of($way): [$parts[] | select(.way == $way) | .bytes] | add // 0;
		{total: ([$parts[].bytes] | add), host: of("host")} +
		if any($parts[]; .way == null and .bytes != 0)
		then {peer: null, redirected: null}
		else {peer: of("peer"), redirected: of("redirected")} end;

	def entry($below; $up; $down; $rest):
		direction($up) as $u | direction($down) as $d |
		{link: $below.parent, below: $below.name, up: $u.total, down: $d.total,
		 peer: {up: $u.peer, down: $d.peer},
		 redirected: {up: $u.redirected, down: $d.redirected},
		 host: {up: $u.host, down: $d.host}} + $rest;

	# write data moves with the request, read data against it
	def by_port($below; $n; $turned; $came):
		def parts($own; $target): [
			{bytes: $n["peer-" + $own], way: "peer"},
			{bytes: $n["host-" + $own], way: "host"},
			{bytes: $n["upstream-peer-" + $own], way: $turned[$own]},
			{bytes: $n["target-" + $target], way: $came[$target]}];
		entry($below; parts("write"; "read"); parts("read"; "write");
			{refused: $n.refused, other: $n.other, from: "port counters"});

	# no port counts, and this device does
	def by_endpoint($below; $up; $down):
		entry($below; $up; $down;
			{refused: null, other: null, from: "endpoint counters"});

	def by_gpu($below; $n; $way): by_endpoint($below;
		[{bytes: $n["engine-host-write"], way: "host"},
		 {bytes: ($n["engine-peer-write"] + $n["bar1-dma-read"]
			+ $n["coherent-dma-read"]), way: $way}];
		[{bytes: $n["engine-host-read"], way: "host"},
		 {bytes: ($n["engine-peer-read"] + $n["bar1-dma-write"]
			+ $n["coherent-dma-write"]), way: $way}]);

	def by_cx($below; $n; $way): by_endpoint($below;
		[{bytes: $n["dma-host-write"], way: "host"}, {bytes: $n["dma-peer-write"], way: $way}];
		[{bytes: $n["dma-host-read"], way: "host"}, {bytes: $n["dma-peer-read"], way: $way}]);

	def by_nvme($below; $n; $way):
		def moved($op): [.[] | .data[$op] + .metadata[$op]] | add // 0;
		def parts($op): [{bytes: ($n | {host} | moved($op)), way: "host"},
			{bytes: ($n | del(.host) | moved($op)), way: $way}];
		by_endpoint($below; parts("read"); parts("write"));

	{up: null, down: null} as $unknown |
	[$devices[] | . as $below |
	 select(.parent != "-" and .parent != "pcie.0" and
		$device[.parent].kind != "host-bridge") |
	 switch_of(.parent) as $switch |
	 (if $switch == null then "redirected" else null end) as $way |
	 if $ports[.parent] then
		by_port($below; $ports[.parent];
			{read: turned($switch.name; "read"),
			 write: turned($switch.name; "write")};
			{read: came($below.parent; "read"),
			 write: came($below.parent; "write")})
	 elif $ports[.name] then
		by_port($below; $ports[.name]; {read: $way, write: $way};
			{read: $way, write: $way})
	 elif $c.gpus[.name] then by_gpu($below; $c.gpus[.name]; $way)
	 elif $c.cx[.name]? then by_cx($below; $c.cx[.name]; $way)
	 elif .name | IN($devices | traced($ports)) then by_nvme($below; $c.nvme; $way)
	 else {link: .parent, below: .name} + $unknown + {peer: $unknown,
		redirected: $unknown, host: $unknown, refused: null, other: null,
		from: null} end |
	 # the port that keeps the link's books: of two, that of the lower switch
	 .modelled = ($c.modelled[if $ports[$below.name] then $below.name
		else $below.parent end] // null)];

# The sum of several lists of links; what one does not know of a link, the sum
# does not; when a link was busy is of one label
def links_sum:
	def plus($b): if type == "object" then
			with_entries(.key as $k | if $k == "bytes_per_second" or
				$k == "latency_ns" then . else .value |= plus($b[$k]) end)
		elif type == "number" and ($b | type) == "number" then . + $b
		elif . == $b then . else null end;
	reduce (.[][] | del(.modelled.up.when?, .modelled.down.when?)) as $l ([];
		(map([.link, .below]) | index([[$l.link, $l.below]])) as $i |
		if $i == null then . + [$l] else .[$i] |= plus($l) end);

# looked($replies; $looks): what one look at all devices has found, one object to each: {kind: gpu|cx|port, name, counters,
# initiators (of a GPU), modelled (of a port)}, {kind: "requesters", list}, and {kind: "moving"} when a switch has passed
# something on meanwhile.  $looks has a line "KIND NAME DEVICE PROPERTY" for each of QMP's replies.
def looked($replies; $looks):
	[[$looks | split("\n")[:-1][] | split(" ")], $replies] | transpose
	| map(.[1].return as $value | .[0] | {kind: .[0], name: .[1], property: .[3],
		value: (if $value != null then $value else error("\(.[1]) has no \(.[3])") end)})
	| def of($kind): map(select(.kind == $kind) | .value);
	(group_by([.kind, .name])[] | .[0] as {$kind, $name}
	 | select($kind | IN("gpu", "cx", "port"))
	 | {$kind, $name} + (if $kind == "port" then {modelled: {}} else {} end)
		+ (map({key: .property, value}) | from_entries)),
	(of("requesters")[] | {kind: "requesters", list: .}),
	(if of("before") == of("after") then empty else {kind: "moving"} end);

# What is counted between two looks ($a, $b: lists of sc_snapshot's objects);
# $nvme is what nvme_route_bytes prints
def counted($a; $b; $devices; $nvme):
	def by_name(f): map({key: .name, value: f}) | from_entries;
	def less($old): with_entries(.value -= ($old[.key] // 0));
	def callers: (.initiators // []) | map({key: .id, value: {read, write}})
		| from_entries;
	($a | map(select(.name)) | by_name(.counters)) as $old |
	($a | map(select(.name)) | by_name(callers)) as $before |
	def of($kind): $b | map(select(.kind == $kind)) |
		by_name(.name as $n | .counters | less($old[$n]));
	($a | map(select(.name)) | by_name(.modelled)) as $was |
	# of a modelled link: the sums grow, speed and latency stay
	def books($old):
		def sums($o): {transfers, "payload-bytes", "wire-bytes", "busy-ns",
			"queued-ns"} | less($o) | with_entries(.key |= gsub("-"; "_"));
		# since the label began, as its books did
		def when: if (.slices // []) == [] then {} else {when:
			{first_ns: .["first-ns"], slice_ns: .["slice-ns"], busy_ns: .slices}} end;
		{bytes_per_second: .["modelled-bytes-per-second"],
		 latency_ns: .["modelled-latency-ns"],
		 up: (.["modelled-up"] | sums($old["modelled-up"]) + when),
		 down: (.["modelled-down"] | sums($old["modelled-down"]) + when)};
	{nvme: $nvme, gpus: of("gpu"), cx: of("cx"), ports: of("port"),
	 moving: any($a[], $b[]; .kind == "moving"),
	 modelled: ($b | map(select((.modelled // {}) != {})) |
		by_name(.name as $n | .modelled | books($was[$n]))),
	 modelled_requesters: ([$b[] | select(.kind == "requesters").list[]
		| (.["modelled-finish-ns"] - .["modelled-first-ns"]) as $ns |
		{key: .requester, value: {transfers: .["modelled-transfers"],
		 payload_bytes: .["modelled-payload-bytes"],
		 queued_ns: .["modelled-queued-ns"], elapsed_ns: $ns,
		 bytes_per_second: (if $ns > 0
			then .["modelled-payload-bytes"] * 1000000000 / $ns | floor
			else null end), late}}] | from_entries),
	 initiators: ($b | map(select(.kind == "gpu")) | by_name(.name as $n |
		callers | with_entries(.key as $k |
			.value |= less($before[$n][$k]))))} |

	# Behind an IOMMU that translates, the drive names IOVAs, which say nothing:
	# the GPUs say what came from drives, and the rest was host memory
	if $devices[0].iommu == "translated" then
		[$devices[] | select(.kind == "nvme") | .name] as $drives |
		.initiators as $i |
		reduce (["read", "write"], ["write", "read"]) as [$d, $dma] (.;
			([.nvme[].data[$d]] | add) as $all |
			reduce (.gpus | keys[]) as $g (.; .nvme[$g].data[$d] =
				([$i[$g][$drives[]][$dma] // 0] | add))
			| .nvme.host.data[$d] = $all -
				([.nvme | del(.host)[].data[$d]] | add // 0))
	else . end |
	.links = links($devices; .);

# inconsistent($devices): what of an entry of "counted" does not add up, in words.
# Devices count independently, so these are checks of what they say.
def inconsistent($devices):
	. as $c | .ports as $ports | .initiators as $i |
	def sum(f): [f] | add // 0;
	def same($what; $a; $b): if $a == $b then empty
		else "\($what): \($a) and \($b)" end;
	[($devices[] | select(.kind == "switch" and $ports[.name]).name) as $s |
	 [$ports | to_entries[] | select(.key | startswith($s + ".")) | .value]
		as $below |
	 ("read", "write") as $op |
	 # (each port has counted at the same moment)
	 (select($c.moving | not) |
	  ("host-" + $op, "upstream-peer-" + $op) as $n |
	  same("\($s), \($n): its upstream port, and the ports below";
		$ports[$s][$n]; sum($below[][$n]))),
	 # what leaves a port for a peer arrives at another
	 same("\($s), \($op)s: sent to its devices, and arrived there";
		sum($below[]["peer-" + $op]) + $ports[$s]["target-" + $op];
		sum($below[]["target-" + $op]))] +
	[$devices[] | select(.kind == "gpu" and $ports[.parent]) | . as $gpu |
	 ("read", "write") as $op |
	 same("\($gpu.name), \($op)s by others: counted by its port, and by it";
		$ports[$gpu.parent]["target-" + $op];
		sum($c.gpus[$gpu.name]["bar1-dma-" + $op, "coherent-dma-" + $op]))] +
	[$devices[] | select(.kind == "nvme" and $ports[.parent]) | . as $nvme |
	 ("read", "write") as $op |
	 same("\($nvme.name), \($op)s of GPUs: counted by its port, and by them";
		sum($ports[$nvme.parent]["peer-" + $op, "upstream-peer-" + $op]);
		sum($i[][$nvme.name][$op]))] +
	# A card counts all its DMA, so that nothing is left over
	[$devices[] | select(.kind == "cx" and $ports[.parent] and ($c.moving | not)) | . as $cx |
	 ("read", "write") as $op |
	 same("\($cx.name), \($op)s of GPUs: counted by its port, and by it";
		sum($ports[$cx.parent]["peer-" + $op, "upstream-peer-" + $op]);
		$c.cx[$cx.name]["dma-peer-" + $op]),
	 same("\($cx.name), \($op)s of host memory: counted by its port, and by it";
		$ports[$cx.parent]["host-" + $op]; $c.cx[$cx.name]["dma-host-" + $op])] +
	# The trace has the bytes of read and write commands; queues are more
	[[$devices[] | select(.kind == "nvme")] | select(length == 1)[] | . as $nvme |
	 [["read", "write"], ["write", "read"]] as $ways |
	 def traced($command): sum($c.nvme | del(.host)[][][$command]);
	 def seen($op): sum($i[][$nvme.name][$op]);
	 # what its port has refused, of both ways together, is in the trace all the same
	 (sum($ways[] as [$op, $command] | [traced($command) - seen($op), 0] | max) >
	  ($ports[$nvme.parent].refused // 0)) as $lost |
	 $ways[] as [$op, $command] |
	 (traced($command) as $traced | seen($op) as $counted |
	  select($counted > $traced or ($lost and $counted < $traced)) |
	  "\($nvme.name), \($op)s of GPUs: in its trace, and by them: \($traced) and \($counted)"),
	 (select($ports[$nvme.parent]) |
	  sum($c.nvme.host[][$command]) as $traced |
	  $ports[$nvme.parent]["host-" + $op] as $counted |
	  select($counted < $traced) |
	  "\($nvme.name), \($op)s of host memory: \($counted) at its port, and \($traced) in its trace")];

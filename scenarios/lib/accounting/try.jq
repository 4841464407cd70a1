# SPDX-License-Identifier: MIT
#
# What scenarios/try says of a machine: its programs report paths, its devices count bytes.
#
#	machine($reported; $counted)
#
# $reported are lines of libcufile's, on "host" if there are several; $counted has for each host, of which a single
# one is "guest", what each device counted while the command ran.

include "links";
include "hosts";

def said_direct: .path | IN("p2p", "kernel", "coherent");

# Bytes that other devices moved in this direction to or from the memory of GPUs
def at_gpus($devices; $what):
	(if $what == "read" then "write" else "read" end) as $dma
	| [$devices[] | .["bar1-dma-\($dma)"], .["coherent-dma-\($dma)"] | numbers] | add // 0;

# What libcufile reported on one host, with host_bytes: what it reports as staged, and what it calls direct and no GPU
# has counted. No counter knows of which transfer a byte is: of several in one direction the last ones lack them.
def reported_rows($devices):
	reduce .[] as $row ({left: ({read: 0, write: 0} | with_entries(.value = at_gpus($devices; .key))), rows: []};
		if ($row | said_direct) and .left[$row.what] then
			([.left[$row.what], $row.bytes] | min) as $seen
			| .left[$row.what] -= $seen
			| .rows += [$row + {host_bytes: ($row.bytes - $seen)}
				+ if $seen < $row.bytes then {reason: "the library says \($row.path), but the GPUs counted only \($seen) bytes"} else {} end]
		else
			.rows += [$row + {host_bytes: (if $row.path == "none" then 0 else $row.bytes end)}]
		end)
	| .rows;

# Where no program has reported anything, as one that a signal ended or that uses RDMA: what devices counted. To and from
# host memory it is the messages of cards; without a card, what the engines of GPUs copied, with their operands and
# completion records.
def counted_rows($devices):
	any($devices[]; has("data-host-read")) as $card
	| [$devices | to_entries[] | .key as $device | .value
		| {what: "in", path: "p2p", bytes: .["bar1-dma-write"]}, {what: "out", path: "p2p", bytes: .["bar1-dma-read"]},
		  {what: "in", path: "coherent", bytes: .["coherent-dma-write"]}, {what: "out", path: "coherent", bytes: .["coherent-dma-read"]},
		  (if $card then {what: "in", path: "host", bytes: .["data-host-write"]}, {what: "out", path: "host", bytes: .["data-host-read"]}
		   else {what: "in", path: "host", bytes: .["engine-host-read"]}, {what: "out", path: "host", bytes: .["engine-host-write"]} end)
		| select((.bytes // 0) > 0)
		| {program: $device} + . + {errors: 0, reason: "counted by the device: no program reported a path",
		   host_bytes: (if .path == "host" then .bytes else 0 end)}];

def machine($reported; $counted):
	def total(f): map(f) | add;	# of nothing there is no sum, and a condition on one is not met
	def of($host): [$reported[] | select((.host // "guest") == $host)];
	# what a host reports as direct is staged where its counters are missing
	[([$reported[] | {(.host // "guest"): {}}] + [$counted] | add | keys[]) as $host
	 | of($host) | reported_rows($counted[$host] // {})[]] as $files
	| $files + [($counted | keys[]) as $host | select(of($host) == []) | counted_rows($counted[$host])[]
		| if $host == "guest" then . else {host: $host} + . end]
	| {transfers: ., bytes: total(.bytes), host_bytes: total(.host_bytes),
	   counted: (if $counted | has("guest") then $counted.guest else $counted end),
	   direct: ($files != [] and all($files[]; .errors == 0 and .host_bytes == 0 and said_direct))};

# Why a row took its path, and how many transfers of its program failed
def why: [(select(.errors > 0) | "\(.errors) failed"), (.reason | select(. != ""))] | join(": ");

# page($seen; $wire; $head): of a machine's result, what scenarios/report draws, without its verdict. $seen has {host, devices, counted}
# of each host, $wire is what the wire counted (null: there is none), $head more keys. That something is counted and not reported is
# no reason for a path. What a drive's trace says is left out, as most machines have none.
def page($seen; $wire; $head):
	. as $machine
	| def rows($host): [$machine.transfers[] | select((.host // "guest") == $host)
		| {what: "\(.program) \(.what)", path, bytes, host_bytes,
		   reason: (if .host_bytes == 0 and said_direct and .errors == 0 then "" else why end)}
		+ if .what | IN("in", "out") then {counted: true} else {} end];
	def drawn: {topology: $machine.topology, devices, counted: (.counted | map_values(del(.nvme))), links: ([.counted[].links] | links_sum), transfers: rows(.host), routes: []};
	$head + {scenario: $machine.topology, topology: $machine.topology, kernel: $machine.kernel} as $head
	| if $wire then hosts_result([$seen[] | {(.host): drawn}]; []; $wire; [$head]) else $head + ($seen[0] | drawn) end;

# SPDX-License-Identifier: MIT
#
# The result of several hosts and the wire between them.

# what was counted between two looks at the wire: numbers grow
def wire_less($old):
	if type == "object" then with_entries(.key as $k | .value |= wire_less($old[$k]?))
	elif type == "number" then . - ($old // 0)
	else . end;

def wire_between($begin; $end):
	$end.ports | with_entries(.key as $port | .value |= {link, queued_most,
		pauses: (.pauses - ($begin.ports[$port].pauses // 0)),
		out: (.out | wire_less($begin.ports[$port].out)),
		in: (.in | wire_less($begin.ports[$port].in))}
		| .value |= del(.out.rules_left, .in.rules_left));

# $hosts: [{HOST: result}], $looks: [{label, begin, end}] of all hosts, $total: the
# wire's last counters, $extra: what the scenario adds.
# A label that several hosts have is counted from the first's begin to the last's end.
def hosts_result($hosts; $looks; $total; $extra):
	($hosts | add) as $hosts |
	reduce $extra[] as $x ({}; . * ($x | del(.devices))) |
	.hosts = $hosts |
	.wire = ([$looks | group_by(.label)[] | {key: .[0].label,
		value: wire_between([.[].begin] | min_by(.look); [.[].end] | max_by(.look))}]
		| from_entries) |
	.wire.total = wire_between({}; $total) |
	.transfers = [$hosts | to_entries[] | .key as $host
		| (.value.transfers // [])[] | {host: $host} + .] |
	.routes = [$hosts | to_entries[] | .key as $host | (.value.routes // [])[]
		| .from |= "\($host):\(.)" | .to |= "\($host):\(.)"] |
	.devices = [] | .links = [];

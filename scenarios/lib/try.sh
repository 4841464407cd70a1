#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The half of scenarios/try that runs the machines:
#
#	try.sh			all of TRY_TOPOLOGIES, the table, the expectations
#	try.sh MACHINE OUT	one of them, with its artefacts and machine.json in OUT

set -u
: "${TRY_OUT:?is set by scenarios/try}"
TOP=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd -P) || exit 2
# shellcheck source=scenarios/lib/where.sh
. "$TOP/scenarios/lib/where.sh"
# shellcheck source=scenarios/lib/options.sh
. "$TOP/scenarios/lib/options.sh"

# --- one machine ------------------------------------------------------------------

# said GUEST: what the command printed, and what the GPUs counted
said() {
	tr -d '\r' <"$OUT/$1/result.log" | awk '
		function flush() { if (held) print line; held = 0 }
		/^@end$/ { if (line == "") held = 0; flush(); next }
		/^@/ { next }
		{ flush(); line = $0; held = 1 }
		END { flush() }'
	counted "$1" | jq -r '([.[] | select(has("bar1-dma-read"))] | length) as $n | to_entries[] | .key as $name | .value |
		if has("data-peer-read") then
			"\($name) counted: of messages, to memory of other devices \(.["data-peer-write"]) bytes, from it \(.["data-peer-read"]); to host memory \(.["data-host-write"]), from it \(.["data-host-read"])"
		elif has("peer-read") then
			"\($name) counted: to other devices below the switch \(.["peer-write"]) bytes, from them \(.["peer-read"]); to host memory \(.["host-write"]), from it \(.["host-read"])"
		else "\(if $n > 1 then $name else "the GPU" end) counted: by other devices to its memory \(.["bar1-dma-write"]) bytes, from it \(.["bar1-dma-read"]); by its engine from host memory \(.["engine-host-read"]), to it \(.["engine-host-write"])" end'
}

# counted GUEST: {gpu0: what it counted while the command ran}; so have a ConnectX, and the port above it
counted() {
	tr -d '\r' <"$OUT/$1/result.log" | sed -n 's/^@counted //p' | jq -sc '
		(length / 3) as $n | [range($n) as $i | .[3 * $i:][:3] | select(.[1] != {} and .[2] != {}) |
		{(.[0]): (.[1] as $a | .[2] | with_entries(.key as $k | .value -= ($a[$k] // 0)))}] | add // {}'
}

# transfers GUEST: what programs have said about their paths
transfers() {
	tr -d '\r' <"$OUT/$1/result.log" | sed -n 's/^@path //p' | jq -Rc --arg host "$1" '
		split("\t") | {program: .[0], what: .[1], path: .[2], bytes: (.[3] | tonumber),
			errors: (.[4] | tonumber), reason: .[5]}
		| if $host == "guest" then . else {host: $host} + . end'
}

# looks: with --report, guests have all devices looked at before and after the command (scenario.sh)
looks() {
	[ -n "$TRY_REPORT" ] || return 0
	# shellcheck source=scenarios/lib/scenario.sh
	. "$TOP/scenarios/lib/scenario.sh"
	# a trace grows with the IO
	VM_TRACE=$(sc_devices_json | jq -r -L "$VM_ACCOUNTING" --arg ports "$(sc_ports)" --arg events "$VM_TRACE_NVME" '
		include "links"; ($ports / "\n" | map({(.): true}) | add) as $ports | traced($ports) | $events')
	SC_BLOCKS=
	: "${SC_HOSTS=}"
	: >"$TRY_OUT/case/report"
	read -r began rest </proc/uptime
	: "$rest"
}

# page GUEST...: page.json, what scenarios/report draws of machine.json, but for its verdict; of devices that nobody could look at
# nothing was counted
page() {
	SC_DEVICES=$(sc_devices_json)
	for each; do
		{ [ ! -s "$OUT/$each/run.end.counted" ] || sc_counted "$each" run; } |
			jq -nc --arg host "$each" --argjson devices "$SC_DEVICES" '{$host, $devices, counted: {}} + ([inputs] | add // {})'
	done >"$OUT/seen.jsonl"
	[ $# -eq 1 ] || cp "$OUT/wire/counters.json" "$OUT/wire.json" || return
	[ $# -gt 1 ] || echo null >"$OUT/wire.json"
	read -r ended rest </proc/uptime
	jq -c --rawfile title "$TRY_OUT/title" --arg accel "$(vm_accel | sed 's/,.*//; s/^kvm$/kvm, untested/')" \
		--argjson seconds "$(echo "$began $ended" | awk '{ printf "%.2f", $2 - $1 }')" \
		--slurpfile seen "$OUT/seen.jsonl" --slurpfile wire "$OUT/wire.json" -L "$VM_ACCOUNTING" \
		'include "try"; page($seen; $wire[0]; {title: ($title | sub("\\s+\\z"; "")), $accel, $seconds})' "$OUT/machine.json" >"$OUT/page.json"
	rm -f "$OUT/seen.jsonl" "$OUT/wire.json"
}

# measured MACHINE STATUS GUEST...: machine.json
measured() {
	measured_of=$1 measured_status=$2
	shift 2
	for each; do
		[ -e "$OUT/$each/result.log" ] || continue
		transfers "$each"
	done | jq -sc . >"$OUT/transfers.json"
	for each; do
		[ -e "$OUT/$each/result.log" ] || continue
		jq -nc --arg host "$each" --argjson c "$(counted "$each")" '{($host): $c}'
	done | jq -sc add >"$OUT/counted.json"
	jq -nc --arg topology "$measured_of" --arg kernel "$TRY_KERNEL" --argjson status "$measured_status" \
		--slurpfile t "$OUT/transfers.json" --slurpfile c "$OUT/counted.json" -L "$TOP/scenarios/lib/accounting" \
		'include "try"; {$topology, $kernel, $status} + machine($t[0]; $c[0] // {})' >"$OUT/machine.json" ||
		die "the machine's result cannot be put together"
	rm -f "$OUT/transfers.json" "$OUT/counted.json"
	[ -z "$TRY_REPORT" ] || page "$@"
}

# one_host: the machine of TRY_TOPOLOGY to its end
one_host() {
	# shellcheck source=scenarios/lib/machine/vm.sh
	. "$TOP/scenarios/lib/machine/vm.sh"
	trap 'vm_cleanup; tidy' EXIT
	trap 'exit 130' INT TERM HUP
	faults_allowed
	SC_TOPOLOGY=$TRY_TOPOLOGY
	looks
	if topology images "$TRY_TOPOLOGY" | grep -qx disk0; then
		vm_image disk0 "$OUT/disk0"
	fi
	# those of the machine before it
	rm -f "$TRY_OUT/case/extras" "$TRY_OUT/case/modules"
	! has_card || carries "$TRY_OUT/case" ib_uverbs
	vm_run guest "$TRY_TOPOLOGY" "$TRY_KERNEL" "$TRY_OUT/case" "$TRY_TIME"
	status=$?
	[ ! -e "$OUT/guest/result.log" ] || said guest
	late
	measured "$(topology_short "$TRY_TOPOLOGY")" "$status" guest
	exit "$status"
}

# carries CASE MODULE…: what the guest loads beside the drivers of drives and GPUs, and needs for RDMA; with that of a
# ConnectX if the machine has one
carries() {
	case_of=$1
	shift
	echo rdma >"$case_of/extras"
	if has_card; then
		echo mlx5 >>"$case_of/extras"
		set -- mlx5_ib "$@"
	fi
	printf '%s\n' "$@" nvme peerlane_gpu >"$case_of/modules"
}

has_card() {
	topology devices "$TRY_TOPOLOGY" | grep -q '^[^ ]* cx '
}

# Several hosts; the status is the first one's that is not 0
several_hosts() {
	# shellcheck source=scenarios/lib/case.sh
	. "$TOP/scenarios/lib/case.sh"
	# shellcheck source=scenarios/lib/machine/vm.sh
	. "$TOP/scenarios/lib/machine/vm.sh"
	# shellcheck source=scenarios/lib/machine/hosts.sh
	. "$TOP/scenarios/lib/machine/hosts.sh"
	at_exit tidy
	faults_allowed
	SC_TOPOLOGY=$TRY_TOPOLOGY
	SC_KERNEL=$TRY_KERNEL
	looks
	cp -R "$TRY_OUT/case" "$OUT/" 2>/dev/null || [ "$OUT" = "$TRY_OUT" ] || exit 2
	carries "$OUT/case" virtio_net rdma_rxe ib_uverbs rdma_ucm
	if topology images "$TRY_TOPOLOGY" | grep -qx disk0; then
		for host in $(echo "a b c d e f g h" | cut -d " " -f "-$TRY_HOSTS"); do
			cp --sparse=always "$OUT/disk0" "$OUT/disk0.$host"
			hosts_image "$host" disk0 "$OUT/disk0.$host"
		done
	fi
	HOSTS_PATIENCE=$TRY_TIME
	hosts_start "$TRY_HOSTS"
	status=0
	end=$(($(hosts_clock) + TRY_TIME))
	for host in $SC_HOSTS; do
		left=$((end - $(hosts_clock)))
		[ "$left" -ge 5 ] || left=5
		vm_wait "$host" "$left"
		got=$?
		[ "$status" -ne 0 ] || status=$got
		said "$host" | sed "s/^/$host: /"
	done
	late
	wire_stop || status=1
	jq -r '.ports | to_entries[] | "the wire counted: of \(.key) \(.value.out.roce.unique_payload_bytes) bytes of RoCE payload (and \(.value.out.roce.repeated) frames again), to it \(.value.in.roce.payload_bytes)"' \
		"$OUT/wire/counters.json" 2>/dev/null
	# shellcheck disable=SC2086 # a list
	measured "$(topology_short "$TRY_TOPOLOGY")" "$status" $SC_HOSTS
	exit "$status"
}

# faults_allowed: a fault of the user's program, or what it asked for, is no complaint about the
# machine; its status tells
faults_allowed() {
	vm_allow '[[][0-9]+[]]: segfault at ' "a program's fault"
	vm_allow 'traps: .*[[][0-9]+[]] (trap invalid opcode|general protection fault) ip:' \
		"a program's fault"
	vm_allow 'mm/page_alloc[.]c:.* rxe_mr_init_user[+]' \
		"a region of more than 1 GiB: soft-RoCE asks for one piece of memory, and fails"
}

late() {
	[ -z "${vm_late-}" ] || echo "$PROGRAM: the machine reached the time limit of $TRY_TIME s; set another limit with --timeout SECONDS" >&2
}

tidy() {
	[ -n "$TRY_KEEP" ] || rm -rf "$OUT"/disk0*
}

if [ $# -gt 0 ]; then
	TRY_TOPOLOGY=$1
	OUT=$2
	export OUT
	mkdir -p "$OUT" && truncate -s "$TRY_DISK" "$OUT/disk0" || exit 2
	[ "$TRY_HOSTS" -gt 1 ] || one_host
	several_hosts
fi

# --- all of them -----------------------------------------------------------------

OUT=$TRY_OUT
trap '[ -n "$TRY_KEEP" ] || rm -rf "$OUT/case/files"' EXIT
trap 'exit 130' INT TERM HUP
[ -z "$TRY_DIRECT" ] || echo '.direct == true' >>"$OUT/expect"
while IFS= read -r condition; do
	found=$(jq -n -L "$TOP/scenarios/lib/accounting" "include \"expect\"; def it: ($condition); empty" 2>&1) ||
		die "--expect $condition: $(printf '%s\n' "$found" | head -n 1)"
done <"$OUT/expect"
mkdir -p "$OUT/case/lib"
cp "$TOP"/scenarios/lib/guest/*.sh "$OUT/case/lib/"
cp "$TOP/scenarios/lib/guest/try" "$OUT/case/run"
chmod +x "$OUT/case/run"
if [ ! -f "$TOP/BUNDLE" ]; then
	mkdir -p "$BUILD/scenarios"
	flock "$BUILD/scenarios" make -s -C "$TOP/scenarios" TOP="$TOP" O="$BUILD/scenarios" "$BUILD/scenarios/paths.so" >"$OUT/make.log" 2>&1 ||
		die "cannot build paths.so, which reports the paths of transfers: $(tail -n 5 "$OUT/make.log")"
fi
cp "$BUILD/scenarios/paths.so" "$OUT/case/"

# Of the libraries that programs need the guest has some; the others go with them
for each in base overlay; do
	cpio -t --quiet <"$BUILD/guest/$TRY_KERNEL/$each.cpio"
done | sed 's|.*/||' | sort -u >"$OUT/guest-has"
for each in "$OUT"/libraries/*; do
	[ -e "$each" ] || continue
	each=${each##*/}
	grep -qxF "$each" "$OUT/guest-has" || [ -e "$OUT/case/files/$each" ] || mv "$OUT/libraries/$each" "$OUT/case/files/"
done
rm -rf "$OUT/libraries"
sort -u "$OUT/lacking" | while read -r each file rest; do
	: "$rest"
	grep -qxF "$each" "$OUT/guest-has" || [ -e "$OUT/case/files/$each" ] ||
		echo "$PROGRAM: $file needs $each, which neither this host nor the guest has; add it with --add" >&2
done
rm -f "$OUT/lacking" "$OUT/guest-has"

# Killed outright it is not waited for; its guard ends what it has started
RELAY_SIGNAL=KILL
machine_ended() {
	[ ! -e "$1/.guard" ] || flock -w 60 "$1/.guard" true
	[ -n "$TRY_KEEP" ] || rm -rf "$1"/disk0*
	exit "$relay_ended"
}

count=$(printf '%s\n' "$TRY_TOPOLOGIES" | wc -l)
status=0
number=0
: >"$OUT/machines.jsonl"
: >"$OUT/pages.jsonl"
printf '%s\n' "$TRY_TOPOLOGIES" >"$OUT/topologies"
while IFS= read -r topology <&4; do
	number=$((number + 1))
	of=$OUT
	if [ "$count" -gt 1 ]; then
		of=$OUT/$number
		echo "--- $(topology_short "$topology")"
	fi
	relay sh "$0" "$topology" "$of" 4<&-
	got=$?
	[ -z "$relay_ended" ] || machine_ended "$of"
	[ "$status" -ne 0 ] || status=$got
	if [ -s "$of/machine.json" ]; then
		cat "$of/machine.json" >>"$OUT/machines.jsonl"
	else
		jq -nc --arg topology "$(topology_short "$topology")" --arg kernel "$TRY_KERNEL" --argjson status "$got" \
			'{$topology, $kernel, $status, transfers: [], bytes: null, host_bytes: null, counted: {}, direct: false}' >>"$OUT/machines.jsonl"
	fi
	if [ -s "$of/page.json" ]; then
		cat "$of/page.json"
	else
		echo null
	fi >>"$OUT/pages.jsonl"
done 4<"$OUT/topologies"

# The table
jq -r -L "$TOP/scenarios/lib/accounting" -L "$TOP/scenarios/lib/pictures" 'include "try"; include "line";
	.topology as $machine | .transfers[]
	| [$machine, (if .host then .host + ": " else "" end) + .program + " " + .what, .path, .bytes, .host_bytes, why] | line' \
	"$OUT/machines.jsonl" | awk -F '\t' '
	{
		for (i = 1; i <= 5; i++) {
			cell[NR, i] = $i
			if (length($i) > wide[i])
				wide[i] = length($i)
		}
		why[NR] = $6
	}
	END {
		if (!NR)
			exit
		split("machine transfer path bytes through_host_memory", head, " ")
		sub(/_/, " ", head[5])
		sub(/_/, " ", head[5])
		for (i = 1; i <= 5; i++)
			if (length(head[i]) > wide[i])
				wide[i] = length(head[i])
		row = "%-" wide[1] "s  %-" wide[2] "s  %-" wide[3] "s  %" wide[4] "s  %" wide[5] "s  %s\n"
		print ""
		printf row, head[1], head[2], head[3], head[4], head[5], "why"
		for (n = 1; n <= NR; n++)
			printf row, cell[n, 1], cell[n, 2], cell[n, 3], cell[n, 4], cell[n, 5], why[n]
	}' | sed 's/ *$//'

# What was expected of each machine
missed=0
: >"$OUT/missed.jsonl"
while IFS= read -r condition; do
	number=-1
	while IFS= read -r machine; do
		number=$((number + 1))
		found=$(printf '%s\n' "$machine" | jq -r -L "$TOP/scenarios/lib/accounting" --arg text "$condition" \
			"include \"expect\"; judge($condition; \$text)" 2>&1)
		[ -n "$found" ] || continue
		missed=1
		jq -nc --argjson machine "$number" --arg condition "$condition" '{$machine, $condition}' >>"$OUT/missed.jsonl"
		printf '%s: not met on %s: %s (%s)\n' "$PROGRAM" "$(printf '%s\n' "$machine" | jq -r .topology)" "$condition" \
			"$(printf '%s\n' "$found" | head -n 1)" >&2
	done <"$OUT/machines.jsonl"
done <"$OUT/expect"
[ "$status" -ne 0 ] || status=$missed
jq -sc --rawfile command "$OUT/case/command" --rawfile expect "$OUT/expect" --argjson status "$status" --argjson met "$((1 - missed))" '
	{command: ($command | rtrimstr("\n")), $status, expect: ($expect / "\n" | map(select(. != ""))), met: ($met == 1), machines: .}' \
	"$OUT/machines.jsonl" >"$OUT/result.json"
if [ -n "$TRY_REPORT" ]; then
	jq -nc --slurpfile machines "$OUT/machines.jsonl" --slurpfile missed "$OUT/missed.jsonl" '
		[inputs] | to_entries[] | select(.value) | .key as $n | .value + ([
			($machines[$n].status | select(. != 0) | "The command ended with status \(.)."),
			($missed[] | select(.machine == $n) | "Not met: \(.condition)")]
			| {verdict: (if . == [] then "pass" else "fail" end), reason: join(" ")})' "$OUT/pages.jsonl" >"$OUT/pages"
	if [ -s "$OUT/pages" ]; then
		sh "$TOP/scenarios/report" "$OUT/report.html" "$OUT/pages" || status=2
	else
		echo "$PROGRAM: no page: no machine ran" >&2
	fi
fi
rm -f "$OUT/machines.jsonl" "$OUT/pages.jsonl" "$OUT/pages" "$OUT/missed.jsonl" "$OUT/topologies" "$OUT/expect" "$OUT/make.log" "$OUT/title"
if [ -n "$TRY_KEEP" ]; then
	: >"$OUT/keep"
	echo "kept: $OUT"
fi
exit "$status"

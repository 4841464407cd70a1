# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154 # from scenario.sh
#
# What the RDMA scenarios share on the host's side.
#
# shellcheck source=scenarios/lib/machine/hosts.sh
. "$TOP/scenarios/lib/machine/hosts.sh"

# rdma_case PROGRAM [LINE…]: the guests' part; the lines go to /case/env
rdma_case() {
	hosts_case "$BUILD/scenarios/$1"
	shift
	printf '%s\n' "$@" >"$OUT/case/env"
}

# host search LABEL SEED BYTES: how much of that pattern lies in the machine's
# memory, VM_RAM_FILE, which VRAM is no part of; becomes .search.HOST.LABEL of the result
host_search() {
	rdma_host=$1
	# shellcheck disable=SC2086 # three words
	set -- $2
	rdma_found=$("$BUILD/scenarios/find-pattern" "$OUT/$rdma_host/ram" \
		"$2:$3" 2>&1) ||
		{ echo "error: search: $rdma_found"; return; }
	sc_add --arg host "$rdma_host" --arg label "$1" --argjson found "$rdma_found" \
		'{search: {($host): {($label): $found[0]}}}'
	echo ok
}

# host more PORT.WAY N OPCODE SECONDS: until so many more frames have come by
host_more() {
	# shellcheck disable=SC2086 # four words
	set -- $2
	rdma_now=$(wire_ask counters | jq --arg port "${1%.*}" --arg way "${1#*.}" \
		--arg opcode "$3" '.ports[$port][$way].roce.opcodes[$opcode].frames // 0')
	wire "$1" wait $((rdma_now + $2)) "$3" "$4"
}

# host lost PORT.WAY SECONDS: until a link that is down has swallowed something
host_lost() {
	# shellcheck disable=SC2086 # two words
	set -- $2
	rdma_until=$(($(hosts_clock) + $2))
	while [ "$(hosts_clock)" -le "$rdma_until" ]; do
		wire_ask counters | jq -e --arg port "${1%.*}" --arg way "${1#*.}" \
			'.ports[$port] | .link == "down" and .[$way].drops.link > 0' \
			>/dev/null && { echo ok; return; }
		sleep 0.1
	done
	echo "error: lost: the link of $1 has swallowed nothing within $2 s"
}

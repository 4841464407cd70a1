#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane perf's figures in text, JSON and plot, of measurements that are known
# tags: rdma perf
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool jq gnuplot
unit=$BUILD/userlib/tests/host/perf_print_unit
need_file "$unit"

# WRITEs of 4096 bytes. Direct: median 2 us; a stream of 600 in 0.25 s. Staged: 9 us; 200 in 0.5 s.
check "JSON is printed" sh -c "'$unit' json hard >report.json"
json() { check "JSON: $1" jq -e "$2" report.json; }
one='def one(t; w; m): .transfers[] | select(.test == t and .what == w and .memory == m);'
json "600 times 4096 bytes are 2457600, counted once" "$one"'
	one("stream"; "write"; "direct") | .bytes == 2457600 and .messages == 600'
json "in 0.25 s that is 9830400 bytes and 2400 messages a second" "$one"'
	one("stream"; "write"; "direct") | .seconds == 0.25 and
	.bytes_per_second == 9830400 and .messages_per_second == 2400'
json "200 times 4096 bytes in 0.5 s are 1638400 bytes a second" "$one"'
	one("stream"; "write"; "staged") | .bytes_per_second == 1638400 and .messages_per_second == 400'
json "each percentile is by its name, in microseconds" "$one"'
	one("latency"; "write"; "direct").microseconds ==
	{min: 1, mean: 2.5, p50: 2, p90: 4, p99: 5, "p99.9": null, max: 3}'
json "what each end staged, and its link sent" "$one"'
	one("latency"; "write"; "staged") | [.staged_here, .staged_there, .notices_here, .notices_there] ==
	[11, 22, 33, 44]'
json "warm-up, depth, processor time" "$one"'
	one("stream"; "write"; "direct") | .warm_up == 10 and .depth == 16 and .cpu_seconds == 0.125'
json "who computed the CRC" '[.transfers[] | .crc_by == if .memory == "host" then "cpu" else "gpu" end] | all'
json "direct against staged: 4.5 times the latency, 6 times the rate" '.compared ==
	[{what: "write", size: 4096, latency: 4.5, rate: 6}]'
json "each end by its name, port, link, MTU and ways" '
	(.here | [.device, .port, .link, .mtu, .gpu]) == ["mlx5_0", 2, "Ethernet", 4096, "A GPU"] and
	(.there | [.device, .port, .link, .mtu, .gpu]) == ["mlx5_7", 1, "InfiniBand", 1024, null] and
	(.here.gid | startswith("fe00:")) and
	.here.memory.direct.way == "dmabuf" and .there.memory.direct.way == "plain" and
	.there.memory.staged.way == "staged" and .here.memory.host.way == null'
json "two NICs: peer to peer" '[.transfers[] | .path == {direct: "p2p", staged: "bounce", host: "host"}[.memory]] | all'
for end in here there; do
	"$unit" json "$end" >report.json
	json "soft-RoCE $end: not peer to peer, but by the processor" '
		[.transfers[] | .path == {direct: "coherent", staged: "bounce", host: "host"}[.memory]] | all'
done

check "text is printed" sh -c "'$unit' text hard >text"
# line DESC WORDS…: a line of these words
line() {
	desc=$1
	shift
	# shellcheck disable=SC2016
	check "text: $desc" awk -v want="$*" '{ $1 = $1 } $0 == want { found = 1 } END { exit !found }' text ||
		sed 's/^/# /' text
}
line "here" "here mlx5_0 port 2, RoCE v2, MTU 4096, GPU A GPU"
line "there" "there mlx5_7 port 1, InfiniBand, MTU 1024"
line "the ways" "direct p2p; here dmabuf, there plain"
line "a latency" write direct 4096 100 2.0 4.0 5.0 - 3.0
line "a stream" write direct 4096 600 9.83 2400 7.0 9.0 10.0 - 8.0
line "direct against staged" write 4096 4.50 6.00
line "only one of them was measured" read 4096 - -

check "a plot is written" sh -c "'$unit' plot hard >plot"
# data NAME LINE: what is in the plot's block of that name
data() {
	# shellcheck disable=SC2016
	check_eq "plot: $1" "$2" "$(awk -v name="\$$1" '$1 == name && $2 == "<<" { on = 1; next }
		$1 == "END" { on = 0 } on' plot)"
}
data latency_write_direct "4096 2.000 1.000 5.000"
data latency_write_staged "4096 9.000 4.500 12.000"
data bandwidth_write_direct "4096 9.8304"
data bandwidth_write_staged "4096 1.6384"
data rate_write_direct "4096 2400"
data rate_write_staged "4096 400"
check "plot: direct and staged are in one chart" grep -q -A1 \
	'^plot \$latency_write_direct .*title "direct"' plot
need_tool gnuplot
check "gnuplot draws it" sh -c 'gnuplot plot >svg && test "$(grep -c "<title>staged</title>" svg)" -eq 3'
finish

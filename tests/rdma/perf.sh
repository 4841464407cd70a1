#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane perf and doctor --try over soft-RoCE in one guest: figures that agree with counters, bad peers
# tags: rdma perf doctor
# tier: all
# timeout: 460

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool jq gnuplot

mkdir -p case/lib
cp "$TOP/tests/rdma/guest/perf" case/run
chmod +x case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
echo rdma >case/extras
printf '%s\n' virtio_net rdma_rxe ib_uverbs peerlane_gpu >case/modules
# the smallest and the largest size; at night one between that is no power of two, too
sizes=1,64K count=2
[ "$TIER" != nightly ] || sizes=1,1000,64K count=3
echo "SIZES=$sizes" >case/env
VM_TRACE=''
# the wire leads nowhere: soft-RoCE needs a network device, and talks to itself
vm_run guest two-hosts-rxe 7.2 "$OUT/case" 360 \
	-netdev "dgram,id=n,local.type=unix,local.path=$OUT/s1,remote.type=unix,remote.path=$OUT/s2" \
	-device virtio-net-pci,netdev=n,romfile=,host_mtu=9000
status=$?
ktap_from guest/result.log
check_eq "the guest came to its end" 0 "$status"

facts_from guest/result.log >facts.json
for what in perf doctor; do
	jq -c ".$what" facts.json >"$what.json"
done
perf() { check "perf: $1" jq -e --argjson sizes "$count" "$2" perf.json; }
doctor() { check "doctor: $1" jq -e "$2" doctor.json; }
diag "$(jq -c '.all.perf.transfers[] | [.test, .what, .memory, .size, .messages]' perf.json | tr '\n' ' ')"

perf "every way, operation and size is there, once" '.all.status == 0 and
	(.all.perf.transfers | map([.test, .what, .memory, .size]) |
	 length == 18 * $sizes and length == (unique | length)) and .all.perf.skipped == {}'
perf "rates are bytes and messages by time" 'all(.all.perf.transfers[];
	(.bytes_per_second - .bytes / .seconds | fabs) <= 1 + .bytes_per_second / 1000 and
	(.messages_per_second - .messages / .seconds | fabs) <= 1 + .messages_per_second / 1000)'
perf "staged memory moved by links: a notice for each put; other memory without" 'all(.all.perf.transfers[];
	if .memory == "staged" then .notices_here >= .messages + .warm_up else
		.notices_here == 0 and .notices_there == 0 end)'
perf "compared are the medians and the rates of the same run" '.all.perf | .transfers as $t |
	def of(t; m): [$t[] | select(.test == t and .memory == m)] | map({key: "\(.what) \(.size)", value: .}) | from_entries;
	def near($a; $b): ($a - $b | fabs) < 0.01 + $b / 1000;
	of("latency"; "direct") as $ld | of("latency"; "staged") as $ls |
	of("stream"; "direct") as $sd | of("stream"; "staged") as $ss |
	all(.compared[]; "\(.what) \(.size)" as $k |
		near(.latency; $ls[$k].microseconds.p50 / $ld[$k].microseconds.p50) and
		near(.rate; ($sd[$k] | .messages / .seconds) / ($ss[$k] | .messages / .seconds)))'
perf "it is called emulated" '.all.perf | .emulated and (.note | test("nothing about hardware"))'
perf "percentiles rise, where there are enough samples" 'all(.all.perf.transfers[];
	.microseconds as $u | [$u.min, $u.p50, $u.p90, $u.p99, $u["p99.9"], $u.max] |
	map(select(. != null)) | length >= 3 and . == sort) and
	all(.all.perf.transfers[]; (.messages >= 1000) == (.microseconds["p99.9"] != null) and
		(.messages >= 100) == (.microseconds.p99 != null))'
perf "bytes are messages times size, and took time" 'all(.all.perf.transfers[];
	.bytes == .messages * .size and .messages > 0 and .seconds > 0 and
	.bytes_per_second > 0 and .warm_up >= 0 and .warm_up <= 5)'
perf "latency is of one message at a time, a stream has up to 16" 'all(.all.perf.transfers[];
	.depth == (if .test == "latency" then 1 else 16 end))'
perf "the paths" 'all(.all.perf.transfers[]; .path ==
	{direct: "coherent", staged: "bounce", host: "host"}[.memory])'
perf "staged: each byte was copied on both sides; else none" 'all(.all.perf.transfers[];
	(if .memory == "staged" then (.messages + .warm_up) * .size else 0 end) as $n |
	.staged_here == $n and .staged_there == $n)'
perf "the GPU computed the CRCs of its memory" 'all(.all.perf.transfers[];
	.crc_by == if .memory == "host" then "cpu" else "gpu" end)'
perf "direct is compared with staged, for each operation and size" '.all.perf.compared |
	length == 3 * $sizes and all(.latency > 0 and .rate > 0)'

# The GPU's copy engine is how staged data leaves and enters the GPU's memory. It also fetches its commands and writes
# their results by DMA: 128 bytes for each are allowed for.
moved='def moved(k): .after[k] - .before[k]; def sum(f): map(f) | add;
	def about($n): . >= $n[0] and . <= $n[0] + 128 * $n[1];
	def patterns: 2 * (.perf.transfers | sum(.depth * .size));'
perf "direct: the GPU wrote no data to host memory" "$moved"' .direct | .status == 0 and
	(.perf.transfers | length == 8 and sum(.bytes) > 1000000) and
	(moved("descriptors") as $n | moved("engine-host-write") | about([0, $n]))'
perf "direct: into its memory came the patterns before each run, and no more" "$moved"' .direct |
	[patterns, moved("descriptors")] as $n | moved("engine-host-read") | about($n)'
perf "staged: it wrote what was sent" "$moved"' .staged | .status == 0 and
	([(.perf.transfers | sum(.staged_here)), moved("descriptors")] as $n |
	 $n[0] > 1000000 and (moved("engine-host-write") | about($n)))'
perf "staged: and read what was received, and the patterns" "$moved"' .staged |
	[patterns + (.perf.transfers | sum(.staged_there)), moved("descriptors")] as $n |
	moved("engine-host-read") | about($n)'
perf "a staged read, too" "$moved"' .read |
	[(.perf.transfers | sum(.staged_there)), moved("descriptors")] as $n |
	moved("engine-host-write") | about($n)'
perf "no direct way, and nothing else asked for: refused" '.refused |
	.status == 4 and (.perf == null or .perf.transfers == [])'
perf "no direct way: the others are measured, and the reason is told" '.skipped |
	.status == 0 and (.perf.transfers | map(.memory) | unique) == ["host", "staged"] and
	(.perf.skipped.direct | test("plain")) and .perf.compared == []'

doctor "GPU memory is taken by its pointer: no finding, and the reasons are seen" '.good.doctor |
	all(.findings[]; .id | IN("rdma-gpu-staged", "rdma-gpu-nothing", "rdma-no-gpu-path") | not) and
	any(.sections.rdma[]; test("dmabuf EOPNOTSUPP.*; plain ok")) and
	(.sections.rdma.rxe0 == "software, takes no dma-bufs") and
	(.sections.rdma["rxe0 port 1"] | test("^4: ACTIVE, Ethernet, .*eth0, with MTU 9000, path MTU 4096, GIDs of RoCE v2: .*best GID [0-9]+ \\(ipv4\\)$"))'
doctor "forbidden: it is staged, and the cure is the coherent window" '.refused |
	any(.doctor.findings[]; .id == "rdma-gpu-staged" and .severity == "warning" and
		(.where | length) == 1 and (.cure | test("coherent=on")) and
		(.what | test("as dma-buf: EOPNOTSUPP")))'
doctor "a record holds what was tried" '[.good, .refused] | all(.same and .status == .again)'
doctor "untried, it says so, and how to try" '.untried.doctor |
	any(.missing[]; .fact == "what a registration of GPU memory does here" and
		(.cure | test("--try"))) and (.sections.rdma.rxe0 | test("not tried"))'

# ---- the plot ----
tr -d '\r' <guest/result.log | sed -n 's/^@plot //p' >plot.gp
check "the plot has data of each way" test "$(grep -c '^\$latency_.*_\(direct\|staged\|host\) <<' plot.gp)" -eq 9
need_tool gnuplot
check "gnuplot draws it" sh -c 'gnuplot plot.gp >plot.svg'
check "… with nine charts" test "$(grep -c '<title>staged</title>' plot.svg)" -eq 9
check "… and it calls itself emulated" grep -q 'emulated: says nothing about hardware' plot.svg
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: batches, streams, loads, copies and neighbours on the emulated GPU: direct, and staged on a kernel without P2PDMA
# tags: guest cufile p2p
# tier: check
# timeout: 480
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cufile-guest"

# run NAME KVER [LINE…]: the tier check runs on the kernel without P2PDMA what is asked for below, and no more
run() {
	all=true
	[ "$1-$TIER" != staged-check ] || all=false
	mkdir -p "$1.case/lib"
	cp "$TOP/scenarios/lib/guest/guest.sh" "$1.case/lib/"
	cp denylists "$1.case/"
	run_name=$1 run_kver=$2
	shift 2
	# BAR1 is not as large as the GPU's memory, so that neither is taken for the other
	boot "$run_name" "$TOP/scenarios/topologies/same-switch.topo,gpu0.bar1=512M" "$run_kver" 180 "$TOP/tests/cufile/guest/cufile" \
		"ALL=$all" "$@"
}

# LIST ITEM PATH: a denylist, and how a file is read with it
set -- "mounts /mnt bounce" "mounts / p2p" "filesystems ext4 bounce" "devices /dev/nvme0n1 bounce" \
	"drivers nvme bounce" "drivers virtio_blk p2p"
printf '%s\n' "$@" | jq -Rr 'split(" ") | "\(.[0]) \(.[1]) \({denylist: {(.[0]): [.[1]]}})"' >denylists
# the ends of writes share pages with other writers', of threads and of a process without CUDA; each round has some ten such pages
rounds=100
[ "$TIER" != nightly ] || rounds=1000
run direct 7.2 EXPECT_PATH=p2p ROUNDS=$rounds
counted() { sed -n "s/^# counted $2 //p" "$1/result.log"; }
check_eq "the device's BAR1 has the size that was asked for" "$((512 * 1024))" "$(sed -n 's/^# the device has \(.*\) KiB/\1/p' direct/result.log)"
check_eq "and the library tells the same" "$((512 * 1024))" "$(sed -n 's/^# BAR1 has \(.*\) KiB/\1/p' direct/result.log)"
check_eq "the drive wrote all of a batch to BAR1" 4194304 "$(counted direct read)"
check_eq "and read all of a batch from there" 4194304 "$(counted direct write)"
for each in "cufile p2p 1048576" "stream p2p 1048576" "batch p2p 1048576" "streams p2p 1048576" "copy bounce 0" "async bounce 0" "randwrite p2p 1048576"; do
	check "a load, its path, and what the drive moved there: $each" grep -qx "# load $each" direct/result.log
done
for each in "vmm p2p 1048576" "pinned posix 0"; do
	check "a load with memory of another kind: $each" grep -qx "# memory $each" direct/result.log
done
check "the path of a running process" grep -qx '# stats p2p' direct/result.log
check "a copy, its paths, and what the drive wrote and read there" grep -qx '# copy p2p p2p 2097152 2097152 same' direct/result.log
for each; do
	check "denylist: $each" grep -qx "# denied $each" direct/result.log
done
check_eq "the topology is exported; where it cannot be written, that is told; the library stays closed" \
	"exported 5022, opened 0 exported 0, opened 0" "$(sed -n 's/^# exported/exported/p' direct/result.log | xargs)"
counted direct topology >topology.json
counted direct topo >topo.json
check "the GPU and the drive are in it, below one switch" jq -e '(.devices | map(.label) | sort) == ["GPU0", "NVME0"] and
	(.pairs | length == 1 and (.[0] | .gpu == "GPU0" and .device == "NVME0" and .relation == "PIX" and .verdict == "direct"))' topology.json
# shellcheck disable=SC2016 # of jq
check "and it says what peerlane topo says" jq -en --slurpfile a topology.json --slurpfile b topo.json '
	($a[0].pairs | map([.gpu, .device, .relation, .distance, .verdict, .reason])) ==
	($b[0].pairs | map([.a, .b, .relation, .distance, .verdict, .reason])) and
	([$a[0].devices[] | [.label, .kind, .name]] == [$b[0].devices[] | [.label, .kind, .name]])'
facts_from direct/result.log | jq .trial >trial.json
# shellcheck disable=SC2016 # of jq
check "doctor --try reads the file for a second, directly, as the GPU has counted" jq -e '.dma as $dma | .doctor.answer.gpus[0].address as $gpu | .doctor.answer.trial |
	.error == null and .gpu_address == $gpu and .path == "p2p" and .calls > 0 and .calls * 4096 == $dma and .microseconds.p50 > 0 and .emulated' trial.json
check "and says so to people: which GPU, which path, the times, and that it is emulated" grep -qE '^#   trial +ok +GPU at [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0: 4 KiB reads by p2p, microseconds: p50 [0-9.]+, p99 ([0-9.]+|-), max [0-9.]+; [1-9][0-9]* in a second \(emulated: ' direct/result.log
run staged 6.12
facts_from staged/result.log | jq .trial >trial.json
check "doctor --try without P2PDMA: staged, and why" jq -e '.dma == 0 and (.doctor.answer.trial |
	.error == null and .path == "bounce" and .calls > 0 and .reason != "")' trial.json
check "a running process without P2PDMA" grep -qx '# stats bounce' staged/result.log
check "a copy without P2PDMA" grep -qx '# copy bounce bounce 0 0 same' staged/result.log
for each in cufile stream batch streams randwrite; do
	check "a load without P2PDMA: $each" grep -qx "# load $each bounce 0" staged/result.log
done
check_eq "without P2PDMA it wrote nothing there" 0 "$(counted staged read)"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: batches, streams, loads, copies and neighbours on the emulated GPU: direct, and staged on a kernel without P2PDMA
# tags: guest cufile p2p
# tier: check
# timeout: 480
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_tool jq
need_file "$BUILD/userlib/tests/cufile-guest"

# run NAME KVER ENVIRONMENT LAST: the tier check runs on the kernel without P2PDMA what is asked for below, and no more
run() {
	all=true
	[ "$1-$TIER" != staged-check ] || all=false
	# BAR1 is not as large as the GPU's memory, so that neither is taken for the other
	boot "$1" "$TOP/scenarios/topologies/same-switch.topo,gpu0.bar1=512M" "$2" 180 <<-SCRIPT
		#!/bin/sh
		. /case/lib/guest.sh
		modprobe nvme
		must_appear /dev/nvme0n1
		must mkfs.ext4 -q -F /dev/nvme0n1 65536k
		mkdir -p /mnt
		must mount -t ext4 /dev/nvme0n1 /mnt
		# what is staged here is so by bounce
		export PEERLANE_PAGE_CACHE=0
		! $all || $3 /usr/lib/peerlane/tests/cufile-guest /mnt
		sed -n 2p /sys/bus/pci/drivers/peerlane_gpu/*:*/resource | while read -r first last flags; do
			echo "# the device has \$(((\$last - \$first + 1) / 1024)) KiB"
		done
		for way in read write; do
			case \$way in
			read) name=bar1-dma-write ;;
			write) name=bar1-dma-read ;;
			esac
			before=\$(counter \$name)
			/usr/lib/peerlane/tests/cufile-guest /mnt \$way >/tmp/out && $all || cat /tmp/out
			echo "# counted \$way \$((\$(counter \$name) - before))"
		done
		more="copy async"
		$all || more=
		for way in cufile stream batch streams \$more; do
			before=\$(counter bar1-dma-write)
			peerlane io load -f /mnt/in -s 1M -i 64K -w 2 -x \$way -V --json >/tmp/out || cat /tmp/out
			echo "# load \$way \$(sed -n 's/.*"path":"\([^"]*\)".*/\1/p' /tmp/out) \$((\$(counter bar1-dma-write) - before))"
		done
		kinds="vmm pinned"
		$all || kinds=
		for kind in \$kinds; do
			before=\$(counter bar1-dma-write)
			peerlane io load -f /mnt/in -s 1M -i 64K -w 2 -m \$kind -V --json >/tmp/out || cat /tmp/out
			echo "# memory \$kind \$(sed -n 's/.*"path":"\([^"]*\)".*/\1/p' /tmp/out) \$((\$(counter bar1-dma-write) - before))"
		done
		before=\$(counter bar1-dma-read)
		peerlane io load -f /mnt/load -s 1M -i 64K -w 2 -I 3 -V --json >/tmp/out || cat /tmp/out
		echo "# load randwrite \$(sed -n 's/.*"path":"\([^"]*\)".*/\1/p' /tmp/out) \$((\$(counter bar1-dma-read) - before))"
		peerlane io load -f /mnt/in -s 1M -i 64K -T 1000 >/dev/null 2>&1 &
		tries=0
		until peerlane stats \$! --json 2>/dev/null | grep -q '"bytes_read":[1-9]'; do
			tries=\$((tries + 1))
			[ \$tries -lt 600 ] || break
			sleep 0.1
		done
		echo "# stats \$(peerlane stats \$! --json | sed -n 's/.*"paths":{"\([^"]*\)":.*/\1/p')"
		kill -KILL \$!
		wait
		dd if=/dev/urandom of=/mnt/whole bs=1M count=2 2>/dev/null
		written=\$(counter bar1-dma-write) read=\$(counter bar1-dma-read)
		peerlane copy --chunk 1M /mnt/whole /mnt/copied --json >/tmp/out || cat /tmp/out
		echo "# copy \$(sed 's/"path":"/\n&/g' /tmp/out | sed -n 's/^"path":"\([^"]*\)".*/\1/p' | xargs) \
			\$((\$(counter bar1-dma-write) - written)) \$((\$(counter bar1-dma-read) - read)) \
			\$(cmp /mnt/whole /mnt/copied && echo same)" | tr -s '\t ' ' '
		if $all; then
			n=0
			while read -r list item; do
				n=\$((n + 1))
				must test -s /case/deny/\$n.json
				echo "# denied \$list \$item \$(CUFILE_ENV_PATH_JSON=/case/deny/\$n.json peerlane io read --file /mnt/in --gpu 0 \\
					--size 1M --json 2>/dev/null | tail -n 1 | sed 's/.*"path":"\([^"]*\)".*/\1/')"
			done </case/deny/list
		fi
		before=\$(counter bar1-dma-write)
		peerlane doctor --try /mnt/in 0 --json >/tmp/out
		fact trial.dma \$((\$(counter bar1-dma-write) - before))
		fact trial.doctor "\$(tr -d '\n' </tmp/out)"
		peerlane doctor --try /mnt/in | grep "^  trial" | sed "s/^/# /"
		if $all; then
			echo before >/tmp/topology
			/usr/lib/peerlane/tests/cufile-guest /mnt topology /nowhere/file
			/usr/lib/peerlane/tests/cufile-guest /mnt topology /tmp/topology
			echo "# counted topology \$(tr -d '\n' </tmp/topology)"
			echo "# counted topo \$(peerlane topo --json | tr -d '\n')"
		fi
		umount /mnt
		$4
	SCRIPT
}

mkdir -p direct.case/lib direct.case/deny staged.case/lib
cp "$TOP/scenarios/lib/guest/guest.sh" direct.case/lib/
cp "$TOP/scenarios/lib/guest/guest.sh" staged.case/lib/
# what a cufile.json denies, and the path of a read then
cat >denied <<'END'
mounts /mnt bounce
mounts / p2p
filesystems ext4 bounce
devices /dev/nvme0n1 bounce
drivers nvme bounce
drivers virtio_blk p2p
END
n=0
while read -r list item _; do
	n=$((n + 1))
	jq -n --arg list "$list" --arg item "$item" '{denylist: {($list): [$item]}}' >direct.case/deny/$n.json
	echo "$list $item" >>direct.case/deny/list
done <denied
# the ends of writes share pages with other writers', of threads and of a process without CUDA; each round has some ten such pages
rounds=100
[ "$TIER" != nightly ] || rounds=1000
run direct 7.2 EXPECT_PATH=p2p "/usr/lib/peerlane/tests/cufile-guest /dev/nvme0n1 neighbours $rounds"
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
while read -r each; do
	check "denylist: $each" grep -qx "# denied $each" direct/result.log
done <denied
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
run staged 6.12 "" ""
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

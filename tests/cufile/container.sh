#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: in a container (namespaces, overlayfs root, one device node, no capabilities, a filter of system calls) data goes directly
# tags: guest cufile p2p
# tier: all
# timeout: 480
#
# As Docker starts it with --device /dev/peerlane-gpu0 and a volume; its filter refuses io_uring since 2023.
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

mkdir -p inside.case/lib
cp "$TOP/scenarios/lib/guest/guest.sh" inside.case/lib/
check "the launcher compiles" cc -Wall -Wextra -Werror -O1 -o inside.case/container "$TOP/tests/cufile/container.c"
echo stack >inside.case/extras
# in the namespaces, before the container's own root
cat >inside.case/start <<-'SCRIPT'
	#!/bin/sh
	set -e
	root=/run/container/root
	echo 0 >/sys/fs/cgroup/container/cgroup.procs
	mkdir -p /run/container/upper /run/container/work $root
	mount -t overlay overlay -o lowerdir=/,upperdir=/run/container/upper,workdir=/run/container/work $root
	mkdir -p $root/data
	mount --bind /mnt $root/data
	mount -t proc proc $root/proc
	mount -t sysfs -o ro sysfs $root/sys
	mount -t tmpfs tmpfs $root/dev
	mount -t tmpfs tmpfs $root/run
	mknod $root/dev/null c 1 3
	mknod $root/dev/urandom c 1 9
	[ "$1" = none ] || mknod $root/dev/peerlane-gpu0 c "$2" "$3"
	shift 3
	hostname container
	cd $root
	# the guest's root cannot be pivoted away
	mount --move . /
	exec chroot . /case/container "$@"
SCRIPT
cat >inside.case/run <<-'SCRIPT'
	#!/bin/sh
	. /case/lib/guest.sh
	modprobe nvme
	modprobe overlay
	must_appear /dev/nvme0n1
	must mkfs.ext4 -q -F /dev/nvme0n1
	mkdir -p /mnt
	must mount -t ext4 /dev/nvme0n1 /mnt
	must dd if=/dev/urandom of=/mnt/f bs=1M count=32
	must mount -t cgroup2 none /sys/fs/cgroup
	echo "+memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
	must mkdir /sys/fs/cgroup/container
	echo 96M >/sys/fs/cgroup/container/memory.max
	echo 64 >/sys/fs/cgroup/container/pids.max
	node=$(stat -c '%t %T' /dev/peerlane-gpu0)
	# what is staged here is so by bounce
	export PEERLANE_PAGE_CACHE=0 CUFILE_LOGGING_LEVEL=INFO CUFILE_LOGFILE_PATH=/data/log

	# inside gpu|none COMMAND…: $ended, $in and $out; what it says in /tmp/out, what libcufile has logged in /mnt/log
	inside() {
		rm -f /mnt/log
		with=$1
		shift
		in=$(counter bar1-dma-write) out=$(counter bar1-dma-read)
		# shellcheck disable=SC2086 # two numbers
		timeout -s KILL 120 unshare -m -p -u -f /case/start "$with" $((0x${node% *})) $((0x${node#* })) "$@" >/tmp/out 2>&1
		ended=$?
		in=$(($(counter bar1-dma-write) - in)) out=$(($(counter bar1-dma-read) - out))
		sed 's/^/# /' /tmp/out | cut -c1-300
	}
	is_so() { # NAME PATH IN OUT
		check_eq "$1: ends well" 0 "$ended"
		check "$1: by $2" grep -q " bytes by $2 in " /tmp/out
		check_eq "$1: bytes that the drive wrote into the GPU's memory, and read from there" "$3 $4" "$in $out"
	}

	inside gpu sh -c 'echo $$ $(hostname) $(ls /dev | xargs); grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status | xargs; echo 1 >/sys/kernel/mm/ksm/run; cat /proc/self/mountinfo | head -n 1'
	check "it is a container: namespaces, device nodes, no capabilities, a filter" sh -c 'grep -q "^1 container null peerlane-gpu0 urandom$" /tmp/out &&
		grep -q "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2" /tmp/out'
	check "nothing of /sys can be written" grep -q 'Read-only file system' /tmp/out
	check "its root is overlayfs" grep -q ' / / .* - overlay ' /tmp/out

	size=16777216
	for way in cufile batch stream streams; do
		inside gpu peerlane io load -f /data/f -s 16M -i 1M -w 4 -x $way -V --strict
		is_so "$way, read" p2p $size 0
	done
	check "that there is no io_uring is in the log, and why" grep -q 'no io_uring: Operation not permitted; batches and streams are done by threads' /mnt/log
	for way in cufile batch; do
		inside gpu peerlane io load -f /data/$way -s 16M -i 1M -w 4 -x $way -I 1 -V --strict
		is_so "$way, write" p2p 0 $size
	done
	inside gpu peerlane copy /data/f /data/copy
	check_eq "a copy: ends well" 0 "$ended"
	check "a copy: all the same" cmp /mnt/f /mnt/copy
	check_eq "a copy: directly" "33554432 33554432" "$in $out"
	# a file of the container's own layer is on tmpfs
	inside gpu sh -c 'cp /data/f /own && peerlane io load -f /own -s 16M -i 1M'
	is_so "a file of the container's own" bounce 0 0
	check "... and it is told why" sh -c 'grep -q "^ *because: the file system is not known" /tmp/out && grep -q "no p2p: " /mnt/log'
	inside gpu sh -c 'cp /data/f /own && peerlane io load -f /own -s 16M -i 1M --strict'
	check_eq "... strict: refused" 4 "$ended"
	inside none env PEERLANE_LOG=1 peerlane io load -f /data/f
	check_eq "without the GPU's node: no GPU" 3 "$ended"
	check "... and it says which it has looked for" grep -q 'no usable device among /dev/peerlane-gpu0' /tmp/out
	finish
SCRIPT
chmod +x inside.case/start inside.case/run
echo peerlane_gpu >inside.case/modules
truncate -s 256M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run inside "$TOP/scenarios/topologies/same-switch.topo" 7.2 "$OUT/inside.case" 420
status=$?
ktap_from inside/result.log
check_eq "the guest ended well" 0 "$status"
finish

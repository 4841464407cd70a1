#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile and plain POSIX on the emulated drive and GPU: the same results and bytes of random operations, also where pages cannot be read or written
# tags: cufile guest p2p kernel
# tier: nightly
# timeout: 1500
#
# As cufile/differ on the mock.  A seed that shows an error shows it again: a guest with the drive of this case, and
#   /usr/lib/peerlane/tests/cufile-differ-guest DIR TURNS SEED
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/scenarios/lib/scenario.sh"
need_file "$BUILD/userlib/tests/cufile-differ-guest"
need_tool mke2fs debugfs

mkdir -p tree case/lib
for name in bad worse; do
	dd if=/dev/urandom of=tree/$name bs=1M count=1 2>/dev/null
	cp tree/$name tree/$name.twin
done
truncate -s 128M disk0.img
check "the disk image is made" mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,root_owner=0:0 -d tree disk0.img
# differ_guest.c knows which two pages
for each in bad:read worse:write; do
	at=$(sc_block_at ext4 "${each%:*}" $((516 * 1024)))
	check "the blocks of the file are found: $each" test -n "$at"
	for sector in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		printf '[inject-error]\nevent = "none"\niotype = "%s"\nerrno = "5"\nsector = "%d"\n\n' "${each#*:}" $((at + sector))
	done >>faults.conf
done
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
printf 'nvme\next4\npeerlane_gpu\npeerlane\n' >case/modules
cat >case/run <<-'SCRIPT'
	#!/bin/sh
	. /case/lib/guest.sh
	must_appear /dev/nvme0n1
	mkdir -p /mnt
	must mount -t ext4 /dev/nvme0n1 /mnt
	# what cannot be read is not read ahead
	echo 0 >/sys/block/nvme0n1/queue/read_ahead_kb
	# the module peerlane takes no drive that merges requests
	echo 2 >/sys/block/nvme0n1/queue/nomerges
	# and moves less by a command than most of the transfers: the fault is in one of several
	commands() { # that a direct read of 1 MiB takes
		before=$(awk '{ print $1 }' /sys/block/nvme0n1/stat)
		dd if=/mnt/bad.twin of=/dev/null bs=1M count=1 iflag=direct 2>/dev/null
		echo $(($(awk '{ print $1 }' /sys/block/nvme0n1/stat) - before))
	}
	whole=$(commands)
	echo 64 >/sys/block/nvme0n1/queue/max_sectors_kb
	split=$(commands)
	echo "# 1 MiB takes $whole commands, then $split"
	check "1 MiB takes 16 commands" test "$split" -eq 16 -a "$whole" -lt 16
	check "the bad pages cannot be read" sh -c '! dd if=/mnt/bad of=/dev/null bs=4096 skip=129 count=1 iflag=direct'
	check "the others can" dd if=/mnt/bad of=/dev/null bs=4096 count=129 iflag=direct
	check "the worse ones can, but not be written" sh -c 'dd if=/mnt/worse of=/tmp/page bs=4096 skip=129 count=1 iflag=direct &&
		! dd if=/tmp/page of=/mnt/worse bs=4096 seek=129 count=1 oflag=direct conv=notrunc'
	in=$(counter bar1-dma-write) out=$(counter bar1-dma-read)
	PEERLANE_PAGE_CACHE=0 timeout 1200 /usr/lib/peerlane/tests/cufile-differ-guest /mnt 200 1 >/tmp/out 2>&1
	status=$?
	cat /tmp/out
	check_eq "the program came to its end" 0 "$status"
	check "the drive wrote into the GPU's memory" test "$(counter bar1-dma-write)" -gt "$in"
	check "and read from there" test "$(counter bar1-dma-read)" -gt "$out"
	must umount /mnt
	finish
SCRIPT
chmod +x case/run
vm_image disk0 "$PWD/disk0.img" "$PWD/faults.conf"
vm_run guest same-switch 7.2 "$PWD/case" 1400
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
check "the file system is clean" e2fsck -fn disk0.img
finish

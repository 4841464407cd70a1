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
cp "$TOP/tests/cufile/guest/differ" case/run
chmod +x case/run
vm_image disk0 "$PWD/disk0.img" "$PWD/faults.conf"
vm_run guest same-switch 7.2 "$PWD/case" 1400
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
check "the file system is clean" e2fsck -fn disk0.img
finish

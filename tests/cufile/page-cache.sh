#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU's engine reads the page cache: counters, and a reader beside all kinds of writers
# tags: guest cufile
# tier: check
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cufile-page-cache"

mkdir -p page-cache.case/lib
cp "$TOP/scenarios/lib/guest/guest.sh" page-cache.case/lib/
boot page-cache "$TOP/scenarios/topologies/same-switch.topo" 7.2 150 <<-'SCRIPT'
	#!/bin/sh
	. /case/lib/guest.sh
	modprobe nvme
	must_appear /dev/nvme0n1
	mkdir -p /mnt /ram
	drive() { # bytes that the drive was read
		awk '{ print $3 * 512 }' /sys/block/nvme0n1/stat
	}
	io() { # NAME ARGUMENTS: a read of a file with what the devices did
		name=$1
		shift
		engine=$(counter engine-host-read) disk=$(drive)
		peerlane io read --gpu 0 --json "$@" >/tmp/out 2>/tmp/err
		echo "# $name status $?"
		cat /tmp/err
		echo "# $name engine $(($(counter engine-host-read) - engine))"
		echo "# $name drive $(($(drive) - disk))"
		tail -n 1 /tmp/out | sed "s/^/# $name json /"
	}
	must mount -t tmpfs none /ram
	must mkfs.ext4 -q -F /dev/nvme0n1 65536k
	must mount -t ext4 /dev/nvme0n1 /mnt
	dd if=/dev/urandom of=/mnt/f bs=1M count=8 2>/dev/null
	sync
	cp /mnt/f /ram/f
	# the same bytes, to compare with
	echo "# crc $(peerlane io crc --file /ram/f --json)"
	export CUFILE_FORCE_COMPAT_MODE=1 PEERLANE_PAGE_CACHE=1
	io cached --file /mnt/f --size 8M --chunk 1M --crc
	io memory --file /ram/f --size 8M --crc
	exec 7>>/mnt/f
	io writer --file /mnt/f --size 8M --crc
	io small --file /mnt/f --size 8M --chunk 1M
	exec 7>&-
	unset PEERLANE_PAGE_CACHE
	io off --file /mnt/f --size 8M
	export PEERLANE_PAGE_CACHE=1
	echo 3 >/proc/sys/vm/drop_caches
	io cold --file /mnt/f --size 8M --crc
	# half of it is cached, in pieces; what is not comes from the drive again each time
	echo 3 >/proc/sys/vm/drop_caches
	echo 0 >/sys/block/nvme0n1/queue/read_ahead_kb
	for at in 1 3 5 7; do
		dd if=/mnt/f of=/dev/null bs=1M count=1 skip=$at 2>/dev/null
	done
	io half --file /mnt/f --size 8M --crc
	io again --file /mnt/f --size 8M --crc
	unset CUFILE_FORCE_COMPAT_MODE
	io direct --file /mnt/f --size 8M
	/usr/lib/peerlane/tests/cufile-page-cache /mnt 40
	umount /mnt
SCRIPT

of() { sed -n "s/^# $1 $2 //p" page-cache/result.log; }
has() { # NAME WORDS JQ
	of "$1" json >said
	check "$2" jq -e "$3" said || sed "s/^/# /" said
}
size=8388608
crc=$(sed -n 's/^# crc //p' page-cache/result.log | jq -r .crc32c)
has cached "a cached file goes by the cache path" ".path == \"cache\" and .bytes_by_path.cache == $size and .crc32c == \"$crc\""
check "and the GPU's engine read it from host memory" [ "$(of cached engine)" -ge $size ]
check_eq "the drive was not read" 0 "$(of cached drive)"
has memory "so does one in a tmpfs" ".path == \"cache\" and .crc32c == \"$crc\""
has writer "a large read of a file that has a writer, too" ".path == \"cache\" and .crc32c == \"$crc\""
has small "not a small one, and why is said" '.path == "bounce" and (.reason | test("no cache: no read lease: the file is open for writing"))'
has off "by default it is copied" '.path == "bounce" and (.reason | test("no cache") | not)'
has cold "what is not in the page cache is copied" ".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"not all of it is in the page cache\"))"
check "and comes from the drive" [ "$(of cold drive)" -ge $size ]
for each in half again; do
	has $each "$each: half of it is in the page cache" ".path == \"bounce\" and .crc32c == \"$crc\""
	check_eq "and only the other half comes from the drive, around the page cache" $((size / 2)) "$(of $each drive)"
done
has direct "where p2p works it is p2p that moves it" '.path == "p2p"'
finish

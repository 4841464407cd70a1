#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: files go through the kernel module peerlane, its refusals are told, and memory that is freed is left alone
# tags: guest cufile kernel
# tier: check
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cufile-guest"

mkdir -p module.case/lib
cp "$TOP/scenarios/lib/guest/guest.sh" module.case/lib/
boot module "$TOP/scenarios/topologies/same-switch.topo" 7.2 180 <<-'SCRIPT'
	#!/bin/sh
	. /case/lib/guest.sh
	modprobe nvme
	must_appear /dev/nvme0n1
	must mkfs.ext4 -q -F /dev/nvme0n1 65536k
	mkdir -p /mnt /ram
	must mount -t ext4 /dev/nvme0n1 /mnt
	must mount -t tmpfs none /ram
	mount -t debugfs none /sys/kernel/debug 2>/dev/null
	module() { # NAME: of the module peerlane
		awk -v name="$1" '$1 == name { print $2 }' /sys/kernel/debug/peerlane/state
	}
	io() { # NAME OPERATION ARGUMENTS
		name=$1 operation=$2
		shift 2
		bar1=$(counter bar1-dma-write) engine=$(($(counter engine-host-read) + $(counter engine-host-write)))
		peerlane io "$operation" --gpu 0 --json "$@" >/tmp/out 2>/tmp/err
		echo "# $name status $?"
		cat /tmp/err
		echo "# $name bar1 $(($(counter bar1-dma-write) - bar1))"
		echo "# $name engine $(($(counter engine-host-read) + $(counter engine-host-write) - engine))"
		tail -n 1 /tmp/out | sed "s/^/# $name json /"
	}
	dd if=/dev/urandom of=/mnt/f bs=1M count=8 2>/dev/null
	sync
	cp /mnt/f /ram/f
	echo "# crc $(peerlane io crc --file /ram/f --json)"
	# what is staged here is so by bounce
	export PEERLANE_PAGE_CACHE=0 CUFILE_USE_PCIP2PDMA=0
	io absent read --file /mnt/f --size 8M
	modprobe peerlane
	must_appear /dev/peerlane
	queue=/sys/block/nvme0n1/queue/nomerges
	echo 0 >$queue
	io merges read --file /mnt/f --size 8M --crc
	PEERLANE_STRICT=1 io strict read --file /mnt/f --size 8M
	echo 2 >$queue
	io whole read --file /mnt/f --size 8M --crc
	io unaligned read --file /mnt/f --size 1000000
	io tmpfs read --file /ram/f --size 8M --crc
	PEERLANE_KERNEL_MODULE=0 io off read --file /mnt/f --size 8M
	# a mapping comes first where there can be one
	CUFILE_USE_PCIP2PDMA=1 io both read --file /mnt/f --size 8M
	EXPECT_PATH=kernel /usr/lib/peerlane/tests/cufile-guest /mnt
	for way in read write; do
		case $way in
		read) name=bar1-dma-write ;;
		write) name=bar1-dma-read ;;
		esac
		before=$(counter $name)
		bytes=$(($(module read) + $(module written)))
		/usr/lib/peerlane/tests/cufile-guest /mnt $way >/tmp/out || cat /tmp/out
		echo "# counted $way $(($(counter $name) - before)) $(($(module read) + $(module written) - bytes))"
	done
	echo "# left $(module memories) $(module pinned) $(module ios)"
	umount /mnt
SCRIPT

of() { sed -n "s/^# $1 $2 //p" module/result.log; }
has() { # NAME WORDS JQ
	of "$1" json >said
	check "$2" jq -e "$3" said || sed "s/^/# /" said
}
size=8388608
crc=$(sed -n 's/^# crc //p' module/result.log | jq -r .crc32c)
has absent "without the module it is staged, and why is said" \
	'.path == "bounce" and (.reason | test("use_pci_p2pdma is off, and there is no /dev/peerlane"))'
has merges "so it is where the drive's queue merges, with the cure" \
	".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"echo 2 >/sys/block/DRIVE/queue/nomerges\"))"
has strict "in strict mode it fails with the same words" '.ok == false and (.reason | test("nomerges"))'
check_eq "the drive wrote nothing" 0 "$(of strict bar1)"
# the engine reads its own descriptors
check "and the engine copied nothing" [ "$(of strict engine)" -lt 4096 ]
has whole "a file goes through the module" ".path == \"kernel\" and .bytes_by_path.kernel == $size and .crc32c == \"$crc\""
check "and the drive wrote it to BAR1" [ "$(of whole bar1)" -ge $size ]
has unaligned "ends that are no whole blocks are staged" '.path == "mixed" and .bytes_by_path.kernel == 999936 and .bytes_by_path.bounce == 64'
has tmpfs "a file of a file system without a drive is staged" ".path == \"bounce\" and .crc32c == \"$crc\""
has off "it can be switched off" '.path == "bounce"'
has both "where memory can be mapped it is p2p that moves it" '.path == "p2p"'
check_eq "by device and module, all of a batch of reads went to BAR1" "4194304 4194304" "$(of counted read)"
check_eq "and of a batch of writes came from there" "4194304 4194304" "$(of counted write)"
check_eq "nothing stays registered" "0 0 0" "$(sed -n 's/^# left //p' module/result.log)"
finish

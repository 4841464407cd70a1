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
cp "$TOP/scenarios/lib/guest/guest.sh" "$TOP/scenarios/lib/guest/stack.sh" module.case/lib/
echo stack >module.case/extras
boot module "$TOP/scenarios/topologies/two-drives.topo" 7.2 180 <<-'SCRIPT'
	#!/bin/sh
	. /case/lib/guest.sh
	. /case/lib/stack.sh
	modprobe nvme
	must_appear /dev/nvme0n1
	must_appear /dev/nvme1n1
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
	# what lies above the drives
	must umount /mnt
	sectors() { # DRIVE: that it has read
		awk '{ print $3 }' "/sys/block/$1/stat"
	}
	file() { # NAME: the same file on the file system of this device
		must mkfs.ext4 -q -F "$1" 65536k
		must mount -t ext4 "$1" /mnt
		cp /ram/f /mnt/f
		must umount /mnt
		must mount -t ext4 "$1" /mnt
	}
	merges() { # 0: the drives' queues merge, 2: they do not
		for drive in nvme0n1 nvme1n1; do
			echo "$1" >/sys/block/$drive/queue/nomerges
		done
	}
	raid0 /dev/nvme0n1 /dev/nvme1n1
	file /dev/md0
	merges 2
	echo 0 >/sys/block/nvme1n1/queue/nomerges
	io merges read --file /mnt/f --size 8M --crc
	PEERLANE_STRICT=1 io strict read --file /mnt/f --size 8M
	merges 2
	before0=$(sectors nvme0n1) before1=$(sectors nvme1n1)
	io md read --file /mnt/f --size 8M --crc
	echo "# md drives $(($(sectors nvme0n1) - before0)) $(($(sectors nvme1n1) - before1))"
	io md-raw read --file /dev/md0 --size 8M
	merges 0
	must umount /mnt
	raid0_end
	crypt /dev/nvme0n1
	file /dev/dm-0
	io crypt read --file /mnt/f --size 8M --crc
	must umount /mnt
	crypt_end
	file /dev/nvme0n1
	mkdir /mnt/upper /mnt/lower /mnt/work /merged
	must mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /merged
	mv /mnt/f /merged/f
	io overlay read --file /merged/f --size 8M --crc
	must umount /merged
	must umount /mnt
	# each drive becomes a path of a disk of NVMe multipath
	must rmmod nvme
	must rmmod nvme_core
	must modprobe nvme_core multipath_always_on=1
	must modprobe nvme
	must_appear /dev/nvme0n1
	echo "# head merges $(cat /sys/block/nvme0c*n1/queue/nomerges)"
	file /dev/nvme0n1
	io head read --file /mnt/f --size 8M --crc
	CUFILE_USE_PCIP2PDMA=1 io head-p2p read --file /mnt/f --size 8M --crc
	# a driver of the GPU that makes no struct pages of BAR1
	gpu=$(readlink -f /sys/class/peerlane_gpu/peerlane-gpu0/device)
	for way in unbind bind; do
		echo "${gpu##*/}" >/sys/bus/pci/drivers/peerlane_gpu/$way
		echo 0 >/sys/module/peerlane_gpu/parameters/p2pdma
	done
	must_appear /dev/peerlane-gpu0
	io no-pages read --file /mnt/f --size 8M --crc
	echo 64 >/sys/module/peerlane/parameters/own_pages_mib
	io own-pages read --file /mnt/f --size 8M --crc
	# a mapping comes first; the kernel takes no pages of it, the module does
	CUFILE_USE_PCIP2PDMA=1 io own-pages-both read --file /mnt/f --size 8M --crc --strict
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
has whole "a file goes through the module" ".path == \"kernel\" and .bytes_by_path.kernel == $size and .crc32c == \"$crc\""
check "and the drive wrote it to BAR1" [ "$(of whole bar1)" -ge $size ]
has unaligned "ends that are no whole blocks are staged" '.path == "mixed" and .bytes_by_path.kernel == 999936 and .bytes_by_path.bounce == 64'
has tmpfs "a file of a file system without a drive is staged" ".path == \"bounce\" and .crc32c == \"$crc\""
has off "it can be switched off" '.path == "bounce"'
has both "where memory can be mapped it is p2p that moves it" '.path == "p2p"'
check_eq "by device and module, all of a batch of reads went to BAR1" "4194304 4194304" "$(of counted read)"
check_eq "and of a batch of writes came from there" "4194304 4194304" "$(of counted write)"
has merges "on md it is staged where the queue of a drive merges, with the cure" \
	".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"md lets.*echo 2 >/sys/block/DRIVE/queue/nomerges\"))"
has strict "in strict mode it fails with the same words" '.ok == false and (.reason | test("nomerges"))'
check_eq "no drive wrote anything" 0 "$(of strict bar1)"
# the engine reads its own descriptors
check "and the engine copied nothing" [ "$(of strict engine)" -lt 4096 ]
has md "md RAID 0 of drives that do not merge goes through the module" \
	".path == \"kernel\" and .bytes_by_path.kernel == $size and .crc32c == \"$crc\""
check_eq "and the drives wrote it to BAR1" $size "$(of md bar1)"
# shellcheck disable=SC2046 # two numbers
set -- $(of md drives)
# about a half each, by how the file's blocks lie; sectors of 512 bytes
check "one of them a third at least" [ "$1" -ge 5461 ]
check "and the other one" [ "$2" -ge 5461 ]
has md-raw "so does md itself" ".path == \"kernel\" and .bytes_by_path.kernel == $size"
check_eq "by the drives' counters, too" $size "$(of md-raw bar1)"
has crypt "what is encrypted is staged, and dm-crypt is named" \
	".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"kernel refused: .*dm-crypt \\\\(dm-0, crypt\\\\) is between file and drive\"))"
check_eq "no drive wrote it to BAR1" 0 "$(of crypt bar1)"
has overlay "overlayfs is refused, with the file systems that are not" \
	".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"the module supports ext4 and xfs\"))"
check_eq "below a disk of NVMe multipath is a path whose queue merges" 0 "$(of head merges)"
has head "the module takes it all the same" ".path == \"kernel\" and .bytes_by_path.kernel == $size and .crc32c == \"$crc\""
check_eq "and the drive wrote it to BAR1" $size "$(of head bar1)"
has head-p2p "and so does p2p" ".path == \"p2p\" and .bytes_by_path.p2p == $size and .crc32c == \"$crc\""
check_eq "with the drive, too" $size "$(of head-p2p bar1)"
has no-pages "memory of a GPU whose BAR1 has no struct pages is staged, and it says what would help" \
	".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"no pages of this GPU's BAR1.*own_pages_mib\"))"
has own-pages "and goes through the module once it may make them" ".path == \"kernel\" and .bytes_by_path.kernel == $size and .crc32c == \"$crc\""
check_eq "which the drive wrote to BAR1" $size "$(of own-pages bar1)"
has own-pages-both "also where it could be mapped, and the kernel takes no pages of the mapping" \
	".path == \"kernel\" and .bytes_by_path.kernel == $size and .crc32c == \"$crc\""
check_eq "which the drive wrote to BAR1, too" $size "$(of own-pages-both bar1)"
check_eq "nothing stays registered" "0 0 0" "$(sed -n 's/^# left //p' module/result.log)"
finish

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
boot module "$TOP/scenarios/topologies/two-drives.topo" 7.2 180 "$TOP/tests/cufile/guest/kernel-module"

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

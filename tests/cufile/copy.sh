#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane copy: killed at each change of a file and run again, verification, paths, what it refuses, progress
# tags: cufile
# tier: check
# timeout: 300
#
# On the mock of the CUDA driver; what the devices say of it is in cufile/guest.
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cufile/lib.sh"
need_tool script flock

dd if=/dev/urandom of=data bs=4096 count=80 2>/dev/null
printf odd >>data
# its times are older than any tick of the clock below
cp data still
size=$(wc -c <data)
dd if=/dev/urandom of=old bs=4096 count=90 2>/dev/null
mkdir -p to

gpu 0 copy --chunk 64K data to --json
check "into a folder: the same" cmp data to/data
json "one object: whole, verified, by which paths" "length == 1 and (.[0] | .what == \"copy\" and .ok and .verified and
	.bytes == $size and .resumed == 0 and .error == null and ([.transfers[] | [.what, .path, .bytes, .file]]) ==
	[[\"read\", \"mixed\", $size, \"data\"], [\"write\", \"mixed\", $size, \"to/data\"]])"
check_eq "nothing is left beside it" data "$(ls -A to)"
check_eq "no progress where there is no terminal" "" "$(cat err)"
chmod 640 data
gpu 0 copy --no-verify data to/data
said "^copy  data to .*to/data: $size bytes; read by mixed (p2p $((size - 3)), bounce 3), written by mixed ([a-z0-9 ,]*) in [0-9.]* s, [0-9.]* MB/s$"
said 'read because: .*unaligned'
check_eq "it has the source's mode" 640 "$(stat -c %a to/data)"
: >empty
gpu 0 copy empty to/none
check_eq "an empty file" 0 "$(wc -c <to/none)"
ln -s data to/link
cp old to/data
gpu 0 copy data to/link
check "a link stays, and what it leads to is replaced" sh -c 'test -L to/link && cmp data to/data'

# Killed at each of its changes, and run again.  Without the kill none is left over.
kills=0
while kills=$((kills + 1)) && [ $kills -le 40 ]; do
	cp old to/data
	rm -f to/data.peerlane-part
	FAULT_KILL=$kills LD_LIBRARY_PATH=$mock LD_PRELOAD=$mock/libcuda.so.1:$faults PEERLANE_KMSG=/none \
		"$tool" copy --chunk 64K data to/data >out 2>err
	killed=$?
	[ $killed != 0 ] || break
	check_eq "killed at change $kills" 137 $killed
	# only the last change, to the folder, is behind the new name
	named=
	cmp -s data to/data && named=1
	[ "$named" ] || check "… the target is the old one" cmp old to/data
	gpu 0 copy --chunk 64K data to/data --json
	check "… and the new one after another run" cmp data to/data
	check_false "… which leaves nothing" test -e to/data.peerlane-part
	[ "$named" ] || jq -r .resumed out >>resumed
done
check_eq "at the end it ran without a kill" 0 "$killed"
check "… and the target is the new one" cmp data to/data
check "it was killed at each write, the sync and the new name" test $kills -gt 8
check "runs went on where others were, no further than those were" jq -se \
	'. == (. | sort) and .[0] == 0 and .[-1] == '"$size"' and (unique | length) >= 5' resumed
# each run killed at its fifth change, with what the one before has left
cp old to/data
tries=0
while tries=$((tries + 1)) && [ $tries -le 20 ]; do
	FAULT_KILL=5 LD_LIBRARY_PATH=$mock LD_PRELOAD=$mock/libcuda.so.1:$faults PEERLANE_KMSG=/none \
		"$tool" copy --chunk 64K data to/data >out 2>err && break
done
check "killed again and again it comes to its end" cmp data to/data
check "… but not at once" test $tries -gt 1

# what an earlier run has left is not believed
cp old to/data.peerlane-part
chmod 644 to/data.peerlane-part
FAULT_KILL=1 FAULT_RUN='stat -c %a to/data.peerlane-part >mode' faulty 0 copy --chunk 64K data to/data
check_eq "others can no more read what was left readable" 600 "$(cat mode)"
cp old to/data.peerlane-part
gpu 0 copy --chunk 64K data to/data --json
check "what is there is of another file, and longer: the copy is right" cmp data to/data
json "… from the beginning" '.[0].resumed == 0'
cp data to/data.peerlane-part
printf x | dd of=to/data.peerlane-part bs=1 seek=200000 conv=notrunc 2>/dev/null
gpu 0 copy --chunk 64K data to/data --json
check "a wrong byte in the middle: the copy is right" cmp data to/data
json "… from that piece on" '.[0].resumed == 196608'

# a failure keeps what is copied, and the target
cp old to/data
MOCK_P2P_ERRNO=61 MOCK_P2P_AFTER=4 gpu 1 copy --chunk 64K data to/data --json
check "an error of the medium: the target is the old one" cmp old to/data
json "… and it says how to go on" '.[0] | (.ok | not) and (.verified | not) and
	(.error | test("failed: Input/output error.*data.peerlane-part has what was copied: run it again to continue"))'
gpu 0 copy --chunk 64K data to/data --json
json "… and goes on" '.[0].resumed == 131072'
check "… to a right copy" cmp data to/data
MOCK_P2P_ERRNO=121 gpu 0 copy data to/data --json
json "staged: it says so, and why, for each direction" '.[0].transfers | [.[].path] == ["bounce", "bounce"] and
	all(.reason | test("EREMOTEIO"))'
gpu 4 copy --strict data to/strict
said 'write of to/strict.* failed: .*unaligned'
check_eq "strict: nothing is left" "" "$(find to -name 'strict*')"

# what is wrong on its way is found: the first piece as it is read by p2p, read again, and the target read again
for read in 1 2 3; do
	cp old to/data
	rm -f to/data.peerlane-part
	FAULT_FLIP=$read faulty 5 copy --chunk 64K data to/data
	said 'at 0 CRC32C of GPU memory is 0x[0-9a-f]*, of 65536 bytes of '
	check "… and the target is the old one" cmp old to/data
done
rm -f to/data.peerlane-part
FAULT_FLIP=1 faulty 0 copy --no-verify --chunk 64K data to/data
check_false "without verification it is not found" cmp -s data to/data

# the source changes
cp data growing
cp old to/data
FAULT_KILL=3 FAULT_RUN='printf more >>growing' faulty 1 copy --chunk 64K growing to/data
said 'growing changed while it was copied'
check "… and the target is the old one" cmp old to/data
gpu 0 copy --chunk 64K growing to/data
check "… until the next run" cmp growing to/data
cp old to/data
touch -r still stamp
FAULT_KILL=3 FAULT_RUN='printf x | dd of=still bs=1 conv=notrunc 2>/dev/null; touch -r stamp still' faulty 1 copy --chunk 64K still to/data
said 'still changed while it was copied'
check "… whatever its time of modification is" cmp old to/data
rm to/data.peerlane-part
gpu 1 copy /proc/version to/version
said '/proc/version has more than the 0 bytes'
check_false "a size of 0 is not believed" test -e to/version

# the folder cannot be made durable
cp old to/data
FAULT_SYNC=5 faulty 1 copy data to/data
said "to/data is whole, but a power failure may lose its name: Input/output error$"
check "… which is true" cmp data to/data
FAULT_SYNC=22 faulty 0 copy old to/data
check "a file system that does not sync folders is none of its business" cmp old to/data

# others
: >to/data.peerlane-part
LD_LIBRARY_PATH=$mock PEERLANE_KMSG=/none flock to/data.peerlane-part env LD_PRELOAD="$mock/libcuda.so.1" \
	"$tool" copy data to/data >out 2>err
check_eq "another copy is at work: refused" 1 $?
said 'another copy to .*to/data is running'
check "… and its file is there" test -e to/data.peerlane-part
rm to/data.peerlane-part
cp data precious
ln -s ../precious to/data.peerlane-part
gpu 1 copy old to/data
said 'data.peerlane-part cannot be written'
check "a link in its place is not followed" cmp data precious
rm to/data.peerlane-part
ln precious to/data.peerlane-part
gpu 1 copy old to/data
said 'is not from a copy of this user: remove it'
check "nor is a file with another name written" cmp data precious
rm to/data.peerlane-part

cp old to/data
status 3 copy data to/data
check "without a GPU the target is the old one" cmp old to/data
check_false "… and nothing is beside it" test -e to/data.peerlane-part
status 64 copy
said 'needs a SOURCE and a TARGET'
status 64 copy a b c
status 64 copy --chunk 5000 a b
said 'a multiple of 4K'
status 64 copy --chunk 4K --gpu far a b
status 1 copy no-such to
said 'no-such cannot be opened: No such file'
status 1 copy to data
said 'is no regular file'
status 1 copy data ./data
said 'are the same file'
status 1 copy data to/link/x
status 1 copy data /dev/null
said 'is no regular file'
ln -s nowhere to/dangling
status 1 copy data to/dangling
said 'a dangling link'

# on a terminal: a line that is written over, with a bar where there is room for one
shown() { # COLUMNS
	LD_LIBRARY_PATH=$mock PEERLANE_KMSG=/none script -qec "stty cols $1; env LD_PRELOAD=$mock/libcuda.so.1 '$tool' copy data to/shown" \
		/dev/null >shown </dev/null
	tr '\r' '\n' <shown | sed 's/\x1b\[K//g' >lines
	rm -f to/shown
	check_eq "$1 columns: no line of the progress is longer" "" "$(grep '^copying' lines | grep -E "^.{$1}")"
}
last='100 % of 0.3 MB, [0-9.]* MB/s, 0 s left$'
shown 50
check "progress on a narrow terminal, with its rate" grep -q "^copying: $last" lines
shown 72
check "a bar in what is left of the line" grep -q "^copying: \[##*\] $last" lines
shown 200
check "which is not longer than it need be" grep -q "^copying: \[#\{40\}\] $last" lines
check "… and gone at the end" sh -c "sed -n '/^copying:.* 100 %/,\$p' lines | sed 1d | grep -m 1 . | grep -q '^copy  data'" ||
	sed 's/^/# /' lines
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane io load: calls, threads, ways, paths, percentiles, verification; what it refuses
# tags: cufile
# tier: check
# timeout: 120
#
# On the mock of the CUDA driver; what the devices say of it is in cufile/guest.
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cufile/lib.sh"
need_file "$BUILD/userlib/tests/host/hist_unit"

"$BUILD/userlib/tests/host/hist_unit" >unit.log 2>&1
check_eq "the histogram's own tests came to their end" 0 $? || sed 's/^/# /' unit.log
ktap_from unit.log histogram

dd if=/dev/urandom of=data bs=4096 count=2000 2>/dev/null
printf odd >>data
cp data same
size=$(wc -c <data)

# a call for each block, of all of the file; the last one is short
gpu 0 io -f data -d 0 -w 4 -i 64K -V --json
json "without a word it is a load: all of the file, once" "length == 1 and (.[0] | .what == \"load\" and .ok and
	(.transfers | length) == 1 and (.transfers[0] | .what == \"read\" and .bytes == $size and .calls == 126 and .gpu == 0))"
json "its unaligned end took another path, and it says which and why" '.[0].transfers[0] | .path == "mixed" and
	.bytes_by_path == {p2p: (.bytes - 3), bounce: 3} and (.reason | test("unaligned"))'
# shellcheck disable=SC2016 # of jq
json "percentiles come from the histogram, which has all calls" '.[0].transfers[0] | .histogram as $h | .microseconds as $us |
	([$h[][1]] | add) == .calls and ($h == ($h | sort)) and $us.p50 >= 0 and $us.p50 <= $us.p95 and $us.p95 <= $us.p99 and $us.p99 <= $us.max and
	([$h[] | select(.[0] < $us.p50)[1]] | add) < 63 and
	($us.p50 == $us.max or ([$h[][0]] | index($us.p50)) != null and ([$h[] | select(.[0] <= $us.p50)[1]] | add) >= 63)'
gpu 0 io load --file data --threads 4 --chunk 64K --size 8000K --verify --json
json "whole blocks go one way" '.[0].transfers[0] | .path == "p2p" and .reason == "" and .calls == 125'
gpu 0 io -f data -i 1M -o 4096 -s 2M
said '^read  data: 2097152 bytes by p2p in [0-9.]* s, CPU [0-9.]* s, [0-9.]* MB/s, [0-9]* calls/s$'
said '^      microseconds of a call: p50 [0-9.]* p95 - p99 - max [0-9.]*$'
check "reading changes nothing" cmp data same

# each way, with threads, and what it says of its path
for each in "cufile 0 p2p" "cpu 1 posix" "copy 2 bounce" "async 3 bounce" "stream 5 p2p" "batch 6 p2p" "streams 7 p2p"; do
	# shellcheck disable=SC2086 # words
	set -- $each
	for rw in read write randread randwrite; do
		gpu 0 io load -f data -s 1M -i 64K -w 3 -x "$2" -I "$rw" -V --json
		json "$1, $rw: by $3, 16 calls" ".[0].transfers | length == 1 and (.[0] | .path == \"$3\" and .calls == 16 and
			.bytes == 1048576 and .what == \"$(echo "$rw" | sed 's/rand//')\")"
	done
	cp same data
	gpu 0 io load -f data -s 1M -i 64K -x "$1" -I 1 -k 5 -V
	check_false "$1, write: it wrote" cmp -s -n 1048576 data same
	check "$1, write: and no byte behind that" cmp -i 1048576 data same
	mv data data-by-"$1"
	cp same data
done
status 0 io load -f data -s 1M -x cpu
check_eq "cpu needs no GPU" "" "$(cat err)"
gpu 0 io load -f data -s 1M -i 64K -x 4 -V --json
json "4 is a copy, too" '.[0].transfers[0] | .path == "bounce" and .calls == 16'
for way in cpu copy async stream batch streams; do
	check "what is written does not depend on the way: $way" cmp data-by-cufile data-by-$way
done
gpu 0 io load -f data -s 1M -i 64K -I 1 -k 6 -V
check_false "but on the seed" cmp -s data data-by-cufile
gpu 0 io load -f data -s 1M -i 64K -I 1 -k 5 -V -w 4
check "and not on the threads" cmp data data-by-cufile
cp same data

# what is by chance is the same again, and both kinds are there
gpu 0 io load -f data -s 4M -i 4K -I 2 --mix 70 -V -k 3 -w 2 --json
json "mixed: two lines, and together as many calls as there are blocks" '.[0].transfers | [.[].what] == ["read", "write"] and
	(.[0].calls + .[1].calls) == 1024 and (.[0].bytes + .[1].bytes) == 4194304 and .[0].path == "p2p" and .[1].path == "p2p"'
json "about so many of them read" '.[0].transfers[0].calls | . > 614 and . < 819'
jq -c '[.transfers[].calls]' out >calls
gpu 0 io load -f data -s 4M -i 4K -I 2 --mix 70 -k 3 -w 2 --json
check_eq "the same seed, the same calls" "$(cat calls)" "$(jq -c '[.transfers[].calls]' out)"
gpu 0 io load -f data -s 4M -i 64K --loops 3 --json
json "again and again" '.[0].transfers[0] | .calls == 192 and .bytes == 12582912'
gpu 0 io load -f data -s 1000K -i 64K -w 3 -x batch --loops 2 --json
json "batches: each share has its calls, the shorter ones no more" '.[0].transfers[0] | .calls == 32 and .bytes == 2048000 and .path == "p2p"'
gpu 0 io load -f data -s 4M -i 4K -I 2 --mix 70 -V -w 8 -x batch --json
json "batches of both kinds" '.[0].transfers | [.[].what] == ["read", "write"] and (.[0].calls + .[1].calls) == 1024'
gpu 0 io load -f data -s 1000K -i 64K -w 3 -x streams --loops 2 --json
json "streams: each share has its calls, too" '.[0].transfers[0] | .calls == 32 and .bytes == 2048000 and .path == "p2p"'
gpu 0 io load -f data -s 4M -i 4K -I 2 --mix 70 -V -w 8 -x streams --json
json "streams: reads and writes together" '.[0].transfers | [.[].what] == ["read", "write"] and (.[0].calls + .[1].calls) == 1024'
gpu 0 io load -f data -s 64K -i 64K -T 1 --json
json "for a time: no less" '.[0].transfers[0] | .calls >= 1 and .seconds >= 1'

# calls of several sizes, and at any place: what libcufile logs of staged transfers shows which
logged() { # ARGS…: the calls as lines of "OFFSET BYTES", in the order of their offsets
	rm -f said.log
	CUFILE_FORCE_COMPAT_MODE=1 PEERLANE_LOG=debug CUFILE_LOGFILE_PATH=$PWD/said.log gpu 0 io load -f data "$@" --json
	sed -n 's/.*debug: [a-z]* of \([0-9]*\) bytes at \([0-9]*\): result .*/\2 \1/p' said.log | sort -n >calls
}
# in_turn FROM SIZE...: blocks of these sizes, one behind the other
in_turn() {
	at=$1
	shift
	for n in "$@"; do
		echo "$at $n"
		at=$((at + n))
	done
}
cp same data
logged -i 4K:16K:4K -s 83K -o 4096 -V
in_turn 4096 4096 8192 12288 16384 4096 8192 12288 16384 3072 >want
check "sizes from 4K to 16K in turn, and what is left" cmp calls want
json "all of it" '.[0].transfers[0] | .calls == 9 and .bytes == 83 * 1024'
logged -i 4K:16K:5K -s 60K -w 3 -V --loops 2
in_turn 0 4096 9216 14336 4096 9216 14336 4096 2048 | sed p >want
check "a step that does not lead to 16K, in three shares, twice" cmp calls want
logged -i 4K:16K:4K -s 80K -w 2 -I 2 --loops 9
in_turn 0 4096 8192 12288 16384 4096 8192 12288 16384 >want
check_false "at random, but each block as it is" grep -vxFf want calls
check_eq "all of them" 72 "$(wc -l <calls)"
gpu 0 io load -f data -s 1M -i 1K:9000:8 -x cufile -I 1 -k 5 -w 3 -V
check "written in pieces of any size: the same bytes" cmp data data-by-cufile
cp same data
logged -i 4K -s 1M -w 2 -I 2 -U -k 3
check "as many calls as blocks" test "$(wc -l <calls)" -eq 256
check "nearly none begins at a block" test "$(awk '$1 % 4096 == 0' calls | wc -l)" -lt 10
check "each lies within a share" awk '$2 != 4096 || $1 + $2 > 1048576 || ($1 < 524288 && $1 + $2 > 524288) { exit 1 }' calls
check "both shares have half of them" test "$(awk '$1 < 524288' calls | wc -l)" -eq 128
cp calls first
logged -i 4K -s 1M -w 2 -I 2 --align 1 -k 3
check "the same seed, the same places" cmp calls first
logged -i 4K:12K:4K -s 1M -o 100 -w 2 -I 2 -a 512
check "at multiples of 512 of the file" awk '$1 % 512 || $1 < 100 || $1 + $2 > 1048676 { exit 1 } $1 % 4096 { odd++ } END { exit !odd }' calls
for way in cufile cpu copy async stream batch streams; do
	gpu 0 io load -f data -s 1M -i 5000:9000:1000 -w 2 -x "$way" -I 3 -U -V --json
	json "$way: written at any place" '.[0].transfers[0] | .bytes > 0 and .calls > 100'
	check "  and nowhere else" cmp -i 1048576 data same
done
cp same data
gpu 0 io load -f data -s 64K -i 64K -w 1 -I 2 -U
gpu 1 io load -f data -s 64K -i 64K -o 1 -I 2 -a 4K
said 'no place for a call of 65536 bytes at a multiple of 4096'

# batches of several threads
gpu 0 io load -f data -s 1000K -i 64K -w 2 -B 3 -x batch --loops 2 -V --json
json "two threads, batches of three: all blocks, each as often" '.[0].transfers[0] | .calls == 32 and .bytes == 2048000 and .path == "p2p"'
gpu 0 io load -f data -s 1000K -i 64K -w 2 -B 3 -x streams -I 2 --mix 50 -V --json
json "the same by streams" '.[0].transfers | (.[0].calls + .[1].calls) == 16'
printf '{"properties":{"io_batchsize":8}}' >eight.json
export CUFILE_ENV_PATH_JSON="$PWD/eight.json"
gpu 0 io load -f data -s 64K -i 4K -w 2 -B 8 -x batch
gpu 1 io load -f data -s 64K -i 4K -w 1 -B 9 -x batch
said 'no batch of 9 entries'
gpu 1 io load -f data -s 64K -i 4K -w 16 -x batch
said 'no batch of 16 entries'
unset CUFILE_ENV_PATH_JSON
cp same data

# where the data is
gpu 0 io load -f data -s 1M -i 64K -w 2 -m device --json
json "device memory" '.[0].transfers[0] | .memory == "device" and .path == "p2p"'
for each in "malloc 3" "mmap 4" "pinned 2"; do
	# shellcheck disable=SC2086 # words
	set -- $each
	for way in cufile stream batch streams; do
		gpu 0 io load -f data -s 1M -i 64K -w 2 -m "$2" -x $way -I 1 -k 5 -V --json
		json "$1, $way: it is the host's, by posix" ".[0].transfers[0] | .memory == \"$1\" and .path == \"posix\" and .bytes == 1048576"
		check "$1, $way: the same is written" cmp data data-by-cufile
		cp same data
	done
done
FAULT_FLIP=3 faulty 5 io load -f data -s 1M -i 64K -m malloc -V
said 'CRC32C of host memory is'
gpu 3 io load -f data -s 1M -m vmm
said 'libcuda.so.1 has no cuMemCreate'

# jobs beside each other, from a file of gdsio's
cat >jobs.gdsio <<'END'
# two
[global]
name=two
xfer_type=0
rw=read	; both
bs=64K
size=1M
do_verify=1
skip_bufregister=0
unaligned_random=0
alignment_size=0
enable_nvlinks=0
random_seed=0
runtime=0

[job1]
numa_node=0
gpu_dev_id=0
num_threads=2
filename=data
[job2]
xfer_type=2
num_threads=4
start_offset = 1M
filename=same
END
gpu 0 io jobs.gdsio --json
json "two jobs, each with what [global] and its own lines say" 'length == 1 and (.[0] | .what == "load" and .ok and
	([.jobs[] | .name, .ok, (.transfers[0] | .file, .calls, .bytes, .path)] == ["job1", true, "data", 16, 1048576, "p2p", "job2", true, "same", 16, 1048576, "bounce"]))'
gpu 0 io load jobs.gdsio
said '^.job1.$'
said '^read  data: 1048576 bytes by p2p in '
said '^.job2.$'
said '^read  same: 1048576 bytes by bounce in '
sed 's/^filename=same/filename=none/' jobs.gdsio >one.gdsio
gpu 1 io one.gdsio --json
json "one that cannot: the other one does all the same" '.[0] | (.ok | not) and ([.jobs[] | .ok] == [true, false]) and .jobs[0].transfers[0].calls == 16'
sed -e 's/^runtime=0/runtime=1/' -e 's/^do_verify=1/do_verify=0/' jobs.gdsio >timed.gdsio
gpu 0 io timed.gdsio --json
json "for a time" '.[0].jobs | all(.transfers[0].seconds >= 1)'
printf '[global]\nsize=1M\nrw=randread\nbs=4K:12K:4K\n[one]\nfilename=data\nunaligned_random=1\n[two]\nfilename=data\nalignment_size=512\n' >any.gdsio
gpu 0 io any.gdsio --json
json "jobs with sizes and places" '.[0].jobs | map(.ok and .transfers[0].calls == 129) == [true, true]'
bad() { # LINE WORDS
	printf '[global]\nsize=1M\n[one]\nfilename=data\n%s\n' "$1" >bad.gdsio
	gpu 64 io bad.gdsio
	said "$2"
	said 'that is line 5 of bad.gdsio'
}
bad 'color=red' '"color" is not known'
bad 'fill_random=1' 'fill_random can only be 0 here'
bad 'do_verify=2' 'do_verify is 0 or 1, not "2"'
bad 'bs=much' '--chunk'
bad 'unaligned_random=2' 'unaligned_random is 0 or 1, not "2"'
bad 'alignment_size=odd' '--align'
bad '[two' 'is no name of a job in brackets'
bad 'size' 'is no KEY=VALUE'
bad '[global]' '.global. follows a job'
printf 'size=1M\n' >bad.gdsio
gpu 64 io bad.gdsio
said 'is before any'
printf '[global]\nsize=1M\n[one]\n' >bad.gdsio
gpu 64 io bad.gdsio
said '.one. has no filename'
printf '[global]\n' >bad.gdsio
gpu 64 io bad.gdsio
said 'has no job'
gpu 66 io load /dev/zero
said 'is no job file: not a regular one'
cp data 'with#a;b'
printf '; a comment\n[global] # another\nsize=1M ; and one\n[one]\nfilename=with#a;b\n' >odd.gdsio
gpu 0 io odd.gdsio --json
json "a file's name may have what begins a comment elsewhere" '.[0].jobs[0].transfers[0].file == "with#a;b"'
gpu 66 io nowhere.gdsio
said 'cannot be read: No such file'

# paths that differ, for each direction of its own
cp same data
MOCK_P2P_ERRNO=121 MOCK_P2P_AFTER=1 MOCK_P2P_COUNT=1
export MOCK_P2P_ERRNO MOCK_P2P_AFTER MOCK_P2P_COUNT
gpu 0 io load -f data -s 4M -i 1M --json
json "one call of four was staged: mixed, with the bytes of each path and the reason" '.[0].transfers[0] | .path == "mixed" and
	.bytes_by_path == {p2p: 3145728, bounce: 1048576} and (.reason | test("EREMOTEIO"))'
gpu 0 io load -f data -s 4M -i 1M
said 'read  data: 4194304 bytes by mixed (p2p 3145728, bounce 1048576) in '
gpu 0 io load -f data -s 4M -i 64K -I 2 --mix 50 --json
json "of reads and writes one call was staged: the other line knows nothing of it" '.[0].transfers | ([.[].path] | sort) == ["mixed", "p2p"] and
	all(([.bytes_by_path[]] | add) == .bytes) and ([.[].bytes_by_path.bounce // empty]) == [65536]'
cp same data
unset MOCK_P2P_AFTER MOCK_P2P_COUNT
gpu 4 io load -f data -s 4M -i 1M -w 2 --strict --json
json "strict: refused" '.[0] | (.ok | not) and .transfers[0].path == "none" and (.error | test("5008"))'
# so the block layer says of an NVMe drive; a read that ends with EIO would be staged
MOCK_P2P_ERRNO=61
for way in cufile stream streams; do
	gpu 1 io load -f data -s 4M -i 1M -w 2 -x "$way" --json
	json "$way: a medium that cannot be read: the call, its place, and what cuFile says of it" '.[0] | (.ok | not) and (.error |
		test("read at [0-9]* of data failed: Input/output error .errno 5.: read of the file on device [0-9]*:[0-9]* failed from [0-9]* on: ENODATA"))'
done
gpu 1 io load -f data -s 4M -i 1M -w 2 -x batch --json
json "batch: a medium that cannot be read: the call and its place" '.[0] | (.ok | not) and (.error | test("read at [0-9]* of data failed: Input/output error"))'
unset MOCK_P2P_ERRNO

# a byte that changes on its way is found, on each way
for way in cufile cpu copy async stream batch streams; do
	FAULT_FLIP=3 faulty 5 io load -f data -s 1M -i 64K -x "$way" -V --json
	json "$way: a wrong byte of the second call; the third read of the file, as each is read again" '.[0] | (.ok | not) and (.error | test("at 65536 of data: CRC32C of .* memory is 0x[0-9a-f]*, of 65536 bytes of the file 0x"))'
	FAULT_FLIP=3 faulty 0 io load -f data -s 1M -i 64K -x "$way"
done

# the target is as it was until all else is known to work
rm -f new
status 3 io load -f new -s 1M -I 1
check_false "without a GPU no file is made" test -e new
status 3 io write --file new --size 1M
check_false "nor by write" test -e new
status 3 io copy --file data --to new
check_false "nor by copy" test -e new
status 3 io load -f data -s 1M -I 1
check "nor is one changed" cmp data same
gpu 0 io load -f data -s 1M -I 1 --sync
check_eq "no file gets shorter" "$size" "$(wc -c <data)"
gpu 0 io load -f new -s 70001 -i 64K -I 1 -V
check_eq "one that is made has the exact size" 70001 "$(wc -c <new)"

status 64 io load
said 'which file?'
status 64 io -f data -I 4
said '"4"; peerlane io --help'
status 64 io -f data -x 8
said '--transfer does not know "8"'
status 64 io -f data -w 0
status 64 io -f data --mix 101
status 64 io -f data --crc
said '--crc is for read, write, copy, not for load'
status 64 io read --file data -w 2
said '--threads is for load, not for read'
status 64 io -f data -m 5
said '--memory does not know "5"'
status 64 io -f data -m malloc -x copy
said '--memory malloc does not go with this --transfer'
# letters of gdsio that are not taken are not passed over; the manual has the reasons
for letter in D n p R F P J O; do
	status 64 io -f data "-$letter" 1
	check "the manual names -$letter" grep -q "^\.B[IR]* .*\\\\-$letter" "$TOP/docs/man/peerlane-io.1"
done
for range in 4K:1M 4K:1M:4K:1 4K:1M: :1M:4K 0:1M:4K 1M:4K:4K 4K:1M:0 1:1M:1 4K:much:4K; do
	status 64 io -f data -i "$range"
	said "or MIN:MAX:STEP of at most 65536 sizes, not \"$range\""
done
status 64 io read --file data -i 4K:1M:4K
said '--chunk MIN:MAX:STEP is for load, not for read'
status 64 io -f data -U
said '--align and --unaligned are for --rw randread and randwrite'
status 64 io -f data -I 2 -a 0
said '--align'
status 1 io -f new-one -I 1 -s 9223372036854775807 -o 1
said 'no file is so long'
status 64 io -f data -B 2
said '--batch is for --transfer batch and streams'
gpu 1 io -f data -w 999 -i 4K -x batch
said 'no batch of 999 entries: .* io_batchsize of cufile.json is the most'
status 1 io -f data -w 9
said 'too few for 9 at a time'
status 1 io -f data -s 64K -i 16K -w 2 -B 3 -x streams
said 'too few for 6 at a time'
status 1 io -f data -s 9M
said 'has 8192003 bytes: not 9437184 to read from 0 on'
status 1 io -f new-one -I 1
said 'give --size N'
status 1 io -f new-one
said 'cannot be opened: No such file'
status 3 io -f data -i 5000000T -s 6000000T -I 1
said 'no GPU has so much memory'
finish

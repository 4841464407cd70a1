#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane io and peerlane stats: options, output, exit statuses
# tags: cufile
# tier: check
# timeout: 120
#
# On the mock of the CUDA driver; transfers for real are in the scenarios.
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cufile/lib.sh"

printf 123456789 >nine
dd if=/dev/urandom of=data bs=4096 count=2000 2>/dev/null
printf odd >>data
size=$(wc -c <data)

status 64
status 64 fly
said 'no command "fly"'
status 0 --help
said 'usage: peerlane COMMAND'
status 0 --version
said "^peerlane [0-9]*\.[0-9]*\.[0-9]*$"
status 0 help
said 'usage: peerlane COMMAND'
status 0 help doctor
said 'usage: peerlane doctor'
status 64 help fly
said 'no command "fly"'
status 64 io
status 64 io fly
said 'io does not know "fly"'
status 0 io --help
status 0 io read --help
status 64 io read
said 'which file?'
status 64 io write --file x
said 'how much?'
status 64 io copy --in x
said 'where to?'
status 64 io read --file x --out y
status 64 io read --file x --pattern-fill 1
status 64 io read --file x --size 0
status 64 io read --file x --size 12Q
said 'not "12Q"'
status 64 io read --file x --size 99999999999999999999
status 64 io read --file x y
said 'takes no "y"'
status 64 io crc --file x --gpu 0
said 'gpu is for read, write, copy, load, not for crc'
status 64 io read --file x --no-such
status 64 stats y
status 3 stats --root /nonexistent
said 'debugfs is mounted'
status 1 io crc --file /nonexistent
status 1 io read --file /nonexistent
said 'cannot be opened: No such file'
status 3 io read --file nine
said 'no CUDA driver\|cuInit failed\|cuDeviceGetCount failed\|there is no GPU'

status 0 io crc --file nine --json
json "CRC32C as everybody has it" '.[0] | .crc32c == "0xe3069283" and .bytes == 9'
status 0 io crc --file nine --offset 4 --size 2
status 1 io crc --file nine --offset 4 --size 6
said 'nine ends after 5 of 6 bytes'
status 0 io crc --file data --json
crc=$(jq -r .crc32c out)

gpu 0 io read --file data --crc --json
json "read: one object" 'length == 1 and .[0].ok'
json "read: bytes, path, time" ".[0] | .what == \"read\" and .bytes == $size and
	.path == \"mixed\" and .seconds > 0 and .cpu_seconds >= 0"
json "read: the ends were staged, and it says so" \
	'.[0] | .bytes_by_path == {p2p: (.bytes - 3), bounce: 3} and (.reason | test("unaligned"))'
check_eq "read: the CRC is the file's" "$crc" "$(jq -r .crc32c out)"
gpu 0 io read --file data --size 1M --json
json "read: whole blocks need no reason" '.[0] | .path == "p2p" and .reason == ""'
gpu 0 io read --file data --size 100K --offset 5 --gpu-offset 7 --chunk 3333 --loops 3 --unregistered --verify --json
json "read: in chunks, again and again" '.[0] | .bytes == 307200'
gpu 0 io copy --in data --out copy --crc --verify --json
check "copy: the same" cmp data copy
json "copy: one object with two transfers" 'length == 1 and .[0].ok and
	[.[0].transfers[].what] == ["read", "write"]'
check_eq "copy: each transfer is a line" 2 "$(grep -c '^{"what":"\(read\|write\)".*}$' out)"
gpu 0 io copy --file data --to copy --to-offset 10000000 --size 8192
check_eq "copy: to an offset" 10008192 "$(wc -c <copy)"
# A target keeps what it has until the source is read
cp data kept
ln -s kept link
ln kept twin
for target in kept ./kept link twin; do
	gpu 1 io copy --file kept --to $target --verify
	said "kept and $target are the same file, and the copy would destroy its source"
	check "copy onto itself, as $target: it is whole" cmp data kept
done
gpu 1 io copy --file kept --to kept --to-offset 4096 --size 8192
said 'destroy its source'
gpu 0 io copy --file kept --to kept --to-offset 8192 --size 8192 --verify
check "within a file, to another place: the first bytes are there twice" \
	sh -c 'head -c 8192 data | cmp -n 8192 -i 0:8192 - kept'
cp data kept
status 3 io copy --file nine --to kept
check "copy without a GPU: the target is whole" cmp data kept
MOCK_P2P_ERRNO=61 gpu 1 io copy --file data --to kept --size 1M
check "copy of what cannot be read: the target is whole" cmp data kept
gpu 0 io write --file new --size 70001 --pattern-fill 5 --verify --sync --json
check_eq "write: the exact size" 70001 "$(wc -c <new)"
gpu 0 io write --file zero --size 4096
check "write: zeros" cmp -n 4096 zero /dev/zero

# the second of three calls is refused: not the path of the last one alone
MOCK_P2P_ERRNO=121 MOCK_P2P_AFTER=1 MOCK_P2P_COUNT=1
export MOCK_P2P_ERRNO MOCK_P2P_AFTER MOCK_P2P_COUNT
gpu 0 io read --file data --size 3M --chunk 1M --verify --json
json "one call of three was staged: mixed, with the bytes of each path and the reason" '.[0] | .path == "mixed" and
	.bytes_by_path == {p2p: 2097152, bounce: 1048576} and (.reason | test("EREMOTEIO"))'
gpu 0 io read --file data --size 3M --chunk 1M
said '3145728 bytes by mixed (p2p 2097152, bounce 1048576) in '
unset MOCK_P2P_AFTER MOCK_P2P_COUNT

MOCK_P2P_ERRNO=121
gpu 0 io read --file data --size 1M --verify --json
json "refused: staged, with the reason" '.[0] | .path == "bounce" and
	.errno == 121 and (.reason | test("EREMOTEIO"))'
CUFILE_FORCE_COMPAT_MODE=1 PEERLANE_PAGE_CACHE=1 gpu 0 io read --file data --size 1M --crc --verify --json
json "the page cache is read by the GPU's engine" '.[0] | .path == "cache" and .bytes_by_path == {cache: 1048576} and
	(.reason | test("force_compat_mode is set"))'
unset CUFILE_FORCE_COMPAT_MODE
PEERLANE_PAGE_CACHE=0
gpu 4 io read --file data --size 1M --strict --json
json "strict: refused, with the reason" '.[0] | (.ok | not) and .result == -5008
	and .bytes == 0 and .path == "none" and .bytes_by_path == {} and (.error | test("EREMOTEIO"))'
gpu 4 io copy --in data --out copy2 --size 1M --strict --json
json "strict: in a copy, too" '.[0] | (.ok | not) and .transfers[0].result == -5008'
MOCK_P2P_ERRNO=61
gpu 1 io read --file data --size 1M --json
json "a medium that cannot be read" '.[0] | .result == -1 and .result_errno == 5'
MOCK_P2P_ERRNO=5
gpu 0 io read --file data --size 1M --verify --json
json "a read that may have met a write into the page cache: staged, with the reason" '.[0] | .path == "bounce" and .errno == 5 and
	(.reason | test("EIO.*page cache"))'
gpu 1 io read --file data --size 1M --strict --json
json "strict: the error" '.[0] | .result == -1 and .result_errno == 5 and (.error | test("no other path is allowed"))'
unset MOCK_P2P_ERRNO
mkdir -p dir
gpu 1 io read --file dir
echo '{"properties":{"allow_compat_mode":"no"}}' >bad.json
CUFILE_ENV_PATH_JSON=$PWD/bad.json
export CUFILE_ENV_PATH_JSON
gpu 3 io read --file data
said 'properties.allow_compat_mode must be true or false'
unset CUFILE_ENV_PATH_JSON
gpu 3 io read --file data --gpu 7
status 64 io read --file data --gpu 1024
said '--gpu needs a number below 1024, or near'
status 64 io read --file data --gpu far
said '"far" is neither'
# the mock has a GPU for CUDA, not for the PCI bus of this machine
gpu 3 io read --file data --gpu near --json
said 'peerlane: --gpu near: '
json "near: the result says that there is no GPU" '.[0].ok == false and .[0].error == "no GPU could be chosen"'
gpu 0 io read --file data --size 4096 --json
json "the number of the GPU is told" '.[0].gpu == 0 and (.[0] | has("gpu_reason") | not)'
gpu 1 io read --file data --size 8M --json
json "less than --size is there: an error" '.[0] | .ok == false and .bytes == 8192003 and
	.error == "data ends after 8192003 of 8388608 bytes"'
gpu 1 io copy --file data --to kept --size 8M
said 'data ends after 8192003 of 8388608 bytes'
check "… and the target of a copy is whole" cmp data kept
gpu 1 io read --file data --offset 1G
said 'nothing to read'

# the shape that the driver's debugfs has
mkdir -p root/0000:01:00.0
echo 'bar1-dma-write 4096' >root/0000:01:00.0/counters
echo '02:00.0 read 1 write 2' >root/0000:01:00.0/initiators
printf 'state live\nbar1-used 65536\n' >root/0000:01:00.0/memory
status 0 stats --root root --json
json "stats: numbers and words" '.[0].gpus["0000:01:00.0"] |
	.counters["bar1-dma-write"] == 4096 and .memory.state == "live" and
	.initiators["02:00.0"] == {read: 1, write: 2}'
status 0 stats --root root
said 'bar1-dma-write  *4096'
finish

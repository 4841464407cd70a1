#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile on a mock of the CUDA driver: checks, paths, faults, threads
# tags: cufile
# tier: check
# timeout: 600
#
# A mock: it shows what the library decides, not what a machine does.  That is
# for the scenarios.  The same again under ASan and UBSan.
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

tests=$BUILD/userlib/tests
sanitized=$BUILD/userlib/sanitize/tests
need_file "$tests/cufile-unit" "$sanitized/cufile-unit" "$sanitized/crew-unit" "$sanitized/json-unit" "$tests/window-unit"

# begin NAME COMMAND…: in the background, since these wait half of their time
begin() {
	name=$1
	shift
	mkdir -p "$name.d"
	{
		"$@" >"$name.out" 2>&1
		echo $? >"$name.status"
	} &
}

begin unit-san "$sanitized/cufile-unit" "$PWD/unit-san.d"
begin crew-san "$sanitized/crew-unit"
begin json-san "$sanitized/json-unit"
begin unit "$tests/cufile-unit" "$PWD/unit.d"
begin crew "$tests/crew-unit"
begin json "$tests/json-unit"
begin window "$tests/window-unit"
wait
for name in json crew window unit json-san crew-san unit-san; do
	ended "$name" "$(cat "$name.status")" "$name.out"
done
# what make bench-gpu runs: a library of no wrong bytes, and one that has them
bench() {
	LD_LIBRARY_PATH=$tests/mock "$@" "$tests/cufile-bench" --dir "$PWD" --size 16 --seconds 0.01 --pairs 2 \
		"$BUILD/userlib/libcufile.so.0" PEERLANE_PAGE_CACHE=1 "$BUILD/userlib/libcufile.so.0" >bench.out 2>&1
}
check "speeds of two libraries beside each other" bench env
check "  each kind of IO is in the table" [ "$(grep -c '^| [rw].* KiB .*[0-9]%' bench.out)" -eq 42 ]
rm -rf unit.d unit-san.d
finish

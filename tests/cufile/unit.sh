#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile on a mock of the CUDA driver: checks, paths, faults, threads
# tags: cufile quick
# tier: check
# timeout: 600
#
# A mock: it shows what the library decides, not what a machine does.  That is
# for the scenarios.  The same again under ASan and UBSan.
set -u
. "$TOP/scenarios/lib/case.sh"

tests=$BUILD/userlib/tests
need_file "$tests/cufile-unit"

run() {
	name=$1
	shift
	mkdir -p "$name.d"
	"$@" >"$name.out" 2>&1
	status=$?
	grep -e '^not ok' -e '^# ' -e ERROR "$name.out" | head -n 40 | sed 's/^/# /'
	[ "$status" -eq 0 ] && tail -n 1 "$name.out" | grep -q '^1[.][.][1-9]'
}

check "the reader of JSON" run json "$tests/json-unit"
check "helpers" run crew "$tests/crew-unit"
check "the library" run unit "$tests/cufile-unit" "$PWD/unit.d"
if [ -x "$BUILD/userlib/sanitize/tests/cufile-unit" ]; then
	check "the reader of JSON, sanitized" \
		run json-san "$BUILD/userlib/sanitize/tests/json-unit"
	check "helpers, sanitized" run crew-san "$BUILD/userlib/sanitize/tests/crew-unit"
	check "the library, sanitized" \
		run unit-san "$BUILD/userlib/sanitize/tests/cufile-unit" \
		"$PWD/unit-san.d"
fi
# what make bench-gpu runs: a library of no wrong bytes, and one that has them
bench() {
	LD_LIBRARY_PATH=$tests/mock "$@" "$tests/cufile-bench" --dir "$PWD" --size 16 --seconds 0.01 --pairs 2 \
		"$BUILD/userlib/libcufile.so.0" PEERLANE_PAGE_CACHE=1 "$BUILD/userlib/libcufile.so.0" >bench.out 2>&1
}
check "speeds of two libraries beside each other" bench env
check "  each kind of IO is in the table" [ "$(grep -c '^| [rw].* KiB .*[0-9]%' bench.out)" -eq 42 ]
rm -rf unit.d unit-san.d
finish

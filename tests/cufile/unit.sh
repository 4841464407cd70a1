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
check "the library" run unit "$tests/cufile-unit" "$PWD/unit.d"
if [ -x "$BUILD/userlib/sanitize/tests/cufile-unit" ]; then
	check "the reader of JSON, sanitized" \
		run json-san "$BUILD/userlib/sanitize/tests/json-unit"
	check "the library, sanitized" \
		run unit-san "$BUILD/userlib/sanitize/tests/cufile-unit" \
		"$PWD/unit-san.d"
fi
rm -rf unit.d unit-san.d
finish

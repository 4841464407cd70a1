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
sanitized=$BUILD/userlib/sanitize/tests
need_file "$tests/cufile-unit" "$sanitized/cufile-unit" "$sanitized/crew-unit" "$sanitized/json-unit" "$tests/window-unit"

# begin NAME COMMAND…: in the background, since these wait half of their time; ended NAME: it came to a good end
begin() {
	name=$1
	shift
	mkdir -p "$name.d"
	{
		"$@" >"$name.out" 2>&1
		echo $? >"$name.status"
	} &
}
ended() {
	grep -e "^not ok" -e "^# " -e ERROR "$1.out" | head -n 40 | sed "s/^/# /"
	[ "$(cat "$1.status")" = 0 ] && tail -n 1 "$1.out" | grep -q "^1[.][.][1-9]"
}

# left_out NAME: the parts that its program skips
left_out() {
	sed -n "/^ok .*# SKIP/s/^ok [0-9]* - /$1: /p" "$1.out" >skipped
	while read -r reason; do
		skip_part "$reason"
	done <skipped
}

begin unit-san "$sanitized/cufile-unit" "$PWD/unit-san.d"
begin crew-san "$sanitized/crew-unit"
begin json-san "$sanitized/json-unit"
begin unit "$tests/cufile-unit" "$PWD/unit.d"
begin crew "$tests/crew-unit"
begin json "$tests/json-unit"
begin window "$tests/window-unit"
wait
check "the reader of JSON" ended json
check "helpers" ended crew
check "finding a window takes no longer for many of them" ended window
grep "^# " window.out
check "the library" ended unit
left_out unit
check "the reader of JSON, sanitized" ended json-san
check "helpers, sanitized" ended crew-san
check "the library, sanitized" ended unit-san
left_out unit-san
# what make bench-gpu runs: a library of no wrong bytes, and one that has them
bench() {
	LD_LIBRARY_PATH=$tests/mock "$@" "$tests/cufile-bench" --dir "$PWD" --size 16 --seconds 0.01 --pairs 2 \
		"$BUILD/userlib/libcufile.so.0" PEERLANE_PAGE_CACHE=1 "$BUILD/userlib/libcufile.so.0" >bench.out 2>&1
}
check "speeds of two libraries beside each other" bench env
check "  each kind of IO is in the table" [ "$(grep -c '^| [rw].* KiB .*[0-9]%' bench.out)" -eq 42 ]
rm -rf unit.d unit-san.d
finish

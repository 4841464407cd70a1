#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda on a fake driver: meaning of every call, every failure
# tags: quick cuda
# timeout: 300
. "$TOP/tests/lib/case.sh"
need_tool make
need_tool flock
need_tool cc

flock "$BUILD/userlib/tests.lock" make -C "$TOP/userlib/cuda" O="$BUILD/userlib" tests >build.log 2>&1 || {
	fail "the test programs build" "$(tail -n 20 build.log)"
	finish
}
bin=$BUILD/userlib/tests/host

# run NAME PROGRAM: its lines are this case's lines
run() {
	"$2" >"$1.log" 2>&1
	status=$?
	while IFS= read -r line; do
		case $line in
		'not ok '*) fail "$1: ${line#* - }" ;;
		'ok '*) pass "$1: ${line#* - }" ;;
		'# '*) printf '%s\n' "$line" ;;
		esac
	done <"$1.log"
	check "$1: ended well" test "$status" -eq 0
	check "$1: with a plan" grep -q "^1\.\.[1-9]" "$1.log"
	check_not "$1: nothing for the sanitizers" \
		grep -E 'Sanitizer|runtime error' "$1.log"
}

run plain "$bin/cuda_unit"
run sanitized "$bin/cuda_unit_san"
run share "$bin/cuda_share_unit"
run share-sanitized "$bin/cuda_share_unit_san"
run pools "$bin/cuda_pool_unit"
run pools-sanitized "$bin/cuda_pool_unit_san"
run wrong-use "$bin/cuda_fuzz"
run wrong-use-sanitized "$bin/cuda_fuzz_san"
finish

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For the cases of this folder; sourced after tests/lib/case.sh.

# build_core: the test programs of userlib/core
build_core() {
	flock "$BUILD/userlib/tests.lock" make -C "$TOP/userlib/core" \
		O="$BUILD/userlib" all tests >build.log 2>&1 && return
	fail "the test programs build" "$(tail -n 20 build.log)"
	finish
}

# unit PROGRAM: its lines are this case's lines; it runs in an empty folder
unit() {
	mkdir "$1"
	(cd "$1" && exec "$BUILD/userlib/tests/host/$1") >"$1.log" 2>&1
	unit_status=$?
	while IFS= read -r unit_line; do
		case $unit_line in
		'not ok '*) fail "$1: ${unit_line#* - }" ;;
		'ok '*) pass "$1: ${unit_line#* - }" ;;
		'# '*) printf '%s\n' "$unit_line" ;;
		esac
	done <"$1.log"
	check "$1: ended well" test "$unit_status" -eq 0
	check "$1: with a plan" grep -q "^1\.\.[1-9]" "$1.log"
	check_not "$1: nothing for the sanitizers" \
		grep -E 'Sanitizer|runtime error' "$1.log"
}

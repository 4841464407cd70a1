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

# unit PROGRAM [ARGUMENTS]: its lines are this case's lines; it runs in an empty
# folder
unit() {
	unit_name=$1
	shift
	rm -rf "$unit_name"
	mkdir "$unit_name"
	(cd "$unit_name" && exec "$BUILD/userlib/tests/host/$unit_name" "$@") \
		>"$unit_name.log" 2>&1
	unit_status=$?
	while IFS= read -r unit_line; do
		case $unit_line in
		'not ok '*) fail "$unit_name: ${unit_line#* - }" ;;
		'ok '*) pass "$unit_name: ${unit_line#* - }" ;;
		'# '*) printf '%s\n' "$unit_line" ;;
		esac
	done <"$unit_name.log"
	check "$unit_name: ended well" test "$unit_status" -eq 0
	check "$unit_name: with a plan" grep -q "^1\.\.[1-9]" "$unit_name.log"
	check_not "$unit_name: nothing for the sanitizers" \
		grep -E 'Sanitizer|runtime error' "$unit_name.log"
}

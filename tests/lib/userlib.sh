# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For cases that run test programs of userlib; sourced after scenarios/lib/case.sh.

# The sanitizer for threads lets each process sleep for a second before it ends, to see
# the threads that are left; the tests have some hundred processes.
export TSAN_OPTIONS=atexit_sleep_ms=50

# build_userlib PART GOAL…: make in userlib/PART
build_userlib() {
	need_tool make flock cc
	build_part=$1
	shift
	mkdir -p "$BUILD/userlib"
	flock "$BUILD/userlib/tests.lock" make -C "$TOP/userlib/$build_part" \
		O="$BUILD/userlib" WERROR=1 "$@" >build.log 2>&1 && return
	fail "the test programs build" "$(tail -n 20 build.log)"
	finish
}

# ended NAME STATUS FILE: a test program's results, in FILE, are this case's, and
# it came to a good end
ended() {
	ktap_from "$3" "$1"
	check_eq "$1: ended well" 0 "$2"
	check "$1: with a plan" grep -q '^1\.\.[1-9]' "$3"
	check_false "$1: nothing for the sanitizers" \
		grep -E 'Sanitizer|runtime error' "$3"
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
	ended "$unit_name" $? "$unit_name.log"
}

# units "PROGRAM [ARGUMENT…]"…: the same of several, six at a time, since most of their time they wait
units() {
	# shellcheck disable=SC2016 # for the inner shell
	printf '%s\n' "$@" | xargs -P 6 -I {} sh -c '
		name=$(echo "$1" | tr " " -)
		rm -rf "$name" "$name.status"
		mkdir "$name" && cd "$name" || exit 0
		"$BUILD/userlib/tests/host/"$1 >"../$name.log" 2>&1
		echo $? >"../$name.status"' sh {}
	for unit_name; do
		unit_name=$(echo "$unit_name" | tr ' ' -)
		ended "$unit_name" "$(cat "$unit_name.status")" "$unit_name.log"
	done
}

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Shared by the cases of the build.

# copy_tree FOLDER: the checkout without what was built, as a second clone would have it
copy_tree() {
	mkdir -p "$1"
	(cd "$TOP" && tar -cf - --exclude=./build --exclude=./.git --exclude='*.o' .) | tar -xf - -C "$1"
}

# shellcheck source=tests/lib/stopwatch.sh
. "$TOP/tests/lib/stopwatch.sh"
# shellcheck source=scenarios/lib/machine/pace.sh
. "$TOP/scenarios/lib/machine/pace.sh"

# judge DESC LIMIT "TIME OWN OTHERS": TIME is at most LIMIT seconds, more where the machine
# is slower.  Where other programs were busy meanwhile it says nothing; then it is the own
# processor time, of as many processors as there are.
judge() {
	judge_limit=$(paced "$2")
	case $(echo "$3 $judge_limit $(nproc)" | awk '{
		print ($1 <= $4 ? "time" : $3 > 0.2 * $1 && $2 <= $4 * $5 ? "busy" : "no") }') in
	time) pass "$1 (at most $judge_limit s: $3)" ;;
	busy) pass "$1 (at most $judge_limit s of each processor; others are busy: $3)" ;;
	*) fail "$1" "took more than $judge_limit s; time, own processor time, that of others: $3" ;;
	esac
}

# within DESC LIMIT START: the time since START, a stopwatch, is judged
within() {
	judge "$1" "$2" "$(elapsed "$3")"
}

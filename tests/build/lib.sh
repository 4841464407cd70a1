# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Shared by the cases of the build.

# copy_tree FOLDER: the checkout without what was built, as a second clone would have it
copy_tree() {
	mkdir -p "$1"
	(cd "$TOP" && tar -cf - --exclude=./build --exclude=./.git --exclude='*.o' .) | tar -xf - -C "$1"
}

# seconds_since NANOSECONDS: whole seconds from then to now, rounded up
seconds_since() { echo $((($(date +%s%N) - $1 + 999999999) / 1000000000)); }

# within DESC LIMIT START: the time since START is at most LIMIT seconds
within() {
	took=$(seconds_since "$3")
	if [ "$took" -le "$2" ]; then
		pass "$1 (at most $2 s)"
	else
		fail "$1" "took $took s, more than $2 s"
	fi
}

# wait_for SECONDS CMD...: until CMD succeeds; fails when the time is over
wait_for() {
	wait_until=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$wait_until" ] || return 1
		sleep 0.05
	done
}

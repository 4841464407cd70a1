# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# How long something took, and whether other programs were busy meanwhile; and waits with a bound.

# stopwatch: the time, the ticks that all processors were busy, and those of what has
# ended below this shell
stopwatch() {
	cut -d ' ' -f 1 /proc/uptime
	awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat
	awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"
}

# elapsed START: since that stopwatch, in seconds: the time, own processor time, and
# that of all else on this machine
elapsed() {
	printf '%s\n' "$1" "$(stopwatch)" | xargs echo "$(getconf CLK_TCK)" | awk '{
		own = ($7 - $4) / $1
		printf "%.2f %.2f %.2f\n", $5 - $2, own, ($6 - $3) / $1 - own
	}'
}

# wait_for SECONDS CMD...: until CMD succeeds; fails when the time is over
wait_for() {
	wait_until=$(($(cut -d . -f 1 /proc/uptime) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(cut -d . -f 1 /proc/uptime)" -lt "$wait_until" ] || return 1
		sleep 0.02
	done
}

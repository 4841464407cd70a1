# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Bounds of time are set on one machine, where pace_loop says 0.34; a slower one gets more.

# pace_loop: the time of a loop in seconds, the mean of three. It is the clock's time: a machine whose
# processors are taken away by others is slow, too.
pace_loop() {
	pace_start=$(date +%s%N)
	for _ in 1 2 3; do
		awk 'BEGIN { while (i < 20000000) i++ }'
	done
	echo $(($(date +%s%N) - pace_start)) | awk '{ printf "%.3f\n", $1 / 3e9 }'
}

# paced SECONDS: the time here for what takes so long there, or less; a faster machine
# gets as much
paced() {
	echo "$1 $(pace_loop)" | awk '{ print $1 * ($2 > 0.34 ? $2 / 0.34 : 1) }'
}

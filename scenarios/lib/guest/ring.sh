# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The guest of allreduce and cx-allreduce:
#
#	ring NAME HOSTS ARGUMENTS…	the first HOSTS hosts reduce; the others only keep the barriers, so that
#					all count over the same time
#
# shellcheck source=scenarios/lib/guest/hosts.sh
. /case/lib/hosts.sh

ring() {
	ring_name=$1
	ring_size=$2
	shift 2
	if [ "$HOST_INDEX" -ge "$ring_size" ]; then
		barrier "$ring_name.quiet"
		counted_all "$ring_name" true
		return
	fi
	ring_list=
	ring_n=0
	for ring_each in a b c d e f g h; do
		[ "$ring_n" -lt "$ring_size" ] || break
		ring_n=$((ring_n + 1))
		ring_list="$ring_list${ring_list:+,}$(address_of "$ring_each")"
	done
	timeout 120 /case/allreduce --rank "$HOST_INDEX" --hosts "$ring_list" \
		--count "$ring_name" "$@" 2>&1
	check_eq "$ring_name: the program came to its end" 0 $?
}

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for guests
#
# A guest of the RDMA scenarios: the program of host a listens, that of b connects;
# $where is what it is told.

# shellcheck source=scenarios/lib/guest/hosts.sh
. /case/lib/hosts.sh

where=listen
[ "$HOST" = a ] || where=$(address_of a)

# part NAME SECONDS PROGRAM ARGUMENTS…: both ends do it; "NAME" is for people
part() {
	part_name=$1
	part_limit=$2
	shift 2
	echo "# $part_name"
	read -r part_began guest_idle </proc/uptime
	timeout "$part_limit" "$@" >/tmp/part 2>&1
	part_status=$?
	cat /tmp/part
	read -r part_ended guest_idle </proc/uptime
	echo "# $part_name: $((${part_ended%.*} - ${part_began%.*})) s of emulation"
	check_eq "$part_name: the program came to a good end" 0 "$part_status"
}

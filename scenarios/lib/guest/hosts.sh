# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for guests
#
# A guest that is one of several hosts; sourced as /case/lib/hosts.sh.
#
#	$HOST, $HOST_INDEX, $HOSTS	this host's name (a, b, …), from 0, how many
#	address_of HOST			its IPv4 address
#	rdma_up				a ConnectX works, or eth0 and rxe0, and $RDMA_GID
#					is the index of this host's address
#	port_up				the network device on the wire, $PORT, has it
#	roce_up				and an RDMA device, $RDMA, is on that: a ConnectX's
#					with Ethernet, or rxe0; $RDMA_GID as above
#	barrier NAME			when all hosts have come there
#	publish KEY VALUE, await KEY	tell others something
#	counted_all LABEL COMMAND…	counted, by all hosts at the same time
#
# shellcheck source=scenarios/lib/guest/guest.sh
. /case/lib/guest.sh
# shellcheck source=/dev/null
. /case/host
hostname "$HOST"

hosts_letters=abcdefgh

# address_of HOST
address_of() {
	case $1 in
	[a-h]) guest_letters=${hosts_letters%%"$1"*} ;;
	*) guest_letters=$hosts_letters ;;
	esac
	[ "${#guest_letters}" -lt "${HOSTS:?}" ] ||
		{ echo "there is no host $1 among $HOSTS" >&2; return 1; }
	echo "10.${HOSTS_LAN:-0}.0.$((${#guest_letters} + 1))"
}

# ask WORDS…: a host command without which nothing goes on; its answer
ask() {
	host "$@" >/tmp/ask.out && return
	fail "$1 ${2-}" "$(cat /tmp/ask.out)"
	finish
}

barrier() {
	ask barrier "$1"
}

publish() {
	ask publish "$@"
}

# await KEY: prints the value
await() {
	host await "$1" >/tmp/await.out ||
		{ fail "await $1" "$(cat /tmp/await.out)" >&2; return 1; }
	cat /tmp/await.out
}

# counted_all LABEL COMMAND…: nobody begins before all count, nor stops counting
# before all are done
counted_all() {
	guest_label=$1
	shift
	ask begin "$guest_label"
	barrier "$guest_label.begin"
	"$@"
	counted_status=$?
	barrier "$guest_label.end"
	ask end "$guest_label"
}

# lan_up: the network beside the wire, $LAN, by which programs find each other
lan_up() {
	guest_tries=0
	until guest_file=$(grep -l "^52:54:00:00:01:0$((HOST_INDEX + 1))" /sys/class/net/*/address 2>/dev/null); do
		guest_tries=$((guest_tries + 1))
		must test "$guest_tries" -lt 200
		sleep 0.05
	done
	guest_file=${guest_file%/address}
	LAN=${guest_file##*/}
	must ip link set "$LAN" mtu 9000 up
	must ip addr add "$(address_of "$HOST")/24" dev "$LAN"
	neighbours 10.1.0 52:54:00:00:01 "$LAN"
}

# neighbours NET MAC DEVICE: who the others are is known: no ARP between what is counted, or lost, and none that a
# host is too busy to answer (busybox, whose ip comes first in PATH, has no neighbours)
neighbours() {
	guest_n=0
	while [ "$guest_n" -lt "$HOSTS" ]; do
		guest_n=$((guest_n + 1))
		[ "$guest_n" -eq $((HOST_INDEX + 1)) ] ||
			must /usr/bin/ip neigh replace "$1.$guest_n" lladdr "$2:0$guest_n" nud permanent dev "$3"
	done
}

# gid_of DEVICE: $RDMA_GID
gid_of() {
	guest_gid=$(printf '0000:0000:0000:0000:0000:ffff:0a00:00%02x' $((HOST_INDEX + 1)))
	RDMA_GID=
	guest_tries=0
	until [ -n "$RDMA_GID" ]; do
		for guest_file in "/sys/class/infiniband/$1/ports/1/gids/"*; do
			read -r guest_line <"$guest_file"
			[ "$guest_line" != "$guest_gid" ] || RDMA_GID=${guest_file##*/}
		done
		guest_tries=$((guest_tries + 1))
		must test "$guest_tries" -lt 200
		[ -n "$RDMA_GID" ] || sleep 0.05
	done
}

port_up() {
	PORT=
	guest_tries=0
	until [ -n "$PORT" ]; do
		guest_tries=$((guest_tries + 1))
		must test "$guest_tries" -lt 400
		guest_file=$(grep -l "^52:54:00:00:00:0$((HOST_INDEX + 1))" /sys/class/net/*/address 2>/dev/null)
		guest_file=${guest_file%/address}
		PORT=${guest_file##*/}
		[ -n "$PORT" ] || sleep 0.05
	done
	must ip link set "$PORT" mtu 9000 up
	must ip addr add "10.0.0.$((HOST_INDEX + 1))/24" dev "$PORT"
	must becomes "/sys/class/net/$PORT/carrier" 1
	neighbours 10.0.0 52:54:00:00:00 "$PORT"
}

roce_up() {
	port_up
	RDMA=mlx5_0
	case $(readlink "/sys/class/net/$PORT/device/driver") in
	*/mlx5_core) ;;
	*)
		RDMA=rxe0
		must rdma link add rxe0 type rxe netdev "$PORT"
		;;
	esac
	must_appear "/sys/class/infiniband/$RDMA"
	must becomes "/sys/class/infiniband/$RDMA/ports/1/state" '4: ACTIVE'
	gid_of "$RDMA"
}

rdma_up() {
	[ -z "${HOSTS_LAN-}" ] || lan_up
	if grep -q '^[^ ]* cx .*link=ethernet' /case/machine; then
		roce_up
		return
	fi
	if grep -q '^[^ ]* cx ' /case/machine; then
		card_up
		return
	fi
	guest_address=10.0.0.$((HOST_INDEX + 1))
	must_appear /sys/class/net/eth0
	must ip link set eth0 mtu 9000 up
	must ip addr add "$guest_address/24" dev eth0
	neighbours 10.0.0 52:54:00:00:00 eth0
	must rdma link add rxe0 type rxe netdev eth0
	must becomes /sys/class/infiniband/rxe0/ports/1/state '4: ACTIVE'
	gid_of rxe0
}

# listens PORT: a program on this host does, on TCP, within 30 s
listens() {
	guest_port=$(printf ':%04X' "$1")
	guest_tries=0
	until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$guest_port" '
		substr($2, length($2) - 4) == port && $4 == "0A" { found = 1 }
		END { exit !found }'; do
		guest_tries=$((guest_tries + 1))
		[ "$guest_tries" -lt 600 ] || return 1
		sleep 0.05
	done
}

# patient COMMAND…: an RDMA program of others, whose queue pairs wait for at least
# 2 s before they send again (patience.c)
patient() {
	LD_PRELOAD=/case/patience.so "$@"
}

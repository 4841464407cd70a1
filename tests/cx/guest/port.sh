# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for guests
#
# A host with a port of Ethernet; sourced as /case/lib/port.sh, after hosts.sh.
#
#	port_up		its network device, $card, has its address
#	roce_up		and its RDMA device, $RDMA, works: $GID is the number of the address
#	$peer		the other host
# shellcheck source=/dev/null
. /case/cx

case $HOST in
a) peer=b ;;
*) peer=a ;;
esac

port_up() {
	card=
	tries=0
	until [ -n "$card" ]; do
		for file in /sys/class/net/*/address; do
			read -r line <"$file"
			[ "$line" != "52:54:00:00:00:0$((HOST_INDEX + 1))" ] || card=${file%/address}
		done
		tries=$((tries + 1))
		must test "$tries" -lt 400
		sleep 0.05
	done
	card=${card##*/}
	must ip link set "$card" up
	must ip addr add "$(address_of "$HOST")/24" dev "$card"
	must becomes "/sys/class/net/$card/carrier" 1
}

roce_up() {
	port_up
	# Room for packets of 4096 bytes
	must ip link set "$card" mtu 9000
	case " $CX_HOSTS " in
	*" $HOST "*) RDMA=mlx5_0 ;;
	*)
		RDMA=rxe0
		must rdma link add rxe0 type rxe netdev "$card"
		;;
	esac
	must_appear /dev/infiniband/uverbs0
	must becomes "/sys/class/infiniband/$RDMA/ports/1/state" '4: ACTIVE'
	gid=$(printf '0000:0000:0000:0000:0000:ffff:0a00:00%02x' $((HOST_INDEX + 1)))
	GID=
	tries=0
	until [ -n "$GID" ]; do
		for file in "/sys/class/infiniband/$RDMA/ports/1/gids/"*; do
			read -r line <"$file"
			[ "$line" != "$gid" ] || GID=${file##*/}
		done
		tries=$((tries + 1))
		must test "$tries" -lt 200
		sleep 0.05
	done
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: UCX with CUDA on two ConnectX, by the verbs and by the cards' own transports, and Open MPI on it: rc goes from GPU to GPU, and nothing is staged
# tags: programs guest cuda rdma p2p third-party
# tier: nightly
# timeout: 2400
# shellcheck disable=SC2016,SC2317 # expressions of jq; functions that check calls
. "$TOP/tests/programs/lib-ucx.sh"

need_file "$BUILD/guest/7.2/mlx5.cpio"
ucx_case ucx-connectx cx
echo mpi >>case/extras
hosts_boot 1500 2

# card LABEL HOST JQ: of what the card has counted meanwhile
card() {
	jq -sc 'map(select(.kind == "cx").counters) as [$a, $b] |
		$b | with_entries(select(.value | type == "number") | .value -= $a[.key])' \
		"$2/$1.begin.counted" "$2/$1.end.counted" | jq -e "debug | $3"
}

# Ten messages of 100000 bytes from each host
for label in rc_v rc_x ud_v ud_x; do
	for host in a b; do
		check "$label: the GPU memory of host $host went over the wire by ${label%_*}" ucx_moved "$label" "$host" "${label%_*}" 1000000
		case $label in
		rc_*)
			check "$label: the card of host $host read it in the GPU, and wrote there what came" \
				card "$label" "$host" '[.["data-peer-read"], .["data-peer-write"]] | all(. >= 1000000)'
			check "$label: and moved in host memory what announces it, less than a tenth of one message" \
				card "$label" "$host" '[.["data-host-read"], .["data-host-write"]] | all(. < 10000)'
			;;
		esac
	done
done
# Ten messages of each of two sizes, each way
for host in a b; do
	check "Open MPI: the card of host $host read each message in the GPU, and wrote there what came" \
		card mpi "$host" '[.["data-peer-read"], .["data-peer-write"]] | all(. >= 10 * (65536 + 1048576))'
	check "Open MPI: and moved in host memory what announces them, less than a hundredth" \
		card mpi "$host" '[.["data-host-read"], .["data-host-write"]] | all(. < 111411)'
done
finish

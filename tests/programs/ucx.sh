#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: UCX with CUDA hooks our allocations, and moves GPU memory on one host and between two, by rc, ud and tcp
# tags: programs guest cuda rdma third-party
# tier: nightly
# timeout: 2400
. "$TOP/tests/programs/lib-ucx.sh"

ucx_case ucx two-hosts-rxe
hosts_boot 1500 2
# Ten messages of 100000 bytes from each host, by the transport that they were told to use
for label in rc ud tcp; do
	for host in a b; do
		check "$label: the GPU memory of host $host went over the wire by $label" ucx_moved "$label" "$host" "$label" 1000000
	done
done
finish

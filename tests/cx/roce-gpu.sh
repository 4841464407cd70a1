#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GPU memory to GPU memory by RoCE of two ConnectX with Ethernet: the scenario cx-direct there, all paths direct, no byte in host memory
# tags: guest rdma p2p switch
# tier: nightly
# timeout: 900
. "$TOP/scenarios/lib/case.sh"
need_tool jq

check "cx-direct passes with Ethernet" "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" \
	--topology cx,memory=512M,cx0.link=ethernet cx-direct
check "every transfer is direct, and none touches host memory" jq -e '
	(.transfers | length) > 0 and all(.transfers[]; .path == "p2p" and (.host_bytes // 0) == 0)' "$OUT/result.json"
finish

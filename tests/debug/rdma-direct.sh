#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: RDMA between the GPU memories of two hosts, under the debug kernel
# tags: scenario guest debug
# timeout: 600
# tier: nightly
# Its errors do not need 256 MiB
TIER=check exec "$TOP/scenarios/run" --kernel 7.2-debug --out "$OUT" --json "$OUT/result.json" rdma-direct

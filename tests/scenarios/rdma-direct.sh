#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GPU memory to GPU memory of another host by every RDMA operation, no copy in host memory
# tags: scenario guest rdma
# timeout: 560
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" rdma-direct

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: RDMA from GPU memory that the NIC cannot reach is staged, counted, and says so
# tags: scenario guest rdma
# timeout: 400
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" rdma-staged

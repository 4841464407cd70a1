#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a strict registration of GPU memory fails with the kernel's reasons and moves nothing
# tags: scenario guest rdma
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" rdma-refused

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane perf between two hosts: all that it says agrees with the wire and the GPUs
# tags: scenario guest rdma perf
# timeout: 460
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" rdma-perf

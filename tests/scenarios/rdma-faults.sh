#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: packets, links, processes, GPUs and registrations break under RDMA: no wrong byte, no hang
# tags: scenario guest rdma
# timeout: 880
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" rdma-faults

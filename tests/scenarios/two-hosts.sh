#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two hosts with a wire between them: soft-RoCE crosses it, is counted, lost, and sent again
# tags: scenario guest rdma
# timeout: 300
# exclusive
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" two-hosts

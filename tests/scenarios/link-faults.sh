#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a link breaks in seven ways: errors with reasons, no hang, no wrong byte
# tags: scenario guest rdma
# timeout: 420
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" link-faults

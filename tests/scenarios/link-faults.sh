#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a link breaks in nine ways, direct and staged: errors with reasons, no hang, no wrong byte
# tags: scenario guest rdma
# timeout: 420
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" link-faults

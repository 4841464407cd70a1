#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: four hosts come up on one wire
# tags: scenario guest rdma
# tier: nightly
# timeout: 400
TWO_HOSTS=4 exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" two-hosts

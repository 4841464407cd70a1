#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peers that cannot reach each other: staged, and said so
# tags: scenario guest p2p
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" gds-two-root-ports

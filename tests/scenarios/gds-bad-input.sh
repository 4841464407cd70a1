#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: wrong arguments and broken devices: documented errors, no hang
# tags: scenario guest p2p
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" gds-bad-input

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the same on xfs
# tags: scenario guest p2p
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" gds-xfs

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: more GPU memory registered than the aperture holds
# tags: scenario guest p2p
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" gds-small-bar1

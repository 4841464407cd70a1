#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a kernel without P2PDMA: staged, and said so
# tags: scenario guest p2p
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" gds-no-p2pdma

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a file on ext4 goes straight between the drive and GPU memory, on Linux 6.12 with P2PDMA
# tags: scenario guest
# timeout: 300
# tier: nightly
exec "$TOP/scenarios/run" --kernel 6.12-p2pdma --out "$OUT" --json "$OUT/result.json" gds-direct

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a file on ext4 goes straight between the drive and GPU memory
# tags: scenario guest p2p
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" gds-direct

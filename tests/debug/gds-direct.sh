#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a file on ext4 goes straight between the drive and GPU memory, under the debug kernel
# tags: scenario guest debug
# timeout: 300
# tier: all
exec "$TOP/scenarios/run" --kernel 7.2-debug --out "$OUT" --json "$OUT/result.json" gds-direct

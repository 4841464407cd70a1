#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GPU and drive pulled out in the middle of a direct transfer, and plugged in again
# tags: scenario guest p2p fault
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" hot-unplug

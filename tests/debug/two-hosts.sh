#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: two hosts with a wire between them, under the debug kernel
# tags: scenario guest debug
# timeout: 600
# tier: nightly
exec "$TOP/scenarios/run" --kernel 7.2-debug --out "$OUT" --json "$OUT/result.json" two-hosts

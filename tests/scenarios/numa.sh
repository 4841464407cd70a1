#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: of two GPUs on two NUMA nodes the one near to the file's drive is taken, and counts the bytes
# tags: scenario guest p2p topo
# timeout: 180
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" numa

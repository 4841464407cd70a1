#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a file of one host goes into the memory of another host's GPU, with no buffer between
# tags: scenario guest rdma p2p
# timeout: 300
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" storage-to-remote-gpu

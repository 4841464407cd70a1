#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a ring all-reduce over two and four hosts: the serial sum, and no byte too many
# tags: scenario guest rdma
# timeout: 400
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" allreduce

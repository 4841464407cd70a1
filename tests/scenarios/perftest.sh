#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: perftest, built with CUDA support, runs between the memories of two emulated GPUs
# tags: scenario guest rdma
# timeout: 420
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" perftest

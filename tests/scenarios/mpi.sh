#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: Open MPI with UCX runs on two hosts, by RDMA, in host memory and in GPU memory
# tags: scenario guest rdma
# timeout: 300
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" mpi

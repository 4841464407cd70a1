#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: registration of GPU memory with soft-RoCE on Linux 6.12, and memory freed below it
# tags: guest rdma
# tier: nightly
# timeout: 200
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/tests/rdma/lib.sh"

mr_guest window window "$TOP/tests/cuda/two-gpus.topo,gpu0.coherent=on,gpu1.coherent=on" 6.12
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: GPU memory is registered by the best way that soft-RoCE takes, with reasons
# tags: guest rdma
# tier: all
# timeout: 400
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/tests/rdma/lib.sh"

mr_guest window window "$TOP/tests/cuda/two-gpus.topo,gpu0.coherent=on,gpu1.coherent=on" 7.2
mr_guest staged staged "$TOP/tests/cuda/two-gpus.topo" 7.2
finish

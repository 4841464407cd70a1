#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia-peermem, unmodified, under the debug kernel: frees, DMA, ends of regions and unloads at once, for minutes
# tags: kernel guest rdma third-party debug
# tier: nightly
# timeout: 900
KVER=7.2-debug
. "$TOP/tests/kernel/nvidia-peermem.sh"

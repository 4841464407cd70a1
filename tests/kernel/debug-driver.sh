#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu under the debug kernel: calls, peer-to-peer IO, dma-bufs
# tags: kernel guest p2p debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

debug_guest driver-two driver 470
finish

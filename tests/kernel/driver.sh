#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu on Linux 7.2: calls, peer-to-peer IO, dma-bufs
# tags: kernel guest p2p
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

driver_guest 7.2 driver-two driver 170
finish

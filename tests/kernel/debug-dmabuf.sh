#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: dma-bufs of peerlane_gpu under the debug kernel
# tags: kernel guest p2p debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

debug_guest p2p-abi dmabuf 470
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_peermem under the debug kernel
# tags: kernel guest p2p debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

debug_guest p2p-abi peermem 470
finish

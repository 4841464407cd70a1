#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia_p2p_* of peerlane_gpu under the debug kernel
# tags: kernel guest p2p debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

debug_guest p2p-abi p2p-abi 470
finish

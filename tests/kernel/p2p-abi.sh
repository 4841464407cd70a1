#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia_p2p_* of peerlane_gpu: another driver pins GPU memory and its device does DMA there, until it goes away
# tags: kernel guest p2p
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

# What the stock kernel can check: freed memory, list and slab corruption
VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 7.2 p2p-abi p2p-abi 170
finish

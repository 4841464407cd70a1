#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: every call of the kernel that peerlane_gpu and peerlane_peermem make fails once: nothing is left of it
# tags: kernel guest fault
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 7.2 p2p-abi fail-nth 170
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu loaded, used, killed and unloaded again and again leaves nothing
# tags: kernel guest
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE='slub_debug=FZPU page_poison=1'
driver_guest 7.2 driver leaks 170
finish

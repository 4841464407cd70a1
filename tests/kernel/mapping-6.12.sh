#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: on Linux 6.12, user mappings of GPU memory: cut, moved, inherited, pinned; and freed
# tags: kernel guest
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

VM_CMDLINE='slub_debug=FZPU page_poison=1 init_on_free=1'
driver_guest 6.12 driver mapping 170
finish

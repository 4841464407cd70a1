#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: user mappings of GPU memory under the debug kernel
# tags: kernel guest debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

debug_guest driver mapping 470
finish

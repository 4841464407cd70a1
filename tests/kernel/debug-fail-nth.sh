#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: every call that our modules make fails once, under the debug kernel
# tags: kernel guest fault debug
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

debug_guest p2p-abi fail-nth 470
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: gdrdrv, unmodified, under the debug kernel: frees, unpins, writes, kills and unloads at once, for minutes
# tags: kernel guest third-party debug
# tier: nightly
# timeout: 900
KVER=7.2-debug
. "$TOP/tests/kernel/gdrdrv.sh"

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu on Linux 6.12, which has no P2PDMA
# tags: kernel guest
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

driver_guest 6.12 driver driver 170
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane_gpu on Linux 6.12 when the GPU fails, is reset, or goes away
# tags: kernel guest fault
# timeout: 180
. "$TOP/tests/kernel/lib.sh"

driver_guest 6.12 driver-plain faults 170
finish

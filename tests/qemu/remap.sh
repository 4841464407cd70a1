#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: processors that read one device never hit another while the memory map changes
# tags: guest qemu
# tier: check
# timeout: 60
# Guards the patch of QEMU that keeps a processor's TLB and the memory map that
# it refers to together; without it QEMU aborts or reads the wrong device.

. "$TOP/tests/qemu/lib.sh"
guest_case remap 50

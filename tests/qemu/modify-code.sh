#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: code that one processor has changed is the code that the others run
# tags: guest qemu
# tier: check
# timeout: 120
# exclusive
# Alone: the patch leaves a gap for a processor that the host holds up between its look at the TLB and its store.
# Guards the patch of QEMU that looks once more for translations when a store to code is
# done; without it kernels that patch themselves die now and then while they boot.

. "$TOP/tests/qemu/lib.sh"
guest_case modify-code 110

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: code that one processor has changed is the code that the others run
# tags: guest qemu
# tier: check
# timeout: 120
# Guards the patch of QEMU that looks once more for translations when a store to code is
# done; without it kernels that patch themselves die now and then while they boot.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

mkdir -p case
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -static -pthread \
	-o case/modify-code "$TOP/hw-model/test/modify-code.c" || exit 1
cp "$TOP/tests/qemu/guest/modify-code" case/run
: >case/modules
vm_run guest "$TOP/tests/qemu/remap.topo" 7.2 "$OUT/case" 110
status=$?
ktap_from guest/result.log
check_eq "the guest and the emulator ended well" 0 "$status"
finish

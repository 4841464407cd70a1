#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: processors that read one device never hit another while the memory map changes
# tags: guest qemu
# tier: check
# timeout: 60
# Guards the patch of QEMU that keeps a processor's TLB and the memory map that
# it refers to together; without it QEMU aborts or reads the wrong device.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

mkdir -p case
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -static -pthread \
	-o case/remap "$TOP/hw-model/test/remap.c" || exit 1
cp "$TOP/tests/qemu/guest/remap" case/run
: >case/modules
VM_TRACE=''
vm_run guest "$TOP/tests/qemu/remap.topo" 7.2 "$OUT/case" 50
status=$?
ktap_from guest/result.log
check_eq "the guest and the emulator ended well" 0 "$status"
finish

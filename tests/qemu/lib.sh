# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Cases that show a patch of QEMU from inside a guest.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

# guest_case PROGRAM SECONDS: the case is this program of hw-model/test, started in a guest by guest/PROGRAM
guest_case() {
	mkdir -p case
	cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -static -pthread \
		-o "case/$1" "$TOP/hw-model/test/$1.c" || exit 1
	cp "$TOP/tests/qemu/guest/$1" case/run
	: >case/modules
	vm_run guest "$TOP/tests/qemu/remap.topo" 7.2 "$OUT/case" "$2"
	guest_status=$?
	ktap_from guest/result.log
	check_eq "the guest and the emulator ended well" 0 "$guest_status"
	finish
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the QEMU of the guest-less tests finds errors that are made on purpose in the models, and the case that meets one fails
# tags: qtest harness
# tier: all
# timeout: 180
. "$TOP/scenarios/lib/case.sh"
need_tool cc nm
QEMU=$BUILD/qemu-asan/qemu-system-x86_64
need_file "$QEMU"

check "what makes the errors is built" cc -O1 -g -Wall -Wextra -Werror -fPIC -shared -o plant.so "$TOP/hw-model/test/plant.c" || finish
at=$(nm "$QEMU" | sed -n 's/ T pln_queue_status_name$//p')
check "the models have the function that is to do what is wrong" test -n "$at" || finish

# said ERROR: the status of a case like all in this folder, whose QEMU makes this error; what it prints is in said.log
said() {
	rm -rf said
	mkdir said
	# shellcheck disable=SC2016 # the case's
	printf '%s\n' '. "$TOP/tests/qtest/lib.sh"' 'qt_start -device peerlane-gpu,id=gpu0,addr=4' 'unset LD_PRELOAD' \
		"qt plant $1" 'check "QEMU answers" qt endianness' 'qt_finish' >said/case
	# The library is no part of the program, so the sanitizer's own comes behind it; of the programs only QEMU has a sanitizer
	OUT=$PWD/said TIER=all ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$PWD/plant.so PLANT_AT=$at \
		sh said/case >said.log 2>&1
	echo "$?"
}
# finds ERROR REGEX: it is reported, by the function of the models
finds() {
	check_eq "$1: the case fails" 1 "$(said "$1")"
	check "and says: $2" grep -qE "$2" said.log
}

check_eq "without an error the case passes" 0 "$(said none)" || sed 's/^/# /' said.log
check "and has looked" grep -q '^ok .*the sanitizers report nothing' said.log
finds use-after-free 'AddressSanitizer: heap-use-after-free .*'
check "in the code of the models" grep -qE '#0 .* in pln_queue_status_name .*hw/peerlane/peerlane-gpu-engine\.c:[0-9]+' said.log
finds out-of-bounds 'AddressSanitizer: heap-buffer-overflow'
finds misaligned 'hw/peerlane/peerlane-gpu-engine\.c:[0-9:]* runtime error: member access within misaligned address'
finds index 'hw/peerlane/peerlane-gpu-engine\.c:[0-9:]* runtime error: index [0-9]+ out of bounds'
finds leak 'LeakSanitizer: detected memory leaks'
check "which is looked for when QEMU ends" grep -q '^not ok .*the sanitizers report nothing' said.log
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the wire between hosts does the harm that was ordered, no other, and counts it
# tags: quick wire
# timeout: 120

. "$TOP/tests/lib/case.sh"

need_file "$BUILD/wire/peerlane-wire.san"
check "the test is built" cc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-function -g \
	-o faults "$TOP/tests/wire/faults.c" -ljson-c
./faults "$BUILD/wire/peerlane-wire.san" >said 2>said.err
status=$?
ktap_from said
check_eq "the test came to its end" 0 "$status"
check_eq "no sanitizer has a complaint" "" "$(head -n 20 said.err)"
finish

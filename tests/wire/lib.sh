# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# wire_test NAME [ARGUMENT…]: the case is hw-model/wire/test/NAME.c, a program that is all
# hosts of a wire with sanitizers.

. "$TOP/scenarios/lib/case.sh"

wire_test() {
	wire_name=$1
	shift
	need_file "$BUILD/wire/peerlane-wire.san" "$BUILD/wire/peerlane-wire"
	check "the test is built" cc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-function -g \
		-o "$wire_name" "$TOP/hw-model/wire/test/$wire_name.c" -ljson-c || finish
	"./$wire_name" "$BUILD/wire/peerlane-wire.san" "$@" >said 2>said.err
	wire_status=$?
	ktap_from said
	check_eq "the test came to its end" 0 "$wire_status"
	check_eq "no sanitizer has a complaint" "" "$(head -n 20 said.err)"
	finish
}

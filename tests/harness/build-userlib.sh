#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a case builds test programs of the user library where nothing has been built
# tags: harness
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

mkdir bin
# shellcheck disable=SC2016 # its own
printf '#!/bin/sh\necho "$*" >calls\n' >bin/make
chmod +x bin/make

# shellcheck disable=SC2317 # check calls it
built() (
	BUILD=$PWD/none
	PATH=$PWD/bin:$PATH
	build_userlib core all tests >said
)
check "it is built" built
check_eq "  by make, in the folder that was not there" \
	"-C $TOP/userlib/core O=$PWD/none/userlib WERROR=1 all tests" "$(cat calls)"
finish

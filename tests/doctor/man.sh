#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the manual of peerlane doctor has every finding, word for word
# tags: doctor quick static
# tier: check
# timeout: 30

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

page=$TOP/docs/man/peerlane-doctor.1
"$tool" doctor --list --json | jq -rf "$TOP/tests/doctor/man.jq" >want
sed '1,/made by tests.doctor.man.jq/d; /^\.\\" end$/,$d' "$page" >got
check "the list is not empty" test "$(grep -c '^\.TP' want)" -gt 40
check "FINDINGS is what peerlane doctor --list says" diff -u want got
for option in $("$tool" doctor --help | grep -oE '^  (-v, )?--[a-z]+' | grep -oE -e '--[a-z]+'); do
	# shellcheck disable=SC1003
	check "the manual has $option" grep -q -F -e "$(echo "$option" | sed 's/-/\\-/g')" "$page"
	check "completion has $option" grep -q -F -e "$option" \
		"$TOP/userlib/tools/peerlane.bash-completion"
done
finish

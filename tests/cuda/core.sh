#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libpeerlane: version, errors, exported names, pkg-config file
# tags: quick cuda
# timeout: 60
. "$TOP/tests/lib/case.sh"
need_tool make
need_tool flock
need_tool cc
need_tool readelf

flock "$BUILD/userlib/tests.lock" make -C "$TOP/userlib/core" O="$BUILD/userlib" all tests >build.log 2>&1 || {
	fail "the library builds" "$(tail -n 20 build.log)"
	finish
}
lib=$BUILD/userlib/libpeerlane.so.0
check "its functions do what they say" "$BUILD/userlib/tests/host/core_unit"
readelf --dyn-syms -W "$lib" |
	awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | sort >exported
check_not "every symbol has its version" grep -v '@@PEERLANE_0\.1$' exported
(cd "$TOP/userlib/include/peerlane" && cat peerlane.h topo.h mr.h link.h) |
	sed -nE 's/^[a-z].*[ *](pln_[a-z0-9_]+)\(.*/\1/p' | sort -u >declared
sed "s/@.*//" exported >names
check "what is declared is exported, and nothing else" cmp names declared
while read -r name; do
	check "$name has a man page" test -s "$TOP/docs/man/$name.3"
done <declared
pc=$BUILD/userlib/libpeerlane.pc
check "the pkg-config file has a version" grep -q "^Version: 0\.[0-9]*\.[0-9]*$" "$pc"
check_not "and no hole" grep -q @ "$pc"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libpeerlane: version, errors, exported names, pkg-config file
# tags: cuda
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool readelf

build_userlib core all tests
lib=$BUILD/userlib/libpeerlane.so.0
check "its functions do what they say" "$BUILD/userlib/tests/host/core_unit"
readelf --dyn-syms -W "$lib" |
	awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | sort >exported
check_false "every symbol has its version" grep -v '@@PEERLANE_0\.1$' exported
(cd "$TOP/userlib/include/peerlane" && cat peerlane.h topo.h mr.h link.h) |
	sed -nE 's/^[a-z].*[ *](pln_[a-z0-9_]+)\(.*/\1/p' | sort -u >declared
sed "s/@.*//" exported >names
check "what is declared is exported, and nothing else" cmp names declared
while read -r name; do
	check "$name has a man page" test -s "$BUILD/userlib/man/$name.3"
done <declared
for each in libpeerlane libpeerlane-mr; do
	pc=$BUILD/userlib/$each.pc
	check "$each.pc has a version" grep -q "^Version: 0\.[0-9]*\.[0-9]*$" "$pc"
	check_false "$each.pc has no hole" grep -q @ "$pc"
	check "$each.so is there to link with" test -e "$BUILD/userlib/$each.so"
done
readelf --dyn-syms -W "$BUILD/userlib/libpeerlane-mr.so.0" |
	awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | LC_ALL=C sort >shim
check_eq "libpeerlane-mr has libibverbs' names and versions, and no others" \
	"ibv_dereg_mr@@IBVERBS_1.1
ibv_reg_dmabuf_mr@@IBVERBS_1.12
ibv_reg_mr@@IBVERBS_1.1
ibv_reg_mr_iova2@@IBVERBS_1.8
ibv_reg_mr_iova@@IBVERBS_1.7" "$(cat shim)"
check_eq "libpeerlane is linked with neither libibverbs nor libcuda" "" \
	"$(readelf -d "$lib" "$BUILD/userlib/libpeerlane-mr.so.0" | grep -E 'NEEDED.*(verbs|cuda)')"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: our cufile.h and NVIDIA's are the same to a compiler (where both are)
# tags: cufile quick
# tier: check
# timeout: 60
#
# CUFILE_H names NVIDIA's header where it is not found by itself.  The
# library's own symbols are checked everywhere.
set -u
. "$TOP/scenarios/lib/case.sh"

lib=$BUILD/userlib/libcufile.so.0
src=$TOP/userlib/cufile
need_tool cc
need_tool objdump
need_file "$lib"

cc -DPEERLANE_CUFILE_WITHOUT_CUDA_H -DABI_HEADER='<cufile.h>' -I"$src" \
	-o abi-ours "$src/test/abi.c" "$lib" -Wl,-rpath,"${lib%/*}" >cc.log 2>&1 &&
	./abi-ours >ours
check "the header compiles and links with the library" test -s ours

objdump -T "$lib" >symbols
# shellcheck disable=SC2016
check "cuFile's names carry no version" \
	sh -c '! grep " cuFile" symbols | grep -v "UND" | grep -q "PEERLANE\|GLIBC"'
check "Peerlane's names do" grep -q 'PEERLANE_0.1 *pln_file_stats$' symbols
check "calls that are not there yet are not exported" \
	sh -c '! grep -q "cuFileBatch\|cuFileStream\|Async" symbols'
# Else a program with more rights than its user would open files of the user's choice
check "the environment counts only where it may" \
	sh -c '! grep -q " getenv$" symbols && grep -q " secure_getenv$" symbols'
objdump -p "$lib" >dynamic
check "libcuda is not linked" sh -c '! grep -q "NEEDED.*cuda" dynamic'
check "dlclose() leaves it where its threads run" sh -c "readelf -d '$lib' | grep -q NODELETE"

# A compiler that warns of more must still be able to build it
check "warnings are errors on request only" \
	env -u WERROR -u MAKEFLAGS sh -c "
	! make -n -B -C '$src' O=\$PWD/none all | grep -q -e -Werror &&
	make -n -B -C '$src' O=\$PWD/none WERROR=1 all | grep -q -e -Werror"

real=${CUFILE_H-}
for f in /usr/local/cuda/targets/x86_64-linux/include/cufile.h \
	/usr/local/cuda/include/cufile.h; do
	[ -n "$real" ] || { [ -e "$f" ] && real=$f; }
done
if [ -n "$real" ]; then
	cc -DABI_HEADER="\"$real\"" -I"${CUDA_INCLUDE:-/usr/local/cuda/include}" \
		-o abi-real "$src/test/abi.c" "$lib" -Wl,-rpath,"${lib%/*}" \
		>cc-real.log 2>&1 && ./abi-real >real
	check "the same numbers, layouts and signatures as $real" cmp ours real
else
	skip_part "NVIDIA's cufile.h is not here: numbers, layouts and signatures are not compared with it"
fi
finish

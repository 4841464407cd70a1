#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: our cufile.h and NVIDIA's are the same to a compiler
# tags: cufile
# tier: check
# timeout: 60
#
# userlib/cufile/test/abi.golden has the numbers of NVIDIA's header, and says of which
# versions.  Where such a header is, it is compared, too: CUFILE_H names one that is not
# found by itself.
set -u
. "$TOP/scenarios/lib/case.sh"

lib=$BUILD/userlib/libcufile.so.0
src=$TOP/userlib/cufile
need_tool cc c++
need_tool objdump nm
need_file "$lib" "${lib%/*}/libcuda.so.1" "${lib%/*}/libpeerlane-cudart.so.0"

cc -DPEERLANE_CUFILE_WITHOUT_CUDA_H -DABI_117 -DABI_119 -DABI_HEADER='<cufile.h>' -I"$src" \
	-o abi-ours "$src/test/abi.c" "$lib" -Wl,-rpath,"${lib%/*}" >cc.log 2>&1 &&
	./abi-ours >ours
check "the header compiles and links with the library" test -s ours
grep -v '^#' "$src/test/abi.golden" | sort >golden
sort ours >sorted
check "numbers, sizes and offsets are those of NVIDIA's header" diff golden sorted

echo '#include <cufile.h>' >strict.c
check "a strict compiler takes the header" \
	cc -std=c11 -pedantic-errors -Wall -Werror -DPEERLANE_CUFILE_WITHOUT_CUDA_H -I"$src" -fsyntax-only strict.c

objdump -T "$lib" >symbols
grep " cuFile" symbols | grep -v UND >cufile-symbols
check "it has cuFile's names" test -s cufile-symbols
check_false "these carry no version" grep -q 'PEERLANE\|GLIBC' cufile-symbols
check "Peerlane's names do" grep -q 'PEERLANE_0.1 *pln_file_stats$' symbols

# What functions.list says is here is in the library, the header, the manual and this test, and nothing else is
listed() { awk -F '\t' -v state="$1" '/^[^#]/ && $3 == state { print $1 }' "$src/functions.list" | sort; }
listed here >present
check "functions.list has fifty functions, each once" \
	sh -c "grep -c '^cu' '$src/functions.list' | grep -qx 50 &&
	! grep -o '^cuFile[^ 	]*' '$src/functions.list' | sort | uniq -d | grep -q ."
awk '/ g.* \.text/ && $NF ~ /^cuFile/ { print $NF }' symbols | sort >exported
check "the library exports those that are here" diff present exported
grep -o 'cuFile[A-Za-z0-9_]*(' "$src/cufile.h" | tr -d '(' | sort -u >declared
check "the header declares them" \
	sh -c 'grep -vx cuFileDriverClose present | comm -23 - declared | diff /dev/null -'
check "this test has their signatures" \
	sh -c "grep -o 'F([a-zA-Z_]*, cuFile[A-Za-z0-9_]*' '$src/test/abi.c' | sed 's/.* //' | sort | diff present -"
need_file "$BUILD/userlib/man/functions"
check "the manual has a page for each" \
	sh -c "grep '^cuFile' '$BUILD/userlib/man/functions' | sort | diff present -"
# What kvikio's loader asks for by dlsym(): one is missing, and it reads by POSIX without a word
for f in HandleRegister HandleDeregister Read Write BufRegister BufDeregister DriverOpen DriverClose \
	DriverGetProperties DriverSetPollMode DriverSetMaxCacheSize DriverSetMaxPinnedMemSize GetVersion \
	BatchIOSetUp BatchIOSubmit BatchIOGetStatus BatchIOCancel BatchIODestroy ReadAsync WriteAsync \
	StreamRegister StreamDeregister; do
	echo "cuFile$f"
done | sort >kvikio
check "kvikio finds every function that its loader wants" \
	sh -c 'comm -23 kvikio exported | diff /dev/null -'

# A loader in C++, as kvikio's and others': each function by its name, with the type that the header gives it
{
	printf '#include <cufile.h>\n#include <cstdio>\n#include <dlfcn.h>\n'
	printf 'template <typename T> static T *load(void *lib, T &, const char *name)\n{\n'
	printf '\treturn reinterpret_cast<T *>(dlsym(lib, name));\n}\n'
	printf 'int main(int, char **argv)\n{\n\tvoid *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);\n\tint lost = 0, version = 0;\n'
	sed 's/.*/\tauto p_& = lib ? load(lib, &, "&") : nullptr;\n\tlost += !p_&;/' kvikio
	printf '\tCUfileDescr_t file{};\n\tCUfileHandle_t handle = nullptr;\n\tfile.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;\n'
	printf '\tif (lost || p_cuFileGetVersion(&version).err)\n\t\treturn 1;\n'
	printf '\tfile.handle.fd = -1;\n\tCUfileError_t e = p_cuFileHandleRegister(&handle, &file);\n'
	printf '\tif (IS_CUDA_ERR(e))\n\t\treturn 2;\n\tstd::printf("%%d %%d %%s\\n", version, e.err, CUFILE_ERRSTR(e.err));\n\treturn 0;\n}\n'
} >loader.cc
for std in c++11 c++20; do
	# the library is linked for its names alone; what is called is what dlsym() gives
	check "a loader in C++ compiles ($std)" c++ -std="$std" -pedantic-errors -Wall -Wextra -Werror \
		-DPEERLANE_CUFILE_WITHOUT_CUDA_H -I"$src" -o "loader-$std" loader.cc "$lib" -Wl,-rpath,"${lib%/*}" -ldl
	check "and finds, and calls, what it wants" sh -c "./loader-$std '$lib' | grep -qE '^1[0-9]{3} 5[0-9]{3} .'"
done
# Else a program with more rights than its user would open files of the user's choice, or do what
# else the user says
for object in "${lib%/*}"/*.so.[0-9]*; do
	check_eq "the environment counts only where it may: ${object##*/}" "" "$(nm -Du "$object" | grep -w getenv)"
done
check "... and there it does" grep -q " secure_getenv$" symbols
objdump -p "$lib" >dynamic
check_false "libcuda is not linked" grep "NEEDED.*cuda" dynamic
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
	newer=
	grep -q CU_FILE_P2P_FLAG_PCI_P2PDMA "$real" && newer=-DABI_117
	grep -q CUfileIOVec_t "$real" && newer="$newer -DABI_119"
	# shellcheck disable=SC2086
	cc $newer -DPEERLANE_CUFILE_WITHOUT_CUDA_H -DABI_HEADER='<cufile.h>' -I"$src" \
		-o abi-same "$src/test/abi.c" "$lib" -Wl,-rpath,"${lib%/*}" >cc-same.log 2>&1 && ./abi-same >ours
	# shellcheck disable=SC2086
	cc $newer -DABI_HEADER="\"$real\"" -I"${CUDA_INCLUDE:-/usr/local/cuda/include}" \
		-o abi-real "$src/test/abi.c" "$lib" -Wl,-rpath,"${lib%/*}" \
		>cc-real.log 2>&1 && ./abi-real >real
	check "the same numbers, layouts and signatures as $real" cmp ours real
fi
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcudart exports what programs look for, with NVIDIA's numbers and types
# tags: cuda
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool readelf nm

src=$TOP/userlib/cudart
build_userlib cuda tests
build_userlib cudart tests
# list MAJOR FILE -D...: the names, and second names, of the entries that the macros leave "@ NAME ALIAS" of
list() {
	list_major=$1 list_to=$2
	shift 2
	cc -E -P -x c "-DCUDART_MAJOR=$list_major" "$@" "$src/cudart_proto.h" |
		awk '$1 == "@" { print $2 } $1 == "@" && NF > 2 { print $2 "_" $3 }' | sort >"$list_to"
}
for major in 12 13; do
	lib=$BUILD/userlib/libcudart.so.$major
	readelf -d "$lib" >dynamic
	check "$major: its name" grep -q "SONAME.*\[libcudart.so.$major\]" dynamic
	check_false "$major: it is not linked with a driver" grep -q "NEEDED.*libcuda" dynamic
	readelf --dyn-syms -W "$lib" |
		awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | sort >exported
	check_false "$major: every symbol has the library's version" \
		grep -v "@@libcudart\.so\.$major\$" exported
	sed 's/@.*//' exported | sort >names
	check_false "$major: only the runtime's names" grep -vE '^(__)?cuda' names
	list "$major" served '-DPLN_RT(result, name, alias, ...)=@ name alias'
	list "$major" absent '-DPLN_RT(...)=' '-DPLN_ABSENT(name, alias)=@ name alias'
	check "$major: the list has functions that are served" test -s served
	check "$major: and some that are not" test -s absent
	check_eq "$major: no function is both served and absent, or there twice" "" "$(sort served absent | uniq -d)"
	check_eq "$major: the list is what is exported" "$(sort served absent)" "$(cat names)"
	check_eq "$major: and what the static library has" "$(sort served absent)" \
		"$(nm -g --defined-only "$BUILD/userlib/cuda-$major/libcudart_static.a" | awk '$2 == "T" { print $3 }' | sort)"
done

# A program as NVIDIA's toolchain links it: symbols of a version
cat >program.c <<'PROGRAM'
int cudaMalloc(void **, unsigned long);
int main(void)
{
	void *p;

	return cudaMalloc(&p, 1) ? 0 : 1;
}
PROGRAM
check "a program links against it" cc -o program program.c "$BUILD/userlib/libcudart.so.13" -Wl,-z,now
mkdir none
cp "$BUILD/userlib/libcudart.so.13" none/
check "and runs, without a driver" env LD_LIBRARY_PATH="$PWD/none" ./program

# NVIDIA's own header, where the machine has one (of CUDA 13)
header=
for dir in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include; do
	grep -qs '^#define CUDART_VERSION  *13' "$dir/cuda_runtime_api.h" && { header=$dir; break; }
done
if [ -z "$header" ]; then
	skip_part "cuda_runtime_api.h of CUDA 13 is not here: numbers and signatures are not compared with it"
	finish
fi
{
	echo '#include <stddef.h>'
	echo '#include <cuda_runtime_api.h>'
	"$BUILD/userlib/tests/host/cudart_names"
} >numbers.c
check "numbers and layouts as in cuda_runtime_api.h" cc -std=gnu11 -I"$header" -c -o numbers.o numbers.c
{
	echo '#define CUDART_MAJOR 13'
	echo '#include <cuda_runtime_api.h>'
	echo '#define PLN_RT_OTHER(...)'
	cat "$src/cudart_proto.h"
} >types.c
check "signatures as in cuda_runtime_api.h" cc -std=gnu11 -I"$header" -c -o types.o types.c
echo '#include <cuda_runtime_api.h>' | cc -E -P -x c -I"$header" - |
	grep -oE '[^A-Za-z0-9_]cuda[A-Z][A-Za-z0-9_]* *\(' | tr -d '( *' | sort -u >declared
check "cuda_runtime_api.h declares functions" test -s declared
check_eq "the list has all of them" "" "$(comm -23 declared names)"
# the same check sees a wrong one
sed 's/^PLN_RT(cudaError_t, cudaFree, , void \*/PLN_RT(cudaError_t, cudaFree, , long */' types.c >wrong.c
check_fails "a wrong signature is seen" "conflicting types for .cudaFree" cc -std=gnu11 -I"$header" -c -o wrong.o wrong.c
sed 's/cudaErrorNoDevice) == 100/cudaErrorNoDevice) == 101/' numbers.c >wrong.c
check_fails "a wrong number is seen" "static assertion failed.*cudaErrorNoDevice" cc -std=gnu11 -I"$header" -c -o wrong.o wrong.c
sed 's/offsetof(struct cudaDeviceProp, major) == /&1/' numbers.c >wrong.c
check_fails "a wrong place in a structure is seen" "static assertion failed.*cudaDeviceProp" cc -std=gnu11 -I"$header" -c -o wrong.o wrong.c
finish

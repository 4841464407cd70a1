#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda exports what programs look for, with NVIDIA's numbers and types
# tags: cuda
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool readelf

src=$TOP/userlib/cuda
build_userlib cuda tests
lib=$BUILD/userlib/libcuda.so.1

readelf -d "$lib" >dynamic
check "its name is libcuda.so.1" grep -q "SONAME.*\[libcuda.so.1\]" dynamic
grep NEEDED dynamic | grep -v "\[libc.so\.6\]" >foreign
check_false "it needs nothing but libc" test -s foreign
readelf --dyn-syms -W "$lib" |
	awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | sort >exported
check_false "symbols carry no version" grep @ exported
check_false "only cu* and plnMem* are exported" \
	grep -vE '^(cu[A-Z]|plnMem)' exported
"$BUILD/userlib/tests/host/cuda_names" symbols | sort >known
comm -23 known exported >missing
check "cuGetProcAddress knows functions" test -s known
check_false "every one of them is exported" test -s missing
cc -E -P -x c "$src/cuda_proto.h" | grep -oE 'CUresult cu[A-Za-z0-9_]+' |
	sed 's/CUresult //' | sort >declared
check "the list is what the header declares" cmp declared known
cat >asked.c <<'PROGRAM'
#include <dlfcn.h>
#include <stdio.h>
#define OWN_(symbol) symbol
#define OWN_ptsz(symbol) symbol "_ptsz"
#define OWN_ptds(symbol) symbol "_ptds"
#define PLN_F(name, suffix, since, alias, ...) \
	{ #name, { #name #suffix, OWN_##alias(#name #suffix) }, since },
static const struct {
	const char *name, *symbol[2];
	int since;
} all[] = {
#include "cuda_proto.h"
};

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW);
	int (*get)(const char *, void **, int, unsigned long long, int *) = lib ? dlsym(lib, "cuGetProcAddress_v2") : NULL;
	unsigned int n = 0;

	/* 1: of the legacy default stream, as 0; 2: of the thread's own */
	for (; get && n < sizeof(all) / sizeof(all[0]); n++) {
		for (int flags = 0; flags < 3; flags++) {
			const char *symbol = all[n].symbol[flags / 2];
			void *fn = NULL;
			int status = -1, err = get(all[n].name, &fn, all[n].since, (unsigned int)flags, &status);

			if (err || status || !fn || fn != dlsym(lib, symbol))
				printf("%s: error %d, status %d, %p\n", symbol, err, status, fn);
		}
	}
	printf("%u asked\n", n);
	return 0;
}
PROGRAM
check "a program that asks for each builds" cc -I"$src" -o asked asked.c -ldl
check_eq "cuGetProcAddress gives each function, of its version" "$(wc -l <declared) asked" "$(PEERLANE_LOG=0 ./asked "$lib")"
grep -vE '_pt[ds][sz]$' exported | grep -v ^pln | comm -13 declared - >unknown
check_false "nothing else of cu* is exported" test -s unknown
for name in plnMemCrc32c plnMemCompare plnMemAdd; do
	check "$name is exported" grep -qx "$name" exported
done

# The second symbols are functions of their own
readelf --dyn-syms -W "$lib" | awk '$8 ~ /^cu/ { print $2, $8 }' >places
awk '{ at[$2] = $1 }
	END { for (f in at) if (f ~ /_pt[ds][sz]$/) {
		n++
		plain = f
		sub(/_pt[ds][sz]$/, "", plain)
		if (!(plain in at) || at[f] == at[plain])
			print f
	} print n + 0 >"aliases" }' places >same
check_eq "second symbols, for per-thread default streams" 60 "$(cat aliases)"
check_false "each is a function of its own" test -s same

# A program as NVIDIA's toolchain links it: undefined symbols, no versions
cat >program.c <<'PROGRAM'
int cuInit(unsigned int);
int cuMemAlloc_v2(unsigned long long *, unsigned long);
int cuMemcpyHtoD_v2_ptds(unsigned long long, const void *, unsigned long);
int main(void)
{
	unsigned long long p;

	cuInit(0);
	return cuMemAlloc_v2(&p, 1) == 3 || cuMemcpyHtoD_v2_ptds(p, 0, 0) ? 0 : 1;
}
PROGRAM
check "a program links against it" cc -o program program.c "$lib" -Wl,-z,now
check "and runs, without a GPU" \
	env LD_LIBRARY_PATH="$BUILD/userlib" PEERLANE_LOG=0 ./program

# NVIDIA's own header, where the machine has one
header=
for dir in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include \
	/usr/include; do
	[ -f "$dir/cuda.h" ] && { header=$dir; break; }
done
if [ -z "$header" ]; then
	skip_part "NVIDIA's cuda.h is not here: numbers and signatures are not compared with it"
else
	{
		echo '#include <stddef.h>'
		echo '#include <cuda.h>'
		"$BUILD/userlib/tests/host/cuda_names"
	} >numbers.c
	check "numbers and sizes as in cuda.h" \
		cc -std=gnu11 -I"$header" -c -o numbers.o numbers.c
	{
		echo '#include <cuda.h>'
		# the header renames functions to their newest version
		sed 's/^/#undef /' declared
		sed -n 's/_v[0-9]$//p' declared | sort -u | sed 's/^/#undef /'
		cat "$src/cuda_proto.h"
	} >types.c
	check "signatures as in cuda.h" \
		cc -std=gnu11 -I"$header" -c -o types.o types.c
	# the same check sees a wrong one
	sed 's/^\(PLN_F(cuCtxGetDevice, , .*, \)CUdevice/\1long/' \
		types.c >wrong.c
	check_fails "a wrong signature is seen" "conflicting types for .cuCtxGetDevice" \
		cc -std=gnu11 -I"$header" -c -o wrong.o wrong.c
	sed 's/CUDA_ERROR_NO_DEVICE) == 100/CUDA_ERROR_NO_DEVICE) == 101/' \
		numbers.c >wrong.c
	check_fails "a wrong number is seen" "static assertion failed.*CUDA_ERROR_NO_DEVICE" \
		cc -std=gnu11 -I"$header" -c -o wrong.o wrong.c
fi
finish

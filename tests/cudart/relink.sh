#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcudart_static.a of CUDA 12 and 13: a program and a plugin linked with it run stripped, without peerlane run
# tags: cuda
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool cc nm strip readelf

build_userlib cuda tests
build_userlib cudart tests
lib=$BUILD/userlib
cat >program.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaRuntimeGetVersion(int *);
int cudaMemcpy(void *, const void *, unsigned long, int), cudaGetLastError(void);
/* a name that the runtime has inside */
int rt_end(int n)
{
	return n + 1;
}

static int copy(const char *who)
{
	char in[] = "kept", out[8] = "";
	int version = 0;
	void *p = 0;

	cudaRuntimeGetVersion(&version);
	int bad = cudaMalloc(&p, 8) || cudaMemcpy(p, in, 5, 1) || cudaMemcpy(out, p, 5, 2) || cudaFree(p);
	int wrong = cudaFree((void *)8), last = cudaGetLastError();
	printf("%s: CUDA %d, %s, wrong pointer %d, last %d, own %d\n", who, version / 1000, bad ? "failed" : out, wrong,
	       last, rt_end(1));
	return 0;
}

#ifdef PLUGIN
int plugin(void)
{
	return copy("plugin");
}
#else
int main(int argc, char **argv)
{
	void *h = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
	int (*f)(void) = h ? (int (*)(void))dlsym(h, "plugin") : 0;

	copy("program");
	return f ? f() : 1;
}
#endif
END
for major in 12 13; do
	a=$lib/cuda-$major/libcudart_static.a
	nm -g --defined-only "$a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort >"static.$major"
	nm -D --defined-only "$lib/libcudart.so.$major" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
		LC_ALL=C sort >"shared.$major"
	check "$major: it has the functions of the shared one, and no other names" diff "shared.$major" "static.$major"
	check "$major: a program links" cc -O1 -o "program.$major" program.c -L"${a%/*}" -lcudart_static -ldl -pthread
	check "$major: a plugin links" cc -O1 -DPLUGIN -shared -fPIC -o "plugin.$major.so" program.c \
		-L"${a%/*}" -lcudart_static -ldl -pthread
	check_eq "$major: none needs a CUDA library" "" "$(readelf -d "program.$major" "plugin.$major.so" | grep 'NEEDED.*cuda')"
	check_eq "$major: the plugin shows no name of it" "" "$(nm -D --defined-only "plugin.$major.so" | grep -i cuda)"
	strip "program.$major" "plugin.$major.so"
	# 1: cudaErrorInvalidValue, which is the last error, too; the program's function is its own
	check_eq "$major: both run, stripped" "program: CUDA $major, kept, wrong pointer 1, last 1, own 2
plugin: CUDA $major, kept, wrong pointer 1, last 1, own 2" \
		"$(LD_LIBRARY_PATH=$lib/tests/host/fake CUDA_VISIBLE_DEVICES=0 "./program.$major" "./plugin.$major.so" 2>&1)"
	check_eq "$major: with what peerlane run preloads, too" 2 \
		"$(LD_AUDIT=$lib/libpeerlane-cudart.so.0 LD_PRELOAD=$lib/libpeerlane-cudart.so.0 LD_LIBRARY_PATH=$lib/tests/host/fake CUDA_VISIBLE_DEVICES=0 \
			"./program.$major" "./plugin.$major.so" 2>&1 | grep -c kept)"
done
# A program that shows its names to all, of another version than the plugin
check "a program of 12 with -rdynamic links" cc -O1 -rdynamic -o shown program.c -L"$lib/cuda-12" -lcudart_static -ldl -pthread
check_eq "each has the runtime of its own version" "program: CUDA 12, kept, wrong pointer 1, last 1, own 2
plugin: CUDA 13, kept, wrong pointer 1, last 1, own 2" \
	"$(LD_LIBRARY_PATH=$lib/tests/host/fake CUDA_VISIBLE_DEVICES=0 ./shown ./plugin.13.so 2>&1)"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane run: what it sets, what it says, its statuses; where it finds what it needs, installed and not
# tags: cuda
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
need_tool make flock cc
tool=$BUILD/userlib/peerlane
need_file "$tool" "$BUILD/userlib/libpeerlane-cudart.so.0"

# status WANT ARGS…: run the tool, keep what it says
status() {
	want=$1
	shift
	"$tool" run "$@" >out 2>err
	check_eq "status $want: peerlane run $*" "$want" $?
}
said() { check "says: $1" grep -q -e "$1" out err; }

status 0 --help
said 'usage: peerlane run PROGRAM'
check_eq "on standard output" "" "$(cat err)"
status 64
said 'run needs a program'
status 64 --fast
said 'has no option "--fast"'
status 127 ./none
said 'cannot run ./none: No such file'
echo text >text
status 126 ./text
said 'cannot run ./text: Permission denied'
status 3 sh -c 'exit 3'
check_eq "and nothing is said" "" "$(cat out err)"
"$BUILD/userlib/peerlane.static" run true >out 2>&1
check_eq "the static tool says that it cannot" 126 $?
said 'install the other one'

# shellcheck disable=SC2016
show='echo "$LD_PRELOAD|$LD_AUDIT|$LD_LIBRARY_PATH"'
folder=$(cd "$BUILD/userlib" && pwd -P)
status 0 sh -c "$show"
check_eq "the library and its folder" "$folder/libpeerlane-cudart.so.0|$folder/libpeerlane-cudart.so.0|$folder" "$(cat out)"
cc -shared -fPIC -o other.so -x c /dev/null
LD_PRELOAD=$OUT/other.so LD_AUDIT=$OUT/other.so LD_LIBRARY_PATH=/nowhere "$tool" run sh -c "$show" >out 2>err
check_eq "what was set before is kept, behind" \
	"$folder/libpeerlane-cudart.so.0:$OUT/other.so|$folder/libpeerlane-cudart.so.0:$OUT/other.so|$folder:/nowhere" "$(cat out)"

# Within itself: the loader would load an auditor twice
status 0 "$tool" run sh -c "$show"
check_eq "twice: each library once" "$folder/libpeerlane-cudart.so.0|$folder/libpeerlane-cudart.so.0" "$(cut -d'|' -f1,2 out)"
check_eq "and the folder once" "$folder" "$(cut -d'|' -f3 out)"
check_eq "and nothing is said" "" "$(cat err)"

# A program with the shared runtime finds it there; with it linked in: cudart/static
printf 'int cudaRuntimeGetVersion(int *); int main(void) { int v; return cudaRuntimeGetVersion(&v) || v != 13000; }\n' >shared.c
cc -o shared shared.c "$BUILD/userlib/libcudart.so.13"
env -u LD_LIBRARY_PATH ./shared >out 2>err
check_eq "a program with the shared runtime alone: the loader's status" 127 $?
check "... which does not find it" grep -q "libcudart.so.13: cannot open shared object file" err
status 0 ./shared

# As libfabric has it
cat >by-link.c <<'PROGRAM'
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	void *lib = dlopen("libcudart.so", RTLD_NOW);
	int (*version)(int *) = lib ? (int (*)(int *))dlsym(lib, "cudaRuntimeGetVersion") : NULL;
	int v;

	if (!version) {
		puts(dlerror());
		return 1;
	}
	return version(&v) || v != 13000;
}
PROGRAM
cc -o by-link by-link.c -ldl
status 0 ./by-link

# Installed, it finds the library in the folder of its own
check "make install" flock "$BUILD/userlib/tests.lock" \
	make -C "$TOP/userlib" O="$BUILD/userlib" DESTDIR="$OUT/root" install
installed=$OUT/root/usr/local
"$installed/bin/peerlane" run sh -c "$show" >out 2>err
check_eq "installed: the library and its folder" \
	"$installed/lib/peerlane/libpeerlane-cudart.so.0|$installed/lib/peerlane/libpeerlane-cudart.so.0|$installed/lib/peerlane" "$(cat out)"
check_eq "with our runtimes beside it, and no driver" "cuda-12 cuda-13 libcudart.so libcudart.so.12 libcudart.so.13 libpeerlane-cudart.so.0 " \
	"$(cd "$installed/lib/peerlane" && echo * | tr '\n' ' ')"

# Within one of another installation: what the inner one starts has nothing of the outer one, and keeps the rest
second=$OUT/second/usr/local
mkdir -p "$OUT/second/usr"
cp -R "$installed" "$OUT/second/usr/"
cat >where.c <<'PROGRAM'
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>

int cudaRuntimeGetVersion(int *);

/* What of Peerlane's runtime is in the process */
static int show(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (strstr(info->dlpi_name, "cudart"))
		puts(info->dlpi_name);
	return 0;
}

int main(void)
{
	int v;

	dl_iterate_phdr(show, NULL);
	return cudaRuntimeGetVersion(&v) || v != 13000;
}
PROGRAM
cc -o where where.c "$installed/lib/peerlane/libcudart.so.13"
# nested OUTER INNER: by two installations; $inner is the folder of the second
nested() {
	inner=$2/lib/peerlane
	LD_PRELOAD=$OUT/other.so LD_LIBRARY_PATH=/nowhere "$1/bin/peerlane" run "$2/bin/peerlane" run sh -c "$show" >out 2>err
	check_eq "nested: the inner library, its folder, and what was there" \
		"$inner/libpeerlane-cudart.so.0:$OUT/other.so|$inner/libpeerlane-cudart.so.0|$inner:/nowhere" "$(cat out)"
	check_eq "nested: nothing is said" "" "$(cat err)"
	"$1/bin/peerlane" run "$2/bin/peerlane" run ./where >out 2>err
	check_eq "nested: a program of the shared runtime runs" 0 $?
	check_eq "nested: on the inner one's alone" \
		"$inner/libcudart.so.13 $inner/libpeerlane-cudart.so.0 " "$(LC_ALL=C sort out | tr '\n' ' ')"
}
nested "$installed" "$second"
nested "$second" "$installed"
LD_LIBRARY_PATH=$installed/lib/peerlane "$installed/bin/peerlane" run "$second/bin/peerlane" run sh -c "$show" >out 2>err
check_eq "nested: a folder that the user named stays" "$second/lib/peerlane:$installed/lib/peerlane" "$(cut -d'|' -f3 out)"

mv "$installed" "$OUT/a blank"
"$OUT/a blank/bin/peerlane" run true >out 2>err
check_eq "a place that the loader does not take: status" 126 $?
said 'the loader accepts no path with a blank or a colon; install it elsewhere'
rm "$OUT/a blank/lib/peerlane/libpeerlane-cudart.so.0"
"$OUT/a blank/bin/peerlane" run true >out 2>err
check_eq "no library: status" 126 $?
said 'libpeerlane-cudart.so.0: .*; it must be in the folder of peerlane, or in ../lib/peerlane'

check "the manual has it" grep -q "^\.B run\$" "$TOP/docs/man/peerlane.1"
finish

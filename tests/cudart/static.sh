#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: programs with a CUDA runtime linked in are led to ours, or told why not; the runtime is a fake here
# tags: cuda
# tier: check
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool strip nm readelf

for part in cuda cudart; do
	build_userlib "$part" tests
done
host=$BUILD/userlib/tests/host
src=$TOP/userlib/cudart
lead=$BUILD/userlib/libpeerlane-cudart.so.0
tool=$BUILD/userlib/peerlane
need_file "$tool"
export LD_LIBRARY_PATH="$host/fake" CUDA_VISIBLE_DEVICES=0

# The reader of symbol tables, on broken files
printf 'int x = 1; const char y[100] = "abc"; int main(void) { return y[x]; }\n' >victim.c
cc -g -o victim victim.c
"$host/symtab_unit" victim >ktap 2>err
check "symtab: it ends well" test $? -eq 0
ktap_from ktap symtab
check_eq "symtab: nothing for the sanitizers" "" "$(cat err)"

# names MAJOR: what a runtime of that version has, with one function that is not known yet
names() {
	sed -n 's/^N(\(.*\))$/\1/p' "$BUILD/userlib/obj/cudart/$1/names.inc" | grep -v Peerlane
	echo cudaMemOfTomorrow
}
# program NAME MAJOR [OPTION…]: with the fake runtime of that version in it
program() {
	prog=$1 major=$2
	shift 2
	mkdir -p "$prog.d"
	[ -s "$prog.d/names.inc" ] || names "$major" | LC_ALL=C sort | sed 's/.*/N(&)/' >"$prog.d/names.inc"
	cc -O2 -D_GNU_SOURCE -c "-DVERSION=${major}000" "$@" -I"$prog.d" -o "$prog.d/fake.o" "$src/test/lead_fake.c" &&
		cc -O1 -g -D_GNU_SOURCE -I"$prog.d" -o "$prog" "$src/test/lead_program.c" \
			"$src/test/lead_table.c" "$src/test/lead_own.c" "$prog.d/fake.o" -pthread -ldl
}
# refused NAME TEXT: the program is stopped before main, and is told why
refused() {
	LD_AUDIT=$lead LD_PRELOAD=$lead "./$1" calls >"$1.out" 2>"$1.err"
	check_eq "$1: status 126" 126 $?
	check_eq "$1: nothing of it ran" "" "$(cat "$1.out")"
	check "$1: it says why" grep -q "^libpeerlane-cudart: .*/$1: .*$2" "$1.err"
	check_eq "$1: in one line" 1 "$(wc -l <"$1.err")"
}

# Where both runtimes have their functions in our library
nm "$lead" | sed 's/^0*//' >places
for major in 12 13; do
	program "p$major" "$major" >cc.log 2>&1
	check "$major: a program with a fake runtime in it" test $? -eq 0
	names "$major" | LC_ALL=C sort >"names.$major"
	check "$major: of all the names" test "$(wc -l <"names.$major")" -ge 440

	"./p$major" table | grep -v '^program: ' >alone.txt
	check_eq "$major: each is in the table" "$(wc -l <"names.$major")" "$(wc -l <alone.txt)"
	check_eq "$major: alone, none leads anywhere" "" "$(grep -v ' stays$' alone.txt)"
	"./p$major" calls >alone.out 2>&1
	check "$major: alone, the fake answers before main" grep -q '^program: before main: count -1, error 4242$' alone.out
	check "$major: and in it" grep -q '^main: CUDA 0, memory 4242 , launch 4242, last 4242, free 4242$' alone.out

	PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead "./p$major" table 2>table.err | grep -v '^program: ' >"table.$major"
	check_eq "$major: led over, too" "$(wc -l <"names.$major")" "$(wc -l <"table.$major")"
	awk 'FNR == NR { at[$3, $1] = 1; next }
		$2 != "libpeerlane-cudart.so.0" || !(($1, $3) in at)' places "table.$major" >elsewhere
	check_eq "$major: each leads to the function of its name" cudaMemOfTomorrow "$(cut -d' ' -f1 elsewhere)"
	check "$major: the log says how many" grep -q \
		": $(($(wc -l <"names.$major") - 1)) functions of its CUDA $major runtime lead to Peerlane's, 1 unknown ones to a refusal\$" table.err

	LD_AUDIT=$lead LD_PRELOAD=$lead "./p$major" calls >calls.out 2>calls.err
	check "$major: it ends well" test $? -eq 0
	check "$major: before main" grep -q '^program: before main: count 1, error 0$' calls.out
	check_eq "$major: memory and copies work, a launch is refused: main, four threads, a child" \
		"child main thread thread thread thread " \
		"$(sed -n 's/: CUDA '"$major"', memory 0 xyx, launch 801, last 801, free 0$//p' calls.out | sort | tr '\n' ' ')"
	check "$major: the launch by its name" grep -q 'kernel program_kernel was not launched' calls.err
	check "$major: functions of the program's own stay" grep -q '^own 7$' calls.out
	check_false "$major: nothing of the fake's" grep -q 4242 calls.out
done

# A library with a runtime of its own, of another version, that calls it before the program and before us in order
program other 12 -fPIC >cc.log 2>&1
cc -O1 -g -D_GNU_SOURCE -fPIC -shared -DLIBRARY -o libwith.so "$src/test/lead_program.c" other.d/fake.o >>cc.log 2>&1 &&
	cc -O1 -g -D_GNU_SOURCE -Ip13.d -o with "$src/test/lead_program.c" "$src/test/lead_table.c" "$src/test/lead_own.c" p13.d/fake.o \
		-Wl,--no-as-needed "$OUT/libwith.so" -pthread -ldl >>cc.log 2>&1
check "a program and a library, each with a runtime" test $? -eq 0
PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead ./with calls >with.out 2>with.err
check "library: it ends well" test $? -eq 0
check "library: its own constructor is served" grep -q '^library: before main: count 1, error 0$' with.out
check "library: so are its calls, and the program's" test \
	"$(grep -cE '^(library: CUDA 12|main: CUDA 13), memory 0 xyx, launch 801' with.out)" -eq 2
check "library: each launch by its name" test "$(grep -cE 'kernel (program|library)_kernel was not' with.err)" -ge 2
check "library: by the runtime of its version" grep -q 'libwith.so: .* CUDA 12 runtime' with.err
check "library: and the program by that of its own" grep -q '/with: .* CUDA 13 runtime' with.err

# One that the program does not know of, there from the start
LD_AUDIT=$lead LD_PRELOAD=$lead:./libwith.so ./p13 calls >beside.out 2>beside.err
check "a library preloaded as well is served" grep -q '^library: before main: count 1, error 0$' beside.out

# One that the program loads later, unloads, and loads again; in a program with a runtime of its own, and with none
cat >late.c <<'PROGRAM'
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		void *lib = dlopen(argv[argc - 1], RTLD_NOW);
		void (*calls)(void) = lib ? dlsym(lib, "library_calls") : 0;

		if (!calls) {
			puts(dlerror());
			return 1;
		}
		calls();
		/* one that stays, so that the next one lies elsewhere */
		if (i != 1 && dlclose(lib))
			return 1;
	}
	return 0;
}
PROGRAM
cc -O1 -o late late.c -ldl
LD_PRELOAD=$lead ./late ./libwith.so >late.out 2>late.err
check "loaded later, without the auditor: the fake answers" grep -q '^library: before main: count -1, error 4242$' late.out
PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead ./late ./libwith.so >late.out 2>late.err
check "loaded later: it ends well" test $? -eq 0
check_eq "loaded later: its constructor is served, each time it is mapped" 2 \
	"$(grep -c '^library: before main: count 1, error 0$' late.out)"
check_eq "loaded later: so are its calls" 3 \
	"$(grep -cE '^library: CUDA 12, memory 0 xyx, launch 801, last 801, free 0' late.out)"
check_false "loaded later: nothing of the fake's" grep -q 4242 late.out

# A name that neither runtime knows, in objects of two versions
cat >tomorrow.c <<'PROGRAM'
#include <dlfcn.h>
#include <stdio.h>

int cudaMemOfTomorrow(void), cudaGetLastError(void);
int tomorrow(void);
int tomorrow(void)
{
	int err = cudaMemOfTomorrow();

	return err * 1000 + cudaGetLastError();
}

#ifdef PROGRAM
int main(void)
{
	void *lib = dlopen("./libtomorrow.so", RTLD_NOW);
	int (*other)(void) = lib ? (int (*)(void))dlsym(lib, "tomorrow") : NULL;

	printf("program %d\n", tomorrow());
	printf("library %d\n", other ? other() : -1);
	return 0;
}
#endif
PROGRAM
cc -O1 -fPIC -shared -o libtomorrow.so tomorrow.c other.d/fake.o && cc -O1 -DPROGRAM -o tomorrow tomorrow.c p13.d/fake.o -ldl
LD_AUDIT=$lead LD_PRELOAD=$lead ./tomorrow >tomorrow.out 2>tomorrow.err
check_eq "a name that is unknown in two versions: each runtime refuses, and has that as its last error" "program 801801
library 801801" "$(cat tomorrow.out)"

# A thread that is to be cancelled must not end while the loader holds its lock
cat >cancelled.c <<'PROGRAM'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static const char *volatile how = "ended in dlopen";

static void *load(void *name)
{
	pthread_cancel(pthread_self());
	how = dlopen(name, RTLD_NOW) ? "loaded" : "not loaded";
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, load, argv[argc - 1]) || pthread_join(thread, NULL))
		return 1;
	puts(how);
	return 0;
}
PROGRAM
cat >nothing.c <<'PROGRAM'
int nothing(void);
int nothing(void)
{
	return 0;
}
PROGRAM
cc -O1 -o cancelled cancelled.c -ldl -pthread
cc -shared -fPIC -o libnothing.so nothing.c
LD_AUDIT=$lead LD_PRELOAD=$lead timeout 20 ./cancelled ./libnothing.so >cancelled.out 2>&1
check_eq "a cancelled thread: it ends after dlopen" loaded "$(cat cancelled.out)"

# A name space of its own is left alone
sed 's/dlopen(/dlmopen(LM_ID_NEWLM, /' late.c >apart.c
cc -O1 -D_GNU_SOURCE -o apart apart.c -ldl
cc -shared -fPIC -o libneeds.so nothing.c -Wl,--no-as-needed "$OUT/libwith.so"
LD_AUDIT=$lead LD_PRELOAD=$lead ./apart ./libneeds.so >apart.out 2>apart.err
check "dlmopen: the fake answers" grep -q '^library: before main: count -1, error 4242$' apart.out
check_false "dlmopen: nothing leads out of the name space" grep -q 'error 0$' apart.out

# Two auditors, and two names of the file
ln -s "$lead" lead.link
for two in "$lead:$lead" "$OUT/lead.link" "$lead:$OUT/lead.link"; do
	LD_AUDIT=$two LD_PRELOAD=$lead ./p13 calls >two.out 2>two.err
	check "LD_AUDIT=$two: it ends well" test $? -eq 0
	check "... and is served" grep -q '^main: CUDA 13, memory 0 xyx, launch 801' two.out
	check_false "... and nothing is said of it" grep libpeerlane-cudart two.err
done

"$tool" run "$tool" run env LD_LIBRARY_PATH="$host/fake" ./p13 calls >two.out 2>two.err
check "peerlane run peerlane run: it ends well" test $? -eq 0
check "... and is served" grep -q '^main: CUDA 13, memory 0 xyx, launch 801' two.out

# One of the two variables alone
LD_PRELOAD=$lead ./late ./libwith.so >half.out 2>half.err
check_eq "LD_PRELOAD alone: that is said" 1 "$(grep -c '^libpeerlane-cudart: .*LD_AUDIT does not.*"peerlane run"' half.err)"
LD_AUDIT=$lead ./late ./libwith.so >half.out 2>half.err
check_eq "LD_AUDIT alone: that is said" 1 "$(grep -c '^libpeerlane-cudart: .*LD_PRELOAD does not.*"peerlane run"' half.err)"

# The loader started by hand: then the kernel runs that, and not the program
loader=$(readelf -l p13 | sed -n 's/.*interpreter: \(.*\)]/\1/p')
LD_AUDIT=$lead LD_PRELOAD=$lead "$loader" ./p13 calls >loader.out 2>loader.err
check "by the loader: the program is found" grep -q '^main: CUDA 13, memory 0 xyx, launch 801' loader.out

# Without its symbol table a program is stopped, a library is not
strip -g -o kept p13
LD_AUDIT=$lead LD_PRELOAD=$lead ./kept calls >kept.out 2>&1
check "strip -g keeps what is needed" grep -q '^main: CUDA [0-9]*, memory 0 xyx, launch 801' kept.out
strip -o bare p13
refused bare 'no symbol table, .* nvcc -cudart shared, or do not strip it'
strip libwith.so
LD_AUDIT=$lead LD_PRELOAD=$lead ./with calls >bare.out 2>bare.err
check "a stripped library: the program runs" grep -q '^main: CUDA [0-9]*, memory 0 xyx, launch 801' bare.out
check "a stripped library: what is said of it" grep -q 'libwith.so: .*no symbol table.*NVIDIA.s driver alone' bare.err

# What cannot be led over stops the program
program short 13 -Os -fno-align-functions -falign-functions=1 >cc.log 2>&1
refused short 'has 6 bytes, too few for a jump; link .* nvcc -cudart shared'
mkdir old.d eleven.d
grep -v _v2 p12.d/names.inc >eleven.d/names.inc
grep -v cudaEventRecordWithFlags eleven.d/names.inc >old.d/names.inc
program old 12 >cc.log 2>&1
refused old 'older than 11.1'

# What is not known is not taken for 13 or 12, whose names it has
program fourteen 13 -DVERSION=14020 >cc.log 2>&1
refused fourteen 'is of version 14\.2 (0\.0: it does not say), and Peerlane has 12'
program fourteen-v2 12 -DVERSION=14020 >cc.log 2>&1
refused fourteen-v2 'is of version 14\.2 (0\.0: it does not say), and Peerlane has 12'
program thirteen-5 13 -DVERSION=13050 >cc.log 2>&1
LD_AUDIT=$lead LD_PRELOAD=$lead ./thirteen-5 calls >thirteen.out 2>&1
check "13.5 is 13" grep -q '^main: CUDA 13, memory 0 xyx, launch 801' thirteen.out
program no-number 13 -DVERSION=1 >cc.log 2>&1
refused no-number 'is of version 0\.0'

# CUDA 11 is led to 12, but for what they do not have in common
program eleven 12 -DOLDER >cc.log 2>&1
changed='^N(cuda\(FuncGetAttributes\|GetDriverEntryPoint\(_ptsz\)\{0,1\}\))'
check "11: has what is another in 12" test "$(grep -c "$changed" eleven.d/names.inc)" -ge 2
PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead ./eleven calls >eleven.out 2>eleven.err
check "11: it runs on 12" grep -q '^main: CUDA 12, memory 0 xyx, launch 801, last 801, free 0$' eleven.out
check "11: what is another is refused" grep -q \
	": $(($(grep -vc "$changed" eleven.d/names.inc) - 1)) functions of its CUDA 11 runtime .*, $(($(grep -c "$changed" eleven.d/names.inc) + 1)) unknown ones" eleven.err
for n in 512 513; do # with the one that is there already
	mkdir "many$n.d"
	{
		cat p13.d/names.inc
		i=1
		while [ $i -lt $n ]; do
			echo "N(cudaMemOfTomorrow$i)"
			i=$((i + 1))
		done
	} | LC_ALL=C sort >"many$n.d/names.inc"
	program "many$n" 13 -fPIC >cc.log 2>&1
done
LD_AUDIT=$lead LD_PRELOAD=$lead ./many512 calls >many512.out 2>&1
check "512 unknown functions are refused one by one" grep -q '^main: CUDA 13, memory 0 xyx, launch 801' many512.out
cc -O1 -g -D_GNU_SOURCE -fPIC -shared -DLIBRARY -o libmany.so "$src/test/lead_program.c" many512.d/fake.o
LD_AUDIT=$lead LD_PRELOAD=$lead ./late ./libmany.so >late-many.out 2>&1
check_eq "... and count once, however often a library is loaded" 3 "$(grep -c '^library: CUDA 13, memory 0 xyx, launch 801' late-many.out)"
refused many513 'too many functions of the CUDA runtime that Peerlane does not know'
program twins 13 -DTWIN >cc.log 2>&1
refused twins 'cudaMalloc\(Twin\)* and cudaMalloc\(Twin\)* lie too close'

# faulty NAME OPTION: our library in a system that refuses something
faulty() {
	obj=$BUILD/userlib/obj/cudart
	cc -shared -fPIC -pthread -Wl,-z,now "$2" -o "$1.so" "$src/test/lead_faults.c" "$obj/lead.o" "$obj/symtab.o" \
		"$obj/12/whole.o" "$obj/13/whole.o" -ldl >cc.log 2>&1
}
# fault NAME OPTION TEXT: then the program is stopped
fault() {
	faulty "$@"
	cp p13 "$1"
	lead=$OUT/$1.so refused "$1" "$3"
}
fault no-write -DNO_WRITE 'cannot be made writable: Permission denied; .*SELinux.* nvcc -cudart shared'
fault no-exec -DNO_EXEC 'cannot be made executable again: Permission denied'
program changed 13 -DANSWER=4343 >cc.log 2>&1
fault file-changed "-DOTHER=\"$OUT/changed\"" 'in memory is not that of the file'
# What cannot be looked at is left alone, and that is said
faulty no-open -DNO_OPEN
LD_AUDIT=$OUT/no-open.so LD_PRELOAD=$OUT/no-open.so ./p13 calls >none.out 2>none.err
check "a file that cannot be read: said" grep -q '/p13: cannot be read: Permission denied; .* keeps NVIDIA' none.err
check "and the program runs as it is" grep -q '^main: CUDA 0, memory 4242' none.out
cp p13 broken
printf '\377\377\377' | dd of=broken bs=1 seek=42 conv=notrunc 2>/dev/null # in e_shoff
LD_AUDIT=$lead LD_PRELOAD=$lead ./broken calls >broken.out 2>broken.err
check "broken section headers: said" grep -q '/broken: its symbols cannot be read: .* outside of it; ' broken.err
check "and the program runs as it is" grep -q '^main: CUDA 0, memory 4242' broken.out

check_eq "no function is of both runtimes" "" "$(cut -d' ' -f1,3 table.12 table.13 | grep -v Tomorrow | sort | uniq -d)"

# NVIDIA's shared libraries have the proof's number as well, and no symbol table
printf 'const unsigned char proof[16] = { 0xd4, 8, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2 };\n' >proof.c
for lib in libcudart.so.99 libcuda.so.99 libother.so; do
	cc -shared -fPIC -s -o "$lib" proof.c
	LD_AUDIT=$lead LD_PRELOAD=$OUT/$lib:$lead ./p13 table >"$lib.out" 2>"$lib.err"
done
check_eq "NVIDIA's shared libraries are no stripped runtimes" "" "$(cat libcudart.so.99.err libcuda.so.99.err)"
check "another library is" grep -q 'libother.so: .*no symbol table' libother.so.err
strip -o "${lead##*/}" "$lead"
LD_AUDIT=$OUT/${lead##*/} LD_PRELOAD=$OUT/${lead##*/} ./p13 calls >own.out 2>own.err
check_false "our own library, stripped, is no stripped runtime" grep -q 'no symbol table' own.err
check "and serves as before" grep -q '^main: CUDA 13, memory 0 xyx, launch 801' own.out

program mock 13 -DMOCK >cc.log 2>&1
PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead ./mock calls >mock.out 2>mock.err
check "a runtime that is not NVIDIA's is left alone" grep -q '^main: CUDA 0, memory 4242' mock.out
check_eq "and nothing is said" "" "$(cat mock.err)"
mkdir namespace.d
names 13 | LC_ALL=C sort | sed '/^__cudaRegisterFatBinary$/d; s/.*/N(&)/' >namespace.d/names.inc
printf 'void lead_table(void);\nint main(void)\n{\n\tlead_table();\n\treturn 0;\n}\n' >main.c
cc -O2 -D_GNU_SOURCE -DOTHER -Inamespace.d -o namespace main.c "$src/test/lead_table.c" "$src/test/lead_fake.c" -ldl
PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead ./namespace >namespace.out 2>namespace.err
check "nor is one with a namespace cudart that registers no code" grep -q '^cudaMalloc stays$' namespace.out
check_eq "and nothing is said of it" "" "$(cat namespace.err)"

# Programs that have nothing to do with CUDA do not notice
LD_AUDIT=$lead LD_PRELOAD=$lead sh -c 'echo nothing' >quiet.out 2>&1
check_eq "another program: nothing is said" nothing "$(cat quiet.out)"
check_eq "it brings an auditor's names into a program, and no others" "la_activity la_objopen la_version " \
	"$(readelf --dyn-syms -W "$lead" | awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | sort | tr '\n' ' ')"
finish

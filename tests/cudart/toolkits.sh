#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: NVIDIA's own runtime of CUDA 12 and 13 linked in, and shared: led to ours of that version
# tags: cuda third-party
# tier: nightly
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool nm

# Not ours to ship. CUDA 12's is in no small package: any toolkit does, of which these files are used.
found=
for major in 12 13; do
	for cuda in "$PEERLANE_CACHE/third-party/cuda-$major" "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda; do
		if grep -qs "^#define CUDART_VERSION  *$major" "$cuda/include/cuda_runtime_api.h" &&
			[ -f "$cuda/lib64/libcudart_static.a" ]; then
			ln -s "$cuda" "cuda-$major"
			found="$found $major"
			break
		fi
	done
	[ -e "cuda-$major" ] || skip_part "no toolkit of CUDA $major: copy include/ and lib64/libcudart_static.a of one to $PEERLANE_CACHE/third-party/cuda-$major"
done
[ -n "$found" ] || skip "no CUDA 12 or 13: copy a toolkit's include/ and lib64/libcudart_static.a to $PEERLANE_CACHE/third-party/cuda-12"

for part in cuda cudart; do
	build_userlib "$part" tests
done
src=$TOP/userlib/cudart/test
lead=$BUILD/userlib/libpeerlane-cudart.so.0
export LD_LIBRARY_PATH="$BUILD/userlib/tests/host/fake" CUDA_VISIBLE_DEVICES=0

# right NAME MAJOR: what plain.c says
right() {
	check_eq "$1: it is served" "built by $2, runs on $2
properties 0, Peerlane emulated GPU
fields right
what follows them right
memory right" "$(cat "$1.out")"
}

for major in $found; do
	cuda=cuda-$major
	for what in plain calls; do
		case $what in
		plain) set -- "$TOP/tests/cuda/nvcc/plain.c" ;;
		calls) set -- -DNO_TABLE "$src/lead_program.c" "$src/lead_own.c" ;;
		esac
		check "$major: $what links" cc -O1 -D_GNU_SOURCE -I"$cuda/include" -o "$what.$major" "$@" \
			"$cuda/lib64/libcudart_static.a" -ldl -lrt -pthread
	done
	"./plain.$major" >alone.out 2>alone.err
	check_eq "$major: alone, it ends" 126 $?
	check_false "$major: before it has done anything" grep -q '^properties' alone.out
	check "$major: with the reason, and the cure" grep -q 'NVIDIA.s driver alone.*"peerlane run"' alone.err
	PEERLANE_LOG=1 LD_AUDIT=$lead LD_PRELOAD=$lead "./plain.$major" >"plain.$major.out" 2>plain.err
	right "plain.$major" "$major"
	nm "plain.$major" | awk '$2 ~ /[tT]/ && $3 ~ /^(__)?cuda[A-Z]/' >inside
	check "$major: all functions are led over, none is unknown" grep -q \
		": $(wc -l <inside) functions of its CUDA $major runtime lead to Peerlane's, 0 unknown ones" plain.err
	check "$major: and there are many" test "$(wc -l <inside)" -ge 400
	LD_AUDIT=$lead LD_PRELOAD=$lead "./calls.$major" calls >calls.out 2>calls.err
	check "$major: before main" grep -q '^program: before main: count 1, error 0$' calls.out
	check_eq "$major: main, threads, a child" 6 \
		"$(grep -c ": CUDA $major, memory 0 xyx, launch 801, last 801, free 0\$" calls.out)"
	check "$major: a launch by its name" grep -q 'kernel program_kernel was not launched' calls.err
	strip -o "bare.$major" "plain.$major"
	LD_AUDIT=$lead LD_PRELOAD=$lead "./bare.$major" >bare.out 2>bare.err
	check_eq "$major: stripped, it is known and stopped" "126 1" "$? $(grep -c 'no symbol table' bare.err)"

	# The shared one: built for NVIDIA's name, ours is found
	check "$major: shared links" cc -O1 -I"$cuda/include" -o "shared.$major" "$TOP/tests/cuda/nvcc/plain.c" \
		"$BUILD/userlib/libcudart.so.$major"
	LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$BUILD/userlib "./shared.$major" >"shared.$major.out" 2>&1
	right "shared.$major" "$major"
done
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: all libraries and programs of userlib load with C libraries from 2.34 on
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool objdump nm cc
lib=$BUILD/userlib
need_file "$lib/libcuda.so.1" "$lib/libnvidia-ml.so.1" "$lib/libcufile.so.0" "$lib/libpeerlane.so.0" \
	"$lib/peerlane" "$lib/bin/nvidia-smi" \
	"$lib/libpeerlane.a" "$lib/cuda-12/libcudart_static.a" "$lib/cuda-13/libcudart_static.a"

# newest FILE: version of the C library that it needs, without "2."
newest() {
	objdump -T "$1" | sed -n 's/.*GLIBC_2[.]\([0-9]*\).*/\1/p' | sort -n | tail -n 1
}
find "$lib" -maxdepth 2 -type f \( -name '*.so.[0-9]*' -o -name peerlane -o -path '*/bin/*' \) | sort >objects
check "there are many of them" test "$(wc -l <objects)" -ge 9
while read -r object; do
	needs=$(newest "$object")
	check "${object##*/} needs 2.$needs" test "$needs" -le 34
done <objects
# Programs linked with the static libraries would need what is in them
for a in libpeerlane.a cuda-12/libcudart_static.a cuda-13/libcudart_static.a; do
	check_eq "$a has no newer names" "" "$(nm "$lib/$a" 2>&1 | grep __isoc23)"
done

printf '#include <stdlib.h>\nlong f(const char *s) { return strtol(s, 0, 10); }\n' >new.c
cc -D_GNU_SOURCE -shared -fPIC -o new.so new.c
check "a newer name would be seen" test "$(newest new.so)" -gt 34
cc -D_GNU_SOURCE -include "$TOP/userlib/old_libc.h" -shared -fPIC -o old.so new.c
check "and the header is what keeps it out" test "$(newest old.so)" -le 34
finish

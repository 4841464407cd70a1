#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: all libraries and programs of userlib are built with checks of stacks and buffers, and with tables that are read-only
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool readelf nm cc
lib=$BUILD/userlib
need_file "$lib/libcuda.so.1" "$lib/libnvidia-ml.so.1" "$lib/libcufile.so.0" "$lib/libpeerlane.so.0" "$lib/peerlane" "$lib/bin/nvidia-smi"

# lacks FILE: what a dynamic object was built without
lacks() {
	readelf -Wd "$1" | grep -Eq 'FLAGS.*BIND_NOW|FLAGS_1.*NOW' || echo "now"
	readelf -Wl "$1" >"$OUT/segments"
	grep -q GNU_RELRO "$OUT/segments" || echo "relro"
	grep -q 'GNU_STACK .* RW ' "$OUT/segments" || echo "stack not executable"
	nm -D --undefined-only "$1" >"$OUT/names"
	grep -q __stack_chk_fail "$OUT/names" || echo "stack protector"
	grep -q 'printf_chk' "$OUT/names" || echo "sizes of buffers"
	# With it these have other names, whatever the buffers
	grep -oE ' v?[fd]?printf(@|$)' "$OUT/names"
}
find "$lib" -maxdepth 2 -type f \( -name '*.so.[0-9]*' -o -name peerlane -o -path '*/bin/*' \) ! -path '*/sanitize/*' | sort >objects
check "there are many of them" test "$(wc -l <objects)" -ge 9
while read -r object; do
	check_eq "${object##*/} lacks nothing" "" "$(lacks "$object")"
done <objects
check "the program is at another address each time" sh -c "readelf -h '$lib/peerlane' | grep -q 'Type:.*DYN'"

cat >bare.c <<'END_C'
#include <stdio.h>
int f(char *s) { char text[64]; return snprintf(text, sizeof(text), "%s", s) + printf("%d %s", 1, text); }
END_C
cc -O2 -U_FORTIFY_SOURCE -fno-stack-protector -shared -fPIC -Wl,-z,lazy,-z,norelro,-z,execstack -o bare.so bare.c
for what in now relro 'stack not executable' 'stack protector' 'sizes of buffers' ' printf'; do
	check "a library without it would be seen: $what" sh -c 'case $1 in *"$2"*) ;; *) exit 1 ;; esac' - "$(lacks bare.so)" "$what"
done
finish

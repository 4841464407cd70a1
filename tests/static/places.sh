#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a header shows what several files need; a command has its folder; the doctor knows the findings that it names
# tags: static
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"

# shown HEADER: the structs that the common header of a module has, and that fewer than three of its files know
shown() {
	sed -n 's/^struct \([a-z0-9_]*\) {$/\1/p' "$1" | while read -r struct; do
		[ "$(grep -lw "$struct" "${1%/*}"/*.c | wc -l)" -ge 3 ] || echo "$struct"
	done
}
# hidden FOLDER COMMON: the other headers that bring more than the common one with them, or that have no file of their name
hidden() {
	for header in "$1"/*.h; do
		[ "${header##*/}" != "$2" ] || continue
		[ -e "${header%.h}.c" ] || echo "${header##*/}"
		sed -n "s|^#include \"\(.*\)\"|${header##*/} \1|p" "$header" | grep -v " $2\$"
	done
}
for header in peerlane_gpu/pln_gpu.h peerlane/peerlane.h; do
	module=${header%/*} common=${header#*/}
	cp -R "$TOP/kernel/$module" .
	check "$module: there are structs" test "$(grep -c '^struct .* {$' "$header")" -ge 3
	check_eq "$module: three files know each struct that all are shown" "" "$(shown "$header")"
	check_eq "$module: the other headers are of one file" "" "$(hidden "$module" "$common")"
	printf 'struct pln_own {\n\tint n;\n};\n' >>"$header"
	printf 'static struct pln_own own;\n' >>"$module/main.c"
	printf '#include "queue.h"\n' >"$module/own.h"
	check_eq "... others are found" "pln_own own.h own.h queue.h" \
		"$({ shown "$header"; hidden "$module" "$common"; } | xargs)"
done

# commands FOLDER: "NAME FOLDER" of each command in the table
commands() {
	sed -n 's/^	{ &\([a-z]*\)_command, .*/\1/p' "$1/peerlane.c" | sort | while read -r name; do
		(cd "$1" && grep -l "^const struct command ${name}_command = {" ./*.c ./*/*.c) | sed "s|^\./||; s|/[^/]*\$||; s|^|$name |"
	done
}
cp -R "$TOP/userlib/tools" .
(cd tools && find . -mindepth 1 -maxdepth 1 -type d ! -name test | sed 's|^\./||' | sort) >folders
check "there are commands" test -s folders
check_eq "each folder of tools/ is of one command, and each command has one" "$(sed 's/.*/& &/' folders)" "$(commands tools)"
mv tools/copy/copy.c tools/io/
check "... another place is found" sh -c 'echo "$1" | grep -qx "copy io"' sh "$(commands tools)"

# What is wrong where a finding has another one as its reason: that is found by its id
rows() { sed -n 's/^	{ "\([a-z0-9-]*\)", SEV_.*/\1/p' tools/doctor/*.c | sort; }
named() { cat tools/doctor/*.c | grep -oE '\<said\(d, "[^"]*"' | cut -d '"' -f 2 | sort -u; }
check "the doctor has findings" test "$(rows | wc -l)" -gt 40
check "and names some" test -n "$(named)"
check_eq "each finding is a row of one table" "" "$(rows | uniq -d)"
check_eq "findings that are named are in a table" "" "$(rows >all; named | comm -23 - all)"
printf '\tsaid(d, "gpu-gforce", at);\n\t{ "gpu-geforce", SEV_INFO, "x",\n' >tools/doctor/planted.c
check_eq "... one that is not would be seen, and a second one" "gpu-gforce gpu-geforce" \
	"$(rows >all; { named | comm -23 - all; uniq -d all; } | xargs)"
finish

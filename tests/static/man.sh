#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: man pages have their sections and format without a warning
# tags: quick static
# timeout: 60

. "$TOP/tests/lib/case.sh"
. "$TOP/tests/lib/tree.sh"

tree_files | grep -E '\.[1-8]$' >pages
[ -s pages ] || skip "there are no man pages"
cd "$TOP" || exit 1
while IFS= read -r page; do
	name=${page##*/}
	for section in NAME SYNOPSIS DESCRIPTION; do
		grep -qiE "^\.SH \"?$section" "$page" ||
			fail "$name has a section $section"
	done
	check "$name has a title line" grep -qE '^\.TH ' "$page"
	if command -v groff >/dev/null 2>&1; then
		groff -man -Tutf8 -ww -z "$page" >"$OUT/groff" 2>&1
		check_eq "$name formats without a warning" "" "$(cat "$OUT/groff")"
	elif command -v mandoc >/dev/null 2>&1; then
		check "$name formats without a warning" mandoc -T lint -W error "$page"
	fi
done <"$OUT/pages"
finish

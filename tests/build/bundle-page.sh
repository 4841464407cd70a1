#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the page about the bundle leads nowhere else as its README.md
# tags: quick
# tier: check
# timeout: 60
# shellcheck disable=SC2016 # backquotes of the page

. "$TOP/scenarios/lib/case.sh"
page=$TOP/docs/how-to/use-the-bundle.md

# README.md: a link to a part of itself is the only one
check "it becomes a README.md" sh -c 'sed -E -f "$1" "$2" >README.md' sh "$TOP/images/bundle/readme.sed" "$page"
grep -oE '\]\([^)]*\)' README.md | sed 's/^](//; s/)$//' | sort -u >links
check_eq "it has links to parts of itself" "#on-arm64" "$(xargs <links)"
check "… which it has" grep -qx '## On arm64' README.md
grep -oE '\(`[^` ]+` in a checkout\)' README.md | sed 's/^(`//; s/[`#].*//' | sort -u >files
check_eq "as many files are named as the page has links to" "$(grep -oE '\]\([^#)][^)#]*' "$page" | sort -u | wc -l)" "$(wc -l <files)"
check_eq "a checkout has them" "" "$(while read -r file; do
	[ -e "$TOP/$file" ] || echo "$file"
done <files)"
finish

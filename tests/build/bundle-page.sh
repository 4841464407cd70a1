#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the page about the bundle says what the bundle goes without, and as its README.md leads nowhere else
# tier: check
# timeout: 60
# shellcheck disable=SC2016 # backquotes of the page

. "$TOP/scenarios/lib/case.sh"
page=$TOP/docs/how-to/use-the-bundle.md
left_out=$TOP/images/bundle/left-out.list

# named PAGE: the scenarios that it says are left out, and the parts that the guest with 6.12 has not
named() {
	sed -n '/^## Contents$/,$p' "$1" | tr '\n' ' ' | sed 's/\. /.\n/g' >contents
	sed -n 's/.*all scenarios of a checkout except [a-z]*: \(.*\) need .*/\1/p' contents | grep -o '`[^`]*`' | tr -d '`' | sort
	sed -n 's/^ *Its guest with kernel 6[.]12 has no \([^:]*\):.*/\1/p' contents | grep -o '`[^`]*`' | tr -d '`' | sort
}
# scenarios: that are left out
scenarios() {
	sed -n 's|^scenarios/\(.*\)[.]scn$|\1|p' "$left_out" | sort
}
check_eq "the page names what is left out" "$({ scenarios
	sed -n 's|^build/guest/6[.]12/\(.*\)[.]cpio$|\1|p' "$left_out" | sort; } | xargs)" "$(named "$page" | xargs)"
sed 's/, `mpi`//' "$page" >less.md
check_false "… and one that it does not name is seen" test "$(named "$page")" = "$(named less.md)"
check_eq "all of these are scenarios" "" "$(scenarios | while read -r name; do
	[ -f "$TOP/scenarios/$name.scn" ] || echo "$name"
done)"
check_eq "their folders are left out, too" "$(scenarios | while read -r name; do
	[ ! -d "$TOP/scenarios/$name" ] || echo "scenarios/$name"
done)" "$(grep '^scenarios/[^.]*$' "$left_out" | sort)"

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

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: manual pages have their sections and format without a warning; each public function has one
# tags: quick static
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"

tree_files | grep -E '\.[1-8]$' >pages
[ -s pages ] || skip "there are no man pages"
need_tool mandoc

lacking() { # PAGE: what it lacks, or what mandoc says; a page has no date on purpose
	other=$(sed -n 's/^\.so man[1-8]\///p' "$1")
	if [ -n "$other" ]; then # a second name: the page of the first one tells of it
		name=${1##*/}
		grep -qw -e "${name%.*}" "${1%/*}/$other" ||
			echo "$other does not tell of it"
		return
	fi
	for section in NAME SYNOPSIS DESCRIPTION; do
		grep -qiE "^\.SH \"?$section" "$1" || echo "no section $section"
	done
	grep -qE '^\.TH ' "$1" || echo "no title line"
	mandoc -T lint -W warning "$1" 2>&1 | grep -v 'WARNING: missing date'
}
while IFS= read -r page; do
	check_eq "${page##*/} is whole and formats without a warning" "" "$(lacking "$TOP/$page")"
done <pages

functions() { # HEADER…: what they declare
	sed -nE 's/^([A-Za-z][^(]*[ *])?(pln[A-Za-z0-9_]+)\(.*/\2/p' "$@" | sort -u
}
pages() { # FOLDER: functions with a page
	(cd "$1" && for page in pln*.3; do echo "${page%.3}"; done | sort -u)
}
functions "$TOP"/userlib/include/peerlane/*.h >declared
check "there are public functions" test "$(wc -l <declared)" -ge 30
check_eq "each public function has its page, and each page its function" "$(cat declared)" "$(pages "$TOP/docs/man")"

# these can fail
cp -R "$TOP/docs/man" bad
rm bad/pln_version.3
sed 's/^\.SH DESCRIPTION/.XX DESCRIPTION/' "$TOP/docs/man/pln_strerror.3" >bad/pln_strerror.3
check_eq "a function without a page is seen" "pln_version" "$(pages bad | comm -23 declared -)"
printf ".so man3/pln_errname.3\n" >bad/pln_more.3
check_eq "and a second name that the page does not tell of" "pln_errname.3 does not tell of it" "$(lacking bad/pln_more.3)"
printf 'int\npln_new_thing(void);\nvoid pln_other_thing(int a,\n\t\tint b);\n' >bad.h
check_eq "also a new one" "pln_new_thing
pln_other_thing" "$(functions bad.h)"
check "a page without a section is seen" test -n "$(lacking bad/pln_strerror.3 | grep 'no section DESCRIPTION')"
check "and a macro that is none" test -n "$(lacking bad/pln_strerror.3 | grep 'unknown macro')"
finish

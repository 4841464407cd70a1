#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the manual pages as they are built: sections, no warning, all findings; one page for each public function
# tier: check
# tags: static
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
pages=$BUILD/userlib/man
need_file "$BUILD/userlib/peerlane" "$pages/peerlane.1"
need_tool mandoc jq

lacking() { # PAGE: what it lacks, or what mandoc says; a page has no date on purpose
	for section in NAME SYNOPSIS DESCRIPTION; do
		grep -qiE "^\.SH \"?$section" "$1" || echo "no section $section"
	done
	grep -E '^\.\\" (OPTIONS|FINDINGS)' "$1"
	mandoc -T lint -W warning "$1" 2>&1 | grep -v 'WARNING: missing date'
}
for page in "$pages"/*.[1-8]; do
	check_eq "${page##*/} is whole and formats without a warning" "" "$(lacking "$page")"
done

sed -nE 's/^([A-Za-z][^(]*[ *])?(pln[A-Za-z0-9_]+)\(.*/\2/p' "$TOP"/userlib/include/peerlane/*.h | sort -u >declared
check "there are public functions" test "$(wc -l <declared)" -ge 30
check_eq "each public function has its page, and each page its function" "$(cat declared)" \
	"$(cd "$pages" && for page in pln*.3; do echo "${page%.3}"; done | sort -u)"
"$BUILD/userlib/peerlane" doctor --list --json | jq -r '.[].id' >findings
check "there are findings" test "$(wc -l <findings)" -gt 40
check_eq "peerlane-doctor(1) has each finding once" "$(cat findings)" \
	"$(sed -n 's/^\.BR \([a-z0-9\\-]*\) " (\(error\|warning\|info\))"$/\1/p' "$pages/peerlane-doctor.1" | sed 's/\\-/-/g')"

# without_options FOLDER: commands that peerlane(1) lacks, and options that a command's page lacks
without_options() {
	while read -r sub option; do
		grep -qx "\.B $sub" "$1/peerlane.1" || echo "peerlane(1) lacks $sub"
		page=$1/peerlane-$sub.1
		[ -e "$page" ] || page=$1/peerlane.1
		[ -z "$option" ] || sed 's/\\-/-/g' "$page" | grep -qE -e "--$option([^a-z-]|$)" || echo "${page##*/} lacks --$option of $sub"
	done <options | sort -u
}
"$BUILD/userlib/peerlane" --describe | jq -r '.[] | .name as $name | $name, (.options[] | "\($name) \(.name)")' >options
check "there are commands with options" test "$(wc -l <options)" -ge 60
check_eq "peerlane(1) has each command, and the command's page each of its options" "" "$(without_options "$pages")"

# these can fail
mkdir less
sed 's/^\.B stats$/.B statistics/' "$pages/peerlane.1" >less/peerlane.1
sed '/\\-\\-explain/d' "$pages/peerlane-doctor.1" >less/peerlane-doctor.1
check_eq "a command and an option that a page lacks are seen" "peerlane(1) lacks stats
peerlane-doctor.1 lacks --explain of doctor" "$(without_options less | grep -E 'lacks (stats|--explain)')"
sed 's/^\.SH DESCRIPTION/.XX DESCRIPTION/' "$pages/pln_strerror.3" >bad.3
check "a page without a section is seen, and a macro that does not exist" \
	sh -c 'echo "$1" | grep -q "no section DESCRIPTION" && echo "$1" | grep -q "unknown macro"' sh "$(lacking bad.3)"
finish

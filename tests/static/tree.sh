#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: licence lines, no unfinished work, no hosts, nothing that cannot run
# tags: static
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"

tree_files >files
check "there is a tree to look at" test "$(wc -l <files)" -ge 20
cd "$TOP" || exit 1

# none DESC: fail when there are lines in $OUT/found
none() {
	if [ -s "$OUT/found" ]; then
		fail "$1" "$(head -n 40 "$OUT/found")"
	else
		pass "$1"
	fi
}

# what a licence line fits into: text, but no data, no licence, no patch
licensed() {
	grep -vE '^(LICENSES/|COPYING|\.gitignore|\.gitattributes|.*\.(jsonl?|cpio|patch|golden|out|png|svg|txt|list|lock|sha256|trace-events)$|.*trace-events$|debian/)' \
		"$OUT/files" | while IFS= read -r file; do
		[ -s "$file" ] && printf '%s\n' "$file"
	done
}

# without LICENCE <FILES: those that do not say it in their first three lines
without() {
	xargs -r awk -v licence="SPDX-License-Identifier: $1" '
		function ended() { if (name != "" && !said) print name }
		FNR == 1 { ended(); name = FILENAME; said = 0 }
		FNR > 3 { nextfile }
		$0 ~ licence { said = 1 }
		END { ended() }'
}

licensed >"$OUT/licensed"
without '' <"$OUT/licensed" >"$OUT/found"
none "every file has an SPDX line among its first three"

# what stands before it would show on the page
grep '[.]md$' "$OUT/files" | while IFS= read -r file; do
	sed 1q "$file" | grep -q '^<!-- SPDX-License-Identifier: ' || echo "$file"
done >"$OUT/found"
none "a document begins with its SPDX line"

xargs grep -nE -e "^(<{7}|>{7}) " /dev/null <"$OUT/files" >"$OUT/found"
none "no merge left its marks"

wrong_licence() { # PATH-REGEX LICENCE
	grep -E -e "$1" "$OUT/licensed" | without "$2( |\$|\")" | sed "s/\$/ is not $2/"
}
wrong_licence '^kernel/include/uapi/' 'GPL-2.0-only WITH Linux-syscall-note' >"$OUT/found"
none "user interfaces carry the syscall note"
wrong_licence '^kernel/.*\.[ch]$' GPL-2.0-only >"$OUT/found"
none "kernel/ is GPL-2.0-only"
wrong_licence '^hw-model/.*\.[ch]$' GPL-2.0-or-later >"$OUT/found"
none "hw-model/ is GPL-2.0-or-later"
wrong_licence '^(userlib|scenarios|tests)/.*\.(c|h|sh)$' MIT >"$OUT/found"
none "userlib/, scenarios/ and tests/ are MIT"
for licence in GPL-2.0 MIT; do
	check "LICENSES/ has $licence" test -s "LICENSES/$licence.txt"
done

words='TO''DO|FIX''ME|XX''X|HA''CK'
xargs grep -nwE -e "$words" <"$OUT/files" |
	grep -vE '^LICENSES/' >"$OUT/found"
none "no notes of unfinished work"

hosts='(deb|ftp|cdn|archive|security|snapshot|mirror)[a-z0-9.-]*\.(debian|ubuntu)\.(org|com)|artifactory|nexus\.'
xargs grep -nE -e "$hosts" <"$OUT/files" | grep -vE '^tests/static/tree.sh:' >"$OUT/found"
none "no mirror's host name"

xargs grep -nE -e '/(work|tmp/proto)/' <"$OUT/files" |
	grep -vE '^tests/static/tree.sh:' >"$OUT/found"
none "no path of one machine"

xargs grep -lI . <"$OUT/files" | xargs grep -nE -e '[[:blank:]]+$' |
	grep -vE '^[^:]*\.(md|patch|rst)(:|$)|^LICENSES/' >"$OUT/found"
none "no blanks at the end of lines"

# inner_names FILE…: pln_ names in them that no public header has
inner_names() {
	grep -rhowE 'pln_[a-z0-9_]*[a-z0-9]' kernel/include/uapi userlib/include | sort -u >"$OUT/public"
	grep -nowE 'pln_[a-z0-9_]*[a-z0-9]' "$@" /dev/null |
		awk -F: 'FNR == NR { public[$0]; next } !($3 in public)' "$OUT/public" -
}
# shellcheck disable=SC2046 # no name in the tree has a blank
inner_names $(grep -E '^userlib/.*(\.([ch]|awk|map)|/Makefile)$' "$OUT/files") >"$OUT/found"
none "in userlib/ the names with pln_ are public ones"

# leads_to_tests FILE…: lines with a path into tests/; what a guest has in /usr/lib/peerlane/tests is built from elsewhere
leads_to_tests() {
	grep -noE "[^ ]*/tests(/|\"|$)[^ ]*" "$@" /dev/null | grep -v ":/usr/lib/peerlane/tests/"
}
# shellcheck disable=SC2046 # no name in the tree has a blank
leads_to_tests $(grep "^scenarios/" "$OUT/files" | grep -v "[.]md$") >"$OUT/found"
none "scenarios/ stands alone: nothing of it leads into tests/"

# every case is found by the runner
for file in tests/*/*.sh; do
	case $file in
	tests/lib/* | tests/*/lib.sh | tests/*/lib-*.sh) continue ;;
	esac
	grep -q '^# desc: ' "$file" || echo "$file: no '# desc:'"
	grep -qE '^# timeout: [0-9]+$' "$file" || echo "$file: no '# timeout:'"
	[ -x "$file" ] || echo "$file: not executable"
done >"$OUT/found"
none "every case has its header and can run"

# other_than_predicates FILE…: what check_false is given there and is none.  A program can fail for many reasons: check_fails
# is told which
other_than_predicates() {
	awk -v predicate='^(test|grep|cmp|jq -e|lives|partial|scan_console)( |$)' '
	FNR == 1 { more = "" }
	{ $0 = more $0 }
	/\\$/ { more = substr($0, 1, length($0) - 1); next }
	{ more = "" }
	match($0, /(^|[;&|{(]|(do|then|else)[[:blank:]])[[:blank:]]*check_false[[:blank:]]+/) {
		at = substr($0, RSTART + RLENGTH)
		sub(/^("([^"\\]|\\.)*"|\047[^\047]*\047|[^"\047[:blank:]]+)[[:blank:]]+/, "", at)
		if (at !~ predicate)
			print FILENAME ":" FNR ": " at
	}' "$@"
}
# shellcheck disable=SC2046 # no name in the tree has a blank
other_than_predicates $(xargs grep -lw check_false <"$OUT/files" | grep -vE '[.]md$|lib/case[.]sh$') >"$OUT/found"
none "check_false is given predicates"

# written_guests FILE…: lines that write case/run, the program of a guest; shellcheck sees it in a file of its own, which is copied there
written_guests() {
	grep -nE -e '(>[[:blank:]]*|\<tee( -a)?[[:blank:]]+)"?[^"<>|;&[:blank:]]*(case|\$[A-Za-z0-9_{}]+)/run"?([<>|;&)[:blank:]]|$)' "$@" /dev/null
}
# the launcher's own tests have guests of a few lines
# shellcheck disable=SC2046 # no name in the tree has a blank
written_guests $(grep -E '^(tests|scenarios)/' "$OUT/files" | grep -vE '[.](md|awk|[ch])$|^tests/harness/(launcher|lib|messages|snapshot)[.]sh$') >"$OUT/found"
none "a guest runs a file of the tree, no here-document"

# any_failure FILE...: what fails there for whatever reason, a crash among them
any_failure() {
	grep -nE "sh -c ['\"]! " "$@" /dev/null
}
# shellcheck disable=SC2046 # no name in the tree has a blank
any_failure $(grep -E "^(tests|scenarios)/" "$OUT/files" | grep -vx tests/static/tree.sh) >"$OUT/found"
none "a failure is named: check_fails, or check_false of a predicate"

# without_floor FILE...: programs of jq with an upper bound alone.  A null is below each; holds() of judge.sh, or a lower bound in
# the same line, makes it an error
without_floor() {
	grep -nE '[.]([[]?[\\]?")?[a-z_][]["\\a-z_0-9-]* <=? ' "$@" /dev/null | grep -vE ':(always|here) [|] |\<holds |>=? 0[)]? and '
}
# shellcheck disable=SC2046 # no name in the tree has a blank
without_floor $(grep -E "^(tests|scenarios)/.*[.](sh|scn)$" "$OUT/files" | grep -vxE "tests/(static/tree|harness/(expectations|write-a-scenario))[.]sh") >"$OUT/found"
none "an upper bound in jq takes no null"

# the checks above can fail
printf 'no licence\n' >"$OUT/bad.c"
check_eq "a missing licence line is seen" "$OUT/bad.c" "$(echo "$OUT/bad.c" | without '')"
printf '// SPDX-License-Identifier: MIT-0\n' >"$OUT/bad.c"
check_eq "and another licence" "$OUT/bad.c" "$(echo "$OUT/bad.c" | without 'MIT( |$|")')"
printf '\n\n// SPDX-License-Identifier: MIT\n' >"$OUT/bad.c"
check_eq "but not the right one" "" "$(echo "$OUT/bad.c" | without 'MIT( |$|")')"
printf '. "$TOP/tests/lib/x.sh"\nexec /usr/lib/peerlane/tests/x\n' >"$OUT/bad.sh"
check_eq "a path into tests/ is seen, one of a guest is none" "$OUT/bad.sh:1:\"\$TOP/tests/lib/x.sh\"" "$(leads_to_tests "$OUT/bad.sh")"
printf '%s "no \\"x\\"" grep x y\n%s x \\\n\tpeerlane topo y\ntrue && %s "a $b" jq . c\n' check_false check_false check_false >"$OUT/bad.sh"
check_eq "check_false of a program is seen, of a predicate not" "$OUT/bad.sh:3: peerlane topo y
$OUT/bad.sh:4: jq . c" "$(other_than_predicates "$OUT/bad.sh")"
printf 'cat >case/%s <<END\nboot() {\n\tcat >"$OUT/$1.case/%s"\n\tcat <<END >>case/%s\n\ttee "$case/%s" <<END\n' run run run run >"$OUT/bad.sh"
printf 'cp guest/x case/%s\nchmod +x case/%s\ncat >case/runs <<END\necho 1 >/sys/kernel/mm/ksm/%s\n' run run run >>"$OUT/bad.sh"
check_eq "a guest in a here-document is seen, by way of a function as well; one that is copied is none" "1 3 4 5" \
	"$(written_guests "$OUT/bad.sh" | cut -d : -f 2 | xargs)"
cat >"$OUT/bad.sh" <<'END'
jq -e '.stream | .posting < .seconds / 10' facts
jq -e ".cx.\"dma-host-write\" <= 5" facts
jq -e '.bytes > 5 and $us.p50 < 5' facts
jq -e '.bytes >= 0 and .bytes < 5' facts
check x holds facts '.a > 1 and .bytes < 5'
. ./lib.sh <file
END
check_eq "an upper bound that a null is below is seen" "1 2 3" "$(without_floor "$OUT/bad.sh" | cut -d : -f 2 | xargs)"
printf '%s\n' "check x sh -c '! dd'" 'check x sh -c "! dd"' 'check x sh -c "dd"' >"$OUT/bad.sh"
check_eq "a failure for whatever reason is seen" "1 2" "$(any_failure "$OUT/bad.sh" | cut -d : -f 2 | xargs)"
printf 'int pln_version(void);\nint pln_inside(void);\n' >"$OUT/bad.c"
check_eq "an inner name with pln_ is seen, a public one is none" "$OUT/bad.c:2:pln_inside" "$(inner_names "$OUT/bad.c")"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: shell scripts are POSIX sh and clean under shellcheck
# tags: static
# tier: check
# timeout: 1200
#
# A look at 300 scripts takes a minute of two processors, since shellcheck reads the
# libraries again for each. So a pass is kept in the cache, and only a pass: an
# empty file, named by the hash of all that the verdict depends on.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"

need_tool shellcheck
passed_before=${PEERLANE_CACHE:?}/shellcheck

# functions called by way of check are not unreachable (SC2317), and code in
# single quotes is for at_exit or for another shell (SC2016); functions of
# libraries may be called without arguments (SC2119)
flags='--norc -x -P SCRIPTDIR -s sh -e SC2317 -e SC2016 -e SC2119'
unset SHELLCHECK_OPTS

# keys KEPT FLAGS <SCRIPTS: lines "FILE-OF-THE-PASS SCRIPT". A script's key is the hash
# of shellcheck's version, the flags, and name and contents of the script and of all
# that it may source: each *.sh file of the list whose name stands in a line of the
# script with a dot command or a source directive, and what those source. That is more
# than shellcheck opens, never less: it only follows names that are written out there.
keys() {
	rm -rf "$OUT/keys"
	mkdir -p "$OUT/keys"
	cat >"$OUT/list"
	[ -s "$OUT/list" ] || return 0
	xargs sha256sum <"$OUT/list" >"$OUT/hashes" || return 1
	xargs grep -HE '(^|[^A-Za-z0-9_])\.[[:blank:]]|source[=[:blank:]]' <"$OUT/list" >"$OUT/names"
	awk -v tools="$(shellcheck --version) $2" -v dir="$OUT/keys" '
	function visit(file,   n, names, i, m, files, j) {
		if (file in seen)
			return
		seen[file] = 1
		n = split(named[file], names, " ")
		for (i = 1; i <= n; i++) {
			m = split(by_name[names[i]], files, " ")
			for (j = 1; j <= m; j++)
				visit(files[j])
		}
	}
	FNR == NR {
		order[++count] = $2
		hash[$2] = $1
		name = $2
		sub(/.*\//, "", name)
		if (name ~ /\.sh$/)
			by_name[name] = by_name[name] " " $2
		next
	}
	{
		at = index($0, ":")
		file = substr($0, 1, at - 1)
		n = split(substr($0, at + 1), words, /[^A-Za-z0-9_.-]+/)
		for (i = 1; i <= n; i++)
			if (words[i] in by_name)
				named[file] = named[file] " " words[i]
	}
	END {
		for (k = 1; k <= count; k++) {
			split("", seen)
			visit(order[k])
			out = dir "/" k
			print tools "\n" order[k] >out
			for (i = 1; i <= count; i++)
				if (order[i] in seen)
					print order[i], hash[order[i]] >out
			close(out)
			print out
		}
	}' "$OUT/hashes" "$OUT/names" | xargs sha256sum | cut -d ' ' -f 1 |
		paste -d ' ' - "$OUT/list" | sed "s|^|$1/|"
}

# lint KEPT FLAGS <SCRIPTS: shellcheck those whose pass is not kept; their number is in
# lint_ran, the complaints in lint.log
lint() {
	mkdir -p "$1" || return 1
	: >"$OUT/lint.log"
	keys "$1" "$2" >"$OUT/lint.keys" || return 1
	while read -r lint_key lint_file; do
		if [ -e "$lint_key" ]; then
			touch "$lint_key"	# it is in use
		else
			echo "$lint_key $lint_file"
		fi
	done <"$OUT/lint.keys" >"$OUT/lint.todo"
	lint_ran=$(wc -l <"$OUT/lint.todo")
	# a few at a time, on all processors
	LINT_FLAGS=$2 xargs -r -P "$(nproc)" -n 16 sh -c '
		keys= files= odd=1
		for word; do
			if [ "$odd" = 1 ]; then keys="$keys $word"; else files="$files $word"; fi
			odd=$((1 - odd))
		done
		shellcheck $LINT_FLAGS $files && touch $keys' sh <"$OUT/lint.todo" >"$OUT/lint.log" 2>&1
	lint_status=$?
	find "$1" -type f -mtime +30 -delete
	return "$lint_status"
}

tree_files | while IFS= read -r file; do
	case $file in
	*.sh | *.scn) echo "$file" ;;
	*) head -n 1 "$TOP/$file" | grep -q '^#!.*[/ ]sh$' && echo "$file" ;;
	esac
done >scripts
# guests FOLDER <SCENARIOS: the guests' scripts in them, each on its own lines of a file there, whose names it prints
guests() {
	mkdir -p "$1"
	while IFS= read -r guests_file; do
		awk -v begin="guest <<'END'" '
		$0 == "END" { here = 0 }
		{ print here ? $0 : "" }
		$0 == begin { here = found = 1 }
		END { exit !found }' "$guests_file" >"$1/${guests_file##*/}" && echo "$1/${guests_file##*/}"
	done
}
grep '[.]scn$' scripts | sed "s|^|$TOP/|" >scenarios
# named from the top folder, as the others are, since a kept pass has the name in it
guests "$OUT/guests" <scenarios | sed "s|^$TOP/||" >>scripts
check "and guests' scripts in scenarios" grep -q '/guests/io-sizes[.]scn$' scripts
check_eq "and all of them" "" "$(xargs grep -n '^ *guest .*<<' <scenarios | grep -v ":guest <<'END'\$")"
check "there are scripts to look at" test "$(wc -l <scripts)" -ge 10
cd "$TOP" || exit 1

if lint "$passed_before" "$flags" <"$OUT/scripts"; then
	pass "shellcheck finds nothing in $(wc -l <"$OUT/scripts") scripts ($lint_ran new or changed)"
else
	fail "shellcheck finds nothing" "$(head -n 60 "$OUT/lint.log")"
fi
check_eq "there is a key for each script" "$(wc -l <"$OUT/scripts")" "$(wc -l <"$OUT/lint.keys")"

xargs grep -nE '^[^#]*(\[\[ |<<<|\blocal |function [a-z_]+ *\{)' \
	<"$OUT/scripts" | grep -vE '^tests/static/shell.sh:' >"$OUT/bashisms"
if [ -s "$OUT/bashisms" ]; then
	fail "no bashisms" "$(cat "$OUT/bashisms")"
else
	pass "no bashisms"
fi

# The checks above can fail
cd "$OUT" || exit 1
printf '#!/bin/sh\nrm -rf $1/*\n' >bad.sh
check_fails "shellcheck is not asleep" SC2086 shellcheck -s sh bad.sh

cat >bad.scn <<'BAD'
# title: its guest has a mistake
guest <<'END'
. /case/lib/guest.sh
rm -rf $1/*
END
fine="$1"
BAD
echo bad.scn | guests bad >bad.list
check_fails "a guest's script is looked at, with the lines of the scenario" '^In bad/bad[.]scn line 4:' \
	xargs -a bad.list shellcheck -s sh -e SC1091
# and what is kept hides nothing.  user.sh has a variable from base.sh, by way of lib.sh.
mkdir fix
printf '#!/bin/sh\n. fix/lib.sh\necho "$word"\n' >fix/user.sh
printf '#!/bin/sh\n. fix/base.sh\n' >fix/lib.sh
printf '#!/bin/sh\nword=1\n[ "$word" ]\n' >fix/base.sh
printf '#!/bin/sh\necho alone\n' >fix/alone.sh
# again WANTED-STATUS RUNS DESC [FLAGS]
again() {
	printf '%s\n' fix/*.sh >fixtures
	lint "$OUT/kept" "${4:-$flags}" <fixtures
	check_eq "$3" "$1 $2" "$? $lint_ran" || diag "$(cat lint.log)"
}
again 0 4 "kept: at first all are looked at"
again 0 0 "kept: then none"
printf '#!/bin/sh\nother=1\n[ "$other" ]\n' >fix/base.sh
again 123 3 "kept: a library of a library has changed: what sources it is looked at, and fails"
check "... by the variable that is gone" grep -q 'SC2154.*word' lint.log
again 123 3 "kept: a failure is not kept"
printf '#!/bin/sh\nword=1\n[ "$word" ]\n' >fix/base.sh
again 0 0 "kept: what has passed before passes"
again 0 4 "kept: other flags are another verdict" "$flags -e SC2000"
sed 's/alone/more/' fix/alone.sh >new && mv new fix/alone.sh
again 0 1 "kept: a script that nobody sources is the only one"
finish

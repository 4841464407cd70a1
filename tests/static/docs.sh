#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what documents name exists: links, files, commands and their options, variables, manual pages
# tier: check
# tags: static
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"
need_tool jq
tool=$BUILD/userlib/peerlane
need_file "$tool" "$BUILD/userlib/man/peerlane.1"

cd "$TOP" || exit 1
tree_files >"$OUT/files"
grep '[.]md$' "$OUT/files" >"$OUT/documents"
check "there are documents to look at" test "$(wc -l <"$OUT/documents")" -ge 25

# The three tiers, what they need, and what CI runs
recipe() { # GOAL: its line in the build root
	awk -v goal="$1" '$0 ~ "^" goal ":.*##" { on = 1; next } /^[^\t]/ { on = 0 } on && /tests.run/' Makefile
}
check "make check runs that tier" sh -c 'echo "$1" | grep -q "tests/run .*--tier check"' sh "$(recipe check)"
check "make check-all runs that tier" sh -c 'echo "$1" | grep -q "tests/run --tier all"' sh "$(recipe check-all)"
check "make check-nightly runs that tier" sh -c 'echo "$1" | grep -q "tests/run --tier nightly"' sh "$(recipe check-nightly)"
check "the debug kernel and the QEMU with sanitizers are built for make check-all" \
	grep -qx 'check-all: debug-kernel qemu-asan' Makefile
check "what others wrote is fetched for make check-nightly, before anything is built" grep -q '^check-nightly: $(if $(TESTS),,third-party) ' Makefile
check "CI runs make check-all" grep -q '^make check-all ' .ci/run

# The limits of the tiers are those of tests/run, in minutes
check_eq "commands.md: the limits of the tiers" "$(sed -n 's/^	\(check\|all\|nightly\)) budget=$((\([0-9]*\) .*/\1 \2/p' tests/run)" \
	"$(awk -F '`' '/^[|] `make check/ && match($0, /at most [0-9]+ minutes on two idle cores/) {
		split(substr($0, RSTART), word, " ")
		sub(/make (check-)?/, "", $2)
		print $2, word[3] * 60
	}' docs/reference/commands.md)"

links() { # FILE…: links that lead nowhere
	for file; do
		awk '/^ *```/ { code = !code } !code' "$file" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' | while IFS= read -r link; do
			case $link in
			http://* | https://* | mailto:*) continue ;;
			'#'*) target=$file ;;
			*) target=$(dirname "$file")/${link%%#*} ;;
			esac
			if [ ! -e "$target" ]; then
				echo "$file: no file for the link $link"
			elif [ "$link" != "${link%%#*}" ]; then
				awk '/^```/ { code = !code } !code && /^#+ /' "$target" | tr '[:upper:]' '[:lower:]' |
					sed -E 's/^#+ //; s/[^a-z0-9 _-]//g; s/ /-/g' | grep -qxF -e "${link#*#}" ||
					echo "$file: no heading for the link $link"
			fi
		done
	done
}

unlisted() { # INDEX FILE…: files to which it has no link
	index=$1
	shift
	for file; do
		grep -qF "](${file#"$(dirname "$index")"/})" "$index" || echo "$index has no link to $file"
	done
}

# options COMMAND <HELP: the options in a help text, and whether a value follows
options() {
	tr '[]|,' '    ' | grep -oE '(^|[ \t])--?[a-z][a-z-]*([ =][A-Z]+)?' |
		awk -v command="$1" '{ print (NF > 1 ? "valued" : "option") "\t" command " " $1 }'
}
{
	make -s help | sed -n 's/^  \([a-z0-9.-]*\) .*/goal	\1/p'
	for kernel in $(sed -n 's/^HEADER_KERNELS=//p' versions.mk | tr , ' '); do
		printf 'kernel\t%s\ngoal\tkernel-%s\ngoal\tguest-%s\n' "$kernel" "$kernel" "$kernel"
	done
	scenarios/run -l | awk '{ print "scenario\t" $1 }'
	scenarios/draw -l | awk '{ print "topology\t" $1 }'
	sed -n 's/^BUILT_KERNELS=//p' versions.mk | tr , '\n' | sed 's/^/kernel\t/'
	tests/run -l | awk '{ print "case\t" $1; sub("/.*", "", $1); print "case\t" $1 }'
	for command in scenarios/run scenarios/try scenarios/matrix scenarios/draw scenarios/demo scenarios/report tests/run; do
		"$command" --help | options "$command"
	done
	printf 'option\tpeerlane --%s\n' help describe
	"$tool" --describe | jq -r '.[] | .name as $name | "sub\t\($name)", (.options[] |
		"\(if .arg then "valued" else "option" end)\tpeerlane \($name) --\(.name, .alias // empty)",
		(.letter // empty | "option\tpeerlane \($name) -\(.)"))'
} >"$OUT/known"
commands() { # FILE…
	awk -f tests/static/docs.awk "$OUT/known" "$@"
}

# names that scripts, programs and libraries know
grep -vE '[.](md|[1-8])$|^tests/static/docs' "$OUT/files" |
	xargs grep -ohE '\<(PEERLANE|VM|WIRE|ALLREDUCE)_[A-Z0-9_]+' | sort -u >"$OUT/variables"
variables() { # FILE…
	grep -onE '\<(PEERLANE|VM|WIRE|ALLREDUCE)_[A-Z0-9_]*[A-Z0-9]\>' /dev/null "$@" | while IFS=: read -r file line name; do
		grep -qxF -e "$name" "$OUT/variables" || echo "$file:$line: nothing reads $name"
	done
}

pages() { # FILE…: manual pages of ours that they name, and that do not exist
	sed -E 's/^\.BR ([a-zA-Z_\\-]+) \(/\1(/; s/\\f[BR]//g; s/\\-/-/g' "$@" |
		grep -oE '\<(pln_[a-z0-9_]+|plnMem[A-Za-z0-9]+|(lib)?peerlane[a-z-]*|(lib|nvidia-)[a-z-]+-peerlane)\([1-8]\)' |
		sort -u | while IFS='()' read -r name section; do
		[ -e "$BUILD/userlib/man/$name.$section" ] || echo "there is no page $name($section)"
	done
}

# shellcheck disable=SC2046 # a list of names without blanks
set -- $(cat "$OUT/documents")
check_eq "links between documents lead somewhere" "" "$(links "$@")"
check_eq "files, commands and options in documents exist" "" "$(commands "$@")"
check_eq "variables in documents are read by something" "" "$(variables "$@" docs/man/*)"
check_eq "manual pages that are named are there" "" "$(pages "$@" "$BUILD"/userlib/man/*.[1-8])"
# shellcheck disable=SC2046
check_eq "docs/README.md leads to every document" "" "$(unlisted docs/README.md $(grep '^docs/' "$OUT/documents" | grep -vx docs/README.md))"
# shellcheck disable=SC2046
check_eq "scenarios/README.md leads to every scenario's page" "" \
	"$(unlisted scenarios/README.md $(grep '^scenarios/[^/]*/README.md' "$OUT/documents"))"
check_eq "each section of the scenarios' common pages is in that list" "" \
	"$(sed -n 's/^| \[`.*`\](\([a-z]*[.]md\)#.*/\1/p' scenarios/README.md | sort -u | while read -r page; do
		sed -n "s/^## \(.*\)/$page#\1/p" "scenarios/$page"
	done | while read -r section; do
		grep -qF "]($section)" scenarios/README.md || echo "$section"
	done)"
# unhelped MAKEFILE: goals that no other goal stands for, and that make help does not list
unhelped() {
	sed -n 's/^\(IN_ROOT\|HOST\)_GOALS := //p' "$1" | sed 's/$(addprefix [^ ]*,$([A-Z]*))//g' | xargs -n 1 | while read -r goal; do
		grep -qx "goal	$goal" "$OUT/known" || grep -q "make-in-root .*-${goal##*-}$" "$1" || echo "$goal"
	done
}
check "there are goals" test "$(sed -n 's/^\(IN_ROOT\|HOST\)_GOALS := //p' Makefile | wc -w)" -ge 30
check_eq "make help lists every goal" "" "$(unhelped Makefile)"

# shellcheck disable=SC2046
check "pictures are well-formed" xmllint --noout $(grep '^docs/.*[.]svg$' "$OUT/files")

# these can fail
sed 's/^HOST_GOALS := /&polish /' Makefile >"$OUT/Makefile"
check_eq "a goal that make help is silent about is seen" polish "$(unhelped "$OUT/Makefile")"
cat >"$OUT/bad.md" <<'END'
# Bad
[nothing](nothing.md), [no heading](bad.md#good), [here](#bad), [there](bad.md#bad), and pln_nothing(3)

`make nonsense`, `make all` and `scenarios/run nothing --topology nowhere --kernel 2.4 --fast`, with PEERLANE_NONSENSE

    $ peerlane frobnicate            # `scenarios/run nothing`
    # peerlane doctor --cure; peerlane topo --near --json
    scenarios/try --hosts 2 --boats 3 'peerlane io read --no-such-option'

```
cc tests/no/such.c; tests/run static/nothing static/docs -j 2
```
END
check_eq "what is wrong in a document is seen" "no file for the link nothing.md
no heading for the link bad.md#good
4: there is no goal nonsense
4: there is no scenario nothing
4: there is no topology nowhere
4: there is no kernel 2.4
4: there is no option scenarios/run --fast
6: there is no sub frobnicate
7: there is no option peerlane doctor --cure
8: there is no option scenarios/try --boats
8: there is no option peerlane io --no-such-option
11: there is no tests/no/such.c
11: there is no case static/nothing
4: nothing reads PEERLANE_NONSENSE
there is no page pln_nothing(3)
docs/README.md has no link to docs/lost.md" \
	"$({ links "$OUT/bad.md"; commands "$OUT/bad.md"; variables "$OUT/bad.md"; pages "$OUT/bad.md"
		unlisted docs/README.md docs/lost.md; } | sed "s|^$OUT/bad.md: *||")"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: documents: links, commands, variables and manual pages exist; nothing is left out
# tags: quick static
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"
need_file "$BUILD/userlib/peerlane"

cd "$TOP" || exit 1
tree_files >"$OUT/files"
grep '[.]md$' "$OUT/files" >"$OUT/documents"
check "there are documents to look at" test "$(wc -l <"$OUT/documents")" -ge 40

# none DESC COMMAND…: fail when it prints anything
none() {
	none_desc=$1
	shift
	"$@" >"$OUT/found" 2>&1
	check_eq "$none_desc" "" "$(head -n 40 "$OUT/found")"
}

# ---- links ----

# anchors FILE: what its headings are called in links
anchors() {
	awk '/^```/ { code = !code } !code && /^#+ /' "$1" | tr '[:upper:]' '[:lower:]' |
		sed -E 's/^#+ //; s/[^a-z0-9 _-]//g; s/ /-/g'
}

links() { # FILE…
	for file; do
		grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//' |
			while IFS= read -r link; do
				path=${link%%#*}
				case $link in
				http://* | https://* | mailto:*) continue ;;
				'#'*) target=$file ;;
				*) target=$(dirname "$file")/$path ;;
				esac
				if [ ! -e "$target" ]; then
					echo "$file: no file for the link $link"
				elif [ "$link" != "$path" ] &&
					! anchors "$target" | grep -qxF -e "${link#*#}"; then
					echo "$file: no heading for the link $link"
				fi
			done
	done
}

# ---- commands ----

# options COMMAND <HELP: the options in a help text, told apart by whether a value follows
options() {
	tr '[]|,' '    ' | grep -oE '(^|[ \t])--?[a-z][a-z-]*([ =][A-Z]+)?' |
		awk -v command="$1" '{ print (NF > 1 ? "valued" : "option") "\t" command " " $1 }'
}

goals() { # what make help lists
	make -s help | sed -n 's/^  \([a-z-]*\) .*/\1/p'
}

tool=$BUILD/userlib/peerlane
subcommands=$("$tool" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
{
	goals | sed 's/^/goal	/'
	for kernel in $(sed -n 's/^HEADER_KERNELS=//p' versions.mk | tr , ' '); do
		printf 'kernel\t%s\ngoal\tkernel-%s\ngoal\tguest-%s\n' "$kernel" "$kernel" "$kernel"
	done
	for folder in scenarios/*/run; do
		basename "$(dirname "$folder")" | sed 's/^/scenario	/'
	done
	for file in scenarios/topologies/*.topo; do
		basename "$file" .topo | sed 's/^/topology	/'
	done
	tests/run -l | awk '{ print "case\t" $1; sub("/.*", "", $1); print "case\t" $1 }'
	for command in run try matrix draw demo report; do
		"scenarios/$command" --help | options "scenarios/$command"
	done
	tests/run --help | options tests/run
	printf 'option\tpeerlane --help\noption\tpeerlane --version\n'
	for sub in $subcommands; do
		printf 'sub\t%s\n' "$sub"
		"$tool" "$sub" --help | options "peerlane $sub"
	done
} >"$OUT/known"
commands() { # FILE…
	awk -v mode=code -f tests/static/docs.awk "$@" >"$OUT/code"
	awk -v mode=commands -f tests/static/docs.awk "$OUT/known" "$OUT/code"
}

# ---- variables ----

# names that scripts, programs and libraries know
grep -vE '[.](md|[1-8])$|^tests/static/docs' "$OUT/files" |
	xargs grep -ohE '\<(PEERLANE|VM|WIRE|ALLREDUCE)_[A-Z0-9_]+' | sort -u >"$OUT/variables"
variables() { # FILE…
	grep -onE '\<(PEERLANE|VM|WIRE|ALLREDUCE)_[A-Z0-9_]*[A-Z0-9]\>' /dev/null "$@" |
		while IFS=: read -r file line name; do
			grep -qxF -e "$name" "$OUT/variables" ||
				echo "$file:$line: nothing reads $name"
		done
}

# ---- manual pages ----

# NAME(3), in documents, and in man pages after .BR, of ours
pages() { # FILE…
	sed -E 's/^\.BR ([a-zA-Z_-]+) \(/\1(/; s/\\-/-/g' "$@" |
		grep -oE '\<(pln_[a-z0-9_]+|plnMem[A-Za-z0-9]+|(lib)?peerlane[a-z-]*|lib[a-z]+-peerlane)\([1-8]\)' |
		sort -u | while IFS='()' read -r name section; do
		[ -e "docs/man/$name.$section" ] || echo "there is no page $name($section)"
	done
}

# ---- what has to be in a list ----

listed() { # INDEX FILE…: which files no link of it leads to
	index=$1
	shift
	for file; do
		grep -qF "](${file#"$(dirname "$index")"/})" "$index" ||
			echo "$index does not lead to $file"
	done
}

scenario_pages() { # INDEX FOLDER…
	index=$1
	shift
	for folder; do
		name=${folder##*/}
		[ -s "$folder/README.md" ] || {
			echo "$folder has no README.md"
			continue
		}
		title=$(sed -n 's/^# //p' "$folder/README.md" | head -n 1)
		[ -n "$title" ] || echo "$folder/README.md has no title"
		for part in '## What happens' '## What to look at' '## Exercise' "Run it: \`scenarios/run $name\`"; do
			grep -qxF -e "$part" "$folder/README.md" ||
				echo "$folder/README.md has no line: $part"
		done
		grep -qF -e "| [\`$name\`]($name/README.md) | $title |" "$index" ||
			echo "$index has no row: | [\`$name\`]($name/README.md) | $title |"
	done
}

declared_goals() { # MAKEFILE
	sed -n 's/^\(IN_ROOT\|HOST\)_GOALS := //p' "$1" | sed 's/\$(addprefix [^ ]*,\$([A-Z]*))//g'
}
unhelped() { # MAKEFILE
	goals >"$OUT/goals"
	for goal in $(declared_goals "$1"); do
		# some are made by other goals only
		grep -qxF -e "$goal" "$OUT/goals" || grep -q "make-in-root $goal\$" "$1" ||
			echo "make help does not tell of $goal"
	done
}

# shellcheck disable=SC2046 # a list of names without blanks
set -- $(cat "$OUT/documents")
none "links between documents lead somewhere" links "$@"
none "commands in documents exist" commands "$@"
check "... and there were many" test "$(grep -cE 'scenarios/|peerlane |make' "$OUT/code")" -ge 200
none "variables in documents are read by something" variables "$@" docs/man/*
none "manual pages that are named are there" pages "$@" docs/man/*
# shellcheck disable=SC2046
none "docs/README.md leads to every document" listed docs/README.md $(grep "^docs/" "$OUT/documents" | grep -v README)
# shellcheck disable=SC2046
none "every scenario has its page, its row and its case" scenario_pages scenarios/README.md \
	$(for folder in scenarios/*/run; do dirname "$folder"; done)
none "make help tells of every goal" unhelped Makefile

# ---- each of these can fail ----

mkdir -p "$OUT/bad/docs" "$OUT/bad/sc"
cat >"$OUT/bad/docs/README.md" <<'END'
# Bad
[nothing](nothing.md), [no heading](README.md#good), [here](#bad), [there](README.md#bad)

`make nonsense`, `make all` and `scenarios/run nothing --topology nowhere --kernel 2.4 --fast`

    $ peerlane frobnicate            # `scenarios/run nothing`
    # peerlane doctor --cure; peerlane topo --near --json
    scenarios/try --hosts 2 --boats 3 'peerlane io read --no-such-option'
    scenarios/matrix --scenario gds-nothing -l

```
cc tests/no/such.c
tests/run static/nothing static/docs
scenarios/draw same-switch --svg FILE --png FILE
```

PEERLANE_NONSENSE and PEERLANE_CACHE, and pln_nothing(3)
END
docs=$OUT/bad/docs/README.md
check_eq "bad links are seen" "no file for the link nothing.md
no heading for the link README.md#good" "$(links "$docs" | sed "s|^$docs: ||")"
check_eq "bad commands are seen" "4: there is no goal nonsense
4: there is no scenario nothing
4: there is no topology nowhere
4: there is no kernel 2.4
4: scenarios/run has no option --fast
6: there is no sub frobnicate
7: peerlane doctor has no option --cure
8: scenarios/try has no option --boats
8: peerlane io has no option --no-such-option
9: there is no scenario gds-nothing
12: there is no tests/no/such.c
13: there is no case static/nothing
14: scenarios/draw has no option --png" "$(commands "$docs" | sed "s|^$docs:||")"
check_eq "a variable that nothing reads is seen" "17: nothing reads PEERLANE_NONSENSE" \
	"$(variables "$docs" | sed "s|^$docs:||")"
printf '.BR pln_gone (3),\n' >"$OUT/bad/page.3"
check_eq "a page that is not there is seen" "there is no page pln_gone(3)
there is no page pln_nothing(3)" "$(pages "$docs" "$OUT/bad/page.3")"
touch "$OUT/bad/docs/lost.md"
check_eq "a document that is not in the list is seen" "$docs does not lead to $OUT/bad/docs/lost.md" \
	"$(listed "$docs" "$OUT/bad/docs/nothing.md" "$OUT/bad/docs/lost.md")"
mkdir -p "$OUT/bad/sc/pageless"
cp -R scenarios/gds-direct "$OUT/bad/sc/gds-direct"
sed -i '/^## Exercise/d; s/^# .*/# Another title/' "$OUT/bad/sc/gds-direct/README.md"
check_eq "a scenario without its page is seen, and a page without a part" "$OUT/bad/sc/pageless has no README.md
$OUT/bad/sc/gds-direct/README.md has no line: ## Exercise
scenarios/README.md has no row: | [\`gds-direct\`](gds-direct/README.md) | Another title |" \
	"$(scenario_pages scenarios/README.md "$OUT/bad/sc/pageless" "$OUT/bad/sc/gds-direct")"
sed 's/^HOST_GOALS := /&polish /' Makefile >"$OUT/bad/Makefile"
check_eq "a goal that make help is silent about is seen" "make help does not tell of polish" \
	"$(unhelped "$OUT/bad/Makefile")"
finish

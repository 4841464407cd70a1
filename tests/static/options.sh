#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: help, manual page and bash completion of the tool have the same options
# tags: quick static
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_file "$BUILD/userlib/peerlane"
need_tool bash

tool=$BUILD/userlib/peerlane

# Options are lines "--name" or, with a value, "--name VALUE".

helped() { # SUBCOMMAND: what --help offers
	"$tool" "$1" --help | tr '[]|,' '    ' | grep -oE -e '(^|[ \t])--[a-z-]+( [A-Z]+)?' |
		sed -E 's/^[ \t]*//; s/ .*/ VALUE/' | sort -u
}

paged() { # SUBCOMMAND PAGE: what stands as a term in it
	case $2 in
	*/peerlane.1) sed -n "/^\.B $1\$/,/^\.TP\$/p" "$2" | grep '^\.B' ;;
	*) grep -A 1 '^\.TP' "$2" ;;
	esac | sed 's/\\-/-/g' | grep -oE -e '--[a-z][a-z-]*' | sort -u
}

# complete FILE WORD…: what the completion in FILE offers for the last word
complete_words() {
	bash -c '
		compopt() { :; }
		. "$1" && shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_peerlane
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

completed() { # FILE SUBCOMMAND
	case $2 in
	io) set -- "$1" "io read" "io write" "io copy" "io crc" ;;
	esac
	completed_file=$1
	shift
	for words; do
		# shellcheck disable=SC2086 # two words
		complete_words "$completed_file" peerlane $words --
	done | grep -v -x -e --help -e '' | sort -u
}

# values FILE SUBCOMMAND <helped: options after which completion is wrong
values() {
	values_sub=$2
	[ "$2" != io ] || values_sub='io copy'
	while read -r option value; do
		# shellcheck disable=SC2086 # two words
		offered=$(complete_words "$1" peerlane $values_sub "$option" -- | grep -c -e '^--')
		case $value/$offered in
		VALUE/0 | /[1-9]*) ;;
		VALUE/*) echo "$option takes a value, and completion offers options" ;;
		*) echo "$option takes no value, and completion offers nothing" ;;
		esac
	done
}

bash_file=$TOP/userlib/tools/peerlane.bash-completion
subcommands=$("$tool" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
check_eq "completion offers the subcommands" "$(printf '%s\n' "$subcommands" --help | sort)" \
	"$(complete_words "$bash_file" peerlane '' | sort)"
for sub in $subcommands; do
	page=$TOP/docs/man/peerlane-$sub.1
	[ -e "$page" ] || page=$TOP/docs/man/peerlane.1
	check "there is a page for $sub" grep -qx "\.B $sub" "$TOP/docs/man/peerlane.1"
	helped "$sub" >"help-$sub"
	names=$(sed 's/ .*//' "help-$sub" | grep -vx -e --help)
	check_eq "the manual page of $sub has them, and no others" "$names" "$(paged "$sub" "$page")"
	check_eq "completion of $sub has them, and no others" "$names" "$(completed "$bash_file" "$sub")"
	check_eq "completion of $sub knows which take a value" "" \
		"$(values "$bash_file" "$sub" <"help-$sub")"
done
check "there are many options" test "$(cat help-* | wc -l)" -ge 50

# these can fail
sed 's/--matrix //; s/--tree/& --forest/; s/--from | //' "$bash_file" >bad-completion
check_eq "an option that completion lacks or invents is seen" "--forest
--matrix" "$( (completed bad-completion topo; completed "$bash_file" topo) | sort | uniq -u)"
check_eq "... and a value that it does not expect" "--from takes a value, and completion offers options" \
	"$(values bad-completion topo <help-topo)"
printf -- '--json VALUE\n' >bad-help
check_eq "... or expects where there is none" "--json takes a value, and completion offers options" \
	"$(values "$bash_file" topo <bad-help)"
grep -v -e 'matrix$' "$TOP/docs/man/peerlane-topo.1" >bad.1
check_eq "an option that the manual page lacks is seen" "--matrix" \
	"$( (paged topo bad.1; paged topo "$TOP/docs/man/peerlane-topo.1") | sort | uniq -u)"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: bash completion of the tool offers the options that the tool takes, and their values
# tier: check
# tags: static
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
tool=$BUILD/userlib/peerlane
completion=$BUILD/userlib/peerlane.bash-completion
need_file "$tool" "$completion"
need_tool bash

# offered WORD…: what completion offers for the last word
offered() {
	PATH=$BUILD/userlib:$PATH bash -c '
		compopt() { :; }
		. "$1" && shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_peerlane
		printf "%s\n" "${COMPREPLY[@]}"' bash "$completion" peerlane "$@"
}

helped() { # SUBCOMMAND: what --help lists
	"$tool" "$1" --help | sed -n 's/^  \(-[A-Za-z], \)\{0,1\}\(--.*\)/\2/p' | grep -oE -e '^--[a-z-]+|, --[a-z-]+' | tr -d ', '
}

# wrong COMMAND… OPTION: how the tool takes it otherwise than completion says, which knows values from flags
wrong() {
	if offered "$@" -- | grep -q -e '^--'; then
		set -- "unrecognized option '--no-such-option'" "$@" --no-such-option
	else
		set -- "requires an argument" "$@"
	fi
	wrong_want=$1
	shift
	timeout 5 "$tool" "$@" >said 2>&1
	grep -qF -e "$wrong_want" said || echo "peerlane $*: $(head -n 1 said)"
}

subcommands=$("$tool" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
check_eq "completion offers the commands" "$(printf '%s\n' "$subcommands" help --describe --help --version | sort)" "$(offered '' | sort)"
check_eq "and the words of io" "--help copy crc load read write" "$(offered io '' | sort | xargs)"
for sub in $subcommands; do
	parts=$sub
	[ "$sub" != io ] || parts='io read,io write,io copy,io crc,io load'
	for part in $(echo "$parts" | tr ', ' '\n/'); do
		# shellcheck disable=SC2046 # words
		set -- $(echo "$part" | tr / ' ')
		offered "$@" -- | grep -vx -e --help -e '' >"offered-$*"
		while read -r option; do
			wrong "$@" "$option"
		done <"offered-$*"
	done >"wrong-$sub"
	check_eq "peerlane $sub takes the options that completion offers, and values where it says" "" "$(cat "wrong-$sub")"
	check_eq "which are all that --help lists" "$(helped "$sub" | sort -u)" "$(cat offered-"$sub"* | sort -u)"
done
check "there are many options" test "$(cat offered-* | sort -u | wc -l)" -ge 45
touch a-file
mkdir a-folder
check_eq "a file" "a-file a-folder" "$(offered io read --file a- | sort | xargs)"
check_eq "a folder" a-folder "$(offered stats --root a-)"
check_eq "commands again" "$(printf '%s\n' "$subcommands" | sort)" "$(offered help '' | sort)"
check_eq "doctor knows no nearest GPU" 0 "$(offered doctor --gpu '')"
check_eq "words" "read send write" "$(offered perf --op '' | sort | xargs)"
check_eq "the same after a letter" "randread randwrite" "$(offered io -I rand | sort | xargs)"
check_eq "nothing where a number belongs" "" "$(offered io read --size '')"
check_eq "findings" acs-redirect "$(offered doctor --explain acs-redir)"
check_eq "a path for doctor" a-file "$(offered doctor --json a-fi)"

# these can fail
sed '/"stats"/s/--fabric/--textile/; s/\("topo --near"\) echo.*/\1) ;;/; /"topo --from"/d' "$completion" >bad-completion
completion=bad-completion
check_eq "an option that the tool has not, and a value that completion does not expect, are seen" \
	"peerlane stats --textile --no-such-option: stats: unrecognized option '--textile'
peerlane topo --from --no-such-option: peerlane: --no-such-option: No such file or directory" \
	"$(wrong stats --textile; wrong topo --from)"
finish

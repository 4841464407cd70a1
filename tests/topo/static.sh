#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the tool in one file needs nothing of the host and says the same
# tags: tools
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_file "$BUILD/userlib/peerlane" "$BUILD/userlib/peerlane.static"

one=$BUILD/userlib/peerlane.static
check "its program headers can be read" readelf -lW "$one"
readelf -lW "$one" >headers
check_false "it asks for no loader and no library" grep -E 'INTERP|DYNAMIC' headers
for record in "$TOP"/tests/topo/records/*.rec; do
	for command in topo doctor; do
		"$BUILD/userlib/peerlane" "$command" --json --from "$record" \
			>other.json 2>other.err
		other=$?
		mkdir -p bare
		cp "$one" bare/peerlane
		cp "$record" bare/machine.rec
		# nothing else is in sight, not even a C library
		env -i unshare --map-root-user --root="$PWD/bare" \
			/peerlane "$command" --json --from /machine.rec \
			>one.json 2>one.err
		check_eq "$command of ${record##*/}: the same status" "$other" $?
		check "$command of ${record##*/}: the same answer" \
			cmp one.json other.json
	done
done
# It has no libraries, so of these it has the help alone, and says why there is no more
for command in io copy perf run; do
	"$BUILD/userlib/peerlane" "$command" --help >other.help
	env -i "$one" "$command" --help >one.help
	check_eq "help of $command: the status" 0 $?
	check "help of $command: the same text" cmp other.help one.help
	env -i "$one" help "$command" >one.help
	check_eq "help $command: the status" 0 $?
	check "help $command: the same text" cmp other.help one.help
	case $command in run) want=126 ;; *) want=3 ;; esac
	env -i "$one" "$command" file >none.out 2>none.err
	check_eq "$command cannot be done" "$want" $?
	check "and the reason is said" grep -q "^peerlane: $command: .*cannot load libraries.*install the other one" none.err
	check_eq "and nothing else" "" "$(cat none.out)"
done
check "the list of commands is the same" sh -c '"$1" --help >a && "$2" --help >b && cmp a b' sh "$one" "$BUILD/userlib/peerlane"
finish

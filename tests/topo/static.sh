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
"$one" io 2>io.err
check_eq "io is refused" 64 $?
check "and the reason is said" grep -q "cannot load a GPU's driver library" io.err
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: JSON is made by jq or json-c, never by printf or echo
# tags: static
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"

# Who makes JSON by hand has a key in a string with escaped quotes, \"key\": or {\", or a key and
# then the value of a format or a variable, "key": "%s or "key":'"$value, also
# behind the brackets of an array or an object.  JSON that is written
# out, '{"execute":"quit"}', is none of these.
by_hand='\\"[][A-Za-z0-9_%$(){}. -]+\\" *:|\{ *\\"|"[A-Za-z0-9_%-]+": *[["{]*['"'"'%$]'

# made <FILES: lines with such JSON
made() {
	xargs -r grep -nIE -e "$by_hand" /dev/null
}

# Files that may have it: PATH REASON
cat >may <<'END'
kernel/test/ tests: they look for a key in what a program prints
userlib/cufile/test/ tests: what is given to the library
tests/qtest/ tests: what is given to QEMU, without a guest, by a shell that reads its answers as well
tests/harness/ tests: what is given to the harness
tests/cufile/stats.sh tests: a file cufile.json
userlib/cufile/page_json.c the library needs nothing but the C library
userlib/cufile/topology.c the library needs nothing but the C library
userlib/tools/stats/stats.c the manual page shows what --json prints
scenarios/lib/machine/qmp-call.sh gives a request of others a number
tests/static/json.sh the examples below
END

# but FILE: lines of standard input that are not of a file of that list
but() {
	awk '
	NR == FNR { may[NR] = $1; n = NR; next }
	{
		for (i = 1; i <= n; i++)
			if (index($0, may[i]) == 1)
				next
		print
	}' "$1" -
}

tree_files | grep -E '[.](c|cc|h|sh|scn|awk)$|(^|/)[^./]+$' | grep -v '^LICENSES/' >files
check "there are files to look at" test "$(wc -l <files)" -ge 400
(cd "$TOP" && made <"$OUT/files") >found
check_eq "no JSON is made by hand" "" "$(but may <found)"
while read -r path reason; do
	check "$path ($reason) still has some" grep -q "^$path" found
done <may

# the check can fail
# bad DESC TEXT: a file with that line is found
bad() {
	printf '%s\n' "$2" >bad.c
	check_eq "found: $1" "$OUT/bad.c:1:$2" "$(echo "$OUT/bad.c" | made)"
}
bad "printf in C" 'printf("@fact %s {\"cells\":%u}\n", name, cells);'
bad "a key that is a variable" 'fprintf(f, ",\"%s\": %d", name, n);'
bad "the beginning of an object" 'fputs("{\"devices\"", f);'
bad "printf of a shell" 'printf '"'"'{"way":"%s","lost":%d}\n'"'"' "$way" "$lost"'
bad "echo with variables" 'echo "{\"bytes\":$bytes}"'
bad "a variable between single quotes" 'echo '"'"'{"bytes":'"'"'"$bytes"'"'"'}'"'"
bad "a here-document" '{"bytes": $bytes}'
bad "an array" 'printf '"'"'{"devices":["%s"]}'"'"' "$device"'
bad "a key and an array" 'printf '"'"'{"%s":["%s"]}'"'"' "$list" "$item"'
bad "an object" 'printf '"'"'{"denylist": {"%s": 1}}'"'"' "$item"'
bad "a variable in an array" '{"denylist":{"mounts":["$mount"]}}'
bad "awk" 'printf "%s\"%s\":{", comma, name'
printf '%s\n' 'qmp '"'"'{"execute":"quit"}'"'" 'json_set(o, "bytes", bytes);' "jq -n --arg way 1 '{\$way, \"a-b\": true}'" >good.sh
check_eq "what is written out, json-c and jq are not" "" "$(echo "$OUT/good.sh" | made)"
finish

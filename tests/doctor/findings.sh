#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor: each finding appears in a record that has its cause, and not without
# tags: doctor
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

record "$base" >healthy.rec
doctor 0 --from healthy.rec --json
json "the healthy record has no findings" '.verdict == "healthy" and .findings == []'
json "… and nothing is missing" '.missing == []'

"$tool" doctor --list --json >all.json
jq -r '.[].id' all.json | sort >ids
check "each id is there once" test "$(sort -u ids | wc -l)" -eq "$(wc -l <ids)"
check "each finding says what, why, cure and cost" jq -e 'length > 40 and
	all(.what and .why and .cure and .cost and
	    (.severity | IN("info", "warning", "error")))' all.json

# one folder for each entry: question, says, patch
awk '
/^#/ || !NF { next }
/^= / {
	close(dir "/question")
	close(dir "/says")
	close(dir "/patch")
	n++
	dir = sprintf("f%03d", n)
	system("mkdir -p " dir)
	print substr($0, 3) >(dir "/question")
	printf "" >(dir "/patch")
	want = 1
	next
}
want { print >(dir "/says"); want = 0; next }
{ print >(dir "/patch") }' "$TOP/tests/doctor/findings.list" ||
	fail "the list of findings can be taken apart"

for dir in f*; do
	read -r id severity path gpu <"$dir/question"
	echo "$id" >>tested
	record "$base" "$dir/patch" >"$dir/rec"
	# shellcheck disable=SC2086 # no PATH, no argument
	"$tool" doctor --from "$dir/rec" --json $path $gpu >"$dir/out" 2>"$dir/err"
	status=$?
	# shellcheck disable=SC2016
	check "$id: $severity${path:+ of $path}" jq -e --arg id "$id" \
		--arg severity "$severity" --arg says "$(cat "$dir/says")" '
		[.findings[] | select(.id == $id)] |
		any(.severity == $severity and (.what | test($says)))' "$dir/out" ||
		jq -c '.findings[] | {id, severity, what}' "$dir/out" | sed 's/^/# /'
	case $severity in
	error) want=2 ;;
	warning) want='[12]' ;;
	*) want='[012]' ;;
	esac
	# shellcheck disable=SC2254
	case $status in
	$want) ;;
	*) fail "$id: exit status" "want $want, got $status: $(cat "$dir/err")" ;;
	esac
	# shellcheck disable=SC2016
	jq -e --slurpfile all all.json '
		["info", "warning", "error"] as $order |
		($all[0] | map({key: .id, value: .severity}) | from_entries) as $worst |
		all(.findings[]; (.severity as $s | $order | index($s)) <=
			($worst[.id] as $s | $order | index($s)))' "$dir/out" \
		>"$dir/.worst" ||
		fail "$id: no finding is worse than --list says"
	if [ -n "$path" ]; then
		# shellcheck disable=SC2016
		check "$id: an error means staged, and only that" jq -e '
			(.answer.path | IN("bounce", "fails")) ==
			any(.findings[]; .severity == "error")' "$dir/out"
	fi
done
in_shape f*/out
# these need statx() of a real file
printf '%s\n' fs-alignment >>tested
check_eq "every finding has been seen" "" "$(sort -u tested | comm -13 - ids)"
check_eq "every entry is of a finding" "" "$(sort -u tested | comm -23 - ids)"
finish

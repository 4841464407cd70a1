# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What a case needs: results, needs, clean-up.  A case sources this file:
#
#	. "$TOP/scenarios/lib/case.sh"
#	need_tool jq
#	check "two is two" test 2 -eq 2
#	finish
#
# Verdict: exit 0 pass, 77 skip (with a reason), anything else fail.  A case
# that ran no check fails.

: "${TOP:?is set by tests/run}" "${OUT:?is set by tests/run}"
BUILD=${BUILD:-$TOP/build}

# shellcheck source=scenarios/lib/machine/watch.sh
. "$TOP/scenarios/lib/machine/watch.sh"

case_checks=0
case_failed=0
case_at_exit=
case_reason= # the first check that failed, or why the case was skipped

# at_exit COMMAND: run COMMAND when the case ends, the last one given first
at_exit() {
	case_at_exit="$1
$case_at_exit"
}

case_end() {
	case_status=$?
	trap - EXIT HUP INT TERM
	eval "$case_at_exit"
	exit "$case_status"
}
trap case_end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# diag TEXT…: comment lines
diag() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

# pass DESC
pass() {
	case_checks=$((case_checks + 1))
	printf 'ok %d - %s\n' "$case_checks" "$1"
}

# fail DESC [DETAIL]
fail() {
	case_checks=$((case_checks + 1))
	case_failed=$((case_failed + 1))
	: "${case_reason:=$1}"
	printf 'not ok %d - %s\n' "$case_checks" "$1"
	[ -z "${2-}" ] || diag "$2"
}

# check DESC COMMAND…: pass when COMMAND succeeds; its output is shown if not
check() {
	case_desc=$1
	shift
	if "$@" >"$OUT/.check" 2>&1; then
		pass "$case_desc"
		return 0
	fi
	fail "$case_desc"
	diag "command: $*"
	sed -n '1,40s/^/#   /p' "$OUT/.check"
	return 1
}

# check_fails DESC REGEX COMMAND…: pass when the program refuses, with a status from 1
# to 125, and what it prints matches the extended regular expression
check_fails() {
	case_desc=$1
	case_regex=$2
	shift 2
	case_got=0
	"$@" >"$OUT/.check" 2>&1 || case_got=$?
	if [ "$case_got" -ge 1 ] && [ "$case_got" -le 125 ] &&
		grep -qE -e "$case_regex" "$OUT/.check"; then
		pass "$case_desc"
		return 0
	fi
	fail "$case_desc" "command: $*
want: a status from 1 to 125, and output that matches: $case_regex
got:  status $case_got, and this output:"
	sed -n '1,40s/^/#   /p' "$OUT/.check"
	return 1
}

# check_false DESC PREDICATE…: pass when the predicate (test, grep, cmp, jq -e, an own
# function) says no, which is status 1.  Any other status is an error in it.
check_false() {
	case_desc=$1
	shift
	case_got=0
	"$@" >"$OUT/.check" 2>&1 || case_got=$?
	if [ "$case_got" -eq 1 ]; then
		pass "$case_desc"
		return 0
	fi
	fail "$case_desc" "want status 1, got $case_got: $*"
	sed -n '1,40s/^/#   /p' "$OUT/.check"
	return 1
}

# check_eq DESC WANT GOT
check_eq() {
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "want: $2
got:  $3"
		return 1
	fi
}

# skip REASON: end the case as skipped
skip() {
	case_reason=$1
	printf '1..0 # SKIP %s\n' "$1"
	exit 77
}

# skip_part REASON: the case goes on without a part of its checks; the runner lists it
skip_part() {
	printf '# SKIP-PART %s\n' "$(printf '%s' "${1:-no reason given}" | tr '\n' ' ')"
}

# need_tool NAME…: skip without these programs; the build root has all of them, so
# there a missing one fails
need_tool() {
	for case_need in "$@"; do
		command -v "$case_need" >/dev/null 2>&1 && continue
		[ -n "${PEERLANE_IN_ROOT-}" ] || skip "no program $case_need"
		fail "the build root has the program $case_need" \
			"images/build/packages.list names what is in it"
		finish
	done
}

# need_file PATH…: a missing build product fails the case, since make builds
# all of them; any other missing file skips it
need_file() {
	for case_need in "$@"; do
		[ -e "$case_need" ] && continue
		case $case_need in
		"$BUILD"/*)
			fail "missing build product ${case_need#"$TOP"/}" \
				"run: make"
			finish
			;;
		*)
			skip "no file $case_need"
			;;
		esac
	done
}

# facts_from FILE: what a guest reported, as one object.  Its lines are
#	@fact KEY JSON		a value
#	@text KEY TEXT		a text; a line each
#	@list KEY NUMBER…	a list
# KEY.KEY is a key of an object, KEY.N an element of a list.
facts_from() {
	sed -n 's/\r$//; s/^@\(fact\|text\|list\) /\1 /p' "$1" | jq -Rnc '
		reduce (inputs | . as $all | capture("^(?<kind>[a-z]+) (?<key>[^ ]+) ?(?<said>.*)$") // error("no key: @\($all)")) as $line ({};
			($line.key / "." | map(if test("^[0-9]+$") then tonumber else . end)) as $at
			| def value: try fromjson catch error("@\($line.kind) \($line.key): \(.)");
			setpath($at;
				if $line.kind == "text" then [getpath($at) // empty, $line.said] | join("\n")
				elif $line.kind == "list" then $line.said / " " | map(select(. != "") | value)
				else $line.said | value end))'
}

# ktap_from FILE [PREFIX]: take over the results in FILE, the output of a guest or of
# programs.  Each program numbers its results from 1, and prints its plan, 1..N, last: after
# the results 1 to N.  A script that runs programs has a plan of its own, with theirs between
# its results; a line "# program NAME" before one of them makes it owe a plan even if it prints
# nothing.  A plan that is missing fails, and so does a file with none.
ktap_from() {
	: >"$OUT/.ktap"
	tr -d '\r' <"$1" >>"$OUT/.ktap" || :
	case_prefix=${2:+$2: }
	case_plans=0
	case_open= # how many results each program has that owes a plan, the last one first
	while IFS= read -r case_line; do
		case_last=${case_open%% *}
		case $case_line in
		'ok '* | 'not ok '*)
			case_desc=${case_line#not }
			case_desc=${case_desc#ok }
			case_number=${case_desc%%[!0-9]*}
			case_desc=${case_desc#"$case_number"}
			case_desc=${case_desc# }
			case_desc=$case_prefix${case_desc#- }
			if [ -n "$case_last" ] && [ "$case_number" = $((case_last + 1)) ]; then
				case_open="$case_number ${case_open#* }"
			elif [ "$case_number" = 1 ]; then
				case_open="1 $case_open"
			else
				fail "${case_prefix}the results are numbered without a gap" \
					"$case_line, and before it is the result ${case_last:-0}"
				case_open="${case_number:-0} ${case_open#* }"
			fi
			;;
		esac
		case $case_line in
		'ok '*'# SKIP'*) skip_part "$case_desc" ;;
		'ok '*) pass "$case_desc" ;;
		'not ok '*) fail "$case_desc" ;;
		'1..0 # SKIP '*)
			skip_part "$case_prefix${case_line#*SKIP }"
			case_plans=$((case_plans + 1))
			[ "$case_last" != 0 ] || case_open=${case_open#* }
			;;
		1..[0-9]*)
			case_plans=$((case_plans + 1))
			case_number=${case_line#1..}
			if [ "${case_number%% *}" != "${case_last:-none}" ] || [ "$case_last" = 0 ]; then
				fail "${case_prefix}the plan follows as many results" \
					"$case_line, and before it are the results 1 to ${case_last:-0}"
			fi
			case_open=${case_open#* }
			;;
		'# program '*)
			printf '%s\n' "$case_line"
			case_open="0 $case_open"
			;;
		'# '*) printf '%s\n' "$case_line" ;;
		esac
	done <"$OUT/.ktap"
	if [ -n "$case_open" ] || [ "$case_plans" -eq 0 ]; then
		fail "${case_prefix}each program came to its plan" \
			"plans: $case_plans; programs without one have printed as many results: ${case_open:-none}"
	fi
}

# finish: the end of every case
finish() {
	printf '1..%d\n' "$case_checks"
	if [ "$case_checks" -eq 0 ]; then
		diag "this case ran no check"
		short_of "$OUT" 64 | sed "s/^/# /"
		exit 1
	fi
	[ "$case_failed" -eq 0 ] && exit 0
	short_of "$OUT" 64 | sed "s/^/# /"
	exit 1
}

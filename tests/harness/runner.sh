#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the runner tells good cases from bad ones, whatever they claim
# tags: quick harness
# timeout: 60

. "$TOP/scenarios/lib/case.sh"

need_tool jq

# --- what the helpers of a case take for granted, and what not ---------------------------

# said BODY: the status of a case with this body; what it prints is in said.log
said() {
	mkdir -p said
	printf '. "$TOP/scenarios/lib/case.sh"\n%s\nfinish\n' "$1" >said/case
	OUT=$PWD/said sh said/case >said.log 2>&1
	echo "$?"
}
says() { # REGEX
	grep -qE -e "$1" said.log
}

check_eq "check_fails: a failure with the reason passes" 0 \
	"$(said 'check_fails x "no such [a-z]+" sh -c "echo no such file >&2; exit 3"')"
check_eq "check_fails: the reason may be on standard output" 0 \
	"$(said 'check_fails x "^no such" sh -c "echo no such file; exit 125"')"
check_eq "check_fails: another reason fails" 1 \
	"$(said 'check_fails x "no such file" sh -c "echo out of memory; exit 3"')"
check "and the output is shown" says '^#   out of memory'
check_eq "check_fails: success fails, whatever it prints" 1 \
	"$(said 'check_fails x "no such file" echo no such file')"
check "and is named" says '^# got:  status 0'
for status in 126 127 139; do
	check_eq "check_fails: status $status fails" 1 \
		"$(said "check_fails x 'no such file' sh -c 'echo no such file; exit $status'")"
done
check_eq "check_fails: a program that is not there fails, whatever the shell says" 1 \
	"$(said 'check_fails x "not found" no-such-program')"
check_eq "check_fails: an invalid regular expression fails" 1 \
	"$(said 'check_fails x "(" sh -c "exit 1"')"

check_eq "check_false: status 1 passes" 0 "$(said 'check_false x grep y /dev/null')"
check_eq "check_false: status 0 fails" 1 "$(said 'check_false x true')"
check_eq "check_false: status 2, an error of grep, fails" 1 \
	"$(said 'check_false x grep y /no/such/file')"
check "and what grep prints is shown" says '^#   grep: /no/such/file'
check_eq "check_false: a predicate that is not there fails" 1 \
	"$(said 'check_false x no-such-predicate')"

check_eq "skip_part: the other checks decide" 0 "$(said 'skip_part "no nvcc"; pass x')"
check "and the part is named" says '^# SKIP-PART no nvcc$'
check_eq "skip_part alone is no check" 1 "$(said 'skip_part "no nvcc"')"
check_eq "need_tool: a tool that the build root lacks fails" 1 \
	"$(said 'need_tool no-such-tool; pass x')"
check "and is named" says '^not ok 1 - .*no-such-tool'
check_eq "need_tool: outside of the build root it skips" 77 \
	"$(said 'unset PEERLANE_IN_ROOT; need_tool no-such-tool; pass x')"

# --- the runner ----------------------------------------------------------------------------

mkdir -p cases/fix
new() { # NAME, body on standard input
	{
		echo "#!/bin/sh"
		echo "# SPDX-License-Identifier: MIT"
		echo "# desc: fixture $1"
		echo "# tags: fix ${2-}"
		echo "# timeout: 2"
		cat
	} >"cases/fix/$1.sh"
	chmod +x "cases/fix/$1.sh"
}
# shellcheck disable=SC2016 # expanded by the fixture
lib='. "$TOP/scenarios/lib/case.sh"'

new good quick <<END
$lib
check "true" true
finish
END
new failing <<END
$lib
check "true" true
check "one is two" test 1 -eq 2
finish
END
new skipping <<END
$lib
skip "no such device"
END
new skip-silently <<END
exit 77
END
new no-check <<END
$lib
finish
END
new no-check-no-lib <<END
exit 0
END
new lying <<END
echo "ok 1 - fine"
echo "not ok 2 - not fine"
exit 0
END
new hanging <<END
$lib
pass "before it hangs"
sleep 1000 &
echo \$! >child.pid
setsid sleep 1001 &
wait
END
new stubborn <<END
trap '' TERM
echo "ok 1 - ignores signals"
while :; do sleep 1000; done
END
new crashing <<END
echo "ok 1 - before"
kill -SEGV \$\$
END
new complaining <<END
$lib
pass "all is well"
mkdir guest
echo "[    1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2" >guest/console.log
finish
END
new allowed <<END
$lib
pass "all is well"
mkdir guest
echo "[    1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2" >guest/console.log
printf 'kernel/x.c:1\tis the point of this case\n' >console.allow
finish
END
new allowed-no-reason <<END
$lib
pass "all is well"
mkdir guest
echo "[    1.0] Booted" >guest/console.log
echo 'kernel/x.c:1' >console.allow
finish
END
new missing-product <<END
$lib
need_file "\$BUILD/no/such/product"
pass "unreachable"
finish
END
new measuring quick <<END
$lib
pass "measured"
echo '{"scenario":"x","transfers":[{"path":"p2p","bytes":7}]}' >result.json
finish
END
new quoting <<END
$lib
fail 'a "quoted" \\ name	with a tab'
finish
END
new vanishing <<END
echo "ok 1 - before its folder is gone"
rm -rf "\$OUT"
END
new not-executable <<END
echo "ok 1 - never"
END
chmod -x cases/fix/not-executable.sh

"$TOP/tests/run" --cases cases --out out --json out.json -j 4 >ktap 2>err
check_eq "a run with failures exits 1" 1 "$?"
check_eq "and says nothing on standard error, but for a folder that is gone" "" "$(grep -v vanishing err)"
check "its JSON is one object" jq -es 'length == 1' out.json

verdict() { # NAME VERDICT REASON-REGEX
	got=$(jq -r --arg n "fix/$1" \
		'.cases[] | select(.name == $n) | .verdict + ": " + .reason' out.json)
	case $got in
	"$2: "*)
		if printf '%s' "$got" | grep -qE -e "$3"; then
			pass "$1: $2, reason given"
		else
			fail "$1: $2, reason given" "got: $got"
		fi
		;;
	*) fail "$1: $2, reason given" "got: $got" ;;
	esac
}

verdict good pass ''
verdict measuring pass ''
check "what a scenario has measured is in the JSON" jq -e \
	'.cases[] | select(.name == "fix/measuring") | .scenario.transfers == [{path: "p2p", bytes: 7}]' out.json
verdict failing fail 'one is two'
verdict skipping skip 'no such device'
verdict skip-silently fail 'without a reason'
verdict no-check fail 'no check|exit status 1'
verdict no-check-no-lib fail 'ran no check'
verdict lying fail 'exit status is 0'
verdict hanging fail 'no end within 2 seconds'
verdict stubborn fail 'no end within 2 seconds'
verdict crashing fail 'signal 11'
verdict complaining fail 'WARNING: CPU'
verdict allowed pass ''
verdict allowed-no-reason fail 'without a reason'
verdict missing-product fail 'no/such/product'
verdict quoting fail 'a "quoted"'
verdict vanishing fail 'no result'
verdict not-executable fail 'executable'

check_eq "the last line counts" "3 passed, 14 failed, 1 skipped" \
	"$(tail -n 1 ktap)"
check "the counts in JSON agree" jq -e \
	'.passed == 3 and .failed == 14 and .skipped == 1' out.json
check_eq "KTAP starts with its version" "KTAP version 1" "$(head -n 1 ktap)"
check_eq "then the plan" "1..18" "$(sed -n 2p ktap)"
check_eq "one result for each case" 18 "$(grep -cE '^(not )?ok [0-9]+ ' ktap)"
check "a failure shows the last lines" grep -q '#   not ok 2 - one is two' ktap
check "and how to repeat it" grep -q '^# again: cd .*fix/failing' ktap
check "a skip shows its reason" grep -q '# SKIP no such device' ktap
check_not "nothing of a case that hung is left" lives \
	"$(cat out/fix/hanging/child.pid)"

"$TOP/tests/run" --cases cases --out out2 -t quick >ktap
check_eq "a run without failures exits 0" 0 "$?"
check_eq "-t takes a tag" "2 passed, 0 failed, 0 skipped" "$(tail -n 1 ktap)"
"$TOP/tests/run" --cases cases --out out2 -x fix >ktap
check_eq "-x drops a tag" "0 passed, 0 failed, 0 skipped" "$(tail -n 1 ktap)"
"$TOP/tests/run" --cases cases --out out2 -k '^fix/(good|allowed)$' >ktap
check_eq "-k takes a pattern" "2 passed, 0 failed, 0 skipped" \
	"$(tail -n 1 ktap)"
"$TOP/tests/run" --cases cases --out out2 fix/good >ktap
check_eq "a name takes one case" "1 passed, 0 failed, 0 skipped" \
	"$(tail -n 1 ktap)"
"$TOP/tests/run" --cases cases -l >ktap
check_eq "-l lists" 18 "$(grep -c '^fix/' ktap)"
check_eq "a CDPATH does not lead it astray" 18 \
	"$(cd "$TOP" && CDPATH=$TOP tests/run --cases "$OUT/cases" -l | grep -c '^fix/')"
check_not "a name that no case has is an error" \
	"$TOP/tests/run" --cases cases --out out2 fix/nothing
check_not "an unknown option is an error" "$TOP/tests/run" --frobnicate

# --- the artefacts of runs that are over, and of one that is not ------------------

mkdir -p build/tests/20200101-000000-1/.run build/tests/20200102-000000-1/.run
echo $$ >build/tests/20200101-000000-1/.run/pid
echo 1999999999 >build/tests/20200102-000000-1/.run/pid
for n in 1 2 3 4; do
	mkdir "build/tests/20300101-000000-$n"
done
BUILD=$PWD/build TZ=Asia/Kathmandu "$TOP/tests/run" --cases cases fix/good >ktap
check "a run that is not over keeps what it has" test -d build/tests/20200101-000000-1
check_not "one that was killed does not" test -e build/tests/20200102-000000-1
check_eq "and the last five stay" 5 "$(find build/tests -maxdepth 1 -name '20[23]*' ! -name '2020*' | wc -l)"

# their consoles are fixtures, not this case's
find out out2 -name console.log -exec rm -f {} +
finish

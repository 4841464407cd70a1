#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the runner tells good cases from bad ones, whatever they claim
# tags: harness
# tier: check
# timeout: 300

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

check "a disk that is short of room is named" sh -c '. "$1" && short_of . 2000000000 | grep -qE "^the disk of . has [0-9]+ MiB left, and this needs 2000000000$"' \
	sh "$TOP/scenarios/lib/machine/watch.sh"
check_eq "one that has enough is not" "1 " "$(. "$TOP/scenarios/lib/machine/watch.sh"; said=$(short_of . 0); echo "$? $said")"
sed 's/^short_of() {/&\n\techo "no room"; return 0/' "$TOP/scenarios/lib/machine/watch.sh" >short.sh
check_eq "a case that fails, or that ran no check, says so" "# no room # no room" "$(
	for body in 'fail x' ':'; do
		OUT=$PWD sh -c '. "$TOP/scenarios/lib/case.sh"; . ./short.sh; '"$body"'; finish' | grep '^# no room'
	done | xargs)"

check_eq "skip_part: the other checks decide" 0 "$(said 'skip_part "no nvcc"; pass x')"
check "and the part is named" says '^# SKIP-PART no nvcc$'
printf 'ok 1 - x\n1..1\n1..0 # SKIP no such device\n' >programs.log
check_eq "ktap_from: a program that skips does not fail the case" 0 "$(said "ktap_from '$PWD/programs.log' two")"
check "and is named" says '^# SKIP-PART two: no such device$'
# plans DESC WANT LINE…: the status of a case whose program prints these lines
plans() {
	desc=$1
	want=$2
	shift 2
	printf '%s\n' "$@" >programs.log
	check_eq "ktap_from: $desc" "$want" "$(said "pass before; ktap_from '$PWD/programs.log' two")"
}
plans "a plan of all results passes" 0 'ok 1 - x' 'ok 2 - y' 1..2
plans "two programs have a plan each" 0 'ok 1 - x' 1..1 'ok 1 - y' 'ok 2 - z' 1..2
plans "a plan of more results fails" 1 'ok 1 - x' 1..2
check "and is shown" says '^# 1\.\.2, and before it are the results 1 to 1$'
plans "a plan of fewer fails" 1 'ok 1 - x' 'ok 2 - y' 1..1
plans "one of a number that begins alike fails" 1 'ok 1 - x' 1..12
plans "a gap in the results fails" 1 'ok 1 - x' 'ok 3 - y' 1..3
plans "a result twice fails" 1 'ok 1 - x' 'ok 2 - y' 'ok 2 - y' 1..2
plans "the results of a program before do not count" 1 'ok 1 - x' 1..1 1..1
plans "a program without a plan fails" 1 'ok 1 - x' 'ok 2 - y'
check "and is shown" says '^not ok 4 - two: each program came to its plan'
plans "so does one before another that has its plan" 1 'ok 1 - x' 'ok 2 - y' 'ok 1 - z' 1..2
plans "one that prints nothing fails" 1 ''
check "and is shown" says '^# plans: 0; programs without one have printed as many results: none'
printf '%s\n' 'ok 1 - x' 1..1 >programs.log
check_eq "ktap_from: a file that is not there fails, also after one that is" 1 \
	"$(said "pass x; ktap_from '$PWD/programs.log'; ktap_from no-such-file")"
check "and says nothing of the one before" says '^not ok 3 - each program came to its plan'
plans "a script has a plan around those of its programs" 0 'ok 1 - s' 'ok 2 - s' 'ok 1 - x' 1..1 'ok 3 - s' 1..3
plans "whether it has a result before or not" 0 'ok 1 - x' 1..1 'ok 1 - s' 1..1
plans "the plan of the script is missed, too" 1 'ok 1 - s' 'ok 1 - x' 1..1
plans "and that of the program" 1 'ok 1 - s' 'ok 1 - x' 'ok 2 - s' 1..2
plans "a program that a script names owes a plan, even when it prints nothing" 1 'ok 1 - s' '# program x' 'ok 2 - s' 1..2
plans "it has one when it skips" 0 'ok 1 - s' '# program x' '1..0 # SKIP no such device' 'ok 2 - s' 1..2
plans "a result without a number fails" 1 'ok - x' 1..1
plans "a plan of none without a reason fails" 1 'ok 1 - x' 1..0
check_eq "skip_part alone is no check" 1 "$(said 'skip_part "no nvcc"')"
check_eq "need_tool: a tool that the build root lacks fails" 1 \
	"$(said 'need_tool no-such-tool; pass x')"
check "and is named" says '^not ok 1 - .*no-such-tool'
check_eq "need_tool: outside of the build root it skips" 77 \
	"$(said 'unset PEERLANE_IN_ROOT; need_tool no-such-tool; pass x')"

# --- the runner ----------------------------------------------------------------------------

mkdir -p cases/fix
new() { # NAME [TAGS [TIER]], body on standard input
	{
		echo "#!/bin/sh"
		echo "# SPDX-License-Identifier: MIT"
		echo "# desc: fixture $1"
		echo "# tags: fix ${2-}"
		echo "# tier: ${3-check}"
		echo "# timeout: 2"
		cat
	} >"cases/fix/$1.sh"
	chmod +x "cases/fix/$1.sh"
}
# shellcheck disable=SC2016 # expanded by the fixture
lib='. "$TOP/scenarios/lib/case.sh"'

new good chosen <<END
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
new skip-unlisted <<END
$lib
skip "the moon is not full"
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
new no-plan <<END
echo "ok 1 - fine"
END
new no-such-check <<END
$lib
pass "fine"
check_unlike "a check that nobody has written" test 1 -eq 2
finish
END
new two-plans <<END
echo "1..1"
echo "ok 1 - fine"
echo "1..1"
END
new short <<END
echo "ok 1 - fine"
echo "1..2"
END
new long <<END
echo "ok 1 - fine"
echo "ok 2 - fine"
echo "1..1"
END
new no-number <<END
echo "ok - fine"
$lib
pass "fine"
finish
END
new in-part chosen <<END
$lib
skip_part "no compiler"
pass "what needs none"
finish
END
new part-unlisted <<END
$lib
skip_part "no compiler"
skip_part "the moon is not full"
pass "what needs none"
finish
END
new part-unsaid <<END
$lib
skip_part ""
pass "what needs none"
finish
END
new part-and-case <<END
$lib
skip_part "the moon is not full"
skip "no such device"
END
new result-unlisted <<END
echo "ok 1 - fine"
echo "ok 2 - a core # SKIP the moon is not full"
echo "1..2"
END
new result-skipped chosen <<END
echo "ok 1 - fine"
echo "ok 2 - a core # SKIP no such core"
echo "1..2"
END
new results-skipped <<END
echo "ok 1 - a core # SKIP no such core"
echo "1..1"
END
new tier <<END
$lib
pass "runs in tier \$TIER"
finish
END
new of-all chosen all <<END
$lib
check_eq "the tier is known" "\${WANT_TIER-all}" "\$TIER"
finish
END
new of-nightly chosen nightly <<END
$lib
check_eq "the tier is known" nightly "\$TIER"
check_eq "guests start without a snapshot" 0 "\$PEERLANE_SNAPSHOT"
finish
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
new measuring chosen <<END
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
new unrunning <<'END'
# timeout is its parent, and the runner's part for this case the parent of that
kill -KILL "$(sed 's/.*) //' "/proc/$PPID/stat" | cut -d ' ' -f 2)"
sleep 1000
END
new not-executable <<END
echo "ok 1 - never"
END
chmod -x cases/fix/not-executable.sh
printf '%s\t%s\tis what this case is for\n' 'fix/skipp*' 'such dev[a-z]*' fix/part-and-case '^no such device' 'fix/*part*' '^no compiler$' \
	'fix/result*' '^a core # SKIP no such [a-z]+$' >cases/skips

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
verdict skip-unlisted fail 'tests/skips does not allow .*the moon is not full'
verdict skip-silently fail 'without a reason'
verdict no-check fail 'no check|exit status 1'
verdict no-check-no-lib fail 'ran no check'
verdict lying fail 'exit status is 0'
verdict no-plan fail '^fail: it has 0 plans'
verdict no-such-check fail 'a command is not there: .*check_unlike: not found'
verdict two-plans fail '^fail: it has 2 plans'
verdict short fail 'the plan is 1..2, and there are 1 results'
verdict long fail 'the plan is 1..1, and there are 2 results'
verdict no-number fail 'the plan is 1..1, and there are 2 results'
verdict in-part pass ''
verdict part-unlisted fail 'tests/skips does not allow it to skip this part: the moon is not full$'
verdict part-unsaid fail 'tests/skips does not allow it to skip this part: no reason given$'
verdict part-and-case fail 'tests/skips does not allow it to skip this part: the moon is not full$'
verdict result-unlisted fail 'tests/skips does not allow it to skip this part: a core # SKIP the moon is not full$'
verdict result-skipped pass ''
verdict results-skipped fail 'ran no check'
verdict tier pass ''
verdict hanging fail 'no end within 2 seconds'
verdict stubborn fail 'no end within 2 seconds'
verdict crashing fail 'signal 11'
verdict complaining fail 'WARNING: CPU'
verdict allowed pass ''
verdict allowed-no-reason fail 'without a reason'
verdict missing-product fail 'no/such/product'
verdict quoting fail 'a "quoted"'
verdict vanishing fail 'no result'
verdict unrunning fail 'no result'
verdict not-executable fail 'executable'

check_eq "the last line counts" "6 passed, 27 failed, 1 skipped" \
	"$(tail -n 1 ktap)"
check "the counts in JSON agree" jq -e \
	'.passed == 6 and .failed == 27 and .skipped == 1' out.json
check_eq "KTAP starts with its version" "KTAP version 1" "$(head -n 1 ktap)"
check_eq "then the plan" "1..34" "$(sed -n 2p ktap)"
check_eq "one result for each case" 34 "$(grep -cE '^(not )?ok [0-9]+ ' ktap)"
check_eq "above it is what was skipped in part, and what the tier left out" \
	"# skipped in part: 8
#   fix/in-part: no compiler
#   fix/part-and-case: the moon is not full
#   fix/part-unlisted: no compiler
#   fix/part-unlisted: the moon is not full
#   fix/part-unsaid: no reason given
#   fix/result-skipped: a core # SKIP no such core
#   fix/result-unlisted: a core # SKIP the moon is not full
#   fix/results-skipped: a core # SKIP no such core
# left out: 1 cases of tier all (make check-all runs them), 1 of tier nightly (make check-nightly)" \
	"$(sed -n '/^# skipped in part/,/^# left out/p' ktap)"
check_eq "and what failed, with all its checks that did" \
	"# failed: 27 27
#   fix/failing: one is two
#     not ok 2 - one is two" \
	"$(sed -n '/^# failed: /p' ktap) $(sed '1,/^# failed: /d' ktap | grep -c '^#   [^ ]')
$(sed '1,/^# failed: /d' ktap | grep -A 1 '^#   fix/failing: ')"
check "and in the JSON is what was skipped in part" jq -e '.skipped_parts == 8 and
	(.cases[] | select(.name == "fix/in-part").skipped_parts) == ["no compiler"]' out.json
check "the tier, its seconds, and that it has no budget are in the JSON" jq -e \
	'.tier == "check" and .slot_seconds >= 4 and .slot_seconds > (.cases[0].seconds) and .budget == null' out.json
check "a failure shows the last lines" grep -q '#   not ok 2 - one is two' ktap
check "and how to repeat it" grep -q '^# again: cd .*fix/failing' ktap
check "a skip shows its reason" grep -q '# SKIP no such device' ktap
check_false "nothing of a case that hung is left" lives \
	"$(cat out/fix/hanging/child.pid)"

"$TOP/tests/run" --cases cases --out out2 -t chosen >ktap
check_eq "a run without failures exits 0" 0 "$?"
"$TOP/tests/run" --nonsense 2>err
check_eq "a wrong option exits 64, as of all programs" "64 usage: tests/run: unknown option --nonsense" "$? $(sed -n '1s/ .*//p' err) $(tail -n 1 err)"
check_eq "-t takes a tag, of every tier" "6 passed, 0 failed, 0 skipped" "$(tail -n 1 ktap)"
check_fails "-x drops a tag, and nothing left is an error" "no case is left" "$TOP/tests/run" --cases cases --out out2 -x fix
check_fails "a tag that no case has, too" "no case is left" "$TOP/tests/run" --cases cases --out out2 -t nothing
check_fails "and a pattern that none matches" "no case is left" "$TOP/tests/run" --cases cases --out out2 -k nothing
"$TOP/tests/run" --cases cases --out out2 -k '^fix/(good|allowed)$' >ktap
check_eq "-k takes a pattern" "2 passed, 0 failed, 0 skipped" \
	"$(tail -n 1 ktap)"
"$TOP/tests/run" --cases cases --out out2 fix/good >ktap
check_eq "a name takes one case" "1 passed, 0 failed, 0 skipped" \
	"$(tail -n 1 ktap)"
"$TOP/tests/run" --cases cases -l >ktap
check_eq "-l lists, of every tier" 36 "$(grep -c '^fix/' ktap)"
check_eq "a CDPATH does not lead it astray" 36 \
	"$(cd "$TOP" && CDPATH=$TOP tests/run --cases "$OUT/cases" -l | grep -c '^fix/')"
check_fails "a name that no case has is an error" 'no case is called fix/nothing' \
	"$TOP/tests/run" --cases cases --out out2 fix/nothing
check_fails "beside one that a case has, too" 'no case is called fix/nothing' \
	"$TOP/tests/run" --cases cases --out out2 fix/good fix/nothing
check_fails "an unknown option is an error" 'unknown option --frobnicate' "$TOP/tests/run" --frobnicate

# --- tiers --------------------------------------------------------------------------------

tier() { # ARGUMENT…: the last line of a run of three cases
	"$TOP/tests/run" --cases cases --out out2 -k '^fix/(good|of-.*)$' "$@" >ktap
	tail -n 1 ktap
}
check_eq "without --tier what is picked runs, each case in its own tier" \
	"3 passed, 0 failed, 0 skipped" "$(tier)"
check_eq "--tier check" "1 passed, 0 failed, 0 skipped" "$(tier --tier check)"
check_eq "--tier all runs check's cases, too" "2 passed, 0 failed, 0 skipped" "$(tier --tier all)"
check "and says what it left out" grep -qx \
	'# left out: 1 of tier nightly (make check-nightly)' ktap
check_eq "--tier nightly runs all, all of them in that tier" "3 passed, 0 failed, 0 skipped" \
	"$(WANT_TIER=nightly tier --tier nightly)"
check_false "and leaves nothing out" grep -q 'left out' ktap
check "how to repeat a case names the tier" grep -q ' --tier nightly fix/of-all$' out2/fix/of-all/repro.sh
# of others there is nothing in this cache
mkdir -p others/fix
sed 's/^# tags: .*/# tags: chosen third-party/' cases/fix/good.sh >others/fix/of-others.sh
cp cases/fix/good.sh others/fix/good.sh
chmod +x others/fix/*.sh
night() { PEERLANE_CACHE=$OUT/no-cache "$TOP/tests/run" --cases others --out out3 "$@"; }
check_fails "--tier nightly does not skip what could be fetched: it says what is missing, and what to do" \
	'the cache lacks some, so that cases would skip: .*nvidia-open .*run on the host: make third-party' night --tier nightly
check_false "and runs nothing" test -e out3
check "where cases are picked, they may skip" night --tier nightly fix/of-others
check "... also by a pattern" night --tier nightly -k of-others
check "without such a case it runs" night --tier nightly -x third-party
check "and in a tier that may skip" night --tier check
sed -n 's/^\([^# ]*\) .*/\1/p' "$TOP/images/build/third-party.list" | while IFS= read -r name; do
	mkdir -p "no-cache/third-party/$name"
done
check "and where everything is there" night --tier nightly
check_fails "an unknown tier is an error" 'there is no tier 3' "$TOP/tests/run" --tier 3
mkdir untiered
for t in '# tier: 1' '' '# tier:'; do
	rm -rf untiered
	mkdir -p untiered/fix
	sed "s/^# tier: .*/$t/" cases/fix/good.sh >untiered/fix/untiered.sh
	check_fails "a case with \"$t\" for a tier is refused, and named" '^  fix/untiered: ' \
		"$TOP/tests/run" --cases untiered --out out2
done

sed '/^# desc/d' cases/fix/good.sh >untiered/fix/untiered.sh
check_fails "a case without a description is refused, and named" '^  fix/untiered$' \
	"$TOP/tests/run" --cases untiered --out out2
cp untiered/fix/untiered.sh untiered/fix/lib.sh
cp cases/fix/good.sh untiered/fix/untiered.sh
check_eq "a group's lib.sh is no case" 1 "$("$TOP/tests/run" --cases untiered -l | wc -l)"

# --- a group that lists its cases itself ------------------------------------------------

mkdir -p table/group
cat >table/group/cases <<'END'
#!/bin/sh
[ $# -gt 0 ] || {
	printf '%s\tcheck\t%d\t0\tlisted\tone of two cases\n' one 20 two 30
	exit
}
echo "ok 1 - runs $1"
echo "1..1"
END
chmod +x table/group/cases
"$TOP/tests/run" --cases table --out out2 >ktap
check_eq "a group can list its cases" "2 passed, 0 failed, 0 skipped" "$(tail -n 1 ktap)"
check_eq "each is run by its name" "ok 1 - runs one" "$(head -n 1 out2/group/one/log)"
check_eq "and can be picked" "group/two" \
	"$("$TOP/tests/run" --cases table -l group/two | cut -d ' ' -f 1)"
sed s/fixture/twin/ cases/fix/good.sh >table/group/two.sh
check_fails "two cases of one name are an error" '^group/two$' "$TOP/tests/run" --cases table --out out2
rm table/group/two.sh
sed -i 's/check/quick/' table/group/cases
check_fails "they have a tier, too" '^  group/one: quick$' "$TOP/tests/run" --cases table --out out2
echo 'exit 3' >table/group/cases
check_fails "a list that fails is an error" 'group/cases fails' "$TOP/tests/run" --cases table --out out2

# --- skips -----------------------------------------------------------------------------------

printf 'fix/skipping\tdevice\n' >cases/skips
check_fails "a skip that is allowed without saying why is an error" '^fix/skipping' \
	"$TOP/tests/run" --cases cases --out out2 fix/skipping
rm cases/skips

# --- the order -------------------------------------------------------------------------------

mkdir -p order/fix
for seconds in 1 2 3 4; do
	sed "s/^# timeout: .*/# timeout: $((20 + seconds))/; s/fixture/order/" cases/fix/good.sh >"order/fix/s$seconds.sh"
done
sed -i 's/^# timeout/# exclusive\n&/' order/fix/s4.sh
chmod +x order/fix/*.sh
ran() {
	"$TOP/tests/run" --cases order --out out2 -j 1 | sed -n 's/^ok [0-9]* fix\/\(..\) .*/\1/p' | xargs
}
check_eq "what was never run goes first, by its timeout; what is exclusive goes last" "s3 s2 s1 s4" "$(ran)"
check_eq "how long each took is kept" "fix/s1 fix/s2 fix/s3 fix/s4" "$(cut -f 1 order/times | xargs)"
printf 'fix/s1\t3.5\nfix/s2\t10\n' >order/times
check_eq "then what took longest" "s3 s2 s1 s4" "$(ran)"
printf 'fix/s1\t10\nfix/s2\t9.5\nfix/s3\t2\ngone/case\t1\n' >order/times
check_eq "by number" "s1 s2 s3 s4" "$(ran)"
check "and the new times replace the old ones" awk '$1 ~ /^fix/ && $2 > 8 { bad = 1 } END { exit bad || NR != 5 }' order/times

# --- the budget ------------------------------------------------------------------------------

new busy <<'END'
i=0
while [ $i -lt 300000 ]; do i=$((i + 1)); done
echo "ok 1 - its own processor time is more than 0.01 s"
echo "1..1"
END
sed -i 's/^# timeout: .*/# timeout: 60/' cases/fix/busy.sh
"$TOP/tests/run" --cases cases --out out2 --budget 60 --json out2.json fix/busy >ktap
check_eq "a run within its budget passes" 0 "$?"
check "and says so" grep -qE '^# the cases took [0-9.]+ s of their [0-9.]+ s$' ktap
"$TOP/tests/run" --cases cases --out out2 --budget 0.01 --json out2.json fix/busy >ktap
check_eq "one over its budget fails" 1 "$?"
check "and says so" grep -qE '^# too slow: the cases took [0-9.]+ s, and may take 0[0-9.]* s' ktap
check "in the JSON, too" jq -e '.failed == 0 and .budget.verdict == "over" and .budget.seconds > 0 and .budget.seconds < 1' out2.json
check "what a case has used of the processors, too" jq -e '.cases[0].cpu_seconds > 0.01' out2.json
check_eq "the last line counts cases all the same" "1 passed, 0 failed, 0 skipped" "$(tail -n 1 ktap)"

# shellcheck source=scenarios/lib/machine/pace.sh
. "$TOP/scenarios/lib/machine/pace.sh"
check "how fast this machine is can be measured" sh -c 'echo "$1" | grep -qE "^[0-9]*[.]?[0-9]+$" && [ "$1" != 0 ]' \
	sh "$(pace_loop)"
pace_loop() { echo 3.4; }
check_eq "a machine ten times as slow gets ten times as long" 150 "$(paced 15)"
pace_loop() { echo 0.05; }
check_eq "a fast one as long" 15 "$(paced 15)"

# --- the artefacts of runs that are over, and of one that is not ------------------

mkdir -p build/tests/20200101-000000-1/.run build/tests/20200102-000000-1/.run
echo $$ >build/tests/20200101-000000-1/.run/pid
echo 1999999999 >build/tests/20200102-000000-1/.run/pid
for n in 1 2 3 4; do
	mkdir "build/tests/20300101-000000-$n"
done
BUILD=$PWD/build TZ=Asia/Kathmandu "$TOP/tests/run" --cases cases fix/good >ktap
check "a run that is not over keeps what it has" test -d build/tests/20200101-000000-1
check_false "one that was killed does not" test -e build/tests/20200102-000000-1
check_eq "and the last five stay" 5 "$(find build/tests -maxdepth 1 -name '20[23]*' ! -name '2020*' | wc -l)"

# their consoles are fixtures, not this case's
find out out2 -name console.log -exec rm -f {} +
finish

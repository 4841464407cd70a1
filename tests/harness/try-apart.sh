#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: scenarios/try in containers that share a cache keeps apart, and ends at once when it is told to
# tags: guest harness
# tier: all
# timeout: 900
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"
need_file "$BUILD/guest/7.2/vmlinux"
[ "$(id -u)" = 0 ] || skip "only root can make process ids of its own here"
try=$TOP/scenarios/try

# a container has process ids of its own: there, try is process 1
apart="unshare --mount --pid --fork --kill-child --mount-proc"
$apart true 2>unshare.err || skip "no process ids of our own here: $(cat unshare.err)"
# folder TEXT: that of the run whose command it is
folder() {
	grep -lx -e "$1" "$BUILD"/out/try.*/case/command 2>/dev/null | sed 's|/case/command$||'
}
# printed TEXT: a guest's command has
printed() {
	grep -qx -e "$1" "$BUILD"/out/try.*/guest/result.log 2>/dev/null
}
# the first one of a machine takes longer, as its snapshot is made
check "it works alone" "$try" --disk 64M true
mark=$(cat /proc/sys/kernel/random/uuid)
$apart "$try" --disk 64M --timeout 2000 "echo one-$mark; sleep 2000" >one.out 2>&1 &
one=$!
at_exit "kill -KILL $one 2>/dev/null"
check "one runs" wait_for 300 printed "one-$mark.\{0,1\}"
place=$(folder "echo one-$mark; sleep 2000")
$apart "$try" --disk 64M --timeout 2000 "echo two-$mark" >two.out 2>&1
check_eq "another one beside it works" 0 $?
check "it has had its own files" grep -qx "two-$mark" two.out
check "and the first has kept its own" grep -qxF "echo one-$mark; sleep 2000" "$place/case/command"

# Killed with all that is in its container, it cannot say that it has ended
kill -KILL "$one"
wait "$one" 2>/dev/null
check "all that was in there has ended" wait_for 200 flock -n "$place" true
check "a next one" "$try" --disk 64M --timeout 2000 true
check_false "removes what that has left" test -e "$place"

# ended OPTION...: TERM to its process alone
ended() {
	"$try" --disk 64M --timeout 2000 "$@" "echo ended-$mark; sleep 2000" >ended.out 2>ended.err &
	pid=$!
	at_exit "kill -KILL $pid 2>/dev/null"
	wait_for 300 printed "ended-$mark.\{0,1\}"
	place=$(folder "echo ended-$mark; sleep 2000")
	emulator=$(cat "$place/guest/qemu.pid")
	check "its emulator runs ($*)" kill -0 "$emulator"
	kill -TERM "$pid"
	# much less than its machine has
	wait_for 300 gone "$pid"
	check "TERM to try alone ends it ($*)" gone "$pid"
	kill -KILL "$pid" 2>/dev/null
	wait "$pid"
	check_eq "the status tells ($*)" 143 $?
	check "its emulator has ended ($*)" gone "$emulator"
	check_eq "it leaves neither a drive nor a pipe ($*)" "" "$(find "$place" -name 'disk0*' -o -type p)"
	rm -rf "$place"
}
gone() { ! lives "$1"; }
ended
ended --json result.json
check_false "without a result" test -e result.json
finish

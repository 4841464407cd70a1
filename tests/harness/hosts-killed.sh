#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a scenario of several hosts that is killed outright, at whatever moment, leaves nothing behind
# tags: harness wire
# tier: all
# timeout: 180

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/stopwatch.sh"
. "$TOP/tests/harness/lib.sh"

need_tool cpio flock
need_file "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/rdma.cpio"

# all that a run starts has this in its environment, and this case has not
MARK=KILLED_RUN=$(cat /proc/sys/kernel/random/uuid)
of_run() {
	grep -lzx "$MARK" /proc/[0-9]*/environ 2>/dev/null
}
# left: those of the run that are not inside of an emulator
left() {
	of_run | xargs -r grep -Lzx FAKE_INSIDE=1 2>/dev/null | cut -d / -f 3
}
none_left() {
	[ -z "$(left)" ]
}
# the insides of a fake emulator do not end with it
bury() {
	of_run | cut -d / -f 3 | xargs -r kill -KILL 2>/dev/null
}
at_exit bury

in_files() {
	find o -name fake -prune -o \( -type s -o -type p \) -print
}

driver </dev/null
cat >parent <<'END'
# starts a run, and does not bury it
env "$1" QEMU="$TOP/tests/harness/fake-qemu" sh driver 1000 2 >said 2>&1 &
echo $! >pid
exec sleep 1000
END

# killed_when DESC COMMAND…: as soon as COMMAND succeeds
killed_when() {
	desc=$1
	shift
	rm -rf o pid
	guests <guest
	sh parent "$MARK" &
	parent=$!
	at_exit "kill -KILL $parent 2>/dev/null"
	wait_for 60 test -s pid
	wait_for 60 "$@" || fail "$desc: the moment comes" "$(cat said)"
	kill -KILL "$(cat pid)"
	check "$desc: no process is left" wait_for 60 none_left
	left | while read -r pid; do
		echo "# left: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-200)"
	done
	check_eq "$desc: no socket and no pipe is left" "" "$(in_files)"
	kill -KILL "$parent"
	bury
}

echo 'exec sleep 1000' >guest
killed_when "before the wire runs" test -d o/wire
killed_when "the wire starts" test -e o/wire/keeper.pid
killed_when "before the first host" test -e o/wire/pid
killed_when "the first host starts" test -d o/a
killed_when "its keeper is there" test -e o/a/keeper.pid
killed_when "its emulator is there" test -e o/a/qemu.pid
killed_when "the second host starts" test -e o/b/keeper.pid
echo 'host barrier one; exec sleep 1000' >guest
killed_when "both run" sh -c '[ "$(cat o/[ab]/result.log 2>/dev/null | grep -c "^@reply ok")" = 2 ]'
echo '[ "$HOST" = a ] || exec sleep 1000; host barrier one' >guest
killed_when "one waits for the other" test -e o/hosts/waiting.a
echo true >guest
killed_when "the first has ended" test -e o/a/qemu.rc
killed_when "the wire ends" test -e o/wire/stopping

# The next one in the same place waits for the guard of the last one: this, here
waits() {
	left | while read -r pid; do
		tr '\0' ' ' <"/proc/$pid/cmdline"
	done 2>/dev/null | grep -q 'flock -w'
}
rm -rf o
guests <guest
exec 9>o/.guard
flock 9
env "$MARK" QEMU="$TOP/tests/harness/fake-qemu" timeout 60 sh driver 40 2 >said 2>&1 9>&- &
next=$!
check "the next run waits until all that is cleaned up" wait_for 60 waits
check_false "and has begun nothing" test -e o/wire
exec 9>&-
wait "$next"
check_eq "then it works" 0 $?
check_eq "and it leaves no socket and no pipe either" "" "$(in_files)"
check "nor a process" wait_for 60 none_left
finish

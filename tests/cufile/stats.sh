#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane stats PID: levels, paths, Prometheus, watching; forked, ended and hostile processes
# tags: cufile
# tier: check
# timeout: 120
#
# On the mock of the CUDA driver.
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cufile/lib.sh"
fake=$BUILD/userlib/tests/host/stats_process
need_file "$fake"

dd if=/dev/urandom of=data bs=4096 count=256 2>/dev/null

# stopped LEVEL [WORD…]: a program that has written 64 KiB four times, and is stopped within
# the fifth; its number in $pid
stopped() {
	echo "{\"profile\":{\"cufile_stats\":$1}}" >level.json
	shift
	# shellcheck disable=SC2016 # of the command
	LD_LIBRARY_PATH=$mock LD_PRELOAD=$mock/libcuda.so.1:$faults PEERLANE_KMSG=/none CUFILE_ENV_PATH_JSON=$PWD/level.json \
		FAULT_KILL=5 FAULT_RUN='kill -STOP $PPID' "$tool" io load -f data -s 1M -i 64K -I 1 "$@" >load.out 2>&1 &
	pid=$!
	running=$pid
	tries=0
	until grep -q '^State:.T' "/proc/$pid/status"; do
		tries=$((tries + 1))
		[ $tries -lt 3000 ] || break
		sleep 0.02
	done
	check "a program is stopped within its fifth write" grep -q '^State:.T' "/proc/$pid/status"
}
running=
# not one whose number may be another's by now
end_it() {
	[ -n "$running" ] || return 0
	kill -KILL "$running"
	running=
	wait "$pid"
}
at_exit end_it
one() { # WORDS JQ: of the only process
	json "$1" "length == 1 and (.[0].processes | length == 1 and (.[0] | $2))"
}

stopped 0
status 0 stats "$pid" --json
one "level 0: paths, and nothing else" ".pid == $pid and .name == \"peerlane\" and .level == 0 and .errors == 0 and .reason == \"\" and
	.paths == {p2p: {reads: 0, bytes_read: 0, writes: 4, bytes_written: 262144}} and .windows.mapped == 1 and
	(has(\"calls\") or has(\"sizes\") or has(\"gpus\") | not)"
status 0 stats "$pid"
said "^process $pid (peerlane)$"
said '^      bytes_written          262144$'
end_it
status 66 stats "$pid"
said "process $pid: No such process"
stopped 1
status 0 stats "$pid" --json
one "level 1: calls and their time" '.level == 1 and (.calls.write | .ok == 4 and .failed == 0 and .bytes == 262144 and .microseconds > 0) and
	.calls.file_register == {ok: 1, failed: 0} and .calls.read.ok == 0 and (has("sizes") or has("gpus") | not)'
end_it
stopped 2
status 0 stats "$pid" --json
one "level 2: a histogram of sizes" '.sizes.write == {"131072": 4} and .sizes.read == {} and (has("gpus") | not)'
end_it
stopped 3 -T 100
status 0 stats "$pid" --json
one "level 3: each GPU" '.gpus | keys == ["0"] and (.["0"].write | .ok == 4 and .p2p == 4 and .staged == 0 and .bytes == 262144) and
	(.["0"].buffers | .ok == 1 and .bytes == 65536)'
cp out with-pid
status 0 stats --all --json
check "--all has the same of it" test "$(jq -c '.processes[0]' with-pid)" = "$(jq -c ".processes[] | select(.pid == $pid)" out)"

# a file that another makes shorter would be a SIGBUS for its process
page=$(find "/proc/$pid/fd" -lname '/memfd:peerlane-cufile*')
check_fails "nobody else makes it shorter" 'Operation not permitted' truncate -s 0 "$page"
check_fails "nor writes it" 'Operation not permitted' dd if=/dev/zero of="$page" bs=8 count=1 conv=notrunc

status 0 stats "$pid" --prometheus metrics.prom
check_eq "with a file nothing is printed" "" "$(cat out)"
check "Prometheus: bytes by path" grep -qx \
	"peerlane_cufile_bytes_total{pid=\"$pid\",name=\"peerlane\",path=\"p2p\",direction=\"write\"} 262144" metrics.prom
check "Prometheus: transfers by path" grep -qx \
	"peerlane_cufile_transfers_total{pid=\"$pid\",name=\"peerlane\",path=\"p2p\",direction=\"write\"} 4" metrics.prom
check "Prometheus: calls by size" grep -qx \
	"peerlane_cufile_calls_by_size_total{pid=\"$pid\",name=\"peerlane\",direction=\"write\",below=\"131072\"} 4" metrics.prom
# each line a comment or a sample, samples below the type of their metric, which comes once
wrong_lines() {
	awk '/^# HELP peerlane_cufile_[a-z_]+ ./ { next }
		/^# TYPE peerlane_cufile_[a-z_]+ counter$/ { if (seen[$3]++) print "twice: " $3; metric = $3; next }
		!/^peerlane_cufile_[a-z_]+[{]([a-z]+="([^"\\]|\\["\\])*",?)+[}] [0-9]+$/ || substr($0, 1, index($0, "{") - 1) != metric' "$1"
}
check_eq "Prometheus: all lines are well formed" "" "$(wrong_lines metrics.prom)"
check_eq "it can be read by others, and nothing is beside it" "644 metrics.prom" "$(stat -c %a metrics.prom) $(echo metrics.prom*)"
status 73 stats "$pid" --prometheus none/metrics.prom
said 'none/metrics.prom cannot be written'

# appears FILE [LINES]: it has so many, in a minute at most
appears() {
	tries=0
	until [ -s "$1" ] && [ "$(wc -l <"$1")" -ge "${2-1}" ]; do
		tries=$((tries + 1))
		[ $tries -lt 3000 ] || break
		sleep 0.02
	done
}
# watching: it stands still for two looks, and goes on before a later one
: >out # of what came before, nothing may seem to be a look
"$tool" stats "$pid" --watch 1 --count 100 --json >out 2>err &
watcher=$!
appears out 2
kill -CONT "$pid"
tries=0
until grep -q '"bytes_per_second":{"read":0,"write":[1-9]' out || [ $tries -ge 3000 ]; do
	tries=$((tries + 1))
	sleep 0.02
done
end_it
wait "$watcher"
check_eq "watching ends with the process" 0 $?
json "two looks, and rates between them: none while it is stopped" '(.[0].processes[0] | has("bytes_per_second") | not) and
	(.[1].processes[0].bytes_per_second == {read: 0, write: 0})'
# two looks are a second apart, at least
json "when it goes on, the rate is that of what it has written" 'map(.processes[0] | select(.)) |
	[range(2; length) as $i | {more: (.[$i].paths.p2p.bytes_written - .[$i - 1].paths.p2p.bytes_written), rate: .[$i].bytes_per_second}] |
	any(.rate.write > 0) and all(.rate.read == 0 and .rate.write <= .more and .rate.write * 60 >= .more)'

# without a page, where the limit of a file's size allows none: a pipe, as no file can be written
LD_LIBRARY_PATH=$mock:$BUILD/userlib sh -c 'ulimit -f 0; "$1" fork; echo "status $?"' limited "$fake" </dev/null 2>&1 | cat >out
said '^status 0$'

# Others: what they have is read, and not believed.  A pipe holds them until the end.
mkfifo hold
exec 9<>hold
begin() { # MODE: the numbers of its processes, by rank, in $pids
	LD_LIBRARY_PATH=$mock:$BUILD/userlib "$fake" "$1" <hold >"$1.pids" 9<&- &
	parent=$! want=1
	case $1 in
	fork | open) want=2 ;;
	esac
	appears "$1.pids" $want
	child=$(grep -vx "$parent" "$1.pids")
	check_eq "$1: the processes are there" $want "$(wc -l <"$1.pids")"
}
begin good
status 0 stats "$parent" --json
one "a page as it should be is taken, whoever has made it" '.paths.p2p.bytes_written == 7000'
for mode in magic version size pid short; do
	begin $mode
	status 66 stats "$parent"
	said "process $parent has not opened this version of Peerlane's libcufile"
done
begin text
status 0 stats "$parent"
check_false "no control character reaches the terminal" grep -q "$(printf '\033')" out
said "process $parent (a\"\\\\??\[2J)"
status 0 stats "$parent" --prometheus hostile.prom
check_eq "nor do quotes break the file" "" "$(wrong_lines hostile.prom)"
check "Prometheus: they are escaped" grep -qF 'name="a\"\\??[2J"' hostile.prom
begin writing
status 0 stats "$parent"
said 'reason  *it changes all the time'
# ended, but nobody has asked for its status: its descriptors are root's
as=
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$fake" 2>/dev/null; then
	as='setpriv --reuid 65534 --regid 65534 --clear-groups'
fi
# shellcheck disable=SC2016,SC2086 # of that shell; words
$as sh -c '"$1" good <&3 & exec cat <&3' parent "$fake" 3<hold >zombie.pids 9<&- &
appears zombie.pids
ends=$(cat zombie.pids)
: >out
# shellcheck disable=SC2086 # words
$as "$tool" stats "$ends" --watch 1 --count 100 --json >out 2>err 9<&- &
watcher=$!
appears out
kill -KILL "$ends"
wait "$watcher"
check_eq "a watch ends with its process, which is there until somebody waits for it" 0 $?
check_eq "… and does not complain" "" "$(cat err)"
check "… it was still there" grep -q '^State:.Z' "/proc/$ends/status"
begin fork
status 0 stats "$parent" --json
status 66 stats "$child"
begin open
status 0 stats "$parent" --json
status 0 stats "$child" --json
one "a child that opens the library has a page of its own" ".pid == $child"
status 0 stats --all --json
json "--all: each once, and neither those that are wrong nor the other's child" "[.[0].processes[].pid] as \$all | (\$all == (\$all | unique)) and
	all($(cat good.pids), $(cat text.pids), $parent, $child; . as \$p | \$all | any(. == \$p)) and
	all($(cat magic.pids), $(cat pid.pids), $(cat short.pids); . as \$p | \$all | all(. != \$p))"
status 66 stats $$
said 'has not opened'

status 64 stats 0
status 64 stats x
status 64 stats 1 2
said 'takes no "2"'
status 64 stats --all 1
said 'only one'
status 64 stats --all --fabric
status 64 stats --watch 1
said '--watch is for PID, --all, not for the devices'
status 64 stats --all --watch 0
status 64 stats --all --count 2
said '--count needs --watch'
exec 9>&-
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the wire between hosts refuses what it does not understand, says why, and ends when it should
# tags: wire
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

need_tool jq
need_file "$BUILD/wire/peerlane-wire.san" "$BUILD/wire/peerlane-wire"
wire=$BUILD/wire/peerlane-wire.san
pids=
# shellcheck disable=SC2086 # a list
at_exit '[ -z "$pids" ] || kill -KILL $pids 2>/dev/null'

# begin FOLDER NAME…: in $pid, when it is ready
begin() {
	folder=$1
	mkdir -p "$folder"
	rm -f "$folder.ready"
	mkfifo "$folder.ready"
	"$wire" "$@" >"$folder.ready" 2>"$folder.err" &
	pid=$!
	pids="$pids $pid"
	timeout 10 head -n 1 "$folder.ready" >"$folder.said"
	check_eq "a wire with $# words is ready" ready "$(cat "$folder.said")"
}

# ended PID: within 10 s
ended() {
	timeout 10 tail --pid="$1" -s 0.05 -f /dev/null
}

ask() {
	"$wire" --ask w "$@"
}

refused() { # ERROR-REGEX COMMAND…
	want=$1
	shift
	ask "$@" >said 2>err
	status=$?
	if [ "$status" -eq 1 ] && jq -r .error said | grep -qE -e "$want"; then
		pass "refused: $*"
	else
		fail "refused: $*" "status $status, want: $want
$(cat said err)"
	fi
}

begin w a b c
check_eq "a good command" '{"ok":true}' "$(ask a loss 1%)"
check_eq "the counters have all ports" "a b c" \
	"$(ask counters | jq -r '.ports | keys | join(" ")')"
check_eq "looks are numbered" 1 \
	"$(($(ask counters | jq .look) - $(ask counters | jq .look) + 2))"
check "help lists the commands" sh -c '"$1" --ask w help | jq -r .help | grep -q "PORT delay TIME"' sh "$wire"

refused 'no host or command is called "d"' d loss 1%
refused 'no host or command is called "losses"' losses
refused 'behind a host.s name stands .out' a.up loss 1%
refused 'a, and what' a
refused 'no command is called "break"' a break
refused 'needs a rate' a loss
refused '"1" is no rate' a loss 1
refused '"-1%" is no rate' a loss -1%
refused '"101%" is no rate' a loss 101%
refused '"100.0001%" is no rate' a loss 100.0001%
refused '"1.00001%" is no rate' a loss 1.00001%
refused '"1.%" is no rate' a loss 1.%
refused '".5%" is no rate' a loss .5%
refused '"%" is no rate' a loss %
refused '"99999999999999999999%" is no rate' a loss 99999999999999999999%
refused '"1%%" is no rate' a loss 1%%
refused 'perhaps "roce"' a loss 1% tcp
refused 'perhaps "roce"' a loss 1% roce twice
refused '"5" is no time' a delay 5
refused '"5h" is no time' a delay 5h
refused '"11s" is no time' a delay 11s
refused '"-1ms" is no time' a delay -1ms
refused '"99999999999999999999s" is no time' a delay 99999999999999999999s
refused '"1x" is no time' a delay 1ms 1x
refused 'delay needs a time' a delay
refused 'delay needs a time' a delay 1ms 1ms 1ms
refused 'rate needs bits' a rate
refused 'rate needs bits' a rate 1mbit queue
refused 'rate needs bits' a rate 1mbit queue 1k ecn
refused '"100" is no rate' a rate 100
refused '"1tbit" is no rate' a rate 1tbit
refused '"1001gbit" is no rate' a rate 1001gbit
refused '"-1kbit" is no rate' a rate -1kbit
refused 'stands "queue" or "ecn", not "room"' a rate 1mbit room 1k
refused '"1g" is no size' a rate 1mbit queue 1g
refused '"65m" is no size' a rate 1mbit queue 65m
refused '"x" is no size' a rate 1mbit queue 1k ecn x
check_eq "the largest rate, queue and threshold" '{"ok":true}' "$(ask c rate 1000gbit queue 64m ecn 64m)"
check_eq "and none" '{"ok":true}' "$(ask c rate 0)"
refused 'nth needs a number' a nth 1 any
refused '"0" is no number from 1' a nth 0 any drop
refused '"x" is no number from 1' a nth x any drop
refused '"rc-nonsense" is no opcode' a nth 1 rc-nonsense drop
refused '"0x100" is no opcode' a nth 1 0x100 drop
refused '"0x" is no opcode' a nth 1 0x drop
refused '"delay" is neither drop' a nth 1 any delay
refused 'link needs "up" or "down"' a link
refused 'link needs "up" or "down"' a link sideways
refused 'a link has both ways' a.in link down
refused 'seed needs a number' seed
refused 'seed needs a number' seed x
refused 'deaf needs seconds' deaf
refused 'deaf needs seconds' deaf x
refused 'deaf needs seconds' deaf 0
refused 'deaf needs seconds' deaf 601
check_eq "the longest time for the deaf" '{"ok":true}' "$(ask deaf 600)"
refused 'no command is called "clear"' a clear all
refused 'wait needs a number' a.out wait 1 any
refused 'wait needs a number' a.out wait 1 any 0
refused 'wait needs a number' a.out wait 1 any 601
refused 'wait needs one way of one host' a wait 1 any 1
refused 'wait needs one way of one host' all.out wait 1 any 1
refused 'only 0 of 1 frames came in time' a.out wait 1 any 1
refused 'more than 8 words' a 2 3 4 5 6 7 8 9
refused 'an empty command' ' '
check_eq "what a wait asks for may be there" '{"ok":true,"frames":0}' "$(ask a.out wait 0 any 1)"
for i in $(seq 64); do
	ask a.in nth "$i" any drop >said || fail "rule $i"
done
refused '64 rules wait already' a.in nth 1 any drop
check_eq "nothing of all this has gone to another way" 0 \
	"$(ask counters | jq '.ports.a.out.rules_left')"

# a client that does not keep to the rules
check "a line of more than 511 bytes is refused here" sh -c '
	"$1" --ask w a "$(printf "%0600d" 1)" 2>&1 | grep -q "one line of at most 511"' sh "$wire"
check "so is a command of two lines" sh -c '
	"$1" --ask w "a
b" 2>&1 | grep -q "one line of at most"' sh "$wire"
check_eq "the wire is still there" '{"ok":true}' "$(ask a clear)"

# --- beginnings and ends -----------------------------------------------------

begins_not() { # REGEX ARG…
	want=$1
	shift
	timeout 10 "$wire" "$@" >said 2>err </dev/null
	status=$?
	if [ "$status" -eq 2 ] && grep -qE -e "$want" err && [ ! -s said ]; then
		pass "does not begin: $want"
	else
		fail "does not begin: $want" "status $status
$(cat said err)"
	fi
}
mkdir other
begins_not 'Address already in use' w a b
check_eq "the wire that was there still is" '{"ok":true}' "$(ask a clear)"
begins_not 'usage' other
echo kept >other/a
begins_not 'Address already in use' other a b
check_eq "a file is not taken for a socket that was left there" kept "$(cat other/a)"
rm other/a
begins_not 'No such file' nowhere a b
begins_not 'File name too long' "$(printf '%0120d' 1)" a b
begins_not 'lower-case letters' other A
begins_not 'lower-case letters' other a/b
begins_not 'lower-case letters' other a.in
begins_not 'lower-case letters' other ''
begins_not 'lower-case letters' other abcdefghijklmnop
begins_not 'this name is taken' other a all
begins_not 'this name is taken' other a control
begins_not 'two hosts of one name' other a b a
# shellcheck disable=SC2046 # words
begins_not 'more than 16 hosts' other $(seq 17)
begins_not 'seed needs a number' --seed x other a b
begins_not 'seed needs a number' --seed -1 other a b
begins_not 'pcap-max needs a number' --pcap-max 1G other a b
begins_not 'unrecognized option' --nonsense other a b
# where the kernel has none
cat >no-inotify <<END
#!/bin/sh
exec unshare --map-root-user sh -c 'echo 0 >/proc/sys/user/max_inotify_instances && exec "\$0" "\$@"' "$wire" "\$@"
END
chmod +x no-inotify
with=$wire wire=./no-inotify
begins_not 'Too many open files: inotify, .*fs.inotify.max_user_instances' other a b
wire=$with
check_eq "no socket stays behind" "" "$(ls other)"
check "--help helps" sh -c '"$1" --help | grep -q "^usage"' sh "$wire"

kill -TERM "$pid"
ended "$pid"
wait "$pid"
check_eq "SIGTERM ends it well" 0 $?
check_eq "no sanitizer has a complaint" "" "$(cat w.err)"
check_eq "and it takes its sockets away" "" "$(ls w)"
"$wire" --ask w counters >said 2>err
check_eq "then nobody answers" 2 $?
check "and that is said" grep -q 'no wire runs there' err

# a background job of a shell does not hear of an interrupt
mkdir apart
mkfifo apart.ready
sh -c 'trap "" INT; exec "$1" apart a b <&- >apart.ready 2>apart.err' sh "$wire" &
pid=$!
pids="$pids $pid"
timeout 10 head -n 1 apart.ready >/dev/null
kill -INT "$pid"
check_eq "a wire that shall not hear SIGINT goes on, also without standard input" '{"ok":true}' \
	"$("$wire" --ask apart a clear)"
kill -TERM "$pid"
ended "$pid"
check_eq "no sanitizer has a complaint" "" "$(cat apart.err)"

# the one that started it is killed
mkdir orphan
mkfifo orphan.ready
sh -c '"$1" orphan a b >orphan.ready & echo $! >orphan.pid; wait' sh "$wire" &
parent=$!
timeout 10 head -n 1 orphan.ready >/dev/null
pid=$(cat orphan.pid)
pids="$pids $pid"
check "a wire lives" lives "$pid"
kill -KILL "$parent"
ended "$pid"
check_false "until the one that started it is killed" lives "$pid"
finish

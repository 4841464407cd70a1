#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: hosts on one wire meet, tell each other things, and fail clearly when one of them or the wire is gone
# tags: harness wire
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/harness/lib.sh"

need_tool jq cpio flock
need_file "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/rdma.cpio"

# hosts SECONDS N, the guest's part on standard input: what a scenario does with
# them, in "said"; its exit status in $status, in $took how long
hosts() {
	rm -rf o
	guests
	driver <<'END'
[ -z "${WIRE_FAKE-}" ] || WIRE=$WIRE_FAKE
host_murder() { kill -KILL "$(cat "$OUT/wire/pid")"; echo ok; }
END
	read -r began idle </proc/uptime
	QEMU=$TOP/tests/harness/fake-qemu timeout 60 sh driver "$@" >said 2>&1
	status=$?
	read -r ended idle </proc/uptime
	: "$idle"
	took=$(echo "$began $ended" | awk '{ printf "%d", $2 - $1 }')
	for file in o/*/qemu.pid o/wire/pid; do
		[ -e "$file" ] || continue
		! lives "$(cat "$file")" || fail "${file#o/}: nothing is left running" "$(cat said)"
	done
}

says() { # REGEX: the run did
	if grep -qE -e "$1" said; then
		pass "it says: $1"
	else
		fail "it says: $1" "$(cat said)"
	fi
}

hosts 40 3 <<'END'
echo "# I am $HOST, $HOST_INDEX of $HOSTS"
host barrier one
[ "$HOST" != b ] || host publish where "at port 7"
host await where
host barrier one
[ "$HOST" != c ] || { host wire a link down; host wire a link up; host wire all.out loss 0.5%; host wire d loss 1%; }
host barrier one
END
check_eq "three hosts come to their end" 0 "$status"
for host in 'a, 0' 'b, 1' 'c, 2'; do
	says "^# I am $host of 3"
done
says '^ok [0-9]+ - b: it came to its end'
check_eq "each came through each barrier" 9 \
	"$(cat o/[abc]/result.log | grep -A1 "^@host barrier" | grep -c "^@reply ok")"
check_eq "and knew the value" 3 "$(cat o/[abc]/result.log | grep -c "^@reply at port 7")"
check_eq "a's NIC was told of its link, once down and once up" "false true" \
	"$(sed -n 's/.*"set_link".*"name":"nic0","up":\([a-z]*\).*/\1/p' o/a/qmp.seen | xargs)"
check_false "and no other's" grep -q set_link o/b/qmp.seen o/c/qmp.seen
check "a mistake in an order to the wire is told" grep -q \
	'^@reply error: wire: no host or command is called "d"' o/c/result.log
check_eq "the wire ended well" 0 "$(cat o/wire/rc)"
check "its last counters are kept" jq -e '.ports.c.link == "up"' o/wire/counters.json
check "a host's NIC is behind its IOMMU, as other devices are" \
	grep -q '^virtio-net-pci,.*,iommu_platform=on' o/a/qemu.args
check_eq "its ports have sockets of the hosts' names" "wire/b.host wire/b" \
	"$(sed -n 's/^dgram,.*local.path=\(.*\),remote.type=unix,remote.path=\(.*\)$/\1 \2/p' o/b/qemu.args)"

hosts 40 2 <<'END'
[ "$HOST" != b ] || exit 3
host barrier start
END
check_eq "a host that ends before the barrier is a failure" 1 "$status"
says 'host b ran to its end'
check "the other learns that at once" grep -q \
	'^@reply error: barrier start: host b has ended before it came there' o/a/result.log
check "not when the time is over ($took s)" test "$took" -lt 20

# c comes to the barrier when the others wait there, and not before
hosts 40 3 <<'END'
here=../../../came.$HOST
tries=0
while [ "$HOST" = c ] && [ "$tries" -lt 200 ] &&
	{ [ ! -e ../../../hosts/waiting.a ] || [ ! -e ../../../hosts/waiting.b ]; }; do
	tries=$((tries + 1))
	sleep 0.05
done
: >"$here"
host barrier late
[ -e ../../../came.a ] && [ -e ../../../came.b ] && [ -e ../../../came.c ] ||
	echo "not ok 1 - nobody goes on before all have come"
[ "$tries" -lt 200 ] || echo "not ok 1 - the others wait"
END
check_eq "nobody passes a barrier before all have come" 0 "$status"
[ "$status" -eq 0 ] || sed "s/^/# /" said

hosts 4 2 <<'END'
[ "$HOST" != b ] || exec sleep 1000
host barrier start
END
check_eq "a host that never comes is a failure" 1 "$status"
check "who waits for it is told first" grep -q \
	'^@reply error: barrier start: not within 3 s' o/a/result.log
says 'guest b: no end within'

hosts 40 2 <<'END'
[ "$HOST" != a ] || host await nothing
true
END
check_eq "a value that nobody publishes is no reason to wait" 0 "$status"
[ "$status" -eq 0 ] || sed "s/^/# /" said
check "when nobody is left who could" grep -q \
	'^@reply error: await nothing: all other hosts have ended' o/a/result.log

hosts 40 2 <<'END'
[ "$HOST" != b ] || host murder
host barrier never.$HOST
host await nothing
END
check_eq "a wire that is killed is a failure" 1 "$status"
says 'the wire was there to the end'
says 'status 137'
check "not when the time is over ($took s)" test "$took" -lt 20

hosts 40 2 <<'END'
host barrier
host barrier a/b
host barrier ..
host publish
host publish key
host publish a/b c
host await
host await a/b
host wire
host nonsense
true
END
check_eq "mistakes do not end a host" 0 "$status"
check_eq "each is told" "10" "$(grep -c '^@reply error' o/a/result.log)"

# the settings of a user, and none
printf '#!/bin/sh\necho "$@" >>"%s/wire-args"\nexec "%s/wire/peerlane-wire" "$@"\n' "$OUT" "$BUILD" >wire-noted
chmod +x wire-noted
WIRE_FAKE=$PWD/wire-noted
export WIRE_FAKE
hosts 40 2 </dev/null
check "without settings the wire has the seed 1" grep -qx -e '--seed 1 wire a b' wire-args
check_false "and keeps no frames" test -e o/wire/a.pcap
WIRE_SEED=7 WIRE_PCAP=1
export WIRE_SEED WIRE_PCAP
hosts 40 2 </dev/null
check "WIRE_SEED is the wire's seed" grep -qx -e '--seed 7 --pcap wire a b' wire-args
check "WIRE_PCAP keeps the frames of each host" test -s o/wire/a.pcap -a -s o/wire/b.pcap
unset WIRE_SEED WIRE_PCAP
WIRE_FAKE=/usr/bin/false
hosts 40 2 </dev/null
check_eq "a wire that does not start is a failure" 1 "$status"
says 'not ok 1 - the wire starts'
unset WIRE_FAKE
for n in 1 9 x ''; do
	hosts 40 "$n" </dev/null
	check_eq "\"$n\" hosts are a failure" 1 "$status"
	says 'a wire has 2 to 8 hosts'
done
finish

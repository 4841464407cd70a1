#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a scenario that is killed outright leaves no emulator and no wire behind
# tags: quick harness
# timeout: 60

. "$TOP/tests/lib/case.sh"

need_tool cpio flock
need_file "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/rdma.cpio"

mkdir -p o/case
mkfifo here
cat >o/case/run <<END
#!/bin/sh
echo here >"$OUT/here"
exec sleep 1000
END
chmod +x o/case/run
cat >driver <<'END'
OUT=$PWD/o
cd "$OUT" || exit 1
. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
. "$TOP/scenarios/lib/scenario.sh"
SC_TOPOLOGY=no-drive SC_KERNEL=7.2
. "$TOP/scenarios/lib/hosts.sh"
hosts_boot 1000 2
END
# so long as this is open, here has no end before both are there
exec 3<>here
QEMU=$TOP/tests/harness/fake-qemu BUILD=$BUILD sh driver >said 2>&1 &
driver=$!
check_eq "two hosts and a wire run" "here here" \
	"$(timeout 20 head -n 2 <&3 | xargs)"
left=
for file in o/a/qemu.pid o/b/qemu.pid o/wire/pid o/a/keeper.pid o/wire/keeper.pid \
	o/a/serve.pid; do
	pid=$(cat "$file")
	at_exit "kill -KILL $pid 2>/dev/null"
	left="$left $pid"
	check "${file#o/} lives" lives "$pid"
done
kill -KILL "$driver"
for pid in $left; do
	timeout 10 tail --pid="$pid" -s 0.1 -f /dev/null
	check_not "process $pid is gone" lives "$pid"
done
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: an interrupted run ends what it has started
# tags: harness
# tier: check
# timeout: 30

. "$TOP/scenarios/lib/case.sh"

mkdir -p cases/fix
mkfifo started
cat >cases/fix/long.sh <<END
#!/bin/sh
# desc: fixture
# tier: check
# timeout: 100
sleep 1000 &
echo \$! >$OUT/started
wait
END
chmod +x cases/fix/long.sh

# by way of env, since a shell's background processes ignore SIGINT
env "$TOP/tests/run" --cases cases --out out >ktap 2>&1 &
run=$!
child=$(timeout --foreground 20 cat started)
check "the case runs" lives "$child"
kill -TERM "$run"
wait "$run"
check_eq "the run exits 130" 130 "$?"
check_false "its processes are gone" lives "$child"
check_false "its own notes are gone" test -e out/.run
check "it says so" grep -q '^# interrupted' ktap
finish

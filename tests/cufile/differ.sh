#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile and plain POSIX: the same results and bytes of random operations, with faults
# tags: cufile
# tier: check
# timeout: 900
#
# On the mock of the CUDA driver.  A seed that shows an error shows it again:
#   build/userlib/tests/cufile-differ DIR TURNS SEED
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

# turns in each setting, and seeds
case $TIER in
check) turns=150 seeds=1 ;;
all) turns=600 seeds=2 ;;
*) turns=2000 seeds="1 2 3" ;;
esac
need_file "$BUILD/userlib/tests/cufile-differ"
for seed in $seeds; do
	mkdir -p dir
	"$BUILD/userlib/tests/cufile-differ" "$PWD/dir" "$turns" "$seed" >"differ-$seed.log" 2>&1
	ended "seed_$seed" $? "differ-$seed.log"
	rm -rf dir
done
sanitized=$BUILD/userlib/sanitize/tests/cufile-differ
need_file "$sanitized"
mkdir -p dir
"$sanitized" "$PWD/dir" 60 7 >sanitized.log 2>&1
ended sanitized $? sanitized.log
rm -rf dir
finish

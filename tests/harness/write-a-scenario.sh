#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/how-to/write-a-scenario.md to the letter has two scenarios that pass every check
# tags: harness guest scenario
# tier: nightly
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool jq cpio flock make
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/userlib/peerlane"

guide_tree
guide_steps how-to/write-a-scenario.md 4
for name in my-copy my-scenario; do
	check_eq "$name has passed" pass "$(jq -r .verdict "tree/build/out/$name/result.json")"
	check "$name is in the list" sh -c 'tree/scenarios/run -l | grep -q "^$1 "' sh "$name"
done
check "and both cases have looked at them" grep -q "^2 passed, 0 failed" said
# what the page warns of
sed -i 's/same(\(.*\); \.bytes)/\1 <= .bytes/' tree/scenarios/my-scenario.scn
(cd tree && env -u BUILD -u OUT -u TOP scenarios/run my-scenario) >said 2>&1
check_eq "a condition that asks for nothing fails the run" "1 1" "$? $(grep -c '^# it holds without any "bar1-dma-write", too' said)"
finish

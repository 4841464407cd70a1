#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/how-to/write-a-scenario.md to the letter has two scenarios that pass every check
# tags: harness guest scenario
# tier: all
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
need_tool jq cpio flock make
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/userlib/peerlane"

# A copy of the tree, with what is built
mkdir -p tree/build
for each in docs images scenarios tests userlib versions.mk; do
	cp -Rp "$TOP/$each" tree/ || exit 1
done
for each in "$BUILD"/*; do
	case ${each##*/} in
	out | tests | scenarios) ;;
	*) ln -s "$each" tree/build/ ;;
	esac
done
[ ! -e "$BUILD/scenarios" ] || cp -Rp "$BUILD/scenarios" tree/build/

# each block of commands is a step
awk '/^```sh$/ { file = "step" ++n; next } /^```$/ { file = ""; next } file { print >file }' \
	"$TOP/docs/how-to/write-a-scenario.md"
check_eq "the page has its steps" "step1 step2 step3 step4" "$(echo step*)"
for step in step*; do
	(cd tree && env -u BUILD -u OUT -u TOP -u TIER sh -e "../$step") >said 2>&1
	check_eq "$step: each command works" 0 $?
	sed 's/^/#   /' said | tail -n 30
done
for name in my-copy my-scenario; do
	check_eq "$name has passed" pass "$(jq -r .verdict "tree/build/out/$name/result.json")"
	check "$name is in the list" sh -c 'tree/scenarios/run -l | grep -q "^$1 "' sh "$name"
done
check "and both cases have looked at them" grep -q "^2 passed, 0 failed" said
# what the page warns of
sed -i 's/same(\(.*\); \.bytes)/\1 <= .bytes/' tree/scenarios/my-scenario/expect
(cd tree && env -u BUILD -u OUT -u TOP scenarios/run my-scenario) >said 2>&1
check_eq "a condition that asks for nothing fails the run" "1 1" "$? $(grep -c '^# it holds without any "bar1-dma-write", too' said)"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: long steps announce themselves; short ones only report completion
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"

quiet() { V=0 "$TOP/images/build/quiet" "$@" 2>&1; }

# waits until its own beginning has been said
check_eq "a long step says that it began, then that it ended" "  LONG ...
  LONG: done in" "$(quiet LONG long.log sh -c 'until grep -q LONG said; do sleep 0.2; done; echo text' |
	tee said | sed 's/ [0-9]* s$//')"
check_eq "a short one only that it ended" "  SHORT: done in" "$(quiet SHORT short.log echo text | sed 's/ [0-9]* s$//')"
check_eq "one with nothing to do says nothing" "" "$(quiet NOTHING short.log true)"
check "whoever reads along is not kept waiting" timeout 4 sh -c '"$1" NOTHING short.log sleep 1 2>&1 | cat' sh "$TOP/images/build/quiet"
quiet BAD bad.log sh -c 'echo "x.c:1: error: wrong" && exit 3' >said
check_eq "a step that fails has its status" 3 $?
check "and its error" grep -q 'x.c:1: error: wrong' said
check "and says where the rest is" grep -q 'failed after [0-9]* s: BAD (log: bad.log' said
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a killed build and two builds at once leave nothing broken
# tags: build
# tier: all
# timeout: 180
# exclusive

# Expressions for at_exit and for inner shells are meant to stay as they are.
# shellcheck disable=SC2016

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"

need_tool setsid
# A cache of their own, with what was fetched; two clones that share it. Nobody has built their guest image.
mkdir cache
for path in "$PEERLANE_CACHE"/fetch-*; do
	ln -s "$path" cache/
done
export PEERLANE_CACHE="$OUT/cache"
for clone in one two; do
	copy_tree "$OUT/$clone"
done
at_exit 'rm -rf "$OUT/one" "$OUT/two" "$OUT/cache"'

setsid "$OUT/one/images/guest/build-base" 7.2 >killed.log 2>&1 &
victim=$!
partial() { find "$OUT/cache" -maxdepth 1 -name 'guest-7.2-*.partial' | grep -q .; }
check "the build is under way" wait_for 20 partial
kill -KILL "-$victim"
wait "$victim" 2>/dev/null
check_false "a killed build leaves no finished image" test -f "$OUT/one/build/guest/7.2/base.cpio"

"$OUT/one/images/guest/build-base" 7.2 >one.log 2>&1 &
first=$!
"$OUT/two/images/guest/build-base" 7.2 >two.log 2>&1 &
second=$!
check "after it, one of two builds at once is done" wait "$first"
check "and the other" wait "$second"
check "both have the same image" cmp one/build/guest/7.2/base.cpio two/build/guest/7.2/base.cpio
check_eq "which was made once" 1 "$(cat one.log two.log | grep -c 'done in')"
check "the image is that of this checkout, byte for byte" cmp one/build/guest/7.2/base.cpio "$BUILD/guest/7.2/base.cpio"
check_false "no half-made image is left" partial
finish

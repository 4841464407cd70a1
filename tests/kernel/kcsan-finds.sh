#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the kernel that looks for data races finds one that a module makes on purpose, and the tests see what it says
# tags: kernel guest debug
# tier: nightly
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

need_file "$BUILD/guest/7.2-kcsan/headers"
driver_boot 7.2-kcsan driver kcsan-finds 470
# What would fail any other case is what this one is for
mv "$OUT/guest/console.log" said.log
check_eq "the guest is called unwell" 99 "$driver_status"
# Of the races of Linux itself nobody is told
grep -A 40 'BUG: KCSAN: data-race in bug_count' said.log >one.log
check "the kernel says: data race" test -s one.log
check_false "and that fails a case" scan_console one.log
finish

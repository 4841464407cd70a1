#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/tutorial.md to the letter, outside of the build root, sees what it says
# tags: harness guest rdma
# tier: nightly
# timeout: 1500
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock jq
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/userlib/peerlane"

guide_tree
guide_steps tutorial.md 10
guide_report tree/build/report.html copy
check "its program has 40 lines at most" test "$(wc -l <tree/my-read.c)" -le 40
check "its program is the example" cmp tree/my-read.c "$TOP/userlib/examples/cufile-read.c"
finish

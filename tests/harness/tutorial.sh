#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/tutorial.md to the letter, outside of the build root, sees what it says
# tags: harness guest rdma
# tier: all
# timeout: 600
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock jq
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/userlib/peerlane"

guide_tree
if [ -e "/mnt$OUT/tree" ] && [ "$(id -u)" = 0 ]; then
	check "its commands run outside of the build root" test "$(guide_host stat -c %d:%i /)" != "$(stat -c %d:%i /)"
else
	skip_part "not root, or the build root does not show the host's files: the commands run in a root"
fi
guide_steps tutorial.md 10
check "its program is the example" cmp tree/my-read.c "$TOP/userlib/examples/cufile-read.c"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/how-to/examples.md to the letter builds and runs every program of userlib/examples
# tags: harness guest rdma
# tier: all
# timeout: 900
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock cc
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/userlib/peerlane"

programs=$(cd "$TOP/userlib/examples" && echo *.c)
guide_tree
guide_steps how-to/examples.md 5
check_eq "the page has all programs" "$programs" \
	"$(sed -n 's|.* userlib/examples/\([a-z-]*[.]c\) .*|\1|p' step[1-5] | sort | xargs)"
for name in $programs; do
	check "$name has less than 80 lines" test "$(wc -l <"$TOP/userlib/examples/$name")" -lt 80
	check "$name has no warnings" cc -std=gnu11 -Wall -Wextra -Wshadow -Wvla -Werror -fsyntax-only \
		-I"$TOP/userlib/include" -I"$TOP/userlib/cufile" -I"$TOP/userlib/cuda" "$TOP/userlib/examples/$name"
done
finish

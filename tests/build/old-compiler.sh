#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile.so.0 and libpeerlane.so.0 compile without a warning with the compiler of Debian 12
# tags: build
# tier: all
# timeout: 180
#
# That compiler warns of what the build root's own does not.
. "$TOP/scenarios/lib/case.sh"
need_tool make gcc-12

for part in core cufile; do
	check "$part compiles with gcc 12" \
		make -C "$TOP/userlib/$part" CC=gcc-12 WERROR=1 O="$PWD/old" all
done
echo 'int f(int *p) { __builtin_free(p); return *p; }' >planted.c
check_fails "... which a use of freed memory would stop" "use.after.free" gcc-12 -Wall -Wextra -Werror -O2 -c planted.c
check "it is another one than the build's" sh -c '[ "$(gcc-12 -dumpversion)" != "$(cc -dumpversion)" ]'
finish

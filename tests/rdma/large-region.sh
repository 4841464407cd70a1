#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: soft-RoCE refuses a region of more than 1 GiB, as documented, and the kernel's warning is no complaint of scenarios/try
# tags: guest rdma
# tier: all
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
need_tool cc
need_file "$BUILD/guest/7.2/vmlinux" "$BUILD/guest/7.2/rdma.cpio"

check "the program" cc -O2 -g -std=gnu11 -Wall -Wextra -Werror -o large-region "$TOP/userlib/core/test/large_region.c" -libverbs
"$TOP/scenarios/try" --hosts 2 --timeout 120 --keep --add large-region large-region >try.out 2>try.err
check_eq "its status, not that of a kernel that warned" 0 $?
# docs/how-to/two-hosts.md, Limits
check_eq "1 GiB is registered, and a page more is not" 'a: 1073741824 registered
a: 1073745920 ENOMEM
b: 1073741824 registered
b: 1073745920 ENOMEM' "$(grep -E '^[ab]: [0-9]+ ' try.out | sort)"
out=$(sed -n 's/^kept: //p' try.out)
for host in a b; do
	check "host $host: the kernel warned" grep -q 'WARNING: .*mm/page_alloc[.]c:' "$out/$host/console.log"
done
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: an initramfs has the same bytes for the same contents
# tags: build
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

need_tool cpio
for side in a b; do
	mkdir -p "$side/sub"
done
echo one >a/one && echo two >a/sub/two && ln -s one a/link
ln -s one b/link && echo two >b/sub/two && echo one >b/one
touch -d '2001-02-03' b/one
sh "$TOP/images/guest/mkcpio" "$OUT/a" "$OUT/a.cpio"
sh "$TOP/images/guest/mkcpio" "$OUT/b" "$OUT/b.cpio"
check "order and time of making do not show" cmp a.cpio b.cpio
check_eq "it holds what was put in" "link one sub sub/two" "$(cpio -it --quiet <a.cpio | tr '\n' ' ' | sed 's/ $//')"
echo three >b/one
sh "$TOP/images/guest/mkcpio" "$OUT/b" "$OUT/b.cpio"
check_false "other contents make other bytes" cmp -s a.cpio b.cpio
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: make bundle packs the same bytes each time, and at most 100 MB of them
# tags: build
# tier: nightly
# timeout: 3600

. "$TOP/scenarios/lib/case.sh"
need_tool zstd
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/overlay.cpio"

at_exit 'rm -f "$OUT"/*.zst'
check "an archive is made" "$TOP/images/bundle/make-bundle" || finish
# the last line of what it prints
first=$TOP/$(tail -n 1 .check)
mv "$first" first.zst
# another day, another user's habits; the objects of the launcher are not kept.  Two at once: one waits for the other.
again() { env TZ=Pacific/Auckland LC_ALL=C sh -c 'umask 077 && exec "$1"' sh "$TOP/images/bundle/make-bundle"; }
again >other.log 2>&1 &
check "and two at once, in another time zone, with another umask" again
wait "$!"
check_eq "both succeed" 0 $? || diag "$(cat other.log)"
mv "$first" second.zst || finish
check "they are the same to the byte" cmp first.zst second.zst
size=$(wc -c <first.zst)
check "one has $((size / 1000000)) MB, at most 100" test "$size" -le 100000000
zstd -dcq first.zst | tar -tv --numeric-owner >list
check_eq "nobody's user or group is in it" "0/0" "$(awk '{ print $2 }' list | sort -u)"
check_eq "it is one folder" 1 "$(awk '{ print $6 }' list | cut -d / -f 1 | sort -u | wc -l)"
check_eq "everybody can read all of it" "" "$(grep -vE '^(d|-)r[w-].r..r..|^[lh]' list | head)"
finish

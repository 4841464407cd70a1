#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the GPU's engine reads the page cache: counters, and a reader beside all kinds of writers
# tags: guest cufile
# tier: check
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/cufile-page-cache"

mkdir -p page-cache.case/lib
cp "$TOP/scenarios/lib/guest/guest.sh" page-cache.case/lib/
boot page-cache "$TOP/scenarios/topologies/same-switch.topo" 7.2 150 "$TOP/tests/cufile/guest/page-cache"

of() { sed -n "s/^# $1 $2 //p" page-cache/result.log; }
has() { # NAME WORDS JQ
	of "$1" json >said
	check "$2" jq -e "$3" said || sed "s/^/# /" said
}
size=8388608
crc=$(sed -n 's/^# crc //p' page-cache/result.log | jq -r .crc32c)
has cached "a cached file goes by the cache path" ".path == \"cache\" and .bytes_by_path.cache == $size and .crc32c == \"$crc\""
check "and the GPU's engine read it from host memory" [ "$(of cached engine)" -ge $size ]
check_eq "the drive was not read" 0 "$(of cached drive)"
has memory "so does one in a tmpfs" ".path == \"cache\" and .crc32c == \"$crc\""
has writer "a large read of a file that has a writer, too" ".path == \"cache\" and .crc32c == \"$crc\""
has small "not a small one, and why is said" '.path == "bounce" and (.reason | test("no cache: no read lease: the file is open for writing"))'
has off "by default it is copied" '.path == "bounce" and (.reason | test("no cache") | not)'
has cold "what is not in the page cache is copied" ".path == \"bounce\" and .crc32c == \"$crc\" and (.reason | test(\"not all of it is in the page cache\"))"
check "and comes from the drive" [ "$(of cold drive)" -ge $size ]
for each in half again; do
	has $each "$each: half of it is in the page cache" ".path == \"bounce\" and .crc32c == \"$crc\""
	check_eq "and only the other half comes from the drive, around the page cache" $((size / 2)) "$(of $each drive)"
done
has direct "where p2p works it is p2p that moves it" '.path == "p2p"'
finish

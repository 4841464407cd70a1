#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the debug kernel finds errors that a module makes on purpose, and the tests see what it says
# tags: kernel guest debug
# tier: all
# timeout: 480
. "$TOP/tests/kernel/lib.sh"

need_file "$BUILD/guest/7.2-debug/headers"
# KASAN says one thing only, unless told otherwise
VM_CMDLINE=kasan_multi_shot
driver_boot 7.2-debug driver debug-finds 470
said=$OUT/said.log
# What would fail any other case is what this one is for
mv "$OUT/guest/console.log" "$said"
check_eq "the guest is called unwell" 99 "$driver_status"
# finds WHAT REGEX: it is said, and scan_console() takes it for a complaint
finds() {
	grep -E "$2" "$said" >"$OUT/one.log"
	check "the kernel says: $1" test -s "$OUT/one.log"
	check_false "and that fails a case" scan_console "$OUT/one.log"
}
finds "use after free" 'KASAN: slab-use-after-free in bug_memory'
finds "out of bounds" 'KASAN: slab-out-of-bounds in bug_memory'
finds "use after free, and after the grace period" 'KASAN: slab-use-after-free in bug_typesafe'
finds "array index out of bounds" 'UBSAN: array-index-out-of-bounds in .*peerlane_bug_test'
finds "circular locking" 'possible circular locking dependency detected'
finds "sleep in atomic context" 'sleeping function called from invalid context at .*peerlane_bug_test'
finds "DMA with another size" 'DMA-API: .*device driver frees DMA memory with different size'
finish

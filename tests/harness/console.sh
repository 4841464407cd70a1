#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what a guest's kernel complains about is seen, and nothing else
# tags: harness
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/scan.sh"

complaint() {
	printf '[    1.0] Linux version\n[    2.0] %s\r\n' "$1" >console
	check_false "seen: $1" scan_console console
}

harmless() {
	printf '[    2.0] %s\r\n' "$1" >console
	check "not taken for a complaint: $1" scan_console console
}

complaint 'WARNING: CPU: 1 PID: 66 at mm/x.c:1 f+0x1/0x2'
complaint 'WARNING: possible circular locking dependency detected'
complaint 'WARNING: possible recursive locking detected'
complaint 'WARNING: suspicious RCU usage'
complaint 'WARNING: inconsistent lock state'
complaint 'BUG: kernel NULL pointer dereference, address: 0000000000000000'
complaint 'BUG: KASAN: slab-use-after-free in f+0x1/0x2'
complaint 'BUG: sleeping function called from invalid context at x.c:1'
complaint 'BUG: Bad page state in process insmod  pfn:12345'
complaint 'Oops: 0000 [#1] PREEMPT SMP'
complaint 'Oops: general protection fault, probably for non-canonical address'
complaint 'kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)'
complaint 'refcount_t: underflow; use-after-free.'
complaint 'UBSAN: array-index-out-of-bounds in x.c:1:2'
complaint 'BUG: KCSAN: data-race in pln_queue_kick [peerlane_gpu] / vfs_write'
complaint 'INFO: task peerlane:66 blocked for more than 122 seconds.'
complaint 'rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:'
complaint 'watchdog: BUG: soft lockup - CPU#0 stuck for 26s!'
complaint 'Kernel panic - not syncing: Attempted to kill init!'
complaint 'DMA-API: nvme 0000:04:00.0: device driver frees DMA memory with wrong function'
complaint 'Call Trace:'
complaint 'list_del corruption. prev->next should be ff, but was 00'
complaint 'BUG test (Not tainted): Objects remaining on __kmem_cache_shutdown()'

harmless 'kmemleak: Kernel memory leak detector initialized'
harmless 'DMA-API: preallocated 65536 debug entries'
harmless 'rcu: 	RCU callback double-/use-after-free debug is enabled.'
harmless 'kcsan: non-strict mode configured - use CONFIG_KCSAN_STRICT=y to see all data races'
harmless 'BUG: KCSAN: data-race in xas_find / xas_store'
harmless 'rcu: Hierarchical RCU implementation.'
harmless 'Mitigations: none; no warnings here'
harmless 'nvme nvme0: 2/0/0 default/read/poll queues'

race() { # DEPTH MODULE: a report of a race with the module in the frame of that number, and a harmless line below it
	{
		printf '%s\n' ===================== "BUG: KCSAN: data-race in memcpy / memset" ''
		for access in 'read to 0xffff888004a5 of 8 bytes by task 66 on cpu 1:' \
			'write (marked) to 0xffff888004a5 of 8 bytes by interrupt on cpu 0:'; do
			echo "$access"
			awk -v depth="$1" -v module="$2" 'BEGIN {
				for (i = 1; i <= 6; i++)
					print " f" i "+0x1/0x2" (i == depth ? " " module : "")
			}'
		done
		printf '%s\n' ===================== 'loaded g+0x1/0x2 [peerlane_gpu]'
	} | sed 's/^/[ 1.0] /' >console
}
for depth in 1 3; do
	race $depth '[peerlane_gpu]'
	check_eq "a race counts with a module of ours in frame $depth of an access" \
		"2: [ 1.0] BUG: KCSAN: data-race in memcpy / memset" "$(scan_console console)"
done
race 4 '[peerlane_gpu]'
check "and not further out" scan_console console
race 1 '[peerlane_gpu]'
printf 'memcpy / memset\twanted here\n' >allow
check "unless it is allowed" scan_console console allow
race 1 '[nvme]'
check "and no other" scan_console console

lockdep() { # LOCK: a report about the order of locks
	printf '[ 1.0] %s\n' 'WARNING: possible circular locking dependency detected' \
		'irq/25/47 is trying to acquire lock:' "ff00 ($1){+.+.}-{4:4}, at: remove+0x12c/0x1c0" \
		'but task is already holding lock:' 'ff01 (other){+.+.}-{4:4}, at: g+0x1/0x2' \
		'Call Trace:' ' <TASK>' ' f+0x1/0x2' ' </TASK>' >console
}
printf 'circular locking dependency detected: .*[(]&theirs[)].* at: remove[+]\ta mistake of Linux\n' >allow
lockdep '&theirs'
check "an order of locks that is allowed, by the lock" scan_console console allow
lockdep '&ours'
check_false "and no other lock" scan_console console allow
lockdep '&theirs'
echo '[ 2.0] Call Trace:' >>console
check_eq "and no other trace" "10: [ 2.0] Call Trace:" "$(scan_console console allow)"

kasan() { # FUNCTION: a report of a wrong access
	printf '[ 1.0] %s\n' "BUG: KASAN: slab-use-after-free in $1+0x1/0x2" 'Call Trace:' ' <TASK>' ' f+0x1/0x2' ' </TASK>' >console
}
printf 'KASAN: slab-use-after-free in theirs[+]\ta mistake of others\n' >allow
kasan theirs
check "a wrong access that is allowed, with its trace" scan_console console allow
kasan ours
check_eq "and no other" 2 "$(scan_console console allow | wc -l)"
kasan theirs
echo '[ 2.0] Call Trace:' >>console
check_eq "nor another trace" "6: [ 2.0] Call Trace:" "$(scan_console console allow)"

too_large() { # FUNCTION: a request that the page allocator refuses, of that function
	printf '[ 1.0] %s\n' 'WARNING: mm/page_alloc.c:5336 at __alloc_frozen_pages_noprof+0x1/0x2, CPU#0: a/66' \
		'RIP: 0010:__alloc_frozen_pages_noprof+0x1/0x2' 'Call Trace:' ' <TASK>' ' ? theirs+0x1/0x2 [other]' \
		' __kmalloc_noprof+0x1/0x2' " $1+0x1/0x2 [module]" ' </TASK>' >console
}
printf 'mm/page_alloc[.]c:.* theirs[+]\ta mistake of others\n' >allow
too_large theirs
check "a request that is too large and allowed, with its trace" scan_console console allow
too_large ours
check_eq "and of no other function" "1: [ 1.0] WARNING: mm/page_alloc.c:5336 at __alloc_frozen_pages_noprof+0x1/0x2, CPU#0: a/66 __kmalloc_noprof+0x1/0x2 ours+0x1/0x2 [module]" \
	"$(scan_console console allow)"
too_large theirs
echo '[ 2.0] Call Trace:' >>console
check_eq "nor another trace" "9: [ 2.0] Call Trace:" "$(scan_console console allow)"

sleeps() { # FUNCTION: it may sleep where nobody may
	printf '[ 1.0] %s\n' 'BUG: sleeping function called from invalid context at include/linux/sched/mm.h:321' \
		'1 lock held by a/66:' ' #0: ff00 (lock){+.+.}-{2:2}, at: holder+0x1/0x2 [module]' 'Call Trace:' ' <TASK>' \
		' __might_sleep+0x1/0x2' " $1+0x1/0x2 [module]" ' </TASK>' >console
}
printf 'sleeping function .* theirs[+]\ta mistake of others\n' >allow
sleeps theirs
check "a function that may sleep and is allowed, with its trace" scan_console console allow
sleeps ours
check_eq "and no other function" 1 "$(scan_console console allow | grep -c 'sleeping function .* ours[+]')"

printf '[ 1.0] WARNING: CPU: 0 at a.c:1\n[ 1.1] WARNING: CPU: 0 at b.c:1\n' >console
printf 'at a[.]c:1\twanted here\n' >allow
check_false "the allow list covers what it names only" scan_console console allow
printf 'at b[.]c:1\twanted here\n' >>allow
check "and covers that" scan_console console allow
printf 'at b[.]c:1\n' >allow
printf '[ 1.0] fine\n' >console
check_fails "an entry without a reason is an error" "^allow list without a reason: at b" scan_console console allow
finish

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# scan_console CONSOLE [ALLOW]: print what a healthy kernel does not print,
# and fail when there is any.  ALLOW has lines "REGEX<tab>REASON"; a line
# without a reason is itself an error.

scan_console() {
	awk -v allow="${2:-/dev/null}" '
	# true: not allowed
	function complain(number, text,   i) {
		for (i = 1; i <= nok; i++)
			if (text ~ ok[i])
				return 0
		if (++bad <= 20)
			print number ": " text
		return 1
	}
	# the report about locks, with the lock that was to be taken
	function locks(taken) {
		if (lock != "")
			trace_allowed = !complain(lock_at, lock taken)
		lock = ""
	}
	function traced() {
		if (trace != "")
			complain(trace_at, trace)
		trace = ""
	}
	BEGIN {
		FS = "\n"
		while ((getline line < allow) > 0) {
			n = split(line, part, "\t")
			if (n < 2 || part[2] == "") {
				print "allow list without a reason: " line
				bad++
				continue
			}
			ok[++nok] = part[1]
		}
	}
	{ sub(/\r$/, "") }
	# a debug kernel lists its checks
	/rcu: .RCU callback double-\/use-after-free debug is enabled/ { next }
	/kcsan: non-strict mode configured/ { next }
	# What lockdep says of an order of locks is one complaint, for which the allow list can
	# name the lock: "... dependency detected: LOCK, at: FUNCTION".
	/WARNING: possible circular locking/ {
		locks("")
		lock = $0
		lock_at = FNR
		next
	}
	lock_taken { locks(": " $0) }
	{ lock_taken = /is trying to acquire lock:/ }
	# A request that the page allocator finds too large, or that may sleep where nobody may, is a
	# mistake of who made it, whom the allow list can name: "WARNING: ... mm/page_alloc.c:...
	# CALLER CALLER ...", the innermost first.
	/WARNING: .*mm\/page_alloc[.]c:|BUG: sleeping function called/ {
		traced()
		trace = $0
		trace_at = FNR
		next
	}
	trace != "" && /Call Trace:/ { next }
	trace != "" && /\+0x[0-9a-f]+\/0x/ && !/ [?] |RIP:/ {
		frame = $0
		sub(/^.*\] +/, "", frame)
		trace = trace " " frame
	}
	/<\/(TASK|IRQ)>/ { traced() }
	/BUG: KASAN: / { trace_allowed = !complain(FNR, $0); next }
	trace_allowed && /Call Trace:/ { next }
	/<\/TASK>/ { trace_allowed = 0 }
	# Linux itself has data races that nobody minds.  One is ours when a module of ours is
	# among the three innermost functions of one of the two accesses: it, or a helper that
	# it called (memcpy, a list), did the access.  Further out, it was interrupted, or called
	# something of the kernel that has data of its own.  A report is between two lines of "=".
	/==========$/ { race = "" }
	/BUG: KCSAN: / { race = $0; race_at = FNR }
	/ by (task|interrupt) .*:$|, in:$/ { frames = 0 }
	race != "" && /\[peerlane_/ && !/\+0x/ ||
	race != "" && /\+0x[0-9a-f]+\/0x[0-9a-f]+/ && ++frames <= 3 && /\[peerlane_/ {
		complain(race_at, race)
		race = ""
	}
	/BUG: KCSAN: / { next }
	/WARNING: |BUG: |BUG at |Oops|INFO: possible |possible recursive locking|possible circular locking|possible irq lock|inconsistent lock state|suspicious RCU|held lock freed|bad unlock balance|lock held when returning|kmemleak: [0-9]+ new|refcount_t|KASAN|KCSAN|UBSAN|DMA-API: .*device driver|hung task|blocked for more than|soft lockup|hard LOCKUP|detected stalls|self-detected stall|detected expedited stalls|general protection|Kernel panic|Call Trace|unable to handle|Bad page|page allocation failure|Out of memory|scheduling while atomic|sleeping function called|use-after-free|double free|list_(add|del) corruption|segfault at|trap invalid opcode|Objects remaining|Slab cache still has objects/ { complain(FNR, $0) }
	END {
		locks("")
		traced()
		if (bad > 20)
			print "… and " bad - 20 " more"
		exit bad > 0
	}' "$1"
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what several parts of the user library, or several devices, need is written once; pln_ are the names of what it exports alone
# tags: static
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool cc

# The code alone: no tests, no comments
(cd "$TOP/userlib" && find . -name '*.[ch]' ! -path '*/test/*') | while read -r source; do
	mkdir -p "bare/${source%/*}"
	cc -fpreprocessed -dD -E -P "$TOP/userlib/$source" >"bare/$source"
done 2>cc.err
check "there is code" test "$(find bare -type f -size +0 | wc -l)" -gt 100
# uses REGEX FOLDER: the files that have it
uses() {
	(cd "$2" && grep -rlE "$1" . | sed 's|^\./||' | LC_ALL=C sort | xargs)
}
# once WHAT REGEX FILES EXAMPLE [FOLDER]: these files alone have it, and a file with EXAMPLE would be found
once() {
	check_eq "$1: $3" "$3" "$(uses "$2" "${5-bare}")"
	printf '\t%s\n' "$4" >planted/code.c
	check_eq "... and a second one is found" code.c "$(uses "$2" planted)"
}
mkdir planted
once "the walk down a block device's stack" '/slaves' core/topo_block.c 'facts_list(f, "/sys/block/x/slaves", &names);'
once "the kernel's configuration" 'config\.gz|/boot/config' core/facts_value.c 'gzopen("/proc/config.gz", "r");'
once "the states of a queue pair" 'modify_qp\(' core/verbs_port.c 'ibv_modify_qp(qp, &attr, mask);'
once "the GIDs of a port" 'query_gid(_ex|_table)?\(' core/verbs_port.c 'ibv_query_gid(ctx, 1, 0, &gid);'
# peerlane run asks the loader where a library lies
once "libraries that are loaded" '\<dlm?open\(' "core/load.h tools/run/run.c" 'lib = dlopen("libcuda.so.1", RTLD_NOW);'
once "and their functions" '\<dlv?sym\(' core/load.h 'f = dlsym(lib, "cuInit");'
once "direct IO: what headers lack of statx()" 'define +STATX_DIOALIGN|\+ *0x9[8c]\>|stx_dio_' core/dio.h 'mem = sx.stx_dio_mem_align;'
once "... and file systems known to do it" '"xfs", ' core/dio.h 'static const char *const known[] = { "ext4", "xfs", "nfs" };'
# a record has names of errnos, which the C library knows
once "the kernel's own errnos" 'define +ENOTSUPP|strerrorname_np\(' "core/errname.h core/facts_record.c" 'name = strerrorname_np(err);'
once "exit statuses" 'EXIT_[A-Z_]+ *=|#define +[A-Z_]*(EXIT|CANNOT_RUN|WRONG)[A-Z_]* +[0-9]' core/exit_status.h '#define CANNOT_RUN 126'
once "... which nobody ends with by their numbers" '\<_?exit\(([^()]*[?:] *)?[0-9]|\<return 255;' "" '_exit(ok ? 0 : 1);'
once "a finding of the doctor" '\(struct finding\) *\{' tools/doctor/doctor.c '*f = (struct finding){ .rule = r };'

# What GPU, switch and ConnectX share.  The fence of a queue is no counter, and is latched where it is read.
devices=$TOP/hw-model/peerlane
once "memory that is mapped" 'g_hash_table_new|\<void \*host;' "peerlane-account.c peerlane-account.h" 'void *host;' "$devices"
once "the latch of a 64-bit counter" '(latch|high|_hi)(\[[^]]*\])? = [^;]*>> 32' "peerlane-account.c peerlane-gpu-engine.c" 's->high[n] = s->val[n] >> 32;' "$devices"
once "a visit to counters" 'visit_type_uint64\(v, [^"]*\[' peerlane-account.c 'visit_type_uint64(v, pls_counter_names[i], &val, errp);' "$devices"

# inside FOLDER: functions there with the prefix of the public ones that no library exports
inside() {
	cat "$TOP"/userlib/*/*.map | grep -oE '\<pln_[a-z0-9_]+' | sort -u >exported
	grep -rhoE '\<pln_[a-z0-9_]+ *\(' "$1" | tr -d ' (' | sort -u | comm -23 - exported | xargs
}
check_eq "pln_: of exported functions alone" "" "$(inside bare)"
printf 'static int pln_inside(void)\n{\n\treturn pln_version() != NULL;\n}\n' >planted/code.c
check_eq "... and another one is found" pln_inside "$(inside planted)"

check_eq "one name for the compiler's flags in all parts" "ALL_CFLAGS CFLAGS" \
	"$(cat "$TOP"/userlib/*/Makefile "$TOP/userlib/rules.mk" | grep -oE '\<[A-Z_]*CFLAGS[A-Z_]*' | sort -u | xargs)"
check_eq "... and they are set in one place" rules.mk "$(cd "$TOP/userlib" && grep -lE '^\w+\s*\?=.*-O[0-9]' rules.mk ./*/Makefile | xargs)"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: patience.so makes queue pairs wait, also those of a plugin that brings libibverbs for itself alone
# tags: harness
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool cc make

check "patience.so is built" make -s -C "$TOP/scenarios" O="$OUT/built" "$OUT/built/patience.so"

# A libibverbs whose queue pairs say what they are told
cat >verbs.c <<'END_C'
#include <infiniband/verbs.h>
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	return mask & IBV_QP_TIMEOUT ? attr->timeout : -1;
}
END_C
cat >plugin.c <<'END_C'
#include <infiniband/verbs.h>
int plugin(int timeout, int mask);
int plugin(int timeout, int mask)
{
	struct ibv_qp_attr attr = { .timeout = (uint8_t)timeout };

	return ibv_modify_qp(0, &attr, mask);
}
END_C
cat >program.c <<'END_C'
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef LINKED
int plugin(int timeout, int mask);
#endif
int main(int argc, char **argv)
{
	int (*call)(int timeout, int mask);
	(void)argc;
#ifdef LINKED
	call = plugin;
#else
	void *it = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);

	*(void **)&call = it ? dlsym(it, "plugin") : NULL;
#endif
	if (!call)
		return 1;
	printf("%d\n", call(atoi(argv[1]), atoi(argv[2]) ? IBV_QP_TIMEOUT : IBV_QP_STATE));
	return 0;
}
END_C
check "a false libibverbs" cc -shared -fPIC -Wl,-soname,libibverbs.so.1 -o libibverbs.so.1 verbs.c
check "a plugin that is linked with it" cc -shared -fPIC -o plugin.so plugin.c ./libibverbs.so.1
check "a program that loads the plugin" cc -o later program.c -ldl
check "a program that is linked with both" cc -DLINKED -o linked program.c ./plugin.so ./libibverbs.so.1

# told PROGRAM TIMEOUT MASK: the timeout that the library is told, or -1
told() {
	LD_LIBRARY_PATH=$OUT LD_PRELOAD=$OUT/built/patience.so "$OUT/$1" "$2" "$3"
}
for program in linked later; do
	check_eq "$program: 67 ms become 2 s" 19 "$(told "$program" 14 1)"
	check_eq "$program: what is longer stays" 21 "$(told "$program" 21 1)"
	check_eq "$program: for ever stays for ever" 0 "$(told "$program" 0 1)"
	check_eq "$program: a call without a timeout goes through" -1 "$(told "$program" 14 0)"
done
finish

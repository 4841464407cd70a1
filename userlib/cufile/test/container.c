// SPDX-License-Identifier: MIT
/*
 * As container runtimes start a program: no capabilities, no way to gain any, and a
 * filter that refuses with EPERM the system calls that they refuse and that a library
 * for file IO might want.
 *
 *	container PROGRAM [ARGUMENT…]
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int refused[] = {
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_kcmp,
	SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages,
	SYS_migrate_pages, SYS_userfaultfd, SYS_bpf, SYS_perf_event_open, SYS_syslog,
	SYS_mount, SYS_umount2, SYS_unshare, SYS_setns, SYS_open_by_handle_at,
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_add_key, SYS_keyctl,
};
#define REFUSED (sizeof(refused) / sizeof(refused[0]))

int main(int argc, char **argv)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { 0 };
	struct sock_filter code[2 * REFUSED + 4];
	struct sock_fprog filter = { .filter = code };
	unsigned int i, n = 0;

	if (argc < 2)
		return 64;
	/* a number of another architecture is another call */
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						 AUDIT_ARCH_X86_64, 0,
						 2 * REFUSED + 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (i = 0; i < REFUSED; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned int)refused[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							 SECCOMP_RET_ERRNO | EPERM);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len = (unsigned short)n;
	for (i = 0; !prctl(PR_CAPBSET_READ, i) || prctl(PR_CAPBSET_READ, i) == 1; i++)
		prctl(PR_CAPBSET_DROP, i);
	if (syscall(SYS_capset, &head, none) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("container");
		return 1;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}

/* SPDX-License-Identifier: MIT */
/* What the files of cuda_procs share */
#ifndef PEERLANE_CUDA_PROCS_H
#define PEERLANE_CUDA_PROCS_H

#include <sys/types.h>

#include "../cuda_abi.h"
#include "check.h"

#define MiB	(1024ul * 1024)
#define SOCK	3	/* the other process's end */

struct part {
	pid_t pid;
	int sock;
};

/* This program again, as the part @name */
struct part begin(const char *name);
/* The part's exit status, or minus the signal that ended it */
int end(struct part *p);
bool say(int sock, const void *data, size_t n);
bool hear(int sock, void *data, size_t n);
size_t free_memory(void);
/* The driver gives memory back when nothing can reach it: soon */
bool free_again(size_t want);
/* The library, and a context on the first GPU */
void start(void);

/* ---- cuda_procs_fd.c ---- */
int part_by_hand(void);
void by_hand(void);
int part_pool(void);
void pool(void);

#endif

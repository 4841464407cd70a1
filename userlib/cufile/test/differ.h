/* SPDX-License-Identifier: MIT */
/* What differ.c asks of its machine: the mock (differ_mock.c), or a guest (differ_guest.c). */
#ifndef PLN_TEST_DIFFER_H
#define PLN_TEST_DIFFER_H

#include "unit.h"

#define PAGE	((size_t)4096)
#define FILE_MAX MIB(1)

struct world;

struct fault {
	enum { NONE, SOFT, MEDIA, HOST, COPY } kind;
	int err;
	off_t lo, hi;			/* of MEDIA, whole pages */
};

struct setting {
	const char *what, *json;
	bool cache, faults, strict;
	enum pln_path path;	/* that some of its bytes must take */
	/* of the mock */
	int64_t bar1;
	int p2p_errno, p2p_after, p2p_count;
	/* of a guest: these pages of the file DIR/@bad cannot be read, or written; its
	 * .twin has the same bytes */
	const char *bad;
	bool bad_write;
	off_t bad_lo, bad_hi;
	size_t command;			/* bytes that the drive moves at once */
};

extern const struct setting settings[];
extern const unsigned int nsettings;

/* ---- differ.c ---- */
size_t below(struct world *w, size_t n);
bool one_of(struct world *w, unsigned int n);

/* ---- the machine ---- */
void machine_start(void);
/* In each thread but the first */
void machine_thread(void);
/* What the processor has of @n bytes of GPU memory: the same, or a copy */
unsigned char *machine_side(void *gpu, size_t n);
void machine_side_end(unsigned char *side);
/* From the GPU into that copy, and back */
void machine_pull(void *gpu, unsigned char *side, size_t n);
void machine_push(void *gpu, unsigned char *side, size_t n);
CUstream machine_stream(uint64_t any);
void machine_set(const struct setting *s);
/* One by chance, for the next operation; and none */
void machine_fault(struct world *w, struct fault *f);
void machine_no_fault(void);
/* For threads that work together: calls that do less than they were asked for */
void machine_short_calls(void);
/* What holds for a while is over. */
void machine_later(void);

#endif

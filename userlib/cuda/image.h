/* SPDX-License-Identifier: MIT */
/* Device code, looked into.  No locks: an image does not change. */
#ifndef PEERLANE_CUDA_IMAGE_H
#define PEERLANE_CUDA_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pln_var {
	const char *name;
	size_t size;
	const uint8_t *data;		/* what it holds at first; NULL: zeros */
	bool managed;			/* the program reaches it, too */
};

#define PLN_IMAGE_COPIES 4		/* sections that have variables; their names */


struct pln_image {
	atomic_int refs;
	char *ptx;			/* NULL: binary code */
	bool known;			/* these are its variables: */
	size_t n;
	struct pln_var *vars;
	void *copies[PLN_IMAGE_COPIES];	/* what the variables point into */
};

/*
 * @size: of @data, from a file, or 0: @data is the program's memory, which is trusted.
 * How much of that there is nobody says but its headers, and a wrapper's pointer is
 * followed.
 */
bool pln_image_is_binary(const void *data, uint64_t size);
/* NULL: no memory */
struct pln_image *pln_image_new(const void *data, uint64_t size);
struct pln_image *pln_image_ref(struct pln_image *image);
void pln_image_put(struct pln_image *image);

#endif /* PEERLANE_CUDA_IMAGE_H */

/* SPDX-License-Identifier: MIT */
/* Device code, looked into.  No locks: an image does not change. */
#ifndef PEERLANE_CUDA_IMAGE_H
#define PEERLANE_CUDA_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pln_var {
	char *name;
	size_t size;
	uint8_t *data;			/* what it holds at first; NULL: zeros */
	bool managed;			/* the program reaches it, too */
};

struct pln_image {
	atomic_int refs;
	char *ptx;			/* NULL: binary code */
	bool known;			/* these are its variables: */
	size_t n;
	struct pln_var *vars;
};

bool pln_image_is_binary(const void *data);
/* @size: of @data, or 0: as its headers say.  NULL: no memory. */
struct pln_image *pln_image_new(const void *data, uint64_t size);
struct pln_image *pln_image_ref(struct pln_image *image);
void pln_image_put(struct pln_image *image);

#endif /* PEERLANE_CUDA_IMAGE_H */

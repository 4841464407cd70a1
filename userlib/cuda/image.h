/* SPDX-License-Identifier: MIT */
/* Device code, looked into.  No locks: an image does not change. */
#ifndef PEERLANE_CUDA_IMAGE_H
#define PEERLANE_CUDA_IMAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drv_var {
	const char *name;
	size_t size;
	const uint8_t *data;		/* what it holds at first; NULL: zeros */
	bool managed;			/* the program reaches it, too */
};

#define DRV_IMAGE_COPIES 4		/* sections that have variables; their names */


struct drv_image {
	atomic_int refs;
	char *ptx;			/* NULL: binary code */
	bool known;			/* these are its variables: */
	size_t n;
	struct drv_var *vars;
	void *copies[DRV_IMAGE_COPIES];	/* what the variables point into */
};

/*
 * @size: of @data, from a file, or 0: @data is the program's memory, which is trusted.
 * How much of that there is nobody says but its headers, and a wrapper's pointer is
 * followed.
 */
bool drv_image_is_binary(const void *data, uint64_t size);
/* NULL: no memory */
struct drv_image *drv_image_new(const void *data, uint64_t size);
struct drv_image *drv_image_ref(struct drv_image *image);
void drv_image_put(struct drv_image *image);

#endif /* PEERLANE_CUDA_IMAGE_H */

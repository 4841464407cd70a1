/* SPDX-License-Identifier: MIT */
/* Data that looks like chance, other for each seed; for programs in guests, too. */
#ifndef PLN_TEST_NOISE_H
#define PLN_TEST_NOISE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whole numbers of 8 bytes, as many as fit */
static inline void noise(void *to, size_t size, uint64_t seed)
{
	size_t at;

	for (at = 0; size - at >= sizeof(seed); at += sizeof(seed)) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		memcpy((char *)to + at, &seed, sizeof(seed));
	}
}

#endif

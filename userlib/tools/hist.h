/* SPDX-License-Identifier: MIT */
/*
 * A histogram of nanoseconds: 64 buckets for each power of two, so that the upper
 * end of a bucket is less than 1/64 above any value in it.
 */
#ifndef PEERLANE_HIST_H
#define PEERLANE_HIST_H

#include <stdint.h>

#define HIST_BITS	6
#define HIST_BUCKETS	((64 - HIST_BITS + 1) << HIST_BITS)
#define HIST_UNTOLD	UINT64_MAX

struct hist {
	uint64_t n, max;
	double sum;
	uint64_t bucket[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *into, const struct hist *from);
/* The largest value of a bucket */
uint64_t hist_upper(unsigned int bucket);
/*
 * By nearest rank: the upper end of the bucket of the smallest value that at least
 * @thousandths of all do not exceed, but no more than the largest value.
 * HIST_UNTOLD where it would only be the maximum again: beyond the median of fewer
 * than 1000 / (1000 - @thousandths) values.
 */
uint64_t hist_rank(const struct hist *h, unsigned int thousandths);

#endif

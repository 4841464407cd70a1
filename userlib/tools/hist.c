// SPDX-License-Identifier: MIT
/* Histograms: see hist.h. */
#include "hist.h"

#define SUB	(1u << HIST_BITS)

static unsigned int bucket_of(uint64_t v)
{
	unsigned int shift;

	if (v < SUB)
		return (unsigned int)v;
	shift = 63 - (unsigned int)__builtin_clzll(v) - HIST_BITS;
	return (shift + 1) * SUB + (unsigned int)(v >> shift & (SUB - 1));
}

uint64_t hist_upper(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < SUB)
		return bucket;
	shift = bucket / SUB - 1;
	return ((uint64_t)(SUB + bucket % SUB) << shift) +
	       (((uint64_t)1 << shift) - 1);
}

void hist_add(struct hist *h, uint64_t ns)
{
	h->n++;
	h->sum += (double)ns;
	if (ns > h->max)
		h->max = ns;
	h->bucket[bucket_of(ns)]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	unsigned int i;

	into->n += from->n;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
	for (i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

uint64_t hist_rank(const struct hist *h, unsigned int thousandths)
{
	uint64_t rank = (h->n * thousandths + 999) / 1000, below = 0, v;
	unsigned int i;

	if (!h->n ||
	    (thousandths > 500 && h->n * (1000 - thousandths) < 1000))
		return HIST_UNTOLD;
	for (i = 0; i < HIST_BUCKETS; i++) {
		below += h->bucket[i];
		if (below >= rank)
			break;
	}
	v = hist_upper(i);
	return v < h->max ? v : h->max;
}

// SPDX-License-Identifier: MIT
/*
 * peerlane perf: percentiles.
 *
 * By nearest rank, from all samples: the p-th percentile is the smallest sample
 * that at least p % of them do not exceed.  One beyond the median that fewer
 * than 1 / (1 - p) samples were taken for is not told: it would only be the
 * maximum again.
 */
#include <stdlib.h>

#include "perf.h"

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* @thousandths: 500 for the median */
static uint64_t rank(const uint64_t *sorted, uint64_t n, uint64_t thousandths)
{
	if (n * (1000 - thousandths) < 1000 && thousandths > 500)
		return PERF_UNTOLD;
	return sorted[(n * thousandths + 999) / 1000 - 1];
}

void perf_stat(uint64_t *samples, uint64_t n, struct perf_stat *st)
{
	double sum = 0;
	uint64_t i;

	*st = (struct perf_stat){ .n = n };
	if (!n) {
		st->min = st->max = st->mean = PERF_UNTOLD;
		st->p50 = st->p90 = st->p99 = st->p999 = PERF_UNTOLD;
		return;
	}
	qsort(samples, n, sizeof(*samples), compare);
	for (i = 0; i < n; i++)
		sum += (double)samples[i];
	st->min = samples[0];
	st->max = samples[n - 1];
	st->mean = (uint64_t)(sum / (double)n);
	st->p50 = rank(samples, n, 500);
	st->p90 = rank(samples, n, 900);
	st->p99 = rank(samples, n, 990);
	st->p999 = rank(samples, n, 999);
}

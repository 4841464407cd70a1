// SPDX-License-Identifier: MIT
/* Histograms: percentiles of them against those of the sorted values. */
#include <stdio.h>
#include <stdlib.h>

#include "../hist.h"

static int failures, number;

static void result(int ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++number, what);
	failures += !ok;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t state = 1;

static uint64_t chance(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 11;
}

/* Is it no less than the smallest value that so many do not exceed, and less than 1/64 more? */
static int near(const struct hist *h, const uint64_t *sorted, uint64_t n,
		unsigned int thousandths)
{
	uint64_t exact = sorted[(n * thousandths + 999) / 1000 - 1];
	uint64_t told = hist_rank(h, thousandths);

	if (told >= exact && told - exact <= exact / 64)
		return 1;
	printf("# %u of 1000: %llu, and the histogram says %llu\n", thousandths,
	       (unsigned long long)exact, (unsigned long long)told);
	return 0;
}

int main(void)
{
	enum { N = 10000 };
	static const unsigned int ranks[] = { 1, 10, 500, 950, 990, 999 };
	struct hist *h = calloc(1, sizeof(*h)), *half = calloc(2, sizeof(*half));
	uint64_t *v = malloc(N * sizeof(*v));
	unsigned int i, round;
	int good = 1, merged = 1;

	if (!h || !half || !v)
		return 1;
	for (round = 0; round < 60; round++) {
		*h = half[0] = half[1] = (struct hist){ 0 };
		for (i = 0; i < N; i++) {
			v[i] = chance() >> round % 53;
			hist_add(h, v[i]);
			hist_add(&half[i % 2], v[i]);
		}
		hist_merge(&half[0], &half[1]);
		qsort(v, N, sizeof(*v), compare);
		for (i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
			good &= near(h, v, N, ranks[i]);
			merged &= hist_rank(&half[0], ranks[i]) ==
				  hist_rank(h, ranks[i]);
		}
		good &= h->max == v[N - 1] && h->n == N;
		merged &= half[0].max == h->max && half[0].n == N;
	}
	result(good, "percentiles are at most 1/64 above those of the values, for small and large values");
	result(merged, "two histograms merged say the same as one");

	*h = (struct hist){ 0 };
	for (i = 0; i < HIST_BUCKETS - 1; i++)
		if (hist_upper(i) >= hist_upper(i + 1))
			break;
	result(i == HIST_BUCKETS - 1, "each bucket ends above the one before");
	result(hist_upper(HIST_BUCKETS - 1) == UINT64_MAX, "the last one ends with the largest number");
	hist_add(h, UINT64_MAX);
	result(hist_rank(h, 500) == UINT64_MAX && h->bucket[HIST_BUCKETS - 1] == 1, "which has its place");

	*h = (struct hist){ 0 };
	result(hist_rank(h, 500) == HIST_UNTOLD, "there is no median of nothing");
	for (i = 0; i < 19; i++)
		hist_add(h, 5);
	result(hist_rank(h, 500) == 5 && hist_rank(h, 950) == HIST_UNTOLD, "19 values have a median, but no p95");
	hist_add(h, 7);
	result(hist_rank(h, 950) == 5 && hist_rank(h, 990) == HIST_UNTOLD, "20 have one, but no p99");
	printf("1..%d\n", number);
	free(h);
	free(half);
	free(v);
	return failures != 0;
}

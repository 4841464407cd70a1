// SPDX-License-Identifier: MIT
/* pln_file_next_result(): what came of each transfer, for who asked. */
#include <string.h>

#include "../core/sized.h"
#include "internal.h"

static __thread struct wanted next;

EXPORT int pln_file_next_result(struct pln_file_result *results,
				unsigned int count)
{
	if (!results != !count ||
	    (results && !sized_ok(results->size, FILE_RESULT_LEAST)))
		return -EINVAL;
	next = (struct wanted){
		.at = (char *)results, .size = results ? results->size : 0,
		.count = count,
	};
	return 0;
}

uint32_t result_asked(void)
{
	return next.count ? next.size : 0;
}

struct wanted result_wanted(void)
{
	struct wanted w = next;

	next.count = 0;
	return w;
}

struct answer result_of(const struct wanted *w, unsigned int i)
{
	if (i >= w->count)
		return (struct answer){ .to = NULL };
	return (struct answer){ .to = w->at + (size_t)i * w->size,
				.size = w->size };
}

void result_add(struct pln_file_result *now, const uint64_t *bytes,
		int err, const char *reason)
{
	unsigned int i;

	for (i = 0; i < PLN_PATH_SLOTS; i++)
		now->bytes[i] += bytes[i];
	if (reason[0]) {
		now->error = err;
		strcpy(now->reason, reason);
	}
}

void result_tell(const struct answer *a, struct pln_file_result *now, ssize_t r,
		 int err)
{
	unsigned int i;

	if (!a->to)
		return;
	for (i = 1; i < PLN_PATH_SLOTS; i++)
		if (now->bytes[i] > now->bytes[now->path])
			now->path = i;
	now->result = r;
	if (r == -1)
		now->error = err;
	/* What the program has made of it meanwhile does not count */
	memcpy(a->to, &a->size, sizeof(a->size));
	SIZED_OUT(a->to, now);
}

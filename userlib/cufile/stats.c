// SPDX-License-Identifier: MIT
/* pln_file_stats(): where the bytes went, and why. */
#include <string.h>

#include "../core/sized.h"
#include "internal.h"

struct pln_tally pln_total = { .lock = PTHREAD_MUTEX_INITIALIZER };
struct pln_gauges pln_gauges;

PLN_EXPORT const char *pln_path_name(unsigned int path)
{
	static const char *const names[PLN_PATH_COUNT] = {
		"none", "p2p", "kernel", "coherent", "bounce", "posix",
	};

	return path < PLN_PATH_COUNT ? names[path] : "unknown";
}

PLN_EXPORT int pln_file_stats(void *fh, struct pln_file_stats *stats)
{
	NOT_CANCELLED;
	struct pln_file_stats now = { 0 };
	struct pln_tally *t = &pln_total;
	struct pln_file *f = NULL;
	unsigned int i;

	if (!stats || !sized_ok(stats->size, FILE_STATS_LEAST))
		return -EINVAL;
	/* Its parent's other threads may have held our locks */
	if (pln_is_child())
		return -ECHILD;
	if (fh) {
		f = pln_file_get(fh);
		if (!f)
			return -EBADF;
		t = &f->tally;
	}
	now.last_path = t->last_path;
	for (i = 0; i < PLN_PATH_SLOTS; i++) {
		now.path[i].reads = t->reads[i];
		now.path[i].writes = t->writes[i];
		now.path[i].bytes_read = t->bytes_read[i];
		now.path[i].bytes_written = t->bytes_written[i];
	}
	now.errors = t->errors;
	now.fallbacks = t->fallbacks;
	pthread_mutex_lock(&t->lock);
	now.last_errno = t->last_errno;
	now.last_error = t->last_error;
	memcpy(now.reason, t->reason, sizeof(now.reason));
	pthread_mutex_unlock(&t->lock);
	if (f) {
		pln_file_put(f);
		SIZED_OUT(stats, &now);
		return 0;
	}
	now.windows = pln_gauges.windows;
	now.window_bytes = pln_gauges.window_bytes;
	now.window_hits = pln_gauges.window_hits;
	now.window_maps = pln_gauges.window_maps;
	now.window_evictions = pln_gauges.window_evictions;
	now.window_nospace = pln_gauges.window_nospace;
	now.lanes = pln_gauges.lanes;
	SIZED_OUT(stats, &now);
	return 0;
}

// SPDX-License-Identifier: MIT
/* pln_file_stats(): where the bytes went, and why. */
#include <string.h>

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
	struct pln_tally *t = &pln_total;
	struct pln_file *f = NULL;
	unsigned int i;

	if (!stats || stats->size != sizeof(*stats))
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
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	stats->last_path = t->last_path;
	for (i = 0; i < PLN_PATH_SLOTS; i++) {
		stats->path[i].reads = t->reads[i];
		stats->path[i].writes = t->writes[i];
		stats->path[i].bytes_read = t->bytes_read[i];
		stats->path[i].bytes_written = t->bytes_written[i];
	}
	stats->errors = t->errors;
	stats->fallbacks = t->fallbacks;
	pthread_mutex_lock(&t->lock);
	stats->last_errno = t->last_errno;
	stats->last_error = t->last_error;
	memcpy(stats->reason, t->reason, sizeof(stats->reason));
	pthread_mutex_unlock(&t->lock);
	if (f) {
		pln_file_put(f);
		return 0;
	}
	stats->windows = pln_gauges.windows;
	stats->window_bytes = pln_gauges.window_bytes;
	stats->window_hits = pln_gauges.window_hits;
	stats->window_maps = pln_gauges.window_maps;
	stats->window_evictions = pln_gauges.window_evictions;
	stats->window_nospace = pln_gauges.window_nospace;
	stats->lanes = pln_gauges.lanes;
	return 0;
}

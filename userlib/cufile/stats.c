// SPDX-License-Identifier: MIT
/* pln_file_stats(): where the bytes went, and why; and for other processes, page.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../core/sized.h"
#include "internal.h"
#include "page_json.h"

static struct stats_page own = { .total.lock = PTHREAD_MUTEX_INITIALIZER };
struct stats_page *_Atomic stats_page = &own;

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE	0x10
#endif

/*
 * With the driver's lock held, before anything is counted.  Where there can be none,
 * without memfd or descriptors, or where a file of its size would end the program by
 * SIGXFSZ, nobody else sees what is counted.
 */
void stats_publish(void)
{
	struct stats_page *page;
	int fd, saved = errno;
	struct rlimit limit;

	if (stats_page != &own)
		return;
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < sizeof(*page))
		goto out;
	fd = no_stream(stats_memfd());
	if (fd < 0)
		goto out;
	page = ftruncate(fd, sizeof(*page)) ? MAP_FAILED :
	       mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		goto out;
	}
	/* The descriptor stays: it is what others find.  We write by the mapping. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE |
	      F_SEAL_SEAL);
	pthread_mutex_init(&page->total.lock, NULL);
	page->version = STATS_VERSION;
	page->size = sizeof(*page);
	page->pid = getpid();
	page->magic = STATS_MAGIC;
	stats_page = page;
out:
	errno = saved;
}

void stats_forked(void)
{
	stats_page = &own;
	pthread_mutex_init(&own.total.lock, NULL);
}

EXPORT const char *pln_path_name(unsigned int path)
{
	return path < PLN_PATH_COUNT ? path_names[path] : "unknown";
}

/*
 * Of a file, which is held with the library until put(), or of all; 0 or -errno.
 * A child must not look: its parent's other threads may have held our locks.
 */
static int get(void *fh, struct file **f, struct tally **t)
{
	*f = NULL;
	*t = &stats_total;
	if (driver_is_child())
		return -ECHILD;
	if (!fh)
		return 0;
	if (!driver_begin())
		return -EBADF;
	*f = file_get(fh);
	if (*f)
		*t = &(*f)->tally;
	else
		driver_end();
	return *f ? 0 : -EBADF;
}

static void put(struct file *f)
{
	if (!f)
		return;
	file_put(f);
	driver_end();
}

EXPORT int pln_file_stats(void *fh, struct pln_file_stats *stats)
{
	NOT_CANCELLED;
	struct pln_file_stats now = { 0 };
	struct tally *t;
	struct file *f;
	unsigned int i;
	int r;

	if (!stats || !sized_ok(stats->size, FILE_STATS_LEAST))
		return -EINVAL;
	r = get(fh, &f, &t);
	if (r)
		return r;
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
		put(f);
		SIZED_OUT(stats, &now);
		return 0;
	}
	now.windows = stats_gauges.windows;
	now.window_bytes = stats_gauges.window_bytes;
	now.window_hits = stats_gauges.window_hits;
	now.window_maps = stats_gauges.window_maps;
	now.window_evictions = stats_gauges.window_evictions;
	now.window_nospace = stats_gauges.window_nospace;
	now.lanes = stats_gauges.lanes;
	now.cache_windows = stats_gauges.cache_windows;
	now.cache_bytes = stats_gauges.cache_bytes;
	now.leases = stats_gauges.leases;
	now.leases_broken = stats_gauges.leases_broken;
	SIZED_OUT(stats, &now);
	return 0;
}

EXPORT int pln_file_stats_json(void *fh, char *text, size_t size)
{
	NOT_CANCELLED;
	struct told told;
	struct tally *t;
	char *all = NULL;
	struct file *f;
	size_t len;
	FILE *out;
	int r;

	if (!text && size)
		return -EINVAL;
	r = get(fh, &f, &t);
	if (r)
		return r;
	pthread_mutex_lock(&t->lock);
	told.last_errno = t->last_errno;
	told.last_error = t->last_error;
	memcpy(told.reason, t->reason, sizeof(told.reason));
	pthread_mutex_unlock(&t->lock);
	make_plain(told.reason);
	out = open_memstream(&all, &len);
	if (out)
		json_stats(out, t, &told, f ? NULL : stats_page);
	put(f);
	r = !out || fclose(out) ? -ENOMEM : (int)len;
	if (r >= 0 && size) {
		len = min_of(len, size - 1);
		memcpy(text, all, len);
		text[len] = '\0';
	}
	free(all);
	return r;
}

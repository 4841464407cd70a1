// SPDX-License-Identifier: MIT
/*
 * Windows: mappings of GPU memory into this process, through a dma-buf.  Each
 * takes room in the GPU's BAR1, which may be smaller than its memory.  So they
 * are a cache: made when a transfer needs one, most recently used first, and
 * given up from the other end when BAR1 is full.  A window that a transfer is
 * using stays.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pln_window *head, *tail;

static void unlink_window(struct pln_window *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		tail = w->prev;
	w->prev = w->next = NULL;
}

static void push_front(struct pln_window *w)
{
	w->prev = NULL;
	w->next = head;
	if (head)
		head->prev = w;
	else
		tail = w;
	head = w;
}

static void destroy(struct pln_window *w)
{
	munmap(w->host, w->len);
	pln_gauges.windows--;
	pln_gauges.window_bytes -= w->len;
	free(w);
}

/* Takes it off the list; it goes when nobody uses it any more. */
static void retire(struct pln_window *w)
{
	if (w->dead)
		return;
	unlink_window(w);
	w->dead = true;
	if (!w->refs)
		destroy(w);
}

static bool evict_one(void)
{
	struct pln_window *w;

	for (w = tail; w; w = w->prev)
		if (!w->refs) {
			pln_gauges.window_evictions++;
			retire(w);
			return true;
		}
	return false;
}

/* 0, or -errno of the step that failed. */
static int map_range(uint64_t start, size_t len, char **host, CUresult *cu_err)
{
	int fd = -1, r;
	void *p;

	*cu_err = 0;
	if (!cu.MemGetHandle) {
		*cu_err = CUDA_ERROR_NOT_SUPPORTED;
		return -ENOSYS;
	}
	r = cu.MemGetHandle(&fd, start, len, CU_RANGE_HANDLE_DMABUF, 0);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return -ENOSPC;
	if (r || fd < 0) {
		*cu_err = r ? r : CUDA_ERROR_NOT_SUPPORTED;
		return -EOPNOTSUPP;
	}
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = p == MAP_FAILED ? -errno : 0;
	close(fd);
	if (r)
		return r == -ENOMEM ? -ENOSPC : r;
	madvise(p, len, MADV_DONTFORK);
	*host = p;
	return 0;
}

int pln_window_get(const struct pln_mem *mem, uint64_t addr, size_t len,
		   struct pln_window **out, size_t *avail, bool *fresh,
		   CUresult *cu_err)
{
	uint64_t lo = pln_down(mem->start, PLN_GPU_PAGE);
	uint64_t hi = pln_up(mem->start + mem->len, PLN_GPU_PAGE);
	size_t size = KIB(pln_cfg.window_kb), limit;
	struct pln_window *w, *next;
	char *host;
	int r;

	limit = KIB(pln_cfg.size
		    [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB]);
	*fresh = false;
	*cu_err = 0;
	if (!mem->len) {
		/* CUDA does not say where the memory ends */
		*cu_err = CUDA_ERROR_NOT_SUPPORTED;
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&lock);
	for (w = head; w; w = next) {
		next = w->next;
		if (addr < w->start || addr - w->start >= w->len)
			continue;
		if (w->buffer_id != mem->buffer_id) {
			retire(w);	/* other memory had this address */
			continue;
		}
		pln_gauges.window_hits++;
		goto found;
	}
	size = pln_up(size, PLN_GPU_PAGE);
	for (;;) {
		uint64_t start = lo + pln_down(addr - lo, size);
		uint64_t end = start + size;

		if (end > hi)
			end = hi;
		while (pln_gauges.window_bytes + (end - start) > limit &&
		       evict_one())
			continue;
		r = -ENOSPC;
		if (pln_gauges.window_bytes + (end - start) <= limit)
			r = map_range(start, end - start, &host, cu_err);
		if (!r) {
			w = calloc(1, sizeof(*w));
			if (!w) {
				munmap(host, end - start);
				r = -ENOMEM;
				goto fail;
			}
			w->start = start;
			w->len = end - start;
			w->host = host;
			w->buffer_id = mem->buffer_id;
			push_front(w);
			pln_gauges.windows++;
			pln_gauges.window_bytes += w->len;
			pln_gauges.window_maps++;
			*fresh = true;
			break;
		}
		if (r != -ENOSPC)
			goto fail;
		pln_gauges.window_nospace++;
		if (evict_one())
			continue;
		if (size <= PLN_GPU_PAGE)
			goto fail;
		size = pln_up(size / 2, PLN_GPU_PAGE);
	}
found:
	w->refs++;
	unlink_window(w);
	push_front(w);
	*avail = pln_min(len, w->len - (addr - w->start));
	*out = w;
	pthread_mutex_unlock(&lock);
	return 0;
fail:
	pthread_mutex_unlock(&lock);
	return r;
}

void pln_window_put(struct pln_window *w)
{
	pthread_mutex_lock(&lock);
	if (!--w->refs && w->dead)
		destroy(w);
	pthread_mutex_unlock(&lock);
}

void pln_window_kill(struct pln_window *w)
{
	pthread_mutex_lock(&lock);
	retire(w);
	if (!--w->refs)
		destroy(w);
	pthread_mutex_unlock(&lock);
}

void pln_window_drop_range(uint64_t start, size_t len)
{
	struct pln_window *w, *next;

	pthread_mutex_lock(&lock);
	for (w = head; w; w = next) {
		next = w->next;
		if (w->start < start + len && start < w->start + w->len)
			retire(w);
	}
	pthread_mutex_unlock(&lock);
}

void pln_window_drop_all(void)
{
	pthread_mutex_lock(&lock);
	while (head)
		retire(head);
	pthread_mutex_unlock(&lock);
}

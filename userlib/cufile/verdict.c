// SPDX-License-Identifier: MIT
/*
 * What is known of p2p between storage devices and GPUs, and what is said about
 * it: verdicts with their reasons, the kernel's own words, and notices.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "io.h"

/* ---- verdicts ---- */

struct verdict {
	struct verdict *next;
	uint64_t dev;
	int gpu;
	unsigned int told;	/* bits: causes */
	bool asked;		/* the kernel, for what it has said before */
	char words[PLN_FILE_REASON_MAX / 2];	/* its own */
	enum state state;
	int err;
	char reason[PLN_FILE_REASON_MAX];
};

static pthread_mutex_t verdict_lock = PTHREAD_MUTEX_INITIALIZER;
static struct verdict *verdicts;

/* With the lock held. */
static struct verdict *find_verdict(uint64_t dev, int gpu)
{
	struct verdict *v;

	for (v = verdicts; v; v = v->next)
		if (v->dev == dev && v->gpu == gpu)
			return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->dev = dev;
	v->gpu = gpu;
	v->next = verdicts;
	verdicts = v;
	return v;
}

enum state verdict_ask(struct io *io)
{
	enum state s = UNKNOWN;
	struct verdict *v;

	pthread_mutex_lock(&verdict_lock);
	v = find_verdict(io->f->dev, io->mem.gpu);
	if (v) {
		s = v->state;
		if (s == REFUSED) {
			memcpy(io->reason, v->reason, sizeof(io->reason));
			io->reason_errno = v->err;
		}
	}
	pthread_mutex_unlock(&verdict_lock);
	return s;
}

void verdict_set(struct io *io, enum state state)
{
	struct verdict *v;
	bool news = false;

	pthread_mutex_lock(&verdict_lock);
	v = find_verdict(io->f->dev, io->mem.gpu);
	/* of two refusals at once, the one that has the kernel's words is kept */
	if (v && v->state != WORKS &&
	    (v->state != state ||
	     (state == REFUSED && v->words[0] &&
	      !strstr(v->reason, "; kernel: ")))) {
		v->state = state;
		v->err = io->reason_errno;
		if (state == REFUSED)
			memcpy(v->reason, io->reason, sizeof(v->reason));
		news = true;
	}
	pthread_mutex_unlock(&verdict_lock);
	if (news && state == WORKS)
		log_line(LOG_INFO, "device %u:%u and GPU %d: p2p works",
			 major(io->f->dev), minor(io->f->dev), io->mem.gpu);
}

bool verdict_p2p_worked(void)
{
	struct verdict *v;

	pthread_mutex_lock(&verdict_lock);
	for (v = verdicts; v && v->state != WORKS; v = v->next)
		continue;
	pthread_mutex_unlock(&verdict_lock);
	return v;
}

void verdict_tell(struct io *io, enum cause cause)
{
	_Static_assert(SHORTAGE <= 8, "eight bits for each GPU, none for POSSIBLE");
	uint64_t bit = io->mem.gpu < 0 || io->mem.gpu >= 8 ? 0 :
		       1ull << (cause - 1 + 8 * io->mem.gpu);
	struct verdict *v;
	bool news;

	/* mostly it has been for this file and one of the first GPUs: no lock */
	if (io->f->told & bit)
		return;
	io->f->told |= bit;
	pthread_mutex_lock(&verdict_lock);
	v = find_verdict(io->f->dev, io->mem.gpu);
	news = v && !(v->told & 1u << cause);
	if (v)
		v->told |= 1u << cause;
	pthread_mutex_unlock(&verdict_lock);
	if (news)
		log_line(LOG_NOTICE, "device %u:%u and GPU %d: no p2p: %s",
			 major(io->f->dev), minor(io->f->dev), io->mem.gpu,
			 io->reason);
}

void verdict_forget_all(void)
{
	pthread_mutex_lock(&verdict_lock);
	while (verdicts) {
		struct verdict *v = verdicts;

		verdicts = v->next;
		free(v);
	}
	pthread_mutex_unlock(&verdict_lock);
}

/* ---- reasons ---- */

void io_because(struct io *io, int err, const char *fmt, ...)
{
	va_list ap;

	io->reason_errno = err;
	va_start(ap, fmt);
	vsnprintf(io->reason, sizeof(io->reason), fmt, ap);
	va_end(ap);
}

/*
 * What the kernel says of it.  All it has said since it was started is read once
 * for each device and GPU.
 */
void verdict_kernel_says(struct io *io)
{
	char words[PLN_FILE_REASON_MAX / 2] = "", bdf[32] = "";
	struct verdict *v;
	bool old = false;
	CUdevice dev;
	size_t n;

	pthread_mutex_lock(&verdict_lock);
	v = find_verdict(io->f->dev, io->mem.gpu);
	if (v) {
		old = !v->asked;
		v->asked = true;
		memcpy(words, v->words, sizeof(words));
	}
	pthread_mutex_unlock(&verdict_lock);
	if (cu.DeviceGetPCIBusId && !cu.DeviceGet(&dev, io->mem.gpu) &&
	    cu.DeviceGetPCIBusId(bdf, sizeof(bdf), dev))
		bdf[0] = '\0';
	if (v && (log_kernel_since(io->since, bdf, words, sizeof(words)) ||
		  (old && log_kernel_said(io->f->dev, bdf, words,
					  sizeof(words))))) {
		pthread_mutex_lock(&verdict_lock);
		memcpy(v->words, words, sizeof(words));
		pthread_mutex_unlock(&verdict_lock);
	}
	n = strlen(io->reason);
	if (words[0])
		snprintf(io->reason + n, sizeof(io->reason) - n,
			 "; kernel: %s", words);
}

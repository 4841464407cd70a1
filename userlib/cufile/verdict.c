// SPDX-License-Identifier: MIT
/*
 * What is known of paths between storage devices and GPUs, and what is said about
 * p2p: verdicts with their reasons, the kernel's own words, and notices.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "io.h"

/* ---- verdicts ---- */

struct verdict {
	struct verdict *next;
	unsigned int path;
	uint64_t dev;
	int gpu;
	unsigned int told;	/* bits: causes */
	bool asked;		/* the kernel, for what it has said before */
	char words[PLN_FILE_REASON_MAX / 2];	/* its own */
	_Atomic enum state state;
	/* of a refusal: it holds until then; and for how long it held */
	_Atomic time_t until;
	time_t held;
	time_t before;		/* and the one before that, as long as it is tried again */
	int err;
	uint32_t reason_id;	/* another one for each reason */
	char reason[PLN_FILE_REASON_MAX];
};

/*
 * Seconds that a refusal holds: it may have come from a setting, a driver or a
 * route that has changed since.  Each one in a row holds twice as long.
 */
#define HOLD_FIRST	10
#define HOLD_MOST	640

static pthread_rwlock_t verdict_lock = PTHREAD_RWLOCK_INITIALIZER;
/* Without the lock others may look for one, and at what is atomic of it */
static struct verdict *_Atomic verdicts;

static time_t seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* With the lock held: as from now. */
static void hold(struct verdict *v, time_t seconds)
{
	v->held = seconds;
	v->until = seconds_now() + seconds;
}

/* With the lock held, at least to read; or for what is atomic. */
static struct verdict *known(const struct io *io, unsigned int path)
{
	struct verdict *v;

	for (v = verdicts; v; v = v->next)
		if (v->path == path && v->dev == io->f->dev &&
		    v->gpu == io->mem.gpu)
			break;
	return v;
}

/* With the lock held. */
static struct verdict *find_verdict(const struct io *io, unsigned int path)
{
	struct verdict *v = known(io, path);

	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->path = path;
	v->dev = io->f->dev;
	v->gpu = io->mem.gpu;
	v->next = verdicts;
	verdicts = v;
	return v;
}

/* With the lock held, at least to read: what @v says. */
static enum state told(struct io *io, const struct verdict *v)
{
	if (v->state == REFUSED && v->path == PLN_PATH_CACHE) {
		memcpy(io->no_cache, v->reason, sizeof(io->no_cache));
		io->no_cache_id = v->reason_id;
		io->no_cache_words = NULL;
		io->no_lease = false;
	} else if (v->state == REFUSED) {
		memcpy(io->reason, v->reason, sizeof(io->reason));
		io->reason_errno = v->err;
		io->reason_id = v->reason_id;
		io->late = false;
	}
	return v->state;
}

/* With the lock held, at least to read. */
static bool is_over(const struct verdict *v)
{
	return v->state == REFUSED && seconds_now() >= v->until;
}

static bool tries(const struct io *io, unsigned int path)
{
	return io->tries & 1u << path;
}

enum state verdict_ask(struct io *io, unsigned int path)
{
	enum state s = UNKNOWN;
	struct verdict *v;

	pthread_rwlock_rdlock(&verdict_lock);
	v = known(io, path);
	if (v && !tries(io, path) && !is_over(v))
		s = told(io, v);
	pthread_rwlock_unlock(&verdict_lock);
	return s;
}

bool verdict_refused(const struct io *io, unsigned int path, time_t now)
{
	const struct verdict *v = known(io, path);

	return v && v->state == REFUSED && now < v->until;
}

enum state verdict_try(struct io *io, unsigned int path)
{
	enum state s = UNKNOWN;
	struct verdict *v;

	pthread_rwlock_wrlock(&verdict_lock);
	v = known(io, path);
	if (v && !tries(io, path) && is_over(v)) {
		/* one request tries; the others do not wait for it */
		v->before = v->held;
		hold(v, v->held < HOLD_MOST ? 2 * v->held : v->held);
		io->tries |= 1u << path;
	} else if (v && !tries(io, path)) {
		s = told(io, v);
	}
	pthread_rwlock_unlock(&verdict_lock);
	return s;
}

void verdict_not_tried(struct io *io, unsigned int path)
{
	struct verdict *v;

	if (!tries(io, path))
		return;
	io->tries &= ~(1u << path);
	pthread_rwlock_wrlock(&verdict_lock);
	v = known(io, path);
	if (v && v->state == REFUSED) {
		hold(v, 0);
		v->held = v->before;
	}
	pthread_rwlock_unlock(&verdict_lock);
}

void verdict_set(struct io *io, unsigned int path, enum state state)
{
	bool news = false, refused = false, cache = path == PLN_PATH_CACHE;
	int err = cache ? 0 : io->reason_errno;
	struct verdict *v;

	io->tries &= ~(1u << path);
	pthread_rwlock_wrlock(&verdict_lock);
	v = find_verdict(io, path);
	/* of two refusals at once, the one that has the kernel's words is kept */
	if (v && v->state != WORKS &&
	    (v->state != state || v->err != err ||
	     (state == REFUSED && v->words[0] &&
	      !strstr(v->reason, "; kernel: ")))) {
		refused = v->state == REFUSED;
		v->state = state;
		v->err = err;
		v->reason_id = reason_new();
		if (state == REFUSED)
			snprintf(v->reason, sizeof(v->reason), "%s",
				 cache ? io->no_cache : io->reason);
		if (state == REFUSED && !v->held)
			hold(v, HOLD_FIRST);
		news = true;
	}
	pthread_rwlock_unlock(&verdict_lock);
	/* of p2p, io.c tells */
	if (news && state == REFUSED && cache)
		log_line(LOG_NOTICE, "device %u:%u and GPU %d: no %s: %s",
			 major(io->f->dev), minor(io->f->dev), io->mem.gpu,
			 pln_path_name(path), io->no_cache);
	/* that it does not was said as a notice */
	if (news && state == WORKS)
		log_line(refused ? LOG_NOTICE : LOG_INFO,
			 "device %u:%u and GPU %d: %s works%s",
			 major(io->f->dev), minor(io->f->dev), io->mem.gpu,
			 pln_path_name(path), refused ? " now" : "");
}

bool verdict_direct_worked(void)
{
	struct verdict *v;

	pthread_rwlock_wrlock(&verdict_lock);
	for (v = verdicts; v && (v->path == PLN_PATH_CACHE || v->state != WORKS);
	     v = v->next)
		continue;
	pthread_rwlock_unlock(&verdict_lock);
	return v;
}

bool verdict_p2p_worked(int gpu)
{
	struct verdict *v;

	pthread_rwlock_rdlock(&verdict_lock);
	for (v = verdicts; v && (v->path != PLN_PATH_P2P || v->gpu != gpu ||
				 v->state != WORKS); v = v->next)
		continue;
	pthread_rwlock_unlock(&verdict_lock);
	return v;
}

static uint64_t bit_of(const struct io *io, enum cause cause)
{
	_Static_assert(SHORTAGE <= 8, "eight bits for each GPU, none for POSSIBLE");

	return io->mem.gpu < 0 || io->mem.gpu >= 8 ? 0 :
	       1ull << (cause - 1 + 8 * io->mem.gpu);
}

bool verdict_told(const struct io *io, enum cause cause)
{
	return io->f->told & bit_of(io, cause);
}

void verdict_tell(struct io *io, enum cause cause)
{
	struct verdict *v;
	bool news;

	/* mostly it has been for this file and one of the first GPUs: no lock */
	if (verdict_told(io, cause))
		return;
	io->f->told |= bit_of(io, cause);
	pthread_rwlock_wrlock(&verdict_lock);
	v = find_verdict(io, PLN_PATH_P2P);
	news = v && !(v->told & 1u << cause);
	if (v)
		v->told |= 1u << cause;
	pthread_rwlock_unlock(&verdict_lock);
	if (news)
		log_line(LOG_NOTICE, "device %u:%u and GPU %d: no p2p: %s",
			 major(io->f->dev), minor(io->f->dev), io->mem.gpu,
			 io->reason);
}

void verdict_forget_all(void)
{
	pthread_rwlock_wrlock(&verdict_lock);
	while (verdicts) {
		struct verdict *v = verdicts;

		verdicts = v->next;
		free(v);
	}
	pthread_rwlock_unlock(&verdict_lock);
}

/* ---- reasons ---- */

uint32_t reason_new(void)
{
	static _Atomic uint32_t last;

	return last++ % INT32_MAX + 1;
}

void io_because(struct io *io, int err, const char *fmt, ...)
{
	va_list ap;

	io->reason_errno = err;
	io->reason_id = 0;
	io->late = false;
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
	size_t n;

	pthread_rwlock_wrlock(&verdict_lock);
	v = find_verdict(io, PLN_PATH_P2P);
	if (v) {
		old = !v->asked;
		v->asked = true;
		memcpy(words, v->words, sizeof(words));
	}
	pthread_rwlock_unlock(&verdict_lock);
	if (!cu_pci_address(io->mem.gpu, bdf, sizeof(bdf)))
		bdf[0] = '\0';
	if (v && (log_kernel_since(io->since, bdf, words, sizeof(words)) ||
		  (old && log_kernel_said(io->f->dev, bdf, words,
					  sizeof(words))))) {
		pthread_rwlock_wrlock(&verdict_lock);
		memcpy(v->words, words, sizeof(words));
		pthread_rwlock_unlock(&verdict_lock);
	}
	n = strlen(io->reason);
	if (words[0])
		snprintf(io->reason + n, sizeof(io->reason) - n,
			 "; kernel: %s", words);
}

// SPDX-License-Identifier: MIT
/* The driver in the process: its files, its memory and its queues */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../internal.h"
#include "fake_engine.h"
#include "fake_gpu.h"

#define MAX_FDS		1024
#define CPU_PAGE	4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_config cfg;
struct fgpu fake_gpus[MAX_GPUS];
static struct ffile *files[MAX_FDS];
static uint64_t exports[MAX_FDS];	/* offset + 1 */
static unsigned int export_gpu[MAX_FDS];
static bool importable[MAX_FDS];
static uint64_t export_size[MAX_FDS];
static unsigned int calls[FAKE_NR_CALLS];
static unsigned int fail_at[FAKE_NR_CALLS];
static int fail_with[FAKE_NR_CALLS];
static uint64_t next_job = 1;
static unsigned int leaks;
pthread_cond_t fake_ran = PTHREAD_COND_INITIALIZER;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static bool hold[FAKE_NR_CALLS];
static unsigned int held[FAKE_NR_CALLS];
static bool stuck;
static uint64_t clock_ns = 1000000000;

static void die(const char *what)
{
	perror(what);
	abort();
}

void fake_setup(const struct fake_config *config)
{
	cfg = *config;
	for (unsigned int g = 0; g < cfg.gpus; g++) {
		struct fgpu *gpu = &fake_gpus[g];

		gpu->memfd = memfd_create("fake-vram", MFD_CLOEXEC);
		if (gpu->memfd < 0 || ftruncate(gpu->memfd, (off_t)cfg.vram))
			die("memfd");
		gpu->vram = mmap(NULL, cfg.vram, PROT_READ | PROT_WRITE,
				 MAP_SHARED, gpu->memfd, 0);
		if (gpu->vram == MAP_FAILED)
			die("mmap");
		gpu->used = calloc(1, cfg.vram / FAKE_PAGE);
		if (!gpu->used)
			die("calloc");
	}
}

/* As part of a shared library there is nobody to call fake_setup() */
static void setup_default(void)
{
	const char *n = getenv("PEERLANE_FAKE_GPUS");
	const char *coherent = getenv("PEERLANE_FAKE_COHERENT");
	const char *manual = getenv("PEERLANE_FAKE_MANUAL");
	struct fake_config config = {
		.gpus = n ? (unsigned int)atoi(n) : 1,
		.vram = 256 * MiB,
		.queues = 4,
		.coherent = coherent && *coherent == '1',
		.dmabuf = true,
		.manual = manual && *manual == '1',
		.real_time = true,
	};

	if (config.gpus > MAX_GPUS)
		config.gpus = MAX_GPUS;
	if (!cfg.vram)
		fake_setup(&config);
}

void fake_fail(enum fake_call call, unsigned int nth, int error)
{
	pthread_mutex_lock(&lock);
	fail_at[call] = nth ? calls[call] + nth : 0;
	fail_with[call] = error;
	pthread_mutex_unlock(&lock);
}

unsigned int fake_calls(enum fake_call call)
{
	return calls[call];
}

bool fake_will_fail(enum fake_call call)
{
	bool will;

	pthread_mutex_lock(&lock);
	will = fail_at[call] > calls[call];
	pthread_mutex_unlock(&lock);
	return will;
}

uint8_t *fake_vram(unsigned int gpu)
{
	return fake_gpus[gpu].vram;
}

void fake_hold(enum fake_call call, bool on)
{
	pthread_mutex_lock(&lock);
	hold[call] = on;
	pthread_cond_broadcast(&let_go);
	pthread_mutex_unlock(&lock);
}

unsigned int fake_held(enum fake_call call)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = held[call];
	pthread_mutex_unlock(&lock);
	return n;
}

void fake_stick(bool stick)
{
	pthread_mutex_lock(&lock);
	stuck = stick;
	pthread_mutex_unlock(&lock);
}

static bool injected(enum fake_call call)
{
	if (++calls[call] != fail_at[call])
		return false;
	errno = fail_with[call];
	return true;
}

void fake_step(unsigned int gpu, unsigned int queue, unsigned int n)
{
	pthread_mutex_lock(&lock);
	for (int fd = 0; fd < MAX_FDS; fd++) {
		struct ffile *f = files[fd];

		if (!f || f->gpu != gpu)
			continue;
		for (struct fjob *j = f->jobs; j && n; j = j->next) {
			if (j->queue != queue || j->done)
				continue;
			fake_run_job(f, j);
			n--;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* The lock is held */
uint64_t fake_time(void)
{
	struct timespec now;

	if (!cfg.real_time)
		return ++clock_ns;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void fake_pass_time(uint64_t ns)
{
	pthread_mutex_lock(&lock);
	clock_ns += ns;
	pthread_mutex_unlock(&lock);
}

void fake_late_write(unsigned int gpu, uint64_t at, uint8_t byte)
{
	pthread_mutex_lock(&lock);
	fake_gpus[gpu].late = true;
	fake_gpus[gpu].late_at = at;
	fake_gpus[gpu].late_byte = byte;
	pthread_mutex_unlock(&lock);
}

void fake_reset(unsigned int gpu)
{
	pthread_mutex_lock(&lock);
	fake_gpus[gpu].reset_count++;
	pthread_cond_broadcast(&fake_ran);
	memset(fake_gpus[gpu].vram, 0xdb, cfg.vram);
	pthread_mutex_unlock(&lock);
}

void fake_remove(unsigned int gpu)
{
	pthread_mutex_lock(&lock);
	fake_gpus[gpu].removed = true;
	pthread_mutex_unlock(&lock);
}

unsigned int fake_files(void)
{
	unsigned int n = 0;

	for (int i = 0; i < MAX_FDS; i++)
		n += files[i] != NULL;
	return n;
}

unsigned int fake_handles(void)
{
	unsigned int n = 0;

	for (int i = 0; i < MAX_FDS; i++)
		for (int h = 0; files[i] && h < MAX_HANDLES; h++)
			n += files[i]->handle[h].used;
	return n;
}

unsigned int fake_jobs(void)
{
	unsigned int n = 0;

	for (int i = 0; i < MAX_FDS; i++)
		n += files[i] ? files[i]->nr_jobs : 0;
	return n;
}

unsigned int fake_leaks(void)
{
	return leaks;
}

uint64_t fake_vram_used(unsigned int gpu)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < cfg.vram / FAKE_PAGE; i++)
		n += fake_gpus[gpu].used[i] != 0;
	return n * FAKE_PAGE;
}

uint64_t fake_export_offset(int fd)
{
	return exports[fd] - 1;
}

uint64_t fake_export_size(int fd)
{
	return export_size[fd];
}

/* ---- the calls ---- */

int drv_io_open(unsigned int minor)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	setup_default();
	if (injected(FAKE_OPEN))
		goto out;
	errno = cfg.open_errno;
	if (errno)
		goto out;
	errno = ENOENT;
	if (minor >= cfg.gpus)
		goto out;
	errno = ENODEV;
	if (fake_gpus[minor].removed)
		goto out;
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		goto out;
	if (fd >= MAX_FDS)
		die("fake fd");
	files[fd] = calloc(1, sizeof(struct ffile));
	if (!files[fd])
		die("calloc");
	files[fd]->gpu = minor;
	files[fd]->reset_count = fake_gpus[minor].reset_count;
out:
	pthread_mutex_unlock(&lock);
	return fd;
}

static void free_pages(struct ffile *f, struct fhandle *h)
{
	for (uint64_t i = 0; i < h->size / FAKE_PAGE; i++)
		fake_gpus[f->gpu].used[h->offset / FAKE_PAGE + i]--;
	h->used = false;
	h->kept = false;
}

static bool job_uses(const struct ffile *f, uint32_t handle)
{
	for (struct fjob *j = f->jobs; j; j = j->next)
		for (unsigned int i = 0; i < j->nr && !j->done; i++)
			if (j->ops[i].src_handle == handle ||
			    j->ops[i].dst_handle == handle)
				return true;
	return false;
}

static void free_job(struct ffile *f, struct fjob *job)
{
	struct fjob **p = &f->jobs;

	while (*p != job)
		p = &(*p)->next;
	*p = job->next;
	f->nr_jobs--;
	free(job->ops);
	free(job);
	for (uint32_t h = 0; h < MAX_HANDLES; h++)
		if (f->handle[h].kept && !job_uses(f, h + 1))
			free_pages(f, &f->handle[h]);
}

int drv_io_close(int fd)
{
	struct ffile *f;

	pthread_mutex_lock(&lock);
	f = files[fd];
	if (!f)
		die("close of a strange fd");
	files[fd] = NULL;
	leaks += f->nr_jobs;
	while (f->jobs)
		free_job(f, f->jobs);
	for (int h = 0; h < MAX_HANDLES; h++) {
		if (!f->handle[h].used)
			continue;
		leaks++;
		free_pages(f, &f->handle[h]);
	}
	free(f);
	pthread_mutex_unlock(&lock);
	return close(fd);
}

void *drv_io_mmap(void *addr, size_t len, int prot, int fd, uint64_t offset)
{
	struct ffile *f;
	void *p = MAP_FAILED;

	pthread_mutex_lock(&lock);
	f = files[fd];
	if (!injected(FAKE_MMAP)) {
		if (!f || (prot != PROT_NONE && !cfg.coherent))
			die("mmap without a window");
		p = mmap(addr, len, prot, MAP_SHARED | MAP_FIXED,
			 fake_gpus[f->gpu].memfd, (off_t)offset);
	}
	pthread_mutex_unlock(&lock);
	return p;
}

static int do_query(struct ffile *f, struct pln_gpu_query *q)
{
	struct fgpu *gpu = &fake_gpus[f->gpu];

	if (q->flags || q->reserved[0] | q->reserved[1] | q->reserved[2])
		return EINVAL;
	if (gpu->removed)
		return ENODEV;
	memset(q, 0, sizeof(*q));
	q->abi_version = cfg.abi_version ? cfg.abi_version :
					   PLN_GPU_ABI_VERSION;
	q->features = PLN_GPU_FEAT_P2PDMA | PLN_GPU_FEAT_DEVPTR |
		      (cfg.coherent ? PLN_GPU_FEAT_COHERENT : 0) |
		      (cfg.no_time ? 0 : PLN_GPU_FEAT_TIME) |
		      (cfg.late_writes ? PLN_GPU_FEAT_LATE_WRITES : 0) |
		      (cfg.dmabuf ? PLN_GPU_FEAT_DMABUF | PLN_GPU_FEAT_PARTS : 0);
	q->time_ns = cfg.no_time ? 0 : fake_time();
	q->vram_size = cfg.vram;
	q->vram_free = cfg.vram - fake_vram_used(f->gpu);
	q->bar1_size = q->bar1_free = cfg.vram / 4;
	q->coherent_size = cfg.coherent ? cfg.vram : 0;
	q->reset_count = gpu->reset_count;
	q->page_size = FAKE_PAGE;
	q->num_queues = cfg.queues;
	q->pci_bus = 3 + f->gpu;
	q->pci_devfn = 8;
	q->numa_node = -1;
	for (unsigned int i = 0; i < 16; i++)
		q->uuid[i] = (uint8_t)(i + 16 * f->gpu);
	return 0;
}

static int do_alloc(struct ffile *f, struct pln_gpu_alloc *a)
{
	struct fgpu *gpu = &fake_gpus[f->gpu];
	uint64_t pages, run = 0;

	if (a->flags || a->reserved || !a->size)
		return EINVAL;
	if (gpu->removed)
		return EIO;
	if (a->size > cfg.vram)
		return ENOMEM;
	pages = (a->size + FAKE_PAGE - 1) / FAKE_PAGE;
	for (uint64_t i = 0; i < cfg.vram / FAKE_PAGE; i++) {
		run = gpu->used[i] ? 0 : run + 1;
		if (run < pages)
			continue;
		for (uint32_t h = 0; h < MAX_HANDLES; h++) {
			struct fhandle *fh = &f->handle[h];

			if (fh->used)
				continue;
			fh->used = true;
			fh->offset = (i + 1 - pages) * FAKE_PAGE;
			fh->size = pages * FAKE_PAGE;
			memset(gpu->used + fh->offset / FAKE_PAGE, 1, pages);
			/* zeros, which take no memory */
			if (fallocate(gpu->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				      (off_t)fh->offset, (off_t)fh->size))
				die("fallocate");
			a->size = fh->size;
			a->handle = h + 1;
			a->mmap_offset = fh->offset;
			return 0;
		}
	}
	return ENOMEM;
}

static int do_free(struct ffile *f, struct pln_gpu_free *r)
{
	struct fhandle *h = fake_handle(f, r->handle);

	if (r->reserved)
		return EINVAL;
	if (!h)
		return ENOENT;
	if (!job_uses(f, r->handle))
		free_pages(f, h);
	else if (stuck)
		h->kept = true;
	else
		die("memory freed under a job");
	return 0;
}

static int do_export(struct ffile *f, struct pln_gpu_export *e)
{
	struct fhandle *h = fake_handle(f, e->handle);
	bool import = e->flags & PLN_GPU_EXPORT_F_IMPORT;

	if (e->reserved || !e->size ||
	    (e->flags & ~(uint32_t)(O_CLOEXEC | PLN_GPU_EXPORT_F_IMPORT)) ||
	    e->offset % CPU_PAGE || e->size % CPU_PAGE)
		return EINVAL;
	if (!h)
		return ENOENT;
	if (!cfg.dmabuf)
		return EOPNOTSUPP;
	if (fake_gpus[f->gpu].reset_count != f->reset_count)
		return EIO;
	if (e->offset > h->size || e->size > h->size - e->offset ||
	    (import && e->size != h->size))
		return EINVAL;
	e->fd = fcntl(fake_gpus[f->gpu].memfd,
		      e->flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
	if (e->fd < 0 || e->fd >= MAX_FDS)
		return EMFILE;
	exports[e->fd] = h->offset + e->offset + 1;
	export_size[e->fd] = e->size;
	export_gpu[e->fd] = f->gpu;
	importable[e->fd] = import;
	return 0;
}

static int do_export_parts(struct ffile *f, struct pln_gpu_export_parts *e)
{
	struct pln_gpu_part *part = (void *)(uintptr_t)e->parts;
	struct pln_gpu_export one;
	int err = 0;

	if (e->reserved || !e->nr_parts || e->nr_parts > PLN_GPU_MAX_PARTS ||
	    e->flags & ~(uint32_t)O_CLOEXEC)
		return EINVAL;
	e->size = 0;
	e->fd = -1;
	for (uint32_t i = 0; i < e->nr_parts && !err; i++) {
		one = (struct pln_gpu_export){
			.handle = part[i].handle,
			.flags = e->flags,
			.offset = part[i].offset,
			.size = part[i].size,
		};
		err = part[i].reserved ? EINVAL : do_export(f, &one);
		if (!err && i)
			close(one.fd);
		else if (!err)
			e->fd = one.fd;
		e->size += part[i].size;
	}
	if (err && e->fd >= 0)
		close(e->fd);
	else if (!err)
		export_size[e->fd] = e->size;
	return err;
}

/* A descriptor that was closed and is another one now is not noticed */
static int do_import(struct ffile *f, struct pln_gpu_import *r)
{
	struct fgpu *gpu = &fake_gpus[f->gpu];
	uint64_t first;

	if (r->flags || r->reserved)
		return EINVAL;
	if (fcntl(r->fd, F_GETFD) < 0)
		return EBADF;
	if (r->fd >= MAX_FDS || !exports[r->fd])
		return EINVAL;
	if (!importable[r->fd])
		return EACCES;
	if (export_gpu[r->fd] != f->gpu)
		return EXDEV;
	first = (exports[r->fd] - 1) / FAKE_PAGE;
	if (!gpu->used[first])
		return ENOENT;
	for (uint32_t h = 0; h < MAX_HANDLES; h++) {
		struct fhandle *fh = &f->handle[h];

		if (fh->used)
			continue;
		fh->used = true;
		fh->offset = exports[r->fd] - 1;
		fh->size = export_size[r->fd];
		for (uint64_t i = 0; i < fh->size / FAKE_PAGE; i++)
			gpu->used[first + i]++;
		r->handle = h + 1;
		r->offset = 0;
		r->size = fh->size;
		r->mmap_offset = fh->offset;
		return 0;
	}
	return ENOMEM;
}

static int do_submit(struct ffile *f, struct pln_gpu_submit *s)
{
	const struct pln_gpu_op *ops = (void *)(uintptr_t)s->ops;
	struct fjob *job, **p;
	uint64_t pinned = 0;

	if (s->flags || s->reserved || !s->nr_ops ||
	    s->nr_ops > PLN_GPU_MAX_OPS || s->queue >= cfg.queues)
		return EINVAL;
	if (fake_gpus[f->gpu].reset_count != f->reset_count ||
	    fake_gpus[f->gpu].removed)
		return EIO;
	for (unsigned int i = 0; i < s->nr_ops; i++) {
		int err = fake_check_op(f, &ops[i]);

		if (err)
			return err == ENOENT ? EINVAL : err;
	}
	for (unsigned int i = 0; i < s->nr_ops; i++)
		pinned += ops[i].flags ? ops[i].len : 0;
	if (cfg.memlock && pinned > cfg.memlock)
		return ENOMEM;
	if (f->nr_jobs >= FAKE_MAX_JOBS)
		return EAGAIN;
	job = calloc(1, sizeof(*job));
	if (!job)
		die("calloc");
	job->ops = malloc(s->nr_ops * sizeof(*ops));
	if (!job->ops)
		die("malloc");
	memcpy(job->ops, ops, s->nr_ops * sizeof(*ops));
	job->nr = s->nr_ops;
	job->queue = s->queue;
	job->id = next_job++;
	for (p = &f->jobs; *p; p = &(*p)->next)
		;
	*p = job;
	f->nr_jobs++;
	s->job = job->id;
	if (!cfg.manual)
		fake_run_job(f, job);
	return 0;
}

static struct fjob *job_of(struct ffile *f, uint64_t id)
{
	struct fjob *job;

	for (job = f->jobs; job && job->id != id; job = job->next)
		;
	return job;
}

/* A thread that only looks at ends runs no jobs: it waits until another one does */
static int wait_ran(struct ffile *f, const struct pln_gpu_wait *w)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += 10000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	while (!job_of(f, w->job)->done)
		if (pthread_cond_timedwait(&fake_ran, &lock, &end))
			return 1;
	return 0;
}

/* Without the library's threads, none of them asks */
#pragma weak drv_is_watcher

static bool is_watcher(void)
{
	return drv_is_watcher && drv_is_watcher();
}

static int do_wait(struct ffile *f, struct pln_gpu_wait *w)
{
	uint32_t known = cfg.no_time ? 0 : PLN_GPU_WAIT_F_TIME;
	struct fjob *job;

	if (w->flags & ~known || w->reserved || w->timeout_ns > 600000000000ull)
		return EINVAL;
	job = job_of(f, w->job);
	if (!job)
		return ENOENT;
	if (stuck && !job->done)
		return ETIMEDOUT;
	if (cfg.manual && is_watcher() && w->timeout_ns && !job->done &&
	    fake_gpus[f->gpu].reset_count == f->reset_count)
		return wait_ran(f, w) ? ETIMEDOUT : do_wait(f, w);
	/* After a reset all jobs have failed */
	if (w->timeout_ns || fake_gpus[f->gpu].reset_count != f->reset_count)
		for (struct fjob *j = f->jobs; j; j = j->next) {
			if (j->queue == job->queue)
				fake_run_job(f, j);
			if (j == job)
				break;
		}
	if (!job->done)
		return ETIMEDOUT;
	if (w->flags & PLN_GPU_WAIT_F_TIME)
		w->time_ns = job->time;
	w->status = job->status;
	w->error = job->error;
	w->result = job->result;
	free_job(f, job);
	return 0;
}

int drv_io_ioctl(int fd, unsigned long request, void *arg)
{
	enum fake_call call;
	struct ffile *f;
	int err = 0;

	pthread_mutex_lock(&lock);
	f = fd >= 0 && fd < MAX_FDS ? files[fd] : NULL;
	if (!f)
		die("ioctl on a strange fd");
	switch (request) {
	case PLN_GPU_IOC_QUERY:
		call = FAKE_QUERY;
		break;
	case PLN_GPU_IOC_ALLOC:
		call = FAKE_ALLOC;
		break;
	case PLN_GPU_IOC_FREE:
		call = FAKE_FREE;
		break;
	case PLN_GPU_IOC_EXPORT:
	case PLN_GPU_IOC_EXPORT_PARTS:
		call = FAKE_EXPORT;
		break;
	case PLN_GPU_IOC_IMPORT:
		call = FAKE_IMPORT;
		break;
	case PLN_GPU_IOC_SUBMIT:
		call = FAKE_SUBMIT;
		break;
	case PLN_GPU_IOC_WAIT:
		call = FAKE_WAIT;
		break;
	default:
		pthread_mutex_unlock(&lock);
		errno = ENOTTY;
		return -1;
	}
	held[call]++;
	while (hold[call])
		pthread_cond_wait(&let_go, &lock);
	held[call]--;
	if (injected(call))
		err = errno;
	else if (call == FAKE_QUERY)
		err = do_query(f, arg);
	else if (call == FAKE_ALLOC)
		err = do_alloc(f, arg);
	else if (call == FAKE_FREE)
		err = do_free(f, arg);
	else if (request == PLN_GPU_IOC_EXPORT_PARTS)
		err = do_export_parts(f, arg);
	else if (call == FAKE_EXPORT)
		err = do_export(f, arg);
	else if (call == FAKE_IMPORT)
		err = do_import(f, arg);
	else if (call == FAKE_SUBMIT)
		err = do_submit(f, arg);
	else
		err = do_wait(f, arg);
	pthread_mutex_unlock(&lock);
	if (err) {
		errno = err;
		return -1;
	}
	return 0;
}

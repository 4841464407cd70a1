// SPDX-License-Identifier: MIT
/*
 * Memory and events for other processes.
 *
 * A handle names a descriptor of the process that made it: of a dma-buf, or of
 * a page of shared memory.  The other process takes it with pidfd_getfd(2), so
 * it needs the permission to trace the first one, and must see it under the
 * same process number.
 *
 * An event is a page that both have mapped.  Each recording has a number; the
 * engine writes the number into the page when the work before it has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define MAGIC_MEM	0x706c6d31u
#define MAGIC_EVENT	0x706c6536u

_Static_assert(sizeof(struct drv_name) <= sizeof(CUipcMemHandle) &&
	       sizeof(struct drv_name) <= sizeof(CUipcEventHandle), "fits");

CUresult drv_name_fd(struct drv_name *name, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return CUDA_ERROR_OPERATING_SYSTEM;
	name->pid = getpid();
	name->fd = fd;
	name->inode = st.st_ino;
	return CUDA_SUCCESS;
}

/* A descriptor of our own for what @name says */
CUresult drv_take_fd(const struct drv_name *name, uint32_t magic, int *out)
{
	int pidfd, fd, error;
	struct stat st;

	if (name->magic != magic || name->pid <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (name->pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	pidfd = (int)syscall(SYS_pidfd_open, name->pid, 0);
	if (pidfd < 0)
		return errno == ESRCH ? CUDA_ERROR_INVALID_HANDLE :
					CUDA_ERROR_OPERATING_SYSTEM;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, name->fd, 0);
	error = errno;
	close(pidfd);
	if (fd < 0) {
		drv_log("descriptor %d of process %d: %s%s", name->fd, name->pid,
			strerror(error), error == EPERM ?
			": it needs the permission to trace that process (its "
			"user, and /proc/sys/kernel/yama/ptrace_scope 0, or "
			"its prctl(PR_SET_PTRACER))" : "");
		return error == EPERM ? CUDA_ERROR_NOT_PERMITTED :
		       error == EBADF || error == ESRCH ?
		       CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (fstat(fd, &st) || st.st_ino != name->inode) {
		close(fd);
		return CUDA_ERROR_INVALID_VALUE;	/* it is another by now */
	}
	*out = fd;
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

uint32_t drv_device_name(const struct drv_device *dev)
{
	return dev->info.pci_domain << 16 | dev->info.pci_bus << 8 |
	       dev->info.pci_devfn;
}

/*
 * Name the memory of @range.  The descriptor stays open as long as the memory.
 * All of the block goes out, as with NVIDIA's driver: a small allocation is no
 * whole number of pages.  This does not wait for anything; drv.lock is held.
 */
CUresult drv_name_memory(struct drv_range *range, struct drv_name *name)
{
	struct pln_gpu_export req = {
		.flags = O_CLOEXEC | PLN_GPU_EXPORT_F_IMPORT,
	};
	struct drv_file *file = range->chunk->file;

	if (!(file->features & PLN_GPU_FEAT_DMABUF))
		return CUDA_ERROR_NOT_SUPPORTED;
	name->device = drv_device_name(range->dev);
	name->offset = range->addr - range->chunk->addr;
	name->size = range->size;
	if (!range->export_fd) {
		req.handle = range->chunk->handle;
		req.size = range->chunk->size;
		if (drv_call(file->fd, PLN_GPU_IOC_EXPORT, &req))
			return drv_file_error(file, errno);
		range->chunk->exports++;
		range->export_fd = req.fd + 1;
	}
	return drv_name_fd(name, range->export_fd - 1);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct drv_name name = { .magic = MAGIC_MEM };
	struct drv_range *range;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	drv_ctx_put(ctx);
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	err = range && range->kind == DRV_RANGE_DEVICE ?
	      drv_name_memory(range, &name) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&drv.lock);
	if (err)
		return err;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &name, sizeof(name));
	return CUDA_SUCCESS;
}

struct drv_device *drv_device_of_name(uint32_t name)
{
	for (int i = 0; i < drv.nr_devices; i++)
		if (drv_device_name(&drv.devices[i]) == name)
			return &drv.devices[i];
	return NULL;			/* a GPU that we do not see */
}

static CUresult open_by(struct drv_file *file, CUcontext ctx,
			const struct drv_name *name, int fd, CUmemoryPool pool,
			CUdeviceptr *ptr)
{
	struct pln_gpu_import req = { .fd = fd };
	struct drv_range *range;
	struct drv_chunk *chunk;
	bool last = false;
	CUresult err;

	if (drv_call(file->fd, PLN_GPU_IOC_IMPORT, &req))
		return errno == EINVAL || errno == EACCES || errno == EXDEV ||
		       errno == ENOENT ? CUDA_ERROR_INVALID_VALUE :
					 drv_file_error(file, errno);
	if (!name->size ||
	    !drv_span_has(name->offset, name->size, 0, req.size)) {
		drv_handle_free(file, req.handle);
		return CUDA_ERROR_INVALID_VALUE;
	}
	range = calloc(1, sizeof(*range));
	if (!range) {
		drv_handle_free(file, req.handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	err = drv_chunk_new(file, req.handle, req.size, req.mmap_offset,
			    &chunk);
	if (err) {
		free(range);
		return err;
	}
	range->addr = chunk->addr + name->offset;
	range->size = name->size;
	range->kind = pool ? DRV_RANGE_IMPORTED : DRV_RANGE_IPC;
	range->pool = pool;
	range->name = *name;
	range->opened = 1;
	range->ctx = ctx;
	range->dev = file->dev;
	range->chunk = chunk;
	pthread_mutex_lock(&drv.lock);
	if (pool)
		atomic_fetch_add(&pool->obj.refs, 1);
	err = drv_chunk_add(ctx, chunk);
	if (err) {
		last = true;
	} else {
		err = drv_range_add(range);
		if (err)
			last = drv_chunk_drop(chunk);
		else
			*ptr = range->addr;
	}
	pthread_mutex_unlock(&drv.lock);
	if (last)
		drv_chunk_free(chunk);
	if (err) {
		if (pool)
			drv_obj_put(&pool->obj);
		free(range);
	}
	return err;
}

/*
 * @ctx may be on another GPU than the memory: that one's open file has the memory
 * then, and stays open as long, and @ctx's engine reaches it as a peer's.
 */
static CUresult open_first(CUcontext ctx, const struct drv_name *name, int fd,
			   CUmemoryPool pool, CUdeviceptr *ptr)
{
	struct drv_device *dev = drv_device_of_name(name->device);
	struct drv_file *file;
	CUresult err;

	if (dev == ctx->dev)
		return open_by(ctx->file, ctx, name, fd, pool, ptr);
	if (!dev) {
		drv_log("the memory is of the GPU at %04x:%02x:%02x.%x, which this process does not see",
			name->device >> 16, name->device >> 8 & 0xff,
			name->device >> 3 & 0x1f, name->device & 7);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!drv_peers(ctx->dev, dev))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	err = drv_file_use(dev, &file);
	if (err)
		return err;
	err = open_by(file, ctx, name, fd, pool, ptr);
	if (err)
		drv_file_unuse(file);
	return err;
}

static bool open_again(CUcontext ctx, const struct drv_name *name,
		       CUmemoryPool pool, CUdeviceptr *ptr)
{
	struct drv_range *range;

	pthread_mutex_lock(&drv.lock);
	LIST_FOREACH(range, &ctx->ranges, link)
		if (range->opened && range->pool == pool &&
		    !memcmp(&range->name, name, sizeof(*name)))
			break;
	if (range) {
		range->opened++;
		*ptr = range->addr;
	}
	pthread_mutex_unlock(&drv.lock);
	return range;
}

CUresult drv_open_memory(CUcontext ctx, const struct drv_name *name, int fd,
			 CUmemoryPool pool, CUdeviceptr *ptr)
{
	/* One at a time, so that of two threads one finds what the other opened */
	static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&opening);
	if (!open_again(ctx, name, pool, ptr))
		err = open_first(ctx, name, fd, pool, ptr);
	pthread_mutex_unlock(&opening);
	return err;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle,
			       unsigned int flags)
{
	struct drv_name name;
	CUcontext ctx;
	int fd;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	memcpy(&name, &handle, sizeof(name));
	if (!ptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		err = CUDA_ERROR_INVALID_VALUE;
	else
		err = drv_take_fd(&name, MAGIC_MEM, &fd);
	if (!err) {
		err = drv_open_memory(ctx, &name, fd, NULL, ptr);
		close(fd);
	}
	drv_ctx_put(ctx);
	return err;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle,
			    unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	CUresult err = drv_ctx_needed();

	return err ? err : drv_take_and_free(ptr, DRV_KIND(IPC),
					     CUDA_ERROR_INVALID_VALUE);
}

/* ---- events ---- */

#define RECORDS		64
#define PAGE		4096
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define POLL_MIN_NS	20000
#define POLL_MAX_NS	1000000

/* The page.  The other process is not trusted with more than this event. */
struct page {
	uint32_t magic;
	_Atomic uint64_t recorded;	/* number of the latest recording */
	_Atomic uint64_t done[RECORDS];	/* by number modulo their count */
	_Atomic uint64_t begun[RECORDS];	/* likewise: the last that is to be done */
};

struct drv_shared {
	atomic_int refs;
	int fd;				/* -1: opened, not made here */
	struct page *page;
	pthread_mutex_t lock;		/* one recording of this process at a time */
	struct drv_job *job[RECORDS];	/* drv.order: those that have not ended */
};

static struct drv_shared *shared_map(int fd)
{
	struct drv_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
	if (shared->page == MAP_FAILED) {
		free(shared);
		return NULL;
	}
	atomic_init(&shared->refs, 1);
	pthread_mutex_init(&shared->lock, NULL);
	shared->fd = -1;
	return shared;
}

struct drv_shared *drv_shared_ref(struct drv_shared *shared)
{
	atomic_fetch_add(&shared->refs, 1);
	return shared;
}

void drv_shared_put(struct drv_shared *shared)
{
	if (!shared || atomic_fetch_sub(&shared->refs, 1) != 1)
		return;
	munmap(shared->page, PAGE);
	pthread_mutex_destroy(&shared->lock);
	if (shared->fd >= 0)
		close(shared->fd);
	free(shared);
}

CUresult drv_shared_new(CUevent event)
{
	int fd = memfd_create("peerlane-event",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (!ftruncate(fd, PAGE) && !fcntl(fd, F_ADD_SEALS, SEALS))
		event->shared = shared_map(fd);
	if (!event->shared) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->shared->fd = fd;
	event->shared->page->magic = MAGIC_EVENT;
	return CUDA_SUCCESS;
}

/* Words of an event that is gone, which had recordings that had not ended */
struct drv_words {
	CUdeviceptr at;
	STAILQ_ENTRY(drv_words) link;
};

/* Does something write them that has not ended?  drv.lock is held. */
static bool words_used(CUcontext ctx, CUdeviceptr words)
{
	struct drv_range *range = drv_range_find(words, RECORDS * 8);

	return range && range->ctx == ctx &&
	       drv_job_uses(range->chunk->file, range->chunk->handle,
			    &(struct drv_span){ words - range->chunk->addr,
						RECORDS * 8 });
}

/* The GPU memory that an event is recorded by, got when it is first needed */
static CUresult words_of(CUevent event, CUdeviceptr *words)
{
	struct drv_words *old = NULL;
	CUcontext ctx = event->ctx;
	CUdeviceptr made = 0;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&drv.lock);
	if (!event->words)
		old = STAILQ_FIRST(&ctx->words);
	if (old && words_used(ctx, old->at))
		old = NULL;
	if (old) {
		STAILQ_REMOVE_HEAD(&ctx->words, link);
		event->words = old->at;
	}
	*words = event->words;
	pthread_mutex_unlock(&drv.lock);
	free(old);
	if (!*words)
		err = drv_device_alloc(ctx, RECORDS * 8,
				       DRV_RANGE_DEVICE, &made);
	if (!made)
		return err;
	pthread_mutex_lock(&drv.lock);
	if (!event->words) {
		event->words = made;
		made = 0;
	}
	*words = event->words;
	pthread_mutex_unlock(&drv.lock);
	if (made)	/* another thread was first */
		drv_device_free(ctx, made);
	return CUDA_SUCCESS;
}

/* Numbers in the page only grow */
static void mark_done(struct drv_shared *shared, uint64_t number)
{
	_Atomic uint64_t *done = &shared->page->done[number % RECORDS];
	uint64_t old = atomic_load(done);

	while (old < number &&
	       !atomic_compare_exchange_weak(done, &old, number))
		;
}

void drv_shared_done(struct drv_job *job)
{
	struct drv_shared *shared = job->shared;
	struct drv_job **mine = &shared->job[job->recording % RECORDS];

	mark_done(shared, job->recording);	/* also when it failed */
	if (*mine == job) {
		*mine = NULL;
		drv_job_put(job);
	}
}

/* @job, which has the number @number, is pending or in the kernel */
static void note_job(struct drv_shared *shared, struct drv_job *job,
		     uint64_t number)
{
	struct drv_job **mine = &shared->job[number % RECORDS];
	struct drv_job *old = NULL;

	pthread_mutex_lock(&drv.order);
	if (atomic_load(&job->state) != DRV_JOB_DONE) {
		old = *mine;
		*mine = drv_job_ref(job);
	}
	pthread_mutex_unlock(&drv.order);
	drv_job_put(old);
}

struct await {
	struct drv_shared *shared;
	uint64_t number;
};

/*
 * Without a limit, since what follows must not run before.  Who waits for it has one,
 * and the end of the context ends it.
 */
static CUresult await_run(struct drv_job *job, void *arg)
{
	struct timespec nap = { 0, POLL_MIN_NS };
	struct await *await = arg;

	while (!atomic_load(&job->cancelled) &&
	       drv_shared_wait(await->shared, await->number, false)) {
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < POLL_MAX_NS)
			nap.tv_nsec *= 2;
	}
	drv_shared_put(await->shared);
	free(await);
	return CUDA_SUCCESS;
}

/* What follows in @stream waits for the recording @number */
static CUresult await_number(struct drv_shared *shared, uint64_t number,
			     CUstream stream)
{
	struct await *await;
	CUresult err;

	if (!drv_shared_wait(shared, number, false))
		return CUDA_SUCCESS;
	await = calloc(1, sizeof(*await));
	if (!await)
		return CUDA_ERROR_OUT_OF_MEMORY;
	await->shared = drv_shared_ref(shared);
	await->number = number;
	err = drv_stream_work(stream, NULL, DRV_USE_NONE, NULL, await_run, await,
			      NULL);
	if (err) {
		drv_shared_put(shared);
		free(await);
	}
	return err;
}

/* Likewise for what has been recorded until now */
CUresult drv_shared_await(struct drv_shared *shared, CUstream stream)
{
	return await_number(shared, drv_shared_last(shared), stream);
}

/*
 * Take @number's word of the page for a recording in @stream: nobody is yet to write
 * it, of any process, or @stream does so after it.  Else 0 or, in *@held with a
 * reference, this process's job that has the word, and in *@begun its number.
 */
static bool take_word(struct drv_shared *shared, CUstream stream,
		      uint64_t number, struct drv_job **held, uint64_t *begun)
{
	struct page *page = shared->page;
	size_t word = number % RECORDS;
	struct drv_job *mine;
	bool ok;

	*held = NULL;
	*begun = atomic_load(&page->begun[word]);
	ok = atomic_load(&page->done[word]) >= *begun;
	pthread_mutex_lock(&drv.order);
	mine = shared->job[word];
	if (!ok && mine && mine->recording == *begun) {
		ok = drv_stream_behind(stream, mine);
		*held = ok ? NULL : drv_job_ref(mine);
	}
	pthread_mutex_unlock(&drv.order);
	return ok && atomic_compare_exchange_strong(&page->begun[word], begun,
						    number);
}

/*
 * The number of the next recording.  Two have the same word of the page when one
 * goes before the other anyway: of a word that an older one elsewhere is yet to
 * write, the number is left out.  When all words are such, @stream follows one of the
 * older ones.  shared->lock is held.
 */
static CUresult next_number(struct drv_shared *shared, CUstream stream,
			    uint64_t *number)
{
	uint64_t last = atomic_load(&shared->page->recorded), begun;
	struct drv_job *held = NULL;
	bool taken = false;
	CUresult err;

	for (;;) {
		for (int skip = 1; skip <= RECORDS && !taken; skip++) {
			drv_job_put(held);
			*number = last + (uint64_t)skip;
			taken = take_word(shared, stream, *number, &held,
					  &begun);
		}
		if (!taken) {
			err = held ? drv_stream_follow(stream, held) :
				     await_number(shared, begun, stream);
			drv_job_put(held);
			held = NULL;
			if (err)
				return err;
			taken = atomic_compare_exchange_strong(
					&shared->page->begun[*number % RECORDS],
					&begun, *number);
			if (!taken)
				continue;
		}
		if (atomic_compare_exchange_strong(&shared->page->recorded,
						   &last, *number))
			return CUDA_SUCCESS;
		/* Another process was first; the word is as it was */
		atomic_store(&shared->page->begun[*number % RECORDS], begun);
		taken = false;
	}
}

/*
 * Number the recording and have the engine write the number into the page, by
 * way of a word of GPU memory.
 */
CUresult drv_shared_record(CUevent event, CUstream stream,
			   struct drv_job **job, uint64_t *recording)
{
	struct drv_shared *shared = event->shared;
	struct pln_gpu_op ops[2] = {
		{ .opcode = PLN_GPU_OP_FILL, .arg = 8, .len = 8 },
		{ .opcode = PLN_GPU_OP_COPY, .flags = PLN_GPU_OP_F_DST_USER,
		  .len = 8 },
	};
	struct drv_place place;
	CUdeviceptr words;
	uint64_t number;
	CUresult err = words_of(event, &words);

	if (err)
		return err;
	pthread_mutex_lock(&shared->lock);
	err = next_number(shared, stream, &number);
	if (err) {
		pthread_mutex_unlock(&shared->lock);
		return err;
	}
	*recording = number;
	err = drv_place_get(words + number % RECORDS * 8, 8, &place);
	if (!err) {
		ops[0].dst_handle = ops[1].src_handle = place.handle;
		ops[0].dst = ops[1].src = place.offset;
		ops[0].imm = number;
		ops[1].dst = (uintptr_t)&shared->page->done[number % RECORDS];
		err = drv_submit_record(stream, shared, number, ops,
					DRV_JOB_MAX_OPS, job);
		drv_place_put(&place);
	}
	if (err)	/* nothing is under way, so nobody need wait for it */
		mark_done(shared, number);
	else
		note_job(shared, *job, number);
	pthread_mutex_unlock(&shared->lock);
	return err;
}

/* The number to wait for: of what has been recorded until now */
uint64_t drv_shared_last(struct drv_shared *shared)
{
	return atomic_load(&shared->page->recorded);
}

CUresult drv_shared_wait(struct drv_shared *shared, uint64_t number, bool block)
{
	struct timespec nap = { 0, POLL_MIN_NS };
	uint64_t deadline = drv_now() + DRV_WAIT_LIMIT_NS;

	/* No interrupt reaches us for the work of another process: ask */
	while (number &&
	       atomic_load(&shared->page->done[number % RECORDS]) < number) {
		if (!block)
			return CUDA_ERROR_NOT_READY;
		if (drv_now() > deadline) {
			drv_log("an event of another process has not occurred for 120 s");
			return CUDA_ERROR_LAUNCH_TIMEOUT;
		}
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < POLL_MAX_NS)
			nap.tv_nsec *= 2;
	}
	return CUDA_SUCCESS;
}

/* The last reference on @event is gone, or its context is */
void drv_shared_unuse(CUevent event)
{
	CUcontext ctx = event->ctx;
	struct drv_words *old;
	bool used;

	if (!event->words || atomic_load(&ctx->destroyed))
		return;
	drv_reap(ctx->file);	/* nobody may have asked for what has ended */
	pthread_mutex_lock(&drv.lock);
	used = words_used(ctx, event->words);
	old = used ? malloc(sizeof(*old)) : NULL;
	if (old) {
		/* For another event, once the recording has ended */
		old->at = event->words;
		STAILQ_INSERT_TAIL(&ctx->words, old, link);
	}
	pthread_mutex_unlock(&drv.lock);
	if (!used)
		drv_device_free(ctx, event->words);
}

void drv_shared_forget(CUcontext ctx)
{
	struct drv_words *old;

	while ((old = STAILQ_FIRST(&ctx->words))) {
		STAILQ_REMOVE_HEAD(&ctx->words, link);
		free(old);
	}
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event_handle)
{
	struct drv_name name = { .magic = MAGIC_EVENT };
	CUevent event;
	CUresult err;

	if (!handle || !event_handle)
		return CUDA_ERROR_INVALID_VALUE;
	err = drv_event_get(event_handle, &event);
	if (err)
		return err;
	if (!event->shared || event->shared->fd < 0)
		err = CUDA_ERROR_INVALID_HANDLE;
	else
		err = drv_name_fd(&name, event->shared->fd);
	if (!err) {
		memset(handle, 0, sizeof(*handle));
		memcpy(handle, &name, sizeof(name));
	}
	drv_obj_put(&event->obj);
	return err;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
	struct drv_shared *shared = NULL;
	struct drv_name name;
	struct stat st;
	CUcontext ctx;
	int fd;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	memcpy(&name, &handle, sizeof(name));
	if (!out)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (name.magic != MAGIC_EVENT)
		err = CUDA_ERROR_MAP_FAILED;
	else
		err = drv_take_fd(&name, MAGIC_EVENT, &fd);
	if (!err) {
		if (fstat(fd, &st) || st.st_size != PAGE ||
		    fcntl(fd, F_GET_SEALS) != SEALS)
			err = CUDA_ERROR_INVALID_VALUE;
		else
			shared = shared_map(fd);
		close(fd);
		if (!err && !shared)
			err = CUDA_ERROR_OUT_OF_MEMORY;
		else if (!err && shared->page->magic != MAGIC_EVENT)
			err = CUDA_ERROR_INVALID_VALUE;
	}
	if (!err)
		err = drv_event_new(ctx, CU_EVENT_INTERPROCESS |
				    CU_EVENT_DISABLE_TIMING, shared, out);
	else
		drv_shared_put(shared);
	drv_ctx_put(ctx);
	return err;
}

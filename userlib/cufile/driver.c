// SPDX-License-Identifier: MIT
/* The cuFile calls: driver, handles, buffers, read and write. */
#include <limits.h>
#include <string.h>

#include "ring.h"

/*
 * The highest cuFile interface of which every call is here, as cuFile counts
 * (1.5 is 1050): functions.list has what came when.  Programs that probe for
 * single calls find the newer ones by name.
 */
#define API_VERSION	1170

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_open;
static _Atomic bool opening;
/* From the last close until all is dropped: nobody begins or opens anything. */
static _Atomic bool closing;
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER;
static _Atomic bool forked;	/* a child of a process that had it open, or nearly */
static long use_count;
static _Atomic unsigned int in_flight;
static pthread_cond_t quiet = PTHREAD_COND_INITIALIZER;

/*
 * CUDA does not work there, helper threads and mappings are gone: what was open is of
 * no use.  Nor are the locks that other threads held, which nobody gives back.  While
 * the library is closed, such a thread only looks at what the lock is for, or changes
 * it at one stroke; so the child gets new locks.  Others are held only while it is
 * open, opened or closed, and the child takes none of those.
 */
static void in_child(void)
{
	forked = forked || is_open || opening || closing;
	in_flight = 0;
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&closed, NULL);
	pthread_cond_init(&quiet, NULL);
	async_forked();
	log_forked();
	config_forked();
	file_forked();
	topology_forked();
	batch_forked();
	stats_forked();
	uvm_forked();
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* With the lock held. */
static CUfileOpError open_now(void)
{
	static bool told, told_ignored, told_unused;
	struct config cfg;
	char err[PLN_FILE_REASON_MAX];

	if (!config_load(&cfg, err, sizeof(err))) {
		log_line(LOG_ERROR, "%s", err);
		return CU_FILE_DRIVER_INVALID_PROPS;
	}
	/* A setting without effect must not look as if it had one. */
	if (cfg.unknown[0] && !told) {
		told = true;
		log_line(LOG_NOTICE, "cufile.json has unknown keys: %s",
			 cfg.unknown);
	}
	if (cfg.no_effect[0] && !told_ignored) {
		told_ignored = true;
		log_line(LOG_INFO, "cufile.json has keys that are accepted, without "
			 "effect: %s", cfg.no_effect);
	}
	if (cfg.unused[0] && !told_unused) {
		told_unused = true;
		log_line(LOG_WARN, "the environment has variables without effect: %s",
			 cfg.unused);
	}
	if (!cu_load(err, sizeof(err))) {
		log_line(LOG_ERROR, "%s", err);
		deny_free(&cfg.deny);
		return CU_FILE_PLATFORM_NOT_SUPPORTED;
	}
	config = cfg;
	lane_open();
	module_open();
	count_open();
	is_open = true;
	return CU_FILE_SUCCESS;
}

static CUfileOpError open_locked(void)
{
	CUfileOpError r;

	opening = true;
	r = open_now();
	opening = false;
	return r;
}

/* A child of a process that had the library open cannot use it. */
bool driver_is_child(void)
{
	return forked;
}

/* With the lock held: what is opened now must not be swept by a close. */
static void await_closed(void)
{
	while (closing)
		pthread_cond_wait(&closed, &lock);
}

/*
 * Handles and buffers open the library when nobody has.  It stays open until
 * driver_end().
 */
CUfileOpError driver_open_and_begin(void)
{
	CUfileOpError r = CU_FILE_SUCCESS;

	if (forked)
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	await_closed();
	if (!is_open) {
		r = open_locked();
		if (!r)
			use_count = 1;
	}
	if (!r)
		in_flight++;
	pthread_mutex_unlock(&lock);
	return r;
}

/* A transfer begins, and the library stays open until it ends. */
bool driver_begin(void)
{
	if (forked)
		return false;
	/* in this order: who closes looks at them in the other one */
	in_flight++;
	if (is_open)
		return true;
	driver_end();
	return false;
}

/* The caller is in one, so the library is open. */
void driver_begin_more(unsigned int n)
{
	in_flight += n;
}

void driver_end(void)
{
	if (--in_flight || is_open)
		return;
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&quiet);
	pthread_mutex_unlock(&lock);
}

EXPORT CUfileError_t cuFileDriverOpen(void)
{
	NOT_CANCELLED;
	CUfileOpError r = CU_FILE_SUCCESS;

	if (forked)
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&lock);
	await_closed();
	if (!is_open)
		r = open_locked();
	if (!r)
		use_count++;
	pthread_mutex_unlock(&lock);
	return result(r);
}

EXPORT CUfileError_t cuFileDriverClose_v2(void)
{
	NOT_CANCELLED;
	CUfileOpError r = CU_FILE_SUCCESS;

	if (forked)
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&lock);
	if (!is_open) {
		r = CU_FILE_DRIVER_NOT_INITIALIZED;
	} else if (!--use_count) {
		/* in this order: a child of a moment between is one of a process that had it open */
		closing = true;
		is_open = false;
		/* what began before ends well */
		while (in_flight)
			pthread_cond_wait(&quiet, &lock);
		/*
		 * CUDA may wait here for functions in the program's streams, and
		 * those of async.c want the lock to see that it is too late.
		 */
		pthread_mutex_unlock(&lock);
		batch_drop_all();
		stream_drop_all();
		ring_shutdown();
		work_shutdown();
		file_drop_all();
		buf_drop_all();
		cache_shutdown();
		bounce_shutdown();
		window_drop_all();
		scratch_free_all();
		uvm_close();
		module_close();
		verdict_forget_all();
		param_forget();
		deny_free(&config.deny);
		pthread_mutex_lock(&lock);
		closing = false;
		pthread_cond_broadcast(&closed);
	}
	pthread_mutex_unlock(&lock);
	return result(r);
}

#undef cuFileDriverClose
EXPORT CUfileError_t cuFileDriverClose(void);
EXPORT CUfileError_t cuFileDriverClose(void)
{
	return cuFileDriverClose_v2();
}

EXPORT long cuFileUseCount(void)
{
	long n;

	if (forked)
		return 0;
	pthread_mutex_lock(&lock);
	n = use_count;
	pthread_mutex_unlock(&lock);
	return n;
}

EXPORT CUfileError_t cuFileGetVersion(int *version)
{
	if (!version)
		return result(CU_FILE_INVALID_VALUE);
	*version = API_VERSION;
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
{
	NOT_CANCELLED;
	CUfileOpError r = CU_FILE_SUCCESS;

	if (!props)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_open_and_begin();
	if (r)
		return result(r);
	memset(props, 0, sizeof(*props));
	pthread_mutex_lock(&lock);
	/* no nvidia-fs here: its version stays 0.0 */
	props->nvfs.poll_thresh_size =
		config.size[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB];
	props->nvfs.max_direct_io_size =
		config.size[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB];
	if (verdict_direct_worked()) {
		props->nvfs.dstatusflags = 1u << CU_FILE_NVME_SUPPORTED |
					   1u << CU_FILE_NVME_P2P_SUPPORTED;
		props->fflags |= 1u << CU_FILE_P2P_SUPPORTED;
	}
	props->fflags |= 1u << CU_FILE_BATCH_IO_SUPPORTED;
	if (stream_supported())
		props->fflags |= 1u << CU_FILE_STREAMS_SUPPORTED;
	if (config.flag[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE])
		props->nvfs.dcontrolflags |= 1u << CU_FILE_USE_POLL_MODE;
	if (config.flag[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE])
		props->nvfs.dcontrolflags |= 1u << CU_FILE_ALLOW_COMPAT_MODE;
	if (config.flag[CUFILE_PARAM_EXECUTION_PARALLEL_IO])
		props->fflags |= 1u << CU_FILE_PARALLEL_IO_SUPPORTED;
	props->max_device_cache_size = (unsigned int)
		config.size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB];
	props->per_buffer_cache_size = (unsigned int)
		config.size[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB];
	props->max_device_pinned_mem_size = (unsigned int)config.size
		[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB];
	props->max_batch_io_size = (unsigned int)
		config.size[CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE];
	props->max_batch_io_timeout_msecs = (unsigned int)
		config.size[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS];
	pthread_mutex_unlock(&lock);
	driver_end();
	return result(CU_FILE_SUCCESS);
}

/* cuFileDriverSet...: of the open library, else of the next one to open. */
static CUfileError_t set_now(unsigned int param, size_t value)
{
	CUfileOpError r = CU_FILE_SUCCESS;

	if (forked)
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	if (!config_size_ok(param, value))
		return result(CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	pthread_mutex_lock(&lock);
	if (is_open)
		__atomic_store_n(&config.size[param], value, __ATOMIC_RELAXED);
	else
		r = config_set_size(param, value);
	pthread_mutex_unlock(&lock);
	return result(r);
}

EXPORT CUfileError_t cuFileDriverSetPollMode(bool poll,
					     size_t poll_threshold_size)
{
	CUfileError_t r = set_now(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
				  poll_threshold_size);

	if (r.err)
		return r;
	pthread_mutex_lock(&lock);
	if (is_open)
		config.flag[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE] = poll;
	else
		config_set_flag(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE,
				poll);
	pthread_mutex_unlock(&lock);
	return r;
}

EXPORT CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t kb)
{
	return set_now(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, kb);
}

EXPORT CUfileError_t cuFileDriverSetMaxCacheSize(size_t kb)
{
	return set_now(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, kb);
}

EXPORT CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t kb)
{
	return set_now(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
		       kb);
}

/* ---- handles and buffers ---- */

EXPORT CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh,
					  CUfileDescr_t *descr)
{
	NOT_CANCELLED;
	CUfileOpError r;

	if (!fh || !descr)
		return result(CU_FILE_INVALID_VALUE);
	if (descr->type == CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 ||
	    descr->type == CU_FILE_HANDLE_TYPE_USERSPACE_FS)
		return result(CU_FILE_IO_NOT_SUPPORTED);
	if (descr->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_open_and_begin();
	if (r)
		return result(r);
	r = file_register(descr->handle.fd, fh);
	count_op(OP_FILE_REGISTER, !r);
	driver_end();
	return result(r);
}

EXPORT void cuFileHandleDeregister(CUfileHandle_t fh)
{
	NOT_CANCELLED;
	if (driver_begin()) {
		count_op(OP_FILE_DEREGISTER, file_deregister(fh));
		window_look();
		driver_end();
	}
}

EXPORT CUfileError_t cuFileBufRegister(const void *base, size_t length,
				       int flags)
{
	NOT_CANCELLED;
	struct buf b = { .base = (uintptr_t)base, .length = length };
	size_t extent = length;
	struct mem mem;
	CUfileError_t ret;
	CUfileOpError r;
	int cu_err;

	(void)flags;	/* hints for RDMA storage, of which there is none */
	if (!base || !length)
		return result(CU_FILE_INVALID_VALUE);
	if (length > UINTPTR_MAX - (uintptr_t)base)
		return result(CU_FILE_CUDA_POINTER_RANGE_ERROR);
	r = driver_open_and_begin();
	if (r)
		return result(r);
	cu_err = mem_of(b.base, &mem);
	b.device = !cu_err && mem.kind != MEM_HOST;
	b.gpu = b.device ? mem.gpu : -1;
	if (b.device)
		extent = mem_extent(&mem, b.base, length);
	if (cu_err)
		ret = cuda_result(cu_err);
	else if (extent < length &&
		 (!extent || !mem_may_grow(b.base + extent - 1)))
		ret = result(CU_FILE_CUDA_POINTER_RANGE_ERROR);
	else
		ret = result(buf_add(&b));
	/* what is registered now may be lent by nvidia-uvm */
	if (!ret.err && b.device && config.nvidia_uvm)
		window_drop_range(b.base, b.length);
	/* so that the first transfer need not; what is not there now is mapped by one */
	if (!ret.err && b.device)
		window_prepare(b.base, extent);
	count_op(OP_BUF_REGISTER, !ret.err);
	count_buf(b.gpu, length, !ret.err);
	driver_end();
	return ret;
}

EXPORT CUfileError_t cuFileBufDeregister(const void *base)
{
	NOT_CANCELLED;
	struct buf b;
	bool there;

	if (!base)
		return result(CU_FILE_INVALID_VALUE);
	if (!driver_begin())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	there = buf_remove((uintptr_t)base, &b);
	count_op(OP_BUF_DEREGISTER, there);
	if (there) {
		count_buf_free(b.gpu);
		if (b.device)
			window_drop_range(b.base, b.length);
		window_look();
	}
	driver_end();
	return result(there ? CU_FILE_SUCCESS : CU_FILE_MEMORY_NOT_REGISTERED);
}

/* ---- data ---- */

bool driver_may_transfer(const void *base, size_t size, off_t off, off_t buf_off)
{
	return base && off >= 0 && buf_off >= 0 && size <= SSIZE_MAX &&
	       off <= (off_t)(INT64_MAX - (int64_t)size) &&
	       (uintptr_t)base <= UINTPTR_MAX - (uintptr_t)buf_off &&
	       (uintptr_t)base + (uintptr_t)buf_off <= UINTPTR_MAX - size;
}

ssize_t driver_transfer(struct file *f, uint64_t file_size, const void *base, size_t size, off_t off,
			off_t buf_off, bool write, const struct ring_io *before,
			struct pln_file_result *now)
{
	if (!driver_may_transfer(base, size, off, buf_off))
		return -CU_FILE_INVALID_VALUE;
	if (!size)
		return 0;
	return io_run(f, file_size, (uintptr_t)base, size, off, buf_off, write, before, now);
}

/* The file, its *@size, and the library held open, or NULL and why not. */
static struct file *begin(CUfileHandle_t fh, uint64_t *size, ssize_t *why)
{
	struct file *f;

	*why = -CU_FILE_DRIVER_NOT_INITIALIZED;
	if (!driver_begin())
		return NULL;
	*why = -CU_FILE_HANDLE_NOT_REGISTERED;
	f = file_get_size(fh, size);
	if (!f)
		driver_end();
	return f;
}

/* Of what began with @f, or did not when that is NULL; @saved: errno before. */
static ssize_t finish(struct file *f, struct pln_file_result *now, ssize_t r,
		      int saved)
{
	struct wanted wanted = result_wanted();
	struct answer answer = result_of(&wanted, 0);

	result_tell(&answer, now, r, errno);
	if (f) {
		int err = errno;

		file_put(f);
		driver_end();
		errno = err;
	}
	/*
	 * NVIDIA's newer libraries return -1 with the cuFile code in errno
	 * where their manual says the code is returned: serve readers of both.
	 */
	if (r >= 0)
		errno = saved;
	else if (r != -1)
		errno = (int)-r;
	return r;
}

static ssize_t transfer(CUfileHandle_t fh, const void *base, size_t size,
			off_t off, off_t buf_off, bool write)
{
	NOT_CANCELLED;
	struct pln_file_result now = { .size = result_asked() };
	uint64_t file_size;
	int saved = errno;
	struct file *f;
	ssize_t r;

	f = begin(fh, &file_size, &r);
	if (f)
		r = driver_transfer(f, file_size, base, size, off, buf_off, write, NULL, &now);
	return finish(f, &now, r, saved);
}

/* As readv(2) and writev(2): after some bytes, the next call meets an error. */
static ssize_t vector(struct file *f, uint64_t file_size, const CUfileIOVec_t *v, size_t n, off_t off,
		      unsigned int flags, bool write,
		      struct pln_file_result *now)
{
	off_t at = off;
	ssize_t r = 0;
	size_t i;

	if ((n && !v) || off < 0 || flags)
		return -CU_FILE_INVALID_VALUE;
	for (i = 0; i < n; at += (off_t)v[i++].len)
		if (v[i].len && !driver_may_transfer(v[i].base, v[i].len, at, 0))
			return -CU_FILE_INVALID_VALUE;
	for (i = 0, at = off; i < n; i++) {
		if (!v[i].len)
			continue;
		r = driver_transfer(f, file_size, v[i].base, v[i].len, at, 0, write, NULL,
				    now);
		if (r > 0)
			at += r;
		if (r < (ssize_t)v[i].len)
			break;
	}
	return at > off ? at - off : r;
}

static ssize_t transfer_vector(CUfileHandle_t fh, const CUfileIOVec_t *v, size_t n,
			       off_t off, unsigned int flags, bool write)
{
	NOT_CANCELLED;
	struct pln_file_result now = { .size = result_asked() };
	int saved = errno;
	uint64_t began, file_size;
	struct file *f;
	ssize_t r;

	f = begin(fh, &file_size, &r);
	if (f) {
		began = count_vector_begin();
		r = vector(f, file_size, v, n, off, flags, write, &now);
		count_vector_end(write, r, began);
	}
	return finish(f, &now, r, saved);
}

EXPORT ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size,
			  off_t file_offset, off_t buf_offset)
{
	return transfer(fh, base, size, file_offset, buf_offset, false);
}

EXPORT ssize_t cuFileWrite(CUfileHandle_t fh, const void *base,
			   size_t size, off_t file_offset,
			   off_t buf_offset)
{
	return transfer(fh, base, size, file_offset, buf_offset, true);
}

EXPORT ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov,
			   size_t iovcnt, off_t file_offset, unsigned int flags)
{
	return transfer_vector(fh, iov, iovcnt, file_offset, flags, false);
}

EXPORT ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov,
			    size_t iovcnt, off_t file_offset, unsigned int flags)
{
	return transfer_vector(fh, iov, iovcnt, file_offset, flags, true);
}

/* ---- for others ---- */

/* What is in force, or would be if the library were opened now; no denylist. */
CUfileOpError driver_config(struct config *cfg)
{
	NOT_CANCELLED;
	CUfileOpError r = CU_FILE_SUCCESS;
	char err[PLN_FILE_REASON_MAX];

	if (forked)
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	if (is_open) {
		*cfg = config;
		memset(&cfg->deny, 0, sizeof(cfg->deny));
	} else if (!config_load(cfg, err, sizeof(err))) {
		log_line(LOG_ERROR, "%s", err);
		r = CU_FILE_DRIVER_INVALID_PROPS;
	} else {
		deny_free(&cfg->deny);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* May parameters be set? */
CUfileOpError driver_settable(void)
{
	if (forked)
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	return is_open ? CU_FILE_DRIVER_ALREADY_OPEN : CU_FILE_SUCCESS;
}

bool driver_is_open(void)
{
	return is_open && !forked;
}

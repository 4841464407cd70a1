// SPDX-License-Identifier: MIT
/* The cuFile calls: driver, handles, buffers, parameters, read and write. */
#include <limits.h>
#include <string.h>

#include "internal.h"

/*
 * The highest cuFile interface of which every call is here, as cuFile counts
 * (1.5 is 1050): batch calls came with 1.6.  Programs that probe for single
 * calls find the newer ones by name.
 */
#define API_VERSION	1050

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_open;
static bool closing;		/* from the last close until all is dropped */
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER;
static _Atomic bool forked;	/* a child of a process that had it open, or nearly */
static long use_count;
static unsigned int in_flight;
static pthread_cond_t quiet = PTHREAD_COND_INITIALIZER;

static CUfileError_t result(CUfileOpError err)
{
	return (CUfileError_t){ .err = err };
}

static CUfileError_t cuda_result(CUresult r)
{
	return (CUfileError_t){ .err = CU_FILE_CUDA_DRIVER_ERROR, .cu_err = r };
}

static void in_child(void)
{
	bool idle = !pthread_mutex_trylock(&lock);

	/*
	 * CUDA does not work there, helper threads and mappings are gone; so is
	 * another thread that was opening or closing, and gives no lock back.
	 */
	if (is_open || closing || !idle)
		forked = true;
	if (idle)
		pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* With the lock held. */
static CUfileOpError open_locked(void)
{
	static bool told;
	struct config cfg;
	char err[PLN_FILE_REASON_MAX], file[600];

	if (!config_load(&cfg, err, sizeof(err))) {
		log_line(LOG_ERROR, "%s", err);
		return CU_FILE_DRIVER_INVALID_PROPS;
	}
	file[0] = '\0';
	if (cfg.text[CUFILE_PARAM_ENV_LOGFILE_PATH][0])
		snprintf(file, sizeof(file), "%s",
			 cfg.text[CUFILE_PARAM_ENV_LOGFILE_PATH]);
	else if (cfg.text[CUFILE_PARAM_LOG_DIR][0])
		snprintf(file, sizeof(file), "%s/cufile.log",
			 cfg.text[CUFILE_PARAM_LOG_DIR]);
	log_setup(log_parse_level(cfg.text[0]), file);
	/* A prohibition without effect must not look as if it had one. */
	if (cfg.denylist[0] && !told) {
		told = true;
		log_line(LOG_NOTICE, "denylist.%s of cufile.json has no effect here",
			 cfg.denylist);
	}
	if (!cu_load(err, sizeof(err))) {
		log_line(LOG_ERROR, "%s", err);
		return CU_FILE_PLATFORM_NOT_SUPPORTED;
	}
	config = cfg;
	is_open = true;
	return CU_FILE_SUCCESS;
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
 * end().
 */
static CUfileOpError open_and_begin(void)
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
static bool begin(void)
{
	bool open;

	if (forked)
		return false;
	pthread_mutex_lock(&lock);
	open = is_open;
	if (open)
		in_flight++;
	pthread_mutex_unlock(&lock);
	return open;
}

static void end(void)
{
	pthread_mutex_lock(&lock);
	if (!--in_flight)
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
		is_open = false;
		closing = true;
		/* what began before ends well */
		while (in_flight)
			pthread_cond_wait(&quiet, &lock);
		file_drop_all();
		buf_drop_all();
		bounce_shutdown();
		window_drop_all();
		verdict_forget_all();
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
	r = open_and_begin();
	if (r)
		return result(r);
	memset(props, 0, sizeof(*props));
	pthread_mutex_lock(&lock);
	/* no nvidia-fs here: its version stays 0.0 */
	props->nvfs.poll_thresh_size =
		config.size[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB];
	props->nvfs.max_direct_io_size =
		config.size[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB];
	props->nvfs.dstatusflags = 1u << CU_FILE_NVME_SUPPORTED;
	if (verdict_p2p_worked())
		props->nvfs.dstatusflags |= 1u << CU_FILE_NVME_P2P_SUPPORTED;
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
	props->max_batch_io_timeout_msecs = (unsigned int)
		config.size[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS];
	pthread_mutex_unlock(&lock);
	end();
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
		config.size[param] = value;
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
	r = open_and_begin();
	if (r)
		return result(r);
	r = file_register(descr->handle.fd, fh);
	end();
	return result(r);
}

EXPORT void cuFileHandleDeregister(CUfileHandle_t fh)
{
	NOT_CANCELLED;
	if (is_open && !forked)
		file_deregister(fh);
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
	r = open_and_begin();
	if (r)
		return result(r);
	cu_err = mem_of(b.base, &mem);
	b.device = !cu_err && mem.kind != MEM_HOST;
	if (b.device)
		extent = mem_extent(&mem, b.base, length);
	if (cu_err)
		ret = cuda_result(cu_err);
	else if (extent < length &&
		 (!extent || !mem_may_grow(b.base + extent - 1)))
		ret = result(CU_FILE_CUDA_POINTER_RANGE_ERROR);
	else	/* windows are mapped when a transfer needs them, of what is there then */
		ret = result(buf_add(&b));
	end();
	return ret;
}

EXPORT CUfileError_t cuFileBufDeregister(const void *base)
{
	NOT_CANCELLED;
	struct buf b;

	if (!base)
		return result(CU_FILE_INVALID_VALUE);
	if (!is_open || forked)
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	if (!buf_remove((uintptr_t)base, &b))
		return result(CU_FILE_MEMORY_NOT_REGISTERED);
	if (b.device)
		window_drop_range(b.base, b.length);
	return result(CU_FILE_SUCCESS);
}

/* ---- data ---- */

static ssize_t transfer(CUfileHandle_t fh, const void *base, size_t size,
			off_t off, off_t buf_off, bool write)
{
	NOT_CANCELLED;
	int saved = errno;
	struct file *f;
	ssize_t r;

	if (!begin()) {
		errno = CU_FILE_DRIVER_NOT_INITIALIZED;
		return -CU_FILE_DRIVER_NOT_INITIALIZED;
	}

	f = file_get(fh);
	if (!f) {
		r = -CU_FILE_HANDLE_NOT_REGISTERED;
		goto out;
	}
	if (!base || off < 0 || buf_off < 0 || size > SSIZE_MAX ||
	    off > (off_t)(INT64_MAX - (int64_t)size) ||
	    (uintptr_t)base > UINTPTR_MAX - (uintptr_t)buf_off ||
	    (uintptr_t)base + (uintptr_t)buf_off > UINTPTR_MAX - size)
		r = -CU_FILE_INVALID_VALUE;
	else if (!size)
		r = 0;
	else
		r = io_run(f, (uintptr_t)base, size, off, buf_off, write);
	file_put(f);
out:
	end();
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

/* ---- parameters ---- */

/* What is in force, or would be if the library were opened now. */
static CUfileOpError current(struct config *cfg)
{
	NOT_CANCELLED;
	CUfileOpError r = CU_FILE_SUCCESS;
	char err[PLN_FILE_REASON_MAX];

	if (forked)
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	if (is_open) {
		*cfg = config;
	} else if (!config_load(cfg, err, sizeof(err))) {
		log_line(LOG_ERROR, "%s", err);
		r = CU_FILE_DRIVER_INVALID_PROPS;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

EXPORT CUfileError_t
cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value)
{
	struct config cfg;
	CUfileOpError r;

	if ((unsigned int)param >= 12 || !value)
		return result(CU_FILE_INVALID_VALUE);
	r = current(&cfg);
	if (!r)
		*value = cfg.size[param];
	return result(r);
}

EXPORT CUfileError_t
cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
{
	struct config cfg;
	CUfileOpError r;

	if ((unsigned int)param >= 12 || !value)
		return result(CU_FILE_INVALID_VALUE);
	r = current(&cfg);
	if (!r)
		*value = cfg.flag[param];
	return result(r);
}

EXPORT CUfileError_t
cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str,
			 int len)
{
	struct config cfg;
	CUfileOpError r;

	if ((unsigned int)param >= 3 || !desc_str || len <= 0)
		return result(CU_FILE_INVALID_VALUE);
	r = current(&cfg);
	if (r)
		return result(r);
	if (strlen(cfg.text[param]) >= (size_t)len)
		return result(CU_FILE_INVALID_VALUE);
	strcpy(desc_str, cfg.text[param]);
	return result(CU_FILE_SUCCESS);
}

static CUfileOpError settable(void)
{
	if (forked)
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	return is_open ? CU_FILE_DRIVER_ALREADY_OPEN : CU_FILE_SUCCESS;
}

EXPORT CUfileError_t
cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
{
	CUfileOpError r = settable();

	return result(r ? r : config_set_size((unsigned int)param, value));
}

EXPORT CUfileError_t
cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
{
	CUfileOpError r = settable();

	return result(r ? r : config_set_flag((unsigned int)param, value));
}

EXPORT CUfileError_t
cuFileSetParameterString(CUFileStringConfigParameter_t param,
			 const char *desc_str)
{
	CUfileOpError r = settable();

	return result(r ? r : config_set_text((unsigned int)param,
					      desc_str));
}

// SPDX-License-Identifier: MIT
/*
 * Open device files, and what the driver's errors on them mean.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* One user less; the file that nobody needs then, for the caller to put */
struct drv_file *drv_device_unuse(struct drv_device *dev)
{
	struct drv_file *file = dev->file;

	if (--dev->nr_users)
		return NULL;
	dev->file = NULL;
	return file;
}

/*
 * All that are open: besides those of devices, what jobs keep open that did not end when
 * the last context of a device was given up.
 */
static LIST_HEAD(, drv_file) files = LIST_HEAD_INITIALIZER(files);
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

struct drv_file *drv_file_ref(struct drv_file *file)
{
	atomic_fetch_add(&file->refs, 1);
	return file;
}

void drv_file_put(struct drv_file *file)
{
	if (!file || atomic_fetch_sub(&file->refs, 1) != 1)
		return;
	pthread_mutex_lock(&files_lock);
	LIST_REMOVE(file, link);
	pthread_mutex_unlock(&files_lock);
	drv_io_close(file->fd);
	pthread_mutex_destroy(&file->submit_lock);
	free(file);
}

/* One whose last reference is gone is in the list for a moment yet */
static bool ref_if_used(struct drv_file *file)
{
	int refs = atomic_load(&file->refs);

	while (refs && !atomic_compare_exchange_weak(&file->refs, &refs,
						     refs + 1))
		;
	return refs;
}

struct drv_file *drv_file_next(struct drv_file *file)
{
	struct drv_file *next;

	pthread_mutex_lock(&files_lock);
	next = file ? LIST_NEXT(file, link) : LIST_FIRST(&files);
	while (next && !ref_if_used(next))
		next = LIST_NEXT(next, link);
	pthread_mutex_unlock(&files_lock);
	drv_file_put(file);
	return next;
}

/*
 * The open file that contexts of @dev share; a new one when there is none, or
 * when the last one lost its memory.  drv.lock is held.
 */
struct drv_file *drv_file_open(struct drv_device *dev, CUresult *err)
{
	struct pln_gpu_query info = { 0 };
	struct drv_file *file = dev->file;
	int fd, error;

	if (file && !atomic_load(&file->lost)) {
		/* A reset that nobody has noticed yet */
		if (!drv_call(file->fd, PLN_GPU_IOC_QUERY, &info) &&
		    info.reset_count == file->reset_count)
			return drv_file_ref(file);
		atomic_store(&file->lost, true);
	}
	drv_file_put(file);
	dev->file = NULL;
	fd = drv_io_open(dev->minor);
	if (fd < 0) {
		drv_log("/dev/peerlane-gpu%u: %s", dev->minor, strerror(errno));
		*err = errno == EMFILE || errno == ENFILE ?
		       CUDA_ERROR_OPERATING_SYSTEM :
		       errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY :
		       CUDA_ERROR_DEVICE_UNAVAILABLE;
		return NULL;
	}
	memset(&info, 0, sizeof(info));
	if (drv_call(fd, PLN_GPU_IOC_QUERY, &info)) {
		error = errno;
		drv_log("/dev/peerlane-gpu%u: query: %s", dev->minor,
			strerror(error));
		drv_io_close(fd);
		*err = CUDA_ERROR_DEVICE_UNAVAILABLE;
		return NULL;
	}
	file = calloc(1, sizeof(*file));
	if (!file) {
		drv_io_close(fd);
		*err = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	atomic_init(&file->refs, 2);	/* the caller and the device */
	atomic_init(&file->lost, false);
	file->dev = dev;
	file->fd = fd;
	file->features = info.features;
	file->reset_count = info.reset_count;
	file->page_size = info.page_size;
	file->num_queues = info.num_queues < DRV_MAX_QUEUES ?
			   info.num_queues : DRV_MAX_QUEUES;
	pthread_mutex_init(&file->submit_lock, NULL);
	drv_file_jobs_init(file);
	pthread_mutex_lock(&files_lock);
	LIST_INSERT_HEAD(&files, file, link);
	pthread_mutex_unlock(&files_lock);
	dev->file = file;
	return file;
}

CUresult drv_file_time(struct drv_file *file, uint64_t *t)
{
	struct pln_gpu_query info = { 0 };

	if (!(file->features & PLN_GPU_FEAT_TIME)) {
		*t = drv_now();
		return CUDA_SUCCESS;
	}
	if (drv_call(file->fd, PLN_GPU_IOC_QUERY, &info))
		return drv_file_error(file, errno);
	*t = info.time_ns;
	return CUDA_SUCCESS;
}

CUresult drv_file_use(struct drv_device *dev, struct drv_file **file)
{
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&drv.lock);
	*file = drv_file_open(dev, &err);
	if (*file)
		dev->nr_users++;
	pthread_mutex_unlock(&drv.lock);
	return err;
}

void drv_file_unuse(struct drv_file *file)
{
	struct drv_file *idle;

	pthread_mutex_lock(&drv.lock);
	idle = drv_device_unuse(file->dev);
	pthread_mutex_unlock(&drv.lock);
	drv_file_put(idle);
	drv_file_put(file);
}

/* What the errno of an ioctl on @file means, for a program */
CUresult drv_file_error(struct drv_file *file, int error)
{
	struct pln_gpu_query info = { 0 };

	if (error == EIO || error == ENODEV) {
		if (drv_call(file->fd, PLN_GPU_IOC_QUERY, &info) ||
		    info.reset_count != file->reset_count) {
			if (!atomic_exchange(&file->lost, true))
				drv_log("device %d was reset or removed: its contexts are lost",
					file->dev->ordinal);
		}
		if (atomic_load(&file->lost))
			return CUDA_ERROR_DEVICE_UNAVAILABLE;
		/* The engine failed at what the driver asked of it */
		return CUDA_ERROR_LAUNCH_FAILED;
	}
	drv_log("device %d: %s", file->dev->ordinal, strerror(error));
	switch (error) {
	case ENOMEM:
	case ENOSPC:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case EINVAL:
	case EFAULT:
	case ENOENT:
		return CUDA_ERROR_INVALID_VALUE;
	case EPERM:
	case EACCES:
		return CUDA_ERROR_NOT_PERMITTED;
	case EOPNOTSUPP:
	case ENOTTY:
		return CUDA_ERROR_NOT_SUPPORTED;
	case EAGAIN:
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	case ETIMEDOUT:
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	default:
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
}

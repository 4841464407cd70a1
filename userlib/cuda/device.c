// SPDX-License-Identifier: MIT
/*
 * Devices: which there are, and what can be asked of them.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int probe(unsigned int minor, struct pln_gpu_query *info)
{
	int err = drv_gpu_query(minor, info);

	if (err == EACCES || err == EPERM)
		drv_log("/dev/peerlane-gpu%u: %s; the user needs read and write permission on it",
			minor, strerror(err));
	else if (err == EPROTO && info->abi_version != PLN_GPU_ABI_VERSION)
		drv_log("/dev/peerlane-gpu%u: driver speaks interface version %u, this library %u",
			minor, info->abi_version, PLN_GPU_ABI_VERSION);
	else if (err == EPROTO)
		drv_log("/dev/peerlane-gpu%u: driver reports no queue or no page size",
			minor);
	else if (err && err != ENOENT)
		drv_log("/dev/peerlane-gpu%u: %s", minor, strerror(err));
	return err;
}

/* Does @item, of CUDA_VISIBLE_DEVICES, name found device number @i? */
static bool item_names(const char *item, int i, const struct drv_device *dev)
{
	char text[DRV_UUID_TEXT];
	char *end;
	long n;

	if (!strncmp(item, "GPU-", 4)) {
		drv_uuid_text(dev->info.uuid, text);
		return item[4] && !strncasecmp(item + 4, text, strlen(item + 4));
	}
	errno = 0;
	n = strtol(item, &end, 10);
	return isdigit((unsigned char)*item) && !*end && !errno && n == i;
}

/* The list ends at the first item that names no device, or one again */
static int select_visible(const char *list, const struct drv_device *found,
			  int nr_found, struct drv_device *out)
{
	bool used[DRV_MAX_DEVICES] = { false };
	char item[64];
	int n = 0;

	while (*list) {
		size_t len = strcspn(list, ",");
		int hit = -1;

		if (len >= sizeof(item))
			break;
		memcpy(item, list, len);
		item[len] = 0;
		for (int i = 0; i < nr_found && hit < 0; i++)
			if (item_names(item, i, &found[i]))
				hit = i;
		if (hit < 0 || used[hit])
			break;
		used[hit] = true;
		out[n++] = found[hit];
		list += len;
		if (*list == ',')
			list++;
	}
	return n;
}

CUresult drv_devices_find(void)
{
	const char *visible = secure_getenv("CUDA_VISIBLE_DEVICES");
	struct drv_device *found, *out;
	int n = 0;

	found = calloc(DRV_MAX_DEVICES, sizeof(*found));
	out = calloc(DRV_MAX_DEVICES, sizeof(*out));
	if (!found || !out) {
		free(found);
		free(out);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned int minor = 0; minor < DRV_MAX_DEVICES; minor++) {
		if (probe(minor, &found[n].info))
			continue;
		found[n].minor = minor;
		n++;
	}
	if (visible) {
		n = select_visible(visible, found, n, out);
	} else {
		memcpy(out, found, DRV_MAX_DEVICES * sizeof(*out));
	}
	free(found);
	if (!n) {
		free(out);
		drv_log("cuInit: no usable device among /dev/peerlane-gpu0 to %u%s",
			DRV_MAX_DEVICES - 1,
			visible ? " that CUDA_VISIBLE_DEVICES lets through" : "");
		return CUDA_ERROR_NO_DEVICE;
	}
	for (int i = 0; i < n; i++)
		out[i].ordinal = i;
	drv.devices = out;
	drv.nr_devices = n;
	return CUDA_SUCCESS;
}

struct drv_device *drv_device_get(CUdevice dev)
{
	if (dev < 0 || dev >= drv.nr_devices)
		return NULL;
	return &drv.devices[dev];
}

/* ---- the interface ---- */

CUresult drv_device_named(CUdevice dev, struct drv_device **out)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	*out = drv_device_get(dev);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = drv.nr_devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, DRV_GPU_NAME);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(uuid->bytes, d->info.uuid, sizeof(uuid->bytes));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = d->info.vram_size;
	return CUDA_SUCCESS;
}

static int attribute(const struct drv_device *d, CUdevice_attribute attr)
{
	bool dmabuf = d->info.features & PLN_GPU_FEAT_DMABUF;

	switch (attr) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		return 1024;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
		return INT_MAX;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
		return 65535;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		return 32;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
		return INT_MAX;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
		return 512;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
	case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
		return 1;
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
		return d->info.features & PLN_GPU_FEAT_COHERENT ? 1 : 0;
	case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
		return dmabuf ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		return (int)d->info.num_queues;
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		return (int)d->info.pci_domain;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return (int)d->info.pci_bus;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		return (int)(d->info.pci_devfn >> 3);
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return DRV_GPU_CC_MAJOR;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return DRV_GPU_CC_MINOR;
	/* What goes with 9.0 on every GPU that has it */
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
		return DRV_USUAL_SHARED;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return DRV_MAX_SHARED;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		return 228 * KiB;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
		return 1 * KiB;
	case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
		return 64 * KiB;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		return 65536;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		return 2048;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		return 32;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
		return dmabuf;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
		return dmabuf ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST : 0;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
		if (!dmabuf || d->info.features & PLN_GPU_FEAT_LATE_WRITES)
			return CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE;
		return CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
	case CU_DEVICE_ATTRIBUTE_NUMA_ID:
		return -1;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		return d->info.numa_node;
	default:
		return 0;
	}
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr,
			      CUdevice dev)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!value || (int)attr < 1 ||
	    (int)attr > PLN_CUDA_DEVICE_ATTRIBUTE_LAST)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attribute(d, attr);
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*minor = attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);
	char text[DRV_BUS_ID_TEXT];
	size_t n;

	if (err)
		return err;
	if (!id || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	drv_bus_id_text(&d->info, text);
	n = strlen(text) + 1;
	if (n > (size_t)len)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(id, text, n);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	unsigned int bdf[4];
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!dev || !id || !drv_bus_id_parse(id, bdf))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < drv.nr_devices; i++) {
		if (drv_bus_id_is(bdf, &drv.devices[i].info)) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

bool drv_peers(const struct drv_device *dev, const struct drv_device *peer)
{
	return dev != peer && drv_gpu_reachable(&peer->info);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_device_get(dev) || !drv_device_get(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = drv_peers(drv_device_get(dev), drv_device_get(peer));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr,
				 CUdevice src, CUdevice dst)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_device_get(src) || !drv_device_get(dst) || src == dst)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attr < 1 || attr > 5)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attr == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED &&
		 drv_peers(drv_device_get(src), drv_device_get(dst));
	return CUDA_SUCCESS;
}

/*
 * Peer writes into the emulated GPU are in its memory when the peer's completion is
 * visible, so there is nothing to flush, unless the GPU says otherwise.  Then the driver
 * flushes before work of the engine, be it none at all.
 */
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
				    CUflushGPUDirectRDMAWritesScope scope)
{
	const struct pln_gpu_op nop = { .opcode = PLN_GPU_OP_NOP };
	struct drv_sink *sink = NULL;
	struct drv_job *job = NULL;
	CUstream stream;
	CUresult err = drv_stream_get(CU_STREAM_LEGACY, NULL, &stream);

	if (err)
		return err;
	if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
	    (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
	     scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
		err = CUDA_ERROR_INVALID_VALUE;
	if (err || !(stream->ctx->file->features & PLN_GPU_FEAT_LATE_WRITES))
		goto out;
	sink = drv_sink_new();		/* the stream does not hear of it */
	err = sink ? drv_submit_now(stream, sink, &nop, &job) :
		     CUDA_ERROR_OUT_OF_MEMORY;
	if (!err)
		err = drv_job_wait(job, true);
	if (!err)
		err = job->err;
	drv_job_put(job);
	drv_sink_put(sink);
out:
	drv_obj_put(&stream->obj);
	return err;
}

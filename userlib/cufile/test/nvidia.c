// SPDX-License-Identifier: MIT
/* Of the unit test: mappings lent by nvidia-uvm, with a mock of NVIDIA's drivers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "../nvrm.h"
#include "unit.h"

#define SIZE	MIB(40)

static unsigned int open_before;

/* A driver with P2PDMA, for memory of cuMemCreate() */
static void with_driver(const char *version, const char *json)
{
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	open_before = open_fds();
	fresh(json);
	mock.nvidia = version;
	mock.kernel = "6.14.11-generic";
	mock.vmm = true;
}

static unsigned long long p2p(CUfileHandle_t fh)
{
	struct pln_file_stats s = stats_of(fh);

	return s.path[PLN_PATH_P2P].bytes_read +
	       s.path[PLN_PATH_P2P].bytes_written;
}

static void closed(void)
{
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is(mock.nv_open, 0, "closed: no descriptor is left");
	is(open_fds(), open_before, "nor any other");
	is(mock.nv_memory, 0, "no handle of RM's");
	is(mock.nv_lent, 0, "nothing is lent");
	is(mock.vmm_held, 0, "and no allocation held");
}

static void lent(const char *version, const char *kernel, const char *data,
		 int fd)
{
	char *g = gpu(SIZE);
	CUfileHandle_t fh;

	with_driver(version, NULL);
	mock.kernel = kernel;
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), (long long)SIZE, "a read");
	check(!memcmp(mem(g), data, SIZE), "driver %s: the data is right",
	      version);
	is((long long)p2p(fh), (long long)SIZE, "all of it p2p");
	is((long long)stats_of(fh).fallbacks, 0, "and that is no fallback");
	is((long long)mock.host_bytes, 0, "nothing through host memory");
	is((long long)mock.handles, 0, "nobody asked for a dma-buf");
	is(mock.nv_lent, 3, "three windows of 16 MiB");
	is(mock.nv_memory + mock.vmm_held, 0, "their handles are given up");
	noise(mem(g), MIB(2));
	is(cuFileWrite(fh, g + MIB(17), MIB(1), 0, 0), MIB(1), "a write");
	check(!memcmp(mem(g) + MIB(17), data + MIB(17), MIB(1)),
	      "of what was read");
	is((long long)mock.nv_lendings, 3, "in windows that there are");

	/* nvidia-uvm holds what it lent: the window is not of the new memory */
	gpu_free(g);
	g = gpu(SIZE);
	memset(mem(g), 0, MIB(1));
	is(cuFileRead(fh, g, MIB(1), MIB(1), 0), MIB(1), "new memory, old address");
	check(!memcmp(mem(g), data + MIB(1), MIB(1)), "gets the data");
	is(mock.nv_lent, 1, "what was lent of the old one is given back");
	closed();
	check(!log_has("nvidia-uvm"), "nothing is said of it");
	gpu_free(g);
}

/* From here on, all is staged, and why has @words. */
static CUfileHandle_t staged(int fd, char *g, const char *data, const char *words)
{
	CUfileHandle_t fh = reg(fd);
	unsigned long long calls;

	memset(mem(g), 0, MIB(1));
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read");
	check(!memcmp(mem(g), data, MIB(1)), "its data is right");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "it is staged");
	check(strstr(stats_of(fh).reason, words) &&
	      strstr(stats_of(fh).reason, "nvidia-uvm lends no mapping"),
	      "why: %s", stats_of(fh).reason);
	is(log_count("no p2p: nvidia-uvm lends no mapping"), 1, "told once");
	calls = mock.nv_calls;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "again");
	is((long long)mock.nv_calls, (long long)calls, "nobody is asked again");
	is(log_count("no p2p: nvidia-uvm"), 1, "nor anything told");
	is(mock.nv_lent + mock.nv_memory + mock.vmm_held, 0, "nothing is left");
	return fh;
}

/* Other memory of the GPU: is nvidia-uvm asked? */
static void another(CUfileHandle_t fh, bool asked, const char *what)
{
	unsigned long long calls = mock.nv_calls;
	char *g = gpu(MIB(1));

	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "other memory");
	check((mock.nv_calls > calls) == asked, "%s", what);
	gpu_free(g);
}

void test_nvidia(void)
{
	char *data = malloc(SIZE);
	int fd;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	lent("580.159", "6.14.11-generic", data, fd);
	if (pwrite(fd, data, MIB(1), 0) != (ssize_t)MIB(1))
		abort();
	/* its UVM_FREE is another */
	lent("595.45.04", "7.2.12", data, fd);
	close(fd);
	free(data);
}

void test_nvidia_refused(void)
{
	static const struct {
		unsigned int call;
		uint32_t status;
		const char *words;
		bool of_gpu;	/* and so of all its memory */
	} calls[] = {
		{ NVRM_CLASS_CLIENT, NVRM_INSUFFICIENT_PERMISSIONS,
		  "RM_ALLOC of a client: INSUFFICIENT_PERMISSIONS, status 0x1b",
		  true },
		{ NVUVM_IOC_INITIALIZE & 0xffff, NVRM_NOT_SUPPORTED,
		  "UVM_INITIALIZE: NOT_SUPPORTED", true },
		{ NVRM_EXPORT_INFO, NVRM_INVALID_PARAMETER,
		  "GET_EXPORT_OBJECT_INFO: INVALID_PARAMETER", false },
		{ NVUVM_IOC_REGISTER_GPU, NVRM_GPU_UUID_NOT_FOUND,
		  "UVM_REGISTER_GPU: GPU_UUID_NOT_FOUND", true },
		{ NVRM_CLASS_DEVICE, NVRM_INVALID_CLASS,
		  "RM_ALLOC of the device: INVALID_CLASS", true },
		{ NVRM_CLASS_SUBDEVICE, 0x4321,
		  "RM_ALLOC of the subdevice: status 0x4321", true },
		{ NVRM_IMPORT, NVRM_INVALID_ARGUMENT,
		  "IMPORT_OBJECTS_FROM_FD: INVALID_ARGUMENT", false },
		{ NVUVM_IOC_LEND, NVRM_INVALID_ARGUMENT,
		  "UVM_ALLOC_DEVICE_P2P: INVALID_ARGUMENT, status 0x1f", false },
	};
	char *data = malloc(SIZE), *g = gpu(SIZE);
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);

	/* GPUs whose memory nvidia-uvm cannot lend */
	with_driver("580.159", NULL);
	mock.nv_no_static = true;
	fh = staged(fd, g, data, "no static BAR1");
	another(fh, false, "so it is for all of this GPU's");
	with_driver("580.159", NULL);
	mock.nv_write_combined = true;
	fh = staged(fd, g, data, "RmForceDisableIomapWC=1");
	with_driver("580.159", NULL);
	mock.nv_no_pages = true;
	fh = staged(fd, g, data, "the kernel has no P2PDMA");
	another(fh, false, "so it is for all of this GPU's");
	with_driver("580.159", NULL);
	mock.nv_no_pages = true;
	mock.nv_fail = NVRM_STATIC_BAR1 & 0xffff;
	mock.nv_fail_status = NVRM_INVALID_COMMAND;
	fh = staged(fd, g, data, "static BAR1 is not told of (status 0x24)");

	/* memory that it cannot lend */
	with_driver("580.159", NULL);
	mock.vmm = false;
	fh = staged(fd, g, data, "memory of cuMemCreate() only");
	mock.vmm = true;
	another(fh, true, "which says nothing about other memory");
	is((long long)p2p(fh), MIB(1), "that is mapped");
	with_driver("580.159", NULL);
	mock.vmm_closed = true;
	fh = staged(fd, g, data, "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
	with_driver("580.159", NULL);
	mock.vmm_foreign = true;
	fh = staged(fd, g, data, "not this GPU's own");
	with_driver("580.159", NULL);
	mock.nv_mig = true;
	fh = staged(fd, g, data, "partitioned (MIG)");
	with_driver("580.159", NULL);
	mock.nv_type = 2;
	fh = staged(fd, g, data, "RM's type 2");

	/* drivers */
	with_driver("590.48.01", NULL);
	mock.kernel = "6.15.0";
	fh = staged(fd, g, data, "would lose the memory");
	another(fh, false, "so it is for all of this GPU's");
	with_driver("585.10", NULL);
	fh = staged(fd, g, data, "not known for driver 585.10");
	is(mock.nv_open, 0, "its devices are closed");
	another(fh, false, "it is not opened again");
	with_driver("580.159", NULL);
	mock.nv_no_uvm = EACCES;
	fh = staged(fd, g, data, "open of /dev/nvidia-uvm: EACCES");
	with_driver("580.159", NULL);
	mock.nv_no_uvm = ENOENT;
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "no nvidia-uvm: a read");
	is((long long)p2p(fh), MIB(1), "of a dma-buf, as if there were no driver");
	is(mock.nv_open, 0, "no device is open");

	/* what answers as it should not */
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		with_driver("580.159", NULL);
		mock.nv_fail = calls[i].call;
		mock.nv_fail_status = calls[i].status;
		fh = staged(fd, g, data, calls[i].words);
		another(fh, !calls[i].of_gpu, calls[i].of_gpu ?
			"other memory is not tried" : "other memory is tried");
	}
	with_driver("580.159", NULL);
	mock.nv_mmap_errno = EPERM;
	fh = staged(fd, g, data, "mmap of /dev/nvidia-uvm: ");
	with_driver("580.159", NULL);
	mock.nv_fail = NVUVM_IOC_LEND;
	mock.nv_fail_errno = ENOTTY;
	fh = staged(fd, g, data, "UVM_ALLOC_DEVICE_P2P: ENOTTY");
	closed();
	gpu_free(g);
	close(fd);
	free(data);
}

/* What is of this moment is tried again, and each step of it. */
void test_nvidia_again(void)
{
	static const unsigned int calls[] = {
		NVRM_CLASS_CLIENT, NVUVM_IOC_INITIALIZE & 0xffff,
		NVRM_EXPORT_INFO, NVUVM_IOC_REGISTER_GPU, NVRM_CLASS_DEVICE,
		NVRM_CLASS_SUBDEVICE, NVRM_IMPORT, NVUVM_IOC_LEND,
	};
	static const uint32_t status[] = {
		NVRM_NO_MEMORY, NVRM_BUSY_RETRY, NVRM_INSUFFICIENT_RESOURCES,
	};
	char *data = malloc(MIB(1)), *g = gpu(MIB(1));
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		with_driver("580.159", NULL);
		fh = reg(fd);
		mock.nv_fail = calls[i];
		/* of the last, the first says whether there are pages at all */
		mock.nv_fail_count = calls[i] == NVUVM_IOC_LEND ? 2 : 1;
		mock.nv_fail_status = status[i % 3];
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "not now: a read");
		is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next");
		is(stats_of(fh).last_path, PLN_PATH_P2P, "is not");
	}
	with_driver("580.159", NULL);
	fh = reg(fd);
	mock.nv_fail = NVUVM_IOC_LEND;
	mock.nv_fail_count = 2;
	mock.nv_fail_errno = EINTR;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a signal at each call");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "is nothing to the data");
	closed();

	/* where it is not lent, the module has it all the same */
	with_driver("580.159", NULL);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock.module = 1;
	mock.nv_no_pages = true;
	if (cuFileDriverOpen().err)
		abort();
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "with the module: a read");
	is(stats_of(fh).last_path, PLN_PATH_KERNEL, "goes by it");
	check(!log_has("no p2p"), "nothing is told");
	mock.register_errno = EOPNOTSUPP;
	mock.register_reason = PLN_REASON_NO_PAGES;
	gpu_free(g);
	g = gpu(MIB(1));
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "if neither has it: a read");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
	check(strstr(stats_of(fh).reason, "no pages of this GPU's BAR1") &&
	      strstr(stats_of(fh).reason, "the kernel has no P2PDMA"),
	      "why, by both: %s", stats_of(fh).reason);
	closed();
	gpu_free(g);
	close(fd);
	free(data);
}

// SPDX-License-Identifier: MIT
/* Of the unit test: mappings lent by nvidia-uvm, with a mock of NVIDIA's drivers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
	if (!json) {
		cuFileDriverClose();
		setenv("PEERLANE_NVIDIA_UVM", "1", 1);
		if (cuFileDriverOpen().err)
			abort();
	}
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
	is(cuFileBufRegister(g, SIZE, 0).err, 0, "memory is registered");
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

	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "memory is registered");
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

	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "other memory");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read into it");
	check((mock.nv_calls > calls) == asked, "%s", what);
	is(cuFileBufDeregister(g).err, 0, "it is deregistered");
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
		/* a driver before 595 may have lost the memory */
		{ NVUVM_IOC_LEND, NVRM_INVALID_ARGUMENT,
		  "UVM_ALLOC_DEVICE_P2P: INVALID_ARGUMENT, status 0x1f", true },
		{ NVUVM_IOC_LEND, NVRM_INVALID_ADDRESS,
		  "UVM_ALLOC_DEVICE_P2P: INVALID_ADDRESS, status 0x1e", false },
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
	with_driver("575.64", NULL);
	mock.nv_write_combined = true;
	fh = staged(fd, g, data, "drivers before 580 do not report whether it is mapped write-combined");
	check(strstr(stats_of(fh).reason, "RmForceDisableIomapWC=1"),
	      "with what cures it");
	with_driver("580.159", NULL);
	mock.nv_no_pages = true;
	fh = staged(fd, g, data, "the kernel has no P2PDMA");
	another(fh, false, "so it is for all of this GPU's");
	with_driver("580.159", NULL);
	mock.nv_no_pages = true;
	mock.nv_fail = NVRM_STATIC_BAR1 & 0xffff;
	mock.nv_fail_status = NVRM_INVALID_COMMAND;
	fh = staged(fd, g, data, "the driver does not report static BAR1 (status 0x24)");

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
	mock.vmm_compressed = true;
	fh = staged(fd, g, data, "the memory is compressible");
	mock.vmm_compressed = false;
	another(fh, true, "which says nothing about other memory");
	is((long long)p2p(fh), MIB(1), "that is mapped");
	with_driver("580.159", NULL);
	mock.vmm_retain_error = 801;
	fh = staged(fd, g, data,
		    "cuMemRetainAllocationHandle: CUDA_ERROR_NOT_SUPPORTED");
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
	check(strstr(stats_of(fh).reason, "the cure: driver 595") &&
	      !strstr(stats_of(fh).reason, "595."), "any 595 will do");
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
	with_driver("595.45.04", NULL);
	mock.nv_fail = NVUVM_IOC_LEND;
	mock.nv_fail_status = NVRM_INVALID_ARGUMENT;
	fh = staged(fd, g, data, "UVM_ALLOC_DEVICE_P2P: INVALID_ARGUMENT");
	another(fh, true, "a driver that knows the pages: other memory is tried");
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

/* What is remembered of one memory is not told of another one. */
void test_nvidia_reasons(void)
{
	struct refusal r[7];
	char *data = calloc(1, MIB(1));
	unsigned int i;
	CUfileHandle_t fh;
	int fd = make(path, 0, data, MIB(1));
	uint8_t type;

	for (i = 0; i < 7; i++)
		r[i] = (struct refusal){ .g = gpu(MIB(1)) };
	with_driver("580.159", NULL);
	fh = reg(fd);
	type = mock.nv_type;
	for (i = 0; i < 7; i++) {
		mock.vmm = i != 0;
		mock.vmm_closed = i == 1;
		mock.vmm_foreign = i == 2;
		mock.vmm_compressed = i == 3;
		mock.vmm_retain_error = i == 4 ? 801 : 0;
		mock.nv_type = i == 5 ? 2 : type;
		mock.nv_mmap_errno = i == 6 ? EPERM : 0;
		r[i].fh = fh;
		r[i].words = ((const char *const[]){
			"memory of cuMemCreate() only", "called for memory that can be exported",
			"not this GPU's own", "compressible", "cuMemRetainAllocationHandle",
			"RM's type 2", "mmap of /dev/nvidia-uvm",
		})[i];
		is(cuFileBufRegister(r[i].g, MIB(1), 0).err, 0, "memory is registered");
		is(cuFileRead(fh, r[i].g, 8192, 0, 0), 8192, r[i].words);
	}
	each_after_each(r, 7);
	closed();
	for (i = 0; i < 7; i++)
		gpu_free(r[i].g);
	close(fd);
	free(data);
}

/* There is no room for a window then, so that a transfer is the first to ask for one. */
static void register_only(void *g, size_t n)
{
	size_t most;

	if (cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
				    &most).err ||
	    cuFileDriverSetMaxPinnedMemSize(64).err)
		abort();
	is(cuFileBufRegister(g, n, 0).err, 0, "registered");
	if (cuFileDriverSetMaxPinnedMemSize(most).err)
		abort();
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
		register_only(g, MIB(1));
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
	register_only(g, MIB(1));
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

/* Staged now for @words, and p2p when @lack, which is in the mock, is gone. */
static void for_now(int fd, char *g, int *lack, int value, const char *words)
{
	CUfileHandle_t fh;

	with_driver("580.159", NULL);
	fh = reg(fd);
	register_only(g, MIB(1));
	*lack = value;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "not now: a read");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
	check(strstr(stats_of(fh).reason, words), "why: %s",
	      stats_of(fh).reason);
	*lack = 0;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "is not");
}

/* What other windows hold is given up for a new one; and some answers are too many. */
void test_nvidia_scarce(void)
{
	char *data = malloc(SIZE), *g = gpu(SIZE), *h = gpu(MIB(1));
	unsigned long long calls;
	CUfileHandle_t fh;
	int fd, i;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	for_now(fd, h, &mock.nv_no_uvm, EMFILE, "open of /dev/nvidia-uvm: EMFILE");
	for_now(fd, h, &mock.nv_no_uvm, ENFILE, "open of /dev/nvidia-uvm: ENFILE");
	for_now(fd, h, &mock.vmm_export_error, 304,
		"cuMemExportToShareableHandle: MOCK_ERROR");
	for_now(fd, h, &mock.vmm_retain_error, 999,
		"cuMemRetainAllocationHandle: MOCK_ERROR");
	for_now(fd, h, &mock.nv_mmap_errno, ENOMEM,
		"mmap of /dev/nvidia-uvm: Cannot allocate memory");

	/* room in the kernel is made of the windows that there are */
	for (i = 0; i < 2; i++) {
		with_driver("580.159", NULL);
		fh = reg(fd);
		register_only(g, SIZE);
		register_only(h, MIB(1));
		is(cuFileRead(fh, g, SIZE, 0, 0), (long long)SIZE, "a read");
		is(mock.nv_lent, 3, "three windows");
		mock.nv_fail = i ? NVUVM_IOC_LEND : 0;
		mock.nv_fail_count = 2;
		mock.nv_fail_status = NVRM_NO_MEMORY;
		mock.nv_mmap_errno = i ? 0 : ENOMEM;
		mock.nv_mmap_count = 2;
		memset(mem(h), 0, MIB(1));
		is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "other memory");
		is(stats_of(fh).last_path, PLN_PATH_P2P, "has a window");
		check(!memcmp(mem(h), data, MIB(1)), "and the data");
		is(mock.nv_lent, 2, "for two of the others");
		closed();
	}

	/* it never has time: asked for three times, and no more */
	with_driver("580.159", NULL);
	fh = reg(fd);
	register_only(g, SIZE);
	register_only(h, MIB(1));
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "a GPU whose memory is lent");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "goes p2p");
	mock.nv_fail = NVUVM_IOC_LEND;
	mock.nv_fail_status = NVRM_BUSY_RETRY;
	for (i = 0; i < 4; i++) {
		calls = mock.nv_calls;
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "no answer");
		is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "staged");
		check((mock.nv_calls > calls) == (i < 3), "%s",
		      i < 3 ? "it is asked again" : "and then not any more");
	}
	check(strstr(stats_of(fh).reason, "BUSY_RETRY"), "why: %s",
	      stats_of(fh).reason);
	mock.nv_fail = 0;
	is(cuFileBufDeregister(g).err, 0, "deregistered");
	register_only(g, SIZE);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "it is asked anew");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "and lends");

	/* suspended, it gives nothing back; for long, that is told */
	mock.nv_fail = NVUVM_IOC_FREE;
	mock.nv_fail_count = 2;
	mock.nv_fail_errno = EAGAIN;
	is(mock.nv_lent, 2, "two windows");
	is(cuFileBufDeregister(h).err, 0, "one is to be given up");
	is(mock.nv_lent, 1, "which is tried until it is done");
	check(!log_has("keeps GPU memory"), "and nothing told");
	mock.nv_fail = NVUVM_IOC_FREE;
	mock.nv_fail_count = 0;
	is(cuFileBufDeregister(g).err, 0, "and the other");
	is(mock.nv_lent, 1, "which cannot be");
	check(log_has("nvidia-uvm keeps GPU memory: UVM_FREE: EAGAIN"),
	      "it is told");
	mock.nv_fail = 0;
	closed();
	gpu_free(g);
	gpu_free(h);
	close(fd);
	free(data);
}

/* Who does not ask for it has the library as it is without. */
void test_nvidia_off(void)
{
	char *data = malloc(MIB(1)), *g = gpu(MIB(1));
	CUfileHandle_t fh;
	int fd;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	with_driver("580.159", "{}");
	fh = reg(fd);
	mock.handle_error = 801;
	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "off: registered");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
	check(strstr(stats_of(fh).reason, "no dma-buf of this GPU memory: "
		     "CUDA_ERROR_NOT_SUPPORTED (801)"), "why: %s",
	      stats_of(fh).reason);
	is((long long)mock.nv_calls, 0, "nvidia-uvm is not asked");
	is(mock.nv_opened, 0, "nor a device of NVIDIA's opened");

	with_driver("580.159", "{\"peerlane\":{\"nvidia_uvm\":true}}");
	fh = reg(fd);
	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "on: registered");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read");
	is((long long)p2p(fh), MIB(1), "is p2p");
	is(mock.nv_lent, 1, "by what nvidia-uvm lends");
	closed();
	with_driver("580.159", "{\"peerlane\":{\"nvidia_uvm\":true}}");
	setenv("PEERLANE_NVIDIA_UVM", "0", 1);
	cuFileDriverClose();
	if (cuFileDriverOpen().err)
		abort();
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the environment goes before");
	is(mock.nv_opened, 0, "it is off");
	closed();
	gpu_free(g);
	close(fd);
	free(data);
}

/* Lent is what is registered, and as long as it is. */
void test_nvidia_registered(void)
{
	char *data = malloc(SIZE), *g = gpu(SIZE);
	CUfileHandle_t fh;
	int fd;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	with_driver("580.159", NULL);
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), (long long)SIZE, "a read");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
	check(strstr(stats_of(fh).reason,
		     "not registered with cuFileBufRegister()"), "why: %s",
	      stats_of(fh).reason);
	is(mock.nv_lent + mock.nv_memory + mock.vmm_held, 0, "nothing is held");
	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "a part is registered");
	is(cuFileRead(fh, g + MIB(20), MIB(1), 0, 0), MIB(1), "a read elsewhere");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "and one there");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "is not");
	is(mock.nv_lent, 1, "its window is lent");
	is(cuFileBufRegister(g + MIB(20), MIB(1), 0).err, 0, "another part");
	is(cuFileRead(fh, g + MIB(20), MIB(1), 0, 0), MIB(1), "a read there");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "is p2p then");
	is(mock.nv_lent, 2, "two windows");
	is(cuFileBufDeregister(g).err, 0, "the first is deregistered");
	is(mock.nv_lent, 1, "and its window given back");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read there");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged again");
	is(cuFileBufDeregister(g + MIB(20)).err, 0, "the other, too");
	is(mock.nv_lent, 0, "nothing is held");
	closed();

	/* the module needs no registration */
	with_driver("580.159", NULL);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock.module = 1;
	if (cuFileDriverOpen().err)
		abort();
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "not registered: a read");
	is(stats_of(fh).last_path, PLN_PATH_KERNEL, "goes by the module");
	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "registered");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "is p2p");
	closed();
	gpu_free(g);
	close(fd);
	free(data);
}

/* Several allocations in one range of addresses, which may change. */
void test_nvidia_ranges(void)
{
	const size_t n = MIB(2);
	char *data = malloc(2 * n), *g = (char *)(uintptr_t)mock_two(n), *a, *b;
	CUfileHandle_t fh;
	int fd;

	noise(data, 2 * n);
	fd = make(path, 0, data, 2 * n);
	with_driver("580.159", NULL);
	fh = reg(fd);
	is(cuFileBufRegister(g, 2 * n, 0).err, 0, "a range of two is registered");
	is(cuFileRead(fh, g, 2 * n, 0, 0), 2 * n, "a read across both");
	check(!memcmp(mem(g), data, n) && !memcmp(mem(g + n), data + n, n),
	      "each has its data");
	is((long long)p2p(fh), 2 * n, "all of it p2p");
	is(mock.nv_lent, 2, "each is lent");

	a = mem(g);
	b = mem(g + n);
	mock_swap((uintptr_t)g);
	check(mem(g) == b && mem(g + n) == a, "they trade their addresses");
	memset(a, 0, n);
	memset(b, 0, n);
	is(cuFileRead(fh, g, n, 0, 0), n, "a read into what is first now");
	check(!memcmp(b, data, n), "has the data");
	check(!a[0] && !memcmp(a, a + 1, n - 1), "what was there has none");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "p2p");
	is(cuFileRead(fh, g + n, n, n, 0), n, "and into the second");
	check(!memcmp(a, data + n, n) && !memcmp(b, data, n), "the right data");
	is((long long)p2p(fh), 4 * n, "all of it p2p");
	is(mock.nv_lent, 2, "what was lent before is given back");
	closed();
	gpu_free(g + n);
	gpu_free(g);
	close(fd);
	free(data);
}

/* How many of the mock's devices are open here? */
static unsigned int devices_open(void)
{
	char name[64], to[256];
	unsigned int n = 0;
	ssize_t len;
	int fd;

	for (fd = 0; fd < 4096; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		len = readlink(name, to, sizeof(to) - 1);
		if (len < 0)
			continue;
		to[len] = '\0';
		n += !!strstr(to, "mock-nvidia");
	}
	return n;
}

/* A child holds nothing that is lent, or the parent could not give it back. */
void test_nvidia_fork(void)
{
	char *data = malloc(MIB(1)), *g = gpu(MIB(1));
	int fd, status = 0;
	CUfileHandle_t fh;
	pid_t child;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	with_driver("580.159", NULL);
	fh = reg(fd);
	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "registered");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "before a fork");
	is(devices_open(), 2, "two devices are open");
	child = fork();
	if (!child)
		_exit((int)devices_open());
	check(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	      !WEXITSTATUS(status), "none is in a child");
	is(devices_open(), 2, "they are in the parent");
	memset(mem(g), 0, MIB(1));
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "which reads");
	check(!memcmp(mem(g), data, MIB(1)), "the data");
	is((long long)p2p(fh), 2 * MIB(1), "as before");
	closed();
	gpu_free(g);
	close(fd);
	free(data);
}

// SPDX-License-Identifier: MIT
/*
 * nvidia-uvm's mappings on a real NVIDIA GPU: what each call of ours is answered,
 * step by step, beside calls that are wrong on purpose.  A call that is right, in a
 * kernel without P2PDMA, is told from one that is wrong by that: the wrong one has
 * another answer.  Then libcufile.so.0, which is told to ask for it, has the same
 * memory, and must say why it stages it, once, or map it; its data is checked in any
 * case.
 *
 *   cufile-uvm --lib FILE --dir DIR --log FILE
 *
 * Exit status: 0 all good, 1 something is wrong, 77 nothing to test with.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../core/load.h"
#include "../internal.h"
#include "../nvrm.h"

#define SIZE	MIB(6)		/* of a size that nobody guesses */

struct cu cu;

static struct {
	CUresult (*Create)(CUmemGenericAllocationHandle *, size_t,
			   const CUmemAllocationProp *, unsigned long long);
	CUresult (*Reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr,
			    unsigned long long);
	CUresult (*Map)(CUdeviceptr, size_t, size_t,
			CUmemGenericAllocationHandle, unsigned long long);
	CUresult (*Access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	CUresult (*Unmap)(CUdeviceptr, size_t);
	CUresult (*AddressFree)(CUdeviceptr, size_t);
	CUresult (*Alloc)(CUdeviceptr *, size_t);
	CUresult (*Free)(CUdeviceptr);
	CUresult (*SetCurrent)(CUcontext);
	CUresult (*GetName)(char *, int, CUdevice);
} vmm;

static struct {
	CUfileError_t (*DriverOpen)(void);
	CUfileError_t (*DriverClose)(void);
	CUfileError_t (*Register)(CUfileHandle_t *, CUfileDescr_t *);
	void (*Deregister)(CUfileHandle_t);
	CUfileError_t (*BufRegister)(const void *, size_t, int);
	CUfileError_t (*BufDeregister)(const void *);
	ssize_t (*Read)(CUfileHandle_t, void *, size_t, off_t, off_t);
	ssize_t (*Write)(CUfileHandle_t, const void *, size_t, off_t, off_t);
	int (*stats)(void *, struct pln_file_stats *);
} cf;

static unsigned int checks, failed;

/* of nvrm.c: every call */
void log_line(int level, const char *fmt, ...)
{
	va_list ap;

	(void)level;
	va_start(ap, fmt);
	printf("#   ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
}

static bool check(bool good, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	checks++;
	failed += !good;
	printf("%sok %u - ", good ? "" : "not ", checks);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return good;
}

static int skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 77;
}

/* The latest call was wrong, and had to be answered @status. */
static void refused(const struct nvrm *n, uint32_t status, const char *what)
{
	check(!n->err && n->status == status, "%s: %s", what,
	      nvrm_status_name(status));
}

/* ---- memory ---- */

struct memory {
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
};

static CUresult make(struct memory *m, int gpu, bool exportable)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = exportable ?
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu },
	};
	CUmemAccessDesc rw = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUresult r = vmm.Create(&m->handle, SIZE, &prop, 0);

	if (!r)
		r = vmm.Reserve(&m->at, SIZE, 0, 0, 0);
	if (!r)
		r = vmm.Map(m->at, SIZE, 0, m->handle, 0);
	if (!r)
		r = vmm.Access(m->at, SIZE, &rw, 1);
	return r;
}

static void drop(struct memory *m)
{
	vmm.Unmap(m->at, SIZE);
	vmm.AddressFree(m->at, SIZE);
	cu.MemRelease(m->handle);
}

/* ---- what RM and nvidia-uvm answer ---- */

/* ctrl0041.h: what is told of a memory object; 7: its size in units of 4 KiB */
struct surface_info {
	uint32_t count;
	uint64_t list;
};
static_assert(sizeof(struct surface_info) == 16, "GET_SURFACE_INFO");

static bool memory_size(struct nvrm *n, nvrm_handle memory, uint64_t *size)
{
	struct { uint32_t index, data; } list[1] = { { 7, 0 } };
	struct surface_info s = { 1, (uintptr_t)list };

	if (!nvrm_ask(n, "GET_SURFACE_INFO", memory, 0x410110, &s, sizeof(s)))
		return false;
	*size = (uint64_t)list[0].data << 12;
	return true;
}

/*
 * nvos.h, NV_VASPACE_ALLOCATION_PARAMETERS; the last member came after 570.  And
 * uvm_ioctl.h: an address space of a GPU, and memory mapped into it.  nvidia-uvm
 * takes our handles there as it does for UVM_ALLOC_DEVICE_P2P, without P2PDMA.
 */
struct vaspace {
	uint32_t index, flags;
	uint64_t size, start, limit;
	uint32_t big_page;
	uint64_t base;
	uint32_t pasid;
};
static_assert(sizeof(struct vaspace) == 56, "NV_VASPACE_ALLOCATION_PARAMETERS");

struct register_vaspace {
	uint8_t uuid[16];
	int32_t ctl;
	nvrm_handle client, vaspace;
	uint32_t status;
};
static_assert(sizeof(struct register_vaspace) == 32, "UVM_REGISTER_GPU_VASPACE");

struct external_range {
	uint64_t base, size;
	uint32_t status;
};
static_assert(sizeof(struct external_range) == 24, "UVM_CREATE_EXTERNAL_RANGE");

struct map_external {
	uint64_t base, size, offset;
	struct {
		uint8_t uuid[16];
		uint32_t mapping, caching, format, bits, compression;
	} gpu[256];
	uint64_t gpus;
	int32_t ctl;
	nvrm_handle client, memory;
	uint32_t status;
};
static_assert(sizeof(struct map_external) == 9264, "UVM_MAP_EXTERNAL_ALLOCATION");

static bool uvm_call(struct nvrm *n, const char *call, unsigned long cmd,
		     void *arg, const uint32_t *status)
{
	char words[160];

	n->call = call;
	n->err = ioctl(n->uvm, cmd, arg) ? errno : 0;
	n->status = *status;
	nvrm_says(n, words, sizeof(words));
	log_line(LOG_DEBUG, "nvidia: %s", words);
	return !n->err && !n->status;
}

static void test_handles(struct nvrm *n, const CUuuid *uuid,
			 nvrm_handle device, nvrm_handle memory)
{
	static struct map_external m;
	struct vaspace va = { .flags = 1 << 3 | 1 << 6, .base = 0x1000,
			      .size = 0x1fffffb000000ull };
	struct register_vaspace r = { .ctl = n->ctl, .client = n->client };
	struct external_range e = { .size = SIZE };
	void *at = mmap(NULL, SIZE + MIB(2), PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!nvrm_make(n, "RM_ALLOC of an address space", device, 0x90f1, &va,
		       n->major > 570 ? sizeof(va) : 48, &r.vaspace)) {
		check(false, "an address space to try the handles in");
		return;
	}
	memcpy(r.uuid, uuid, 16);
	e.base = round_up((uintptr_t)at, MIB(2));
	if (!uvm_call(n, "UVM_REGISTER_GPU_VASPACE", 25, &r, &r.status) ||
	    !uvm_call(n, "UVM_CREATE_EXTERNAL_RANGE", 73, &e, &e.status)) {
		check(false, "nvidia-uvm takes the address space");
		return;
	}
	m = (struct map_external){ .base = e.base, .size = SIZE, .gpus = 1,
				   .ctl = n->ctl, .client = n->client };
	memcpy(m.gpu[0].uuid, uuid, 16);
	m.memory = memory + 0x100;
	check(!uvm_call(n, "UVM_MAP_EXTERNAL_ALLOCATION", 33, &m, &m.status),
	      "nvidia-uvm refuses a wrong handle where no P2PDMA is needed");
	m.memory = memory;
	check(uvm_call(n, "UVM_MAP_EXTERNAL_ALLOCATION", 33, &m, &m.status),
	      "and takes ours there");
	nvuvm_free(n, e.base, SIZE);
}

/* The memory is lent: it must be this very memory that is mapped. */
static void test_mapping(struct nvrm *n, const CUuuid *uuid,
			 nvrm_handle memory, void *at, const struct memory *m)
{
	const size_t off = MIB(2) + KIB(64), len = KIB(128);
	unsigned char *p, *want = malloc(len), *got = malloc(len);
	int file = memfd_create("peerlane-uvm", MFD_CLOEXEC);
	size_t i;

	for (i = 0; i < len; i++)
		want[i] = (unsigned char)(i * 7 + i / 251);
	cu.HtoD(m->at + off, want, len);
	nvuvm_lend(n, uuid, memory, (uintptr_t)at, len, off);
	refused(n, NVRM_UVM_ADDRESS_IN_USE, "it is not lent twice to one address");
	check(nvuvm_free(n, (uintptr_t)at, len), "it is given back");
	check(nvuvm_lend(n, uuid, memory, (uintptr_t)at, len, off),
	      "and lent from another offset on");
	p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 n->uvm, (off_t)(uintptr_t)at);
	if (check(p != MAP_FAILED, "and mapped: %s",
		  p == MAP_FAILED ? strerror(errno) : "")) {
		/* by the kernel: a mapping that is dead is EFAULT there */
		check(pwrite(file, p, len, 0) == (ssize_t)len &&
		      pread(file, got, len, 0) == (ssize_t)len &&
		      !memcmp(got, want, len), "the processor sees what CUDA "
		      "has written");
		memset(got, 0x5a, KIB(4));
		check(pwrite(file, got, KIB(4), 0) == (ssize_t)KIB(4) &&
		      pread(file, p, KIB(4), 0) == (ssize_t)KIB(4),
		      "it writes there");
		memset(got, 0, KIB(4));
		cu.DtoH(got, m->at + off, KIB(4));
		for (i = 0; i < KIB(4) && got[i] == 0x5a; i++)
			continue;
		check(i == KIB(4), "and CUDA what the processor has");
		mmap(at, len, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	check(nvuvm_free(n, (uintptr_t)at, len), "and given back");
	close(file);
	free(want);
	free(got);
}

static void test_calls(int gpu, const CUuuid *uuid, const struct memory *mem)
{
	struct nvrm_export_info info = { 0 };
	struct nvrm_static_bar1 bar1 = { 0 };
	struct nvrm_import im = { .count = 1 };
	struct nvrm_device dev = { 0 };
	struct nvrm_subdevice sub = { 0 };
	nvrm_handle device = 0, subdevice = 0, memory = 0, none;
	const size_t len = KIB(128);
	uint64_t size = 0, base;
	CUuuid other = *uuid;
	unsigned int i;
	struct nvrm n;
	int fd = -1, null = open("/dev/null", O_RDWR);
	void *at;
	bool pages, lent;

	other.bytes[5] ^= 0x55;
	if (cu.MemExport(&fd, mem->handle,
			 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
		fd = -1;
	check(fd >= 0, "the memory is exported");
	if (!check(nvrm_open(&n), "the devices open"))
		return;
	printf("# driver %s\n", n.version);
	check(NVRM_KNOWN(n.major), "of a branch that is known");

	at = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	base = (uintptr_t)at;
	nvuvm_lend(&n, uuid, 1, base, len, 0);
	refused(&n, NVRM_ILLEGAL_ACTION, "nvidia-uvm before it is initialized");
	check(nvuvm_initialize(&n), "it is initialized");
	check(nvrm_make(&n, "RM_ALLOC of a client", 0, NVRM_CLASS_CLIENT, NULL,
			0, &n.client), "a client of RM");
	info.fd = null;
	nvrm_ask(&n, "GET_EXPORT_OBJECT_INFO", n.client, NVRM_EXPORT_INFO,
		 &info, sizeof(info));
	refused(&n, NVRM_INVALID_PARAMETER, "a descriptor of nobody's memory");
	info.fd = fd;
	check(!nvrm_ask(&n, "GET_EXPORT_OBJECT_INFO", n.client,
			NVRM_EXPORT_INFO, &info, sizeof(info) - 4),
	      "parameters of a wrong size");
	check(nvrm_ask(&n, "GET_EXPORT_OBJECT_INFO", n.client,
		       NVRM_EXPORT_INFO, &info, sizeof(info)),
	      "the exported memory");
	printf("# device instance %u, partition 0x%x, objects %u\n",
	       info.device_instance, info.gpu_instance, info.max_objects);
	printf("# what CUDA has added:");
	for (i = 0; i < sizeof(info.metadata); i++)
		printf("%s%02x", i % 8 ? "" : " ", info.metadata[i]);
	printf("\n");
	check(info.max_objects == 1, "is one object");
	check(info.gpu_instance == NVRM_NO_MIG, "of a GPU without partitions");

	dev = (struct nvrm_device){ .instance = 31, .client_share = n.client };
	check(!nvrm_make(&n, "RM_ALLOC of the device", n.client,
			 NVRM_CLASS_DEVICE, &dev, sizeof(dev), &none),
	      "a device that is not there");
	dev.instance = info.device_instance;
	check(nvrm_make(&n, "RM_ALLOC of the device", n.client,
			NVRM_CLASS_DEVICE, &dev, sizeof(dev), &device),
	      "the device");
	check(nvrm_make(&n, "RM_ALLOC of the subdevice", device,
			NVRM_CLASS_SUBDEVICE, &sub, sizeof(sub), &subdevice),
	      "the subdevice");
	nvrm_ask(&n, "GET_STATIC_BAR1_INFO", subdevice + 0x100,
		 NVRM_STATIC_BAR1, &bar1, sizeof(bar1));
	refused(&n, NVRM_OBJECT_NOT_FOUND, "a subdevice that is not there");
	check(nvrm_ask(&n, "GET_STATIC_BAR1_INFO", subdevice, NVRM_STATIC_BAR1,
		       &bar1, sizeof(bar1)), "what is told of BAR1");
	printf("# static BAR1 %s, write-combined %s, %llu MiB from %llu\n",
	       bar1.enabled ? "on" : "off", bar1.write_combined ? "yes" : "no",
	       (unsigned long long)(bar1.size >> 20),
	       (unsigned long long)bar1.start);

	im.fd = null;
	im.parent = device;
	nvrm_ask(&n, "IMPORT_OBJECTS_FROM_FD", n.client, NVRM_IMPORT, &im,
		 sizeof(im));
	refused(&n, NVRM_INVALID_PARAMETER, "nobody's memory is imported");
	im.fd = fd;
	im.parent = device + 0x100;
	im.objects[0] = 0;
	check(!nvrm_ask(&n, "IMPORT_OBJECTS_FROM_FD", n.client, NVRM_IMPORT,
			&im, sizeof(im)), "or ours, for a wrong device");
	im.parent = device;
	im.objects[0] = 0;
	im.count = info.max_objects < 128 ? info.max_objects : 128;
	check(nvrm_ask(&n, "IMPORT_OBJECTS_FROM_FD", n.client, NVRM_IMPORT, &im,
		       sizeof(im)), "ours, for the right one");
	memory = im.objects[0];
	for (i = 0; i < im.count; i++)
		printf("# handle 0x%x, type %u\n", im.objects[i], im.types[i]);
	check(memory && im.types[0] == NVRM_TYPE_VIDMEM, "it is GPU memory");
	memory_size(&n, memory + 0x100, &size);
	refused(&n, NVRM_OBJECT_NOT_FOUND, "another handle has no size");
	memory_size(&n, memory, &size);
	check(size == SIZE, "ours has %llu bytes", (unsigned long long)size);

	nvuvm_lend(&n, uuid, memory, base, len, 0);
	refused(&n, NVRM_INVALID_DEVICE, "memory of a GPU that nvidia-uvm does "
		"not have yet");
	check(!nvuvm_register(&n, &other), "it does not know another GPU");
	check(nvuvm_register(&n, uuid), "it takes GPU %d", gpu);
	nvuvm_register(&n, uuid);
	refused(&n, NVRM_INVALID_DEVICE, "but not twice");
	nvuvm_free(&n, base, len);
	refused(&n, NVRM_INVALID_ADDRESS, "what was not lent is not given back");
	nvuvm_lend(&n, &other, memory, base, len, 0);
	refused(&n, NVRM_INVALID_DEVICE, "another GPU's is not lent");
	nvuvm_lend(&n, uuid, memory, base, 0, 0);
	refused(&n, NVRM_INVALID_ARGUMENT, "nor nothing at all");
	nvuvm_lend(&n, uuid, memory, base, len - 512, 0);
	refused(&n, NVRM_INVALID_ARGUMENT, "nor half a page");
	test_handles(&n, uuid, device, memory);

	nvuvm_lend(&n, uuid, 0, base, len, 0);
	pages = n.err || n.status != NVRM_NOT_SUPPORTED;
	check(n.err || n.status, "no handle at all: %s",
	      pages ? "as there are pages, refused" : "there are no pages");
	if (pages && !nvrm_counts_right(&n)) {
		printf("# it has pages, but is too old for this kernel's, and "
		       "would keep the memory for ever\n");
		goto out;
	}
	lent = nvuvm_lend(&n, uuid, memory, base, len, 0);
	if (lent) {
		check(bar1.enabled && !bar1.write_combined,
		      "it is lent, and BAR1 is as it has to be");
		nvuvm_lend(&n, uuid, memory, base + len, SIZE, len);
		refused(&n, NVRM_INVALID_ARGUMENT, "more than there is");
		check(!nvuvm_lend(&n, uuid, memory + 0x100, base + len, len, 0),
		      "a wrong handle");
		test_mapping(&n, uuid, memory, at, mem);
	} else {
		check(!pages, "nor with one");
		refused(&n, NVRM_NOT_SUPPORTED, "it is not lent, since this "
			"kernel or driver has no pages of BAR1");
		printf("# as: %s\n", !bar1.enabled ? "no static BAR1" :
		       bar1.write_combined ? "BAR1 is write-combined, and the "
		       "kernel may have no P2PDMA besides" :
		       "the kernel has no P2PDMA, or does not take BAR1");
	}
out:
	check(nvrm_drop(&n, device, memory), "the handle is given up");
	memory_size(&n, memory, &size);
	refused(&n, NVRM_OBJECT_NOT_FOUND, "and is gone");
	nvrm_close(&n);
	munmap(at, len);
	close(null);
	close(fd);
}

/*
 * The library asks nvidia-uvm alone.  So the mapping of a dma-buf of this memory must
 * still be none, or one without pages for file IO.
 */
static void test_dmabuf(const char *path, CUdeviceptr at, const char *kind)
{
	int fd = -1, file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	const size_t len = KIB(64);
	void *p, *host = aligned_alloc(KIB(4), len);
	ssize_t r;

	memset(host, 1, len);
	if (file < 0 || write(file, host, len) != (ssize_t)len) {
		check(false, "%s with O_DIRECT: %s", path, strerror(errno));
		return;
	}
	if (!cu.MemGetHandle || cu.MemGetHandle(&fd, at, len,
			CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)) {
		check(true, "%s: no dma-buf", kind);
	} else {
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = p == MAP_FAILED ? -1 : pread(file, p, len, 0);
		check(r < 0, "%s: the dma-buf, %s: %s", kind, p == MAP_FAILED ?
		      "mmap" : "a read into its mapping",
		      r < 0 ? strerror(errno) : "works");
		if (p != MAP_FAILED)
			munmap(p, len);
		close(fd);
	}
	free(host);
	close(file);
	unlink(path);
}

/* ---- libcufile ---- */

static const char *log_path;

/* How often the log has a line with these words. */
static unsigned int logged(const char *words, bool show)
{
	FILE *f = fopen(log_path, "r");
	unsigned int n = 0;
	char line[1024];

	while (f && fgets(line, sizeof(line), f)) {
		n += !!strstr(line, words);
		if (show)
			printf("# log: %s", line);
	}
	if (f)
		fclose(f);
	return n;
}

/* Of @kind; @words: what its reason must have, if it is staged: returned. */
static bool test_file(const char *path, CUdeviceptr at, const char *kind,
		      const char *words)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct pln_file_stats s = { .size = sizeof(s) };
	unsigned char *want = malloc(SIZE), *got = malloc(SIZE);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CUfileHandle_t fh = NULL;
	unsigned int i;
	bool good = true;

	for (i = 0; i < SIZE; i++)
		want[i] = (unsigned char)(i * 13 + i / 509 + kind[0]);
	if (fd < 0 || write(fd, want, SIZE) != (ssize_t)SIZE || fsync(fd)) {
		check(false, "%s: %s", path, strerror(errno));
		return false;
	}
	d.handle.fd = fd;
	check(!cf.Register(&fh, &d).err, "%s: a file", kind);
	check(!cf.BufRegister((void *)(uintptr_t)at, SIZE, 0).err,
	      "%s: its memory is registered", kind);
	for (i = 0; i < 3; i++) {
		memset(got, 0, SIZE);
		cu.HtoD(at, got, SIZE);
		good &= cf.Read(fh, (void *)(uintptr_t)at, SIZE, 0, 0) ==
				(ssize_t)SIZE &&
			!cu.DtoH(got, at, SIZE) && !memcmp(got, want, SIZE);
	}
	check(good, "%s: it is read, three times", kind);
	for (i = 0; i < SIZE; i++)
		want[i] ^= 0xa5;
	cu.HtoD(at, want, SIZE);
	good = cf.Write(fh, (void *)(uintptr_t)at, SIZE, 0, 0) == (ssize_t)SIZE;
	memset(got, 0, SIZE);
	good &= !fsync(fd) && pread(fd, got, SIZE, 0) == (ssize_t)SIZE &&
		!memcmp(got, want, SIZE);
	check(good, "%s: and written", kind);
	cf.stats(fh, &s);
	printf("# %s: p2p %llu bytes, kernel %llu, bounce %llu; %s\n", kind,
	       (unsigned long long)(s.path[PLN_PATH_P2P].bytes_read +
				    s.path[PLN_PATH_P2P].bytes_written),
	       (unsigned long long)(s.path[PLN_PATH_KERNEL].bytes_read +
				    s.path[PLN_PATH_KERNEL].bytes_written),
	       (unsigned long long)(s.path[PLN_PATH_BOUNCE].bytes_read +
				    s.path[PLN_PATH_BOUNCE].bytes_written),
	       s.reason);
	if (!s.fallbacks)
		check(true, "%s: not staged", kind);
	else
		check(strstr(s.reason, words), "%s: staged, and it says why", kind);
	check(!cf.BufDeregister((void *)(uintptr_t)at).err,
	      "%s: and deregistered", kind);
	cf.Deregister(fh);
	close(fd);
	unlink(path);
	free(want);
	free(got);
	return s.fallbacks;
}

static bool load(const char *lib)
{
	static const struct load_function of_cuda[] = {
#define PLN_X(required, name, symbol) { &cu.name, #symbol, NULL, required },
		CU_FUNCTIONS(PLN_X)
#undef PLN_X
		{ &vmm.Create, "cuMemCreate", NULL, true },
		{ &vmm.Reserve, "cuMemAddressReserve", NULL, true },
		{ &vmm.Map, "cuMemMap", NULL, true },
		{ &vmm.Access, "cuMemSetAccess", NULL, true },
		{ &vmm.Unmap, "cuMemUnmap", NULL, true },
		{ &vmm.AddressFree, "cuMemAddressFree", NULL, true },
		{ &vmm.Alloc, "cuMemAlloc_v2", NULL, true },
		{ &vmm.Free, "cuMemFree_v2", NULL, true },
		{ &vmm.SetCurrent, "cuCtxSetCurrent", NULL, true },
		{ &vmm.GetName, "cuDeviceGetName", NULL, true },
	};
	static const struct load_function of_cufile[] = {
		{ &cf.DriverOpen, "cuFileDriverOpen", NULL, true },
		{ &cf.DriverClose, "cuFileDriverClose", NULL, true },
		{ &cf.Register, "cuFileHandleRegister", NULL, true },
		{ &cf.Deregister, "cuFileHandleDeregister", NULL, true },
		{ &cf.BufRegister, "cuFileBufRegister", NULL, true },
		{ &cf.BufDeregister, "cuFileBufDeregister", NULL, true },
		{ &cf.Read, "cuFileRead", NULL, true },
		{ &cf.Write, "cuFileWrite", NULL, true },
		{ &cf.stats, "pln_file_stats", NULL, true },
	};
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *cufile;
	const char *missing;

	if (!cuda)
		exit(skip("no libcuda.so.1 on this machine"));
	missing = load_functions(cuda, of_cuda, LOAD_COUNT(of_cuda));
	if (missing || !cu.MemRetain || !cu.MemExport || !cu.DeviceGetUuid)
		return check(false, "libcuda.so.1 has %s",
			     missing ? missing : "what exports memory");
	cufile = dlopen(lib, RTLD_NOW);
	if (!cufile)
		return check(false, "%s", dlerror());
	missing = load_functions(cufile, of_cufile, LOAD_COUNT(of_cufile));
	return !missing || check(false, "the library has %s", missing);
}

int main(int argc, char **argv)
{
	const char *lib = "libcufile.so.0", *dir = "/var/tmp";
	struct memory mem, closed;
	char path[512], name[128] = "";
	CUdeviceptr plain;
	CUcontext ctx;
	CUdevice dev;
	CUuuid uuid;
	bool staged;
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--lib"))
			lib = argv[i + 1];
		else if (!strcmp(argv[i], "--dir"))
			dir = argv[i + 1];
		else if (!strcmp(argv[i], "--log"))
			log_path = argv[i + 1];
	}
	if (!log_path) {
		fprintf(stderr, "usage: cufile-uvm --lib FILE --dir DIR --log "
			"FILE\n");
		return 2;
	}
	setenv("CUFILE_LOGFILE_PATH", log_path, 1);
	setenv("PEERLANE_NVIDIA_UVM", "1", 1);
	snprintf(path, sizeof(path), "%s/peerlane-uvm.%d", dir, (int)getpid());
	if (!load(lib))
		return 1;
	if (cu.Init(0) || cu.DeviceGet(&dev, 0))
		return skip("no GPU that the driver can use");
	vmm.GetName(name, sizeof(name), dev);
	if (cu.PrimaryRetain(&ctx, dev) || vmm.SetCurrent(ctx) ||
	    cu.DeviceGetUuid(&uuid, dev))
		return skip("the GPU gives no context");
	printf("# GPU %s\n", name);
	if (!check(!make(&mem, 0, true), "memory that can be exported") ||
	    !check(!make(&closed, 0, false), "and that cannot") ||
	    !check(!vmm.Alloc(&plain, SIZE), "and of cuMemAlloc"))
		return 1;
	test_calls(0, &uuid, &mem);
	test_dmabuf(path, mem.at, "exportable");
	test_dmabuf(path, plain, "cuMemAlloc");

	check(!cf.DriverOpen().err, "the library opens");
	staged = test_file(path, mem.at, "exportable",
			   "nvidia-uvm lends no mapping");
	test_file(path, mem.at, "exportable again", "");
	check(logged("no p2p: nvidia-uvm", false) == staged,
	      "%s", staged ? "that it is not mapped was said once" :
	      "there was nothing to be said of it");
	test_file(path, closed.at, "not exportable", "");
	test_file(path, plain, "cuMemAlloc", "");
	cf.DriverClose();
	/* the first memory decides on a GPU: now another kind is the first */
	check(!cf.DriverOpen().err, "the library opens again");
	test_file(path, closed.at, "not exportable first",
		  "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
	test_file(path, plain, "cuMemAlloc second", "cuMemCreate() only");
	cf.DriverClose();
	logged("", true);
	drop(&mem);
	drop(&closed);
	vmm.Free(plain);
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}

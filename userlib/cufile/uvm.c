// SPDX-License-Identifier: MIT
/*
 * Mappings of a real NVIDIA GPU's memory with pages that the kernel takes for
 * file IO.  nvidia-uvm lends them (UVM_ALLOC_DEVICE_P2P) where it gave BAR1 to
 * the kernel's P2PDMA, and names memory by handles of RM, nvidia's resource
 * manager.  libcuda keeps those to itself.  But memory of cuMemCreate() can be
 * exported as a descriptor, and that imported into an RM client of our own: so
 * memory of that kind, and no other, can be mapped.
 *
 * What nvidia-uvm lends stays in our own address space there, apart from CUDA's.
 * It holds the memory until it is given back, so the imported handle goes as soon
 * as the mapping is there.
 *
 * All is done under window.c's `making`, except for uvm_unmap().
 */
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "nvrm.h"

#define MAX_GPUS	64
#define FREE_TRIES	10

/* Answers of the moment to UVM_ALLOC_DEVICE_P2P: the last one decides on the memory */
#define MAX_TRIES	3

static struct {
	enum { CLOSED, OPEN, ABSENT, REFUSED_ALL } state;
	char why[UVM_WHY_MAX];
	struct nvrm nv;
} driver = { .nv = { .ctl = -1, .uvm = -1 } };

/*
 * By CUDA's number.  What is found out about one holds as long as CUDA uses the
 * driver: how BAR1 is mapped is decided when the first user comes.
 */
static struct gpu {
	bool registered, ready, refused;
	char why[UVM_WHY_MAX];
	CUuuid uuid;
	nvrm_handle device, subdevice;
} gpus[MAX_GPUS];

/* Memory that UVM_ALLOC_DEVICE_P2P was asked for in vain: each has one place */
static struct {
	uint64_t buffer_id;
	unsigned int count;
} tries[64];

/* Of the memory at hand */
struct source {
	CUmemGenericAllocationHandle cuda;
	int fd;
	nvrm_handle memory;
};

static void because(char *why, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void because(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, UVM_WHY_MAX, fmt, ap);
	va_end(ap);
}

/* The latest call's answer is no.  -errno: of this moment, or for good. */
static int said_no(char *why)
{
	const struct nvrm *n = &driver.nv;

	nvrm_says(n, why, UVM_WHY_MAX);
	if (n->err == ENOMEM || n->err == EAGAIN || n->err == EINTR ||
	    n->err == EMFILE || n->err == ENFILE)
		return -EAGAIN;
	if (!n->err && (n->status == NVRM_NO_MEMORY ||
			n->status == NVRM_INSUFFICIENT_RESOURCES ||
			n->status == NVRM_BUSY_RETRY))
		return -EAGAIN;
	return -EOPNOTSUPP;
}

/* CUDA's answer is no: what is no plain refusal is of this moment. */
static int cuda_said_no(const char *call, CUresult e, char *why)
{
	because(why, "%s: %s", call, cu_name(e));
	return e == CUDA_ERROR_NOT_SUPPORTED || e == CUDA_ERROR_NOT_PERMITTED ||
	       e == CUDA_ERROR_INVALID_VALUE ? -EOPNOTSUPP : -EAGAIN;
}

/* The devices, a client, and an address space of nvidia-uvm's. */
static int open_driver(char *why)
{
	struct nvrm *n = &driver.nv;
	int r = 0;

	if (driver.state == CLOSED) {
		driver.why[0] = '\0';
		driver.state = OPEN;
		if (!nvrm_open(n)) {
			r = said_no(driver.why);
			if (n->err == ENOENT || n->err == ENXIO ||
			    n->err == ENODEV)
				driver.state = ABSENT;
		} else if (!NVRM_KNOWN(n->major)) {
			because(driver.why, "its calls are not known for driver "
				"%s", n->version);
			r = -EOPNOTSUPP;
		} else if (!nvrm_make(n, "RM_ALLOC of a client", 0,
				      NVRM_CLASS_CLIENT, NULL, 0, &n->client) ||
			   !nvuvm_initialize(n)) {
			r = said_no(driver.why);
		}
		if (r)
			nvrm_close(n);
		if (r == -EAGAIN) {
			driver.state = CLOSED;
			memcpy(why, driver.why, UVM_WHY_MAX);
			return r;
		}
		if (r && driver.state == OPEN)
			driver.state = REFUSED_ALL;
	}
	if (driver.state == OPEN)
		return 0;
	if (driver.state == REFUSED_ALL)
		memcpy(why, driver.why, UVM_WHY_MAX);
	return -EOPNOTSUPP;
}

/*
 * nvidia-uvm has no pages of BAR1.  It does not say why, so this asks for what it
 * looks at, in its order (uvm_pmm_gpu_device_p2p_init() in
 * kernel-open/nvidia-uvm/uvm_pmm_gpu.c).
 */
static void no_pages(struct gpu *g, char *why)
{
	struct nvrm_static_bar1 bar1 = { 0 };

	if (!nvrm_ask(&driver.nv, "GET_STATIC_BAR1_INFO", g->subdevice,
		      NVRM_STATIC_BAR1, &bar1, sizeof(bar1)))
		because(why, "it has no pages of this GPU's memory (status "
			"0x%x), and the driver does not report static BAR1 "
			"(status 0x%x)",
			NVRM_NOT_SUPPORTED, driver.nv.status);
	else if (!bar1.enabled || !bar1.size)
		because(why, "no static BAR1; the cure: a BAR1 larger than the "
			"GPU's memory (Resizable BAR), and before driver 580 "
			"NVreg_RegistryDwords=\"RMForceStaticBar1=1\"");
	else if (driver.nv.major < 580)
		because(why, "static BAR1 is on; drivers before 580 do not "
			"report whether it is mapped write-combined; the cure, "
			"if so: "
			"NVreg_RegistryDwords=\"RmForceDisableIomapWC=1\", in "
			"a kernel with P2PDMA");
	else if (bar1.write_combined)
		because(why, "BAR1 is mapped write-combined; the cure: "
			"NVreg_RegistryDwords=\"RmForceDisableIomapWC=1\", in a "
			"kernel with P2PDMA");
	else
		because(why, "static BAR1 is on and not write-combined, but "
			"the kernel has no P2PDMA (CONFIG_PCI_P2PDMA), or does "
			"not accept BAR1 for it: see \"P2PDMA\" in its log");
}

/* Has nvidia-uvm pages of the GPU?  It looks before it looks for the memory: none. */
static int probe(struct gpu *g, char *why)
{
	struct nvrm *n = &driver.nv;

	if (nvuvm_lend(n, &g->uuid, 0, GPU_PAGE, GPU_PAGE, 0))
		nvuvm_free(n, GPU_PAGE, GPU_PAGE);
	if (n->err)
		return said_no(why);
	if (n->status == NVRM_NOT_SUPPORTED) {
		no_pages(g, why);
		return -EOPNOTSUPP;
	}
	if (nvrm_counts_right(n))
		return 0;
	because(why, "driver %s would lose the memory: it does not know the "
		"P2PDMA pages of Linux 6.15 and later; the cure: driver "
		"595", n->version);
	return -EOPNOTSUPP;
}

/* RM's objects for a GPU, and nvidia-uvm's registration of it. */
static int open_gpu(struct gpu *g, int ordinal, uint32_t instance, char *why)
{
	struct nvrm *n = &driver.nv;
	struct nvrm_device device = {
		.instance = instance, .client_share = n->client,
	};
	struct nvrm_subdevice sub = { 0 };
	CUdevice dev;
	CUresult e;
	int r;

	e = cu.DeviceGet(&dev, ordinal);
	if (!e)
		e = cu.DeviceGetUuid(&g->uuid, dev);
	if (e)
		return cuda_said_no("cuDeviceGetUuid", e, why);
	if (!g->registered)
		g->registered = nvuvm_register(n, &g->uuid);
	if (!g->registered ||
	    (!g->device &&
	     !nvrm_make(n, "RM_ALLOC of the device", n->client,
			NVRM_CLASS_DEVICE, &device, sizeof(device),
			&g->device)) ||
	    (!g->subdevice &&
	     !nvrm_make(n, "RM_ALLOC of the subdevice", g->device,
			NVRM_CLASS_SUBDEVICE, &sub, sizeof(sub),
			&g->subdevice)))
		return said_no(why);
	r = probe(g, why);
	g->ready = !r;
	return r;
}

static int export(int gpu, uint64_t at, struct source *s, char *why)
{
	CUmemAllocationProp prop;
	CUresult e;

	if (!cu.MemRetain || !cu.MemProperties || !cu.MemExport ||
	    !cu.MemRelease || !cu.DeviceGetUuid) {
		because(why, "libcuda.so.1 cannot export memory");
		return -EOPNOTSUPP;
	}
	e = cu.MemRetain(&s->cuda, (void *)(uintptr_t)at);
	if (e) {
		s->cuda = 0;
		if (e != CUDA_ERROR_INVALID_VALUE)
			return cuda_said_no("cuMemRetainAllocationHandle", e,
					    why);
		because(why, "it lends memory of cuMemCreate() only");
		return -EOPNOTSUPP;
	}
	memset(&prop, 0, sizeof(prop));
	e = cu.MemProperties(&prop, s->cuda);
	if (e)
		return cuda_said_no("cuMemGetAllocationPropertiesFromHandle", e,
				    why);
	if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    prop.location.id != gpu) {
		because(why, "the memory is not this GPU's own");
		return -EOPNOTSUPP;
	}
	if (prop.allocFlags.compressionType) {
		because(why, "the memory is compressible: the stored bytes are "
			"not the data; the cure: cuMemCreate() without "
			"compressionType");
		return -EOPNOTSUPP;
	}
	if (!(prop.requestedHandleTypes &
	      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
		because(why, "cuMemCreate() was not called for memory that can "
			"be exported; the cure: requestedHandleTypes = "
			"CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
		return -EOPNOTSUPP;
	}
	e = cu.MemExport(&s->fd, s->cuda,
			 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	return e ? cuda_said_no("cuMemExportToShareableHandle", e, why) : 0;
}

static int import(struct gpu *g, int ordinal, struct source *s, char *why)
{
	struct nvrm_export_info info = { .fd = s->fd };
	struct nvrm_import im = { .fd = s->fd, .count = 1 };
	struct nvrm *n = &driver.nv;
	int r;

	if (!nvrm_ask(n, "GET_EXPORT_OBJECT_INFO", n->client, NVRM_EXPORT_INFO,
		      &info, sizeof(info)))
		return said_no(why);
	if (info.gpu_instance != NVRM_NO_MIG) {
		because(why, "the GPU is partitioned (MIG)");
		return -EOPNOTSUPP;
	}
	if (info.max_objects != 1) {
		because(why, "the memory is of %u pieces", info.max_objects);
		return -EOPNOTSUPP;
	}
	if (!g->ready) {
		r = open_gpu(g, ordinal, info.device_instance, why);
		if (r) {
			g->refused = r != -EAGAIN;
			return r;
		}
	}
	im.parent = g->device;
	if (!nvrm_ask(n, "IMPORT_OBJECTS_FROM_FD", n->client, NVRM_IMPORT, &im,
		      sizeof(im)))
		return said_no(why);
	s->memory = im.objects[0];
	if (im.types[0] == NVRM_TYPE_VIDMEM)
		return 0;
	because(why, "the memory is of RM's type %u, not on the GPU",
		im.types[0]);
	return -EOPNOTSUPP;
}

/*
 * UVM_ALLOC_DEVICE_P2P said no.  A driver before 595 gives INVALID_ARGUMENT for
 * counts of pages that it does not know (nvrm_counts_right()), too, and then has lost
 * the memory: there may be kernels whose version does not tell.  So no more of it.
 */
static int not_lent(struct gpu *g, uint64_t buffer_id, char *why)
{
	unsigned int i = buffer_id % (sizeof(tries) / sizeof(tries[0]));
	const struct nvrm *n = &driver.nv;
	int r = said_no(why);

	if (r != -EAGAIN) {
		g->refused = !n->err && n->status == NVRM_INVALID_ARGUMENT &&
			     n->major < 595;
		return r;
	}
	if (tries[i].buffer_id != buffer_id) {
		tries[i].buffer_id = buffer_id;
		tries[i].count = 0;
	}
	if (++tries[i].count == MAX_TRIES) {
		tries[i].count = 0;
		return -EOPNOTSUPP;
	}
	/* what other windows hold may be what it needs */
	return !n->err && n->status == NVRM_NO_MEMORY ? -ENOSPC : r;
}

/* @mem from @start on, mapped; its address must be where it is lent. */
static int lend(struct gpu *g, const struct source *s, const struct mem *mem,
		uint64_t start, size_t len, char **host, char *why)
{
	/* cuMemMap() takes memory from its beginning on, and nothing else */
	const uint64_t offset = start - mem->start;
	struct nvrm *n = &driver.nv;
	uint64_t base;
	void *p, *at;
	int r;

	at = mmap(NULL, len, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) {
		because(why, "no room for a mapping");
		return -ENOSPC;
	}
	base = (uintptr_t)at;
	if (!nvuvm_lend(n, &g->uuid, s->memory, base, len, offset)) {
		r = not_lent(g, mem->buffer_id, why);
		munmap(at, len);
		return r;
	}
	tries[mem->buffer_id % (sizeof(tries) / sizeof(tries[0]))].count = 0;
	p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 n->uvm, (off_t)base);
	if (p != MAP_FAILED) {
		*host = p;
		return 0;
	}
	r = errno == ENOMEM ? -ENOSPC : errno == EAGAIN ? -EAGAIN : -EOPNOTSUPP;
	because(why, "mmap of /dev/nvidia-uvm: %s", strerror(errno));
	nvuvm_free(n, base, len);
	munmap(at, len);
	return r;
}

int uvm_map(const struct mem *mem, uint64_t start, size_t len, char **host,
	    struct no_window *no)
{
	struct source s = { .fd = -1 };
	char *why = no->uvm;
	struct gpu *g;
	int r;

	if (!config.nvidia_uvm)
		return -EOPNOTSUPP;
	r = open_driver(why);
	if (r)
		return r;
	if (mem->gpu < 0 || mem->gpu >= MAX_GPUS || start < mem->start) {
		because(why, "the memory has no address of its own");
		return -EOPNOTSUPP;
	}
	g = &gpus[mem->gpu];
	if (g->refused) {
		memcpy(why, g->why, UVM_WHY_MAX);
		return -EOPNOTSUPP;
	}
	r = export(mem->gpu, start, &s, why);
	if (!r)
		r = import(g, mem->gpu, &s, why);
	/* all of the allocation is held as long as a part of it is lent */
	if (!r && !buf_overlaps(start, len)) {
		because(why, "not registered with cuFileBufRegister()");
		no->here = true;
		r = -EOPNOTSUPP;
	}
	if (!r)
		r = lend(g, &s, mem, start, len, host, why);
	if (g->refused)
		memcpy(g->why, why, UVM_WHY_MAX);
	if (s.memory)
		nvrm_drop(&driver.nv, g->device, s.memory);
	if (s.fd >= 0)
		close(s.fd);
	if (s.cuda)
		cu.MemRelease(s.cuda);
	return r;
}

void uvm_unmap(char *host, size_t len)
{
	/* others may be under way with the driver */
	struct nvrm n = { .uvm = driver.nv.uvm, .major = driver.nv.major };
	char why[UVM_WHY_MAX];
	unsigned int i;
	bool good;

	/* nobody else may get the addresses before they are given back */
	if (mmap(host, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
		 MAP_NORESERVE, -1, 0) == MAP_FAILED) {
		log_line(LOG_ERROR, "GPU memory stays mapped: %s",
			 strerror(errno));
		return;
	}
	/* while it is suspended it says EAGAIN */
	for (i = 0; !(good = nvuvm_free(&n, (uintptr_t)host, len)) &&
		    n.err == EAGAIN && i < FREE_TRIES; i++)
		usleep(10000);
	if (!good) {
		nvrm_says(&n, why, sizeof(why));
		log_line(LOG_ERROR, "nvidia-uvm keeps GPU memory: %s", why);
		return;		/* the addresses are still taken there */
	}
	munmap(host, len);
}

void uvm_close(void)
{
	if (driver.state != CLOSED)
		nvrm_close(&driver.nv);
	memset(gpus, 0, sizeof(gpus));
	memset(tries, 0, sizeof(tries));
	driver.state = CLOSED;
}

/* What is lent is so until nobody has the devices open. */
void uvm_forked(void)
{
	nvrm_close(&driver.nv);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: every call that can fail, fails once, and nothing is left of it.
 *
 *	pln_failnth GPU-PCI-ADDRESS PEER-PCI-ADDRESS
 *	pln_failnth FILE MODULE LEAST	loads the module from its file, with LEAST calls that
 *					can fail, or more
 *
 * The module peerlane_fail_test makes them fail; and in a kernel that can do it
 * itself, each allocation of a call, in whatever part of the kernel.  PEER is the
 * device of peerlane_p2p_test; peerlane_dmabuf_test is loaded, too.
 * $PLN_STEP: only the first of so many calls fails, and so on; but each one of binding,
 * since one of them makes the driver say something.
 */
#include <pthread.h>
#include <sys/syscall.h>

#include <linux/peerlane.h>

#include "pln_debugfs.h"

#define FAIL "/sys/kernel/debug/peerlane_fail_test/"
#define MAX_CALLS	400

static const char *gpu_pci, *peer_pci;
static unsigned int armed, step = 1;
static int gpu;
static struct pln_gpu_alloc mem;	/* with its device pointer */
static char *dev_ptr;

#define IMPORTER	"/sys/kernel/debug/peerlane_dmabuf_test/"
#define DRIVER		"/sys/kernel/debug/peerlane_p2p_test/"

/* Not this task's calls fail, but those of the kernel's threads */
static bool workers;
static int fail_nth = -1;	/* the kernel's own, when that is wanted */

static void arm(unsigned int n)
{
	int fd = fail_nth < 0 ? open(FAIL "arm", O_WRONLY) : fail_nth;
	int err = errno;
	char text[24];

	need(fd >= 0, "arm");
	snprintf(text, sizeof(text), "%u%s", n, workers ? " workers" : "");
	need(pwrite(fd, text, strlen(text), 0) > 0, "arm");
	if (fd != fail_nth)
		close(fd);
	errno = err;
}

/* The failed function and its caller; false: none was */
static bool failed(char *what, size_t len)
{
	FILE *f = fopen(FAIL "state", "r");
	char line[512], *p;

	need(f && fgets(line, sizeof(line), f), "state");
	fclose(f);
	p = strstr(line, "failed ");
	need(p, "state");
	p += strlen("failed ");
	p[strcspn(p, "\n")] = 0;
	snprintf(what, len, "%s", p);
	return strcmp(p, "-");
}

/* No call fails any more; did one?  *what: which */
static bool disarm(char *what, size_t len)
{
	char left[16] = "";

	if (fail_nth < 0) {
		arm(0);
		return failed(what, len);
	}
	/* 0: it was that call's turn */
	need(pread(fail_nth, left, sizeof(left) - 1, 0) > 0, "fail-nth");
	arm(0);
	snprintf(what, len, "an allocation");
	return atoi(left) == 0;
}

static bool is_clean(const char *before, char *now, size_t len)
{
	char path[96];
	ssize_t n;
	int fd, i;

	snprintf(path, sizeof(path), "/sys/kernel/debug/peerlane_gpu/%s/memory",
		 gpu_pci);
	for (i = 0; i < 300; i++) {
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, now, len - 1);
		close(fd);
		now[n > 0 ? n : 0] = 0;
		/* What has ended is counted, too */
		if (strstr(now, "jobs-ended"))
			*strstr(now, "jobs-ended") = 0;
		if (n > 0 && (!before || !strcmp(before, now)))
			return true;
		usleep(10000);
	}
	return false;
}

/* Nobody holds anything of the GPU: what is closed is given back by a worker, some time later */
static bool holds_nothing(void)
{
	static const char *const held[] = {
		"vram-used", "bar1-used", "files", "buffers", "exports", "p2p-tables", "jobs", "pinned",
	};
	char now[1024], line[64];
	unsigned int i, zero, tries;

	for (tries = 0; tries < 3000; tries++) {
		is_clean(NULL, now, sizeof(now));
		for (i = zero = 0; i < sizeof(held) / sizeof(*held); i++) {
			snprintf(line, sizeof(line), "\n%s 0\n", held[i]);
			zero += strstr(now, line) != NULL;
		}
		if (zero == i)
			return true;
		usleep(10000);
	}
	return false;
}

static void comment(const char *what, char *text)
{
	char *line;

	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s: %s\n", what, line);
}

static bool known(int err)
{
	static const int errs[] = {
		ENOMEM, EFAULT, EMFILE, ENOSPC, EIO, EINVAL, EOPNOTSUPP,
		ENOTSUPP, ENODEV, ENXIO, EREMOTEIO,
	};
	unsigned int i;

	for (i = 0; i < sizeof(errs) / sizeof(*errs); i++)
		if (errs[i] == err)
			return true;
	return false;
}

/* How many of them fail */
static unsigned int of_calls(unsigned int n)
{
	return (n + step - 1) / step;
}

/*
 * @op undoes what it did.  Each call of it that can fail does so once; the op
 * says so, or does without; least: so many there are.
 */
static void sweep(const char *what, int (*op)(void), unsigned int least)
{
	static char before[1024], now[1024];
	char point[256];
	unsigned int n, fails = 0, bad = 0, borne = 0;
	int ret, err;

	is_clean(NULL, before, sizeof(before));
	for (n = 1; n <= MAX_CALLS; n += step, fails++) {
		armed = n;
		arm(n);
		ret = op();
		err = errno;
		/* They have all done what they had to */
		if (workers)
			is_clean(before, now, sizeof(now));
		if (!disarm(point, sizeof(point)))
			break;
		if (!ret)
			borne++;
		else if (!known(err))
			printf("# %s: %s: %s\n", what, point, strerror(err));
		bad += ret && !known(err);
		if (!is_clean(before, now, sizeof(now))) {
			printf("# %s: %s: something is left:\n", what, point);
			comment("was", before);
			comment("is", now);
			bad++;
			break;
		}
		printf("# %s: %s: %s\n", what, point,
		       ret ? strerror(err) : "done without");
	}
	check(!bad && fails >= of_calls(least) && !ret,
	      "%s: %u calls failed, %u times it was done all the same; nothing is left",
	      what, fails, borne);
}

static int do_open(void)
{
	int fd = open("/dev/peerlane-gpu0", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_query(void)
{
	struct pln_gpu_query q = { 0 };

	return ioctl(gpu, PLN_GPU_IOC_QUERY, &q);
}

/* Where that is what fails, it is done nevertheless */
static int free_surely(uint32_t handle)
{
	int err;

	if (!gpu_free(gpu, handle))
		return 0;
	err = errno;
	need(!gpu_free(gpu, handle), "free");
	errno = err;
	return -1;
}

static int do_alloc(void)
{
	struct pln_gpu_alloc a = { .size = MIB };

	return ioctl(gpu, PLN_GPU_IOC_ALLOC, &a) ? -1 : free_surely(a.handle);
}

static int do_export(void)
{
	int fd = gpu_export(gpu, mem.handle, 0, UNIT);

	return fd < 0 ? -1 : close(fd);
}

static int do_parts(void)
{
	struct pln_gpu_part parts[2] = {
		{ .handle = mem.handle, .offset = UNIT, .size = UNIT },
		{ .handle = mem.handle, .offset = 0, .size = UNIT },
	};
	struct pln_gpu_export_parts e = {
		.parts = (uintptr_t)parts, .nr_parts = 2, .flags = O_CLOEXEC,
	};

	return ioctl(gpu, PLN_GPU_IOC_EXPORT_PARTS, &e) ? -1 : close(e.fd);
}

/* Made while nothing fails */
static int buffer = -1;

static int do_import(void)
{
	struct pln_gpu_import i = { .fd = buffer };

	return ioctl(gpu, PLN_GPU_IOC_IMPORT, &i) ? -1 : free_surely(i.handle);
}

static int do_mmap(void)
{
	volatile char *p = mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED,
				buffer, 0);

	if (p == MAP_FAILED)
		return -1;
	*p = 1;
	return munmap((void *)p, UNIT);
}

static int do_copy(void)
{
	static char data[MIB];
	struct pln_gpu_op op = op_to_gpu(mem.handle, 0, data, MIB);
	struct pln_gpu_wait w;
	uint64_t job;

	if (gpu_submit(gpu, &op, 1, 0, &job))
		return -1;
	if (gpu_wait(gpu, job, SECONDS(20), &w)) {
		int err = errno;

		/* The result may be lost, but not the job */
		if (gpu_wait(gpu, job, SECONDS(20), &w))
			need(errno == ENOENT, "wait");
		errno = err;
		return -1;
	}
	errno = -w.status;
	return w.status ? -1 : 0;
}

static int map_by(const char *verb)
{
	int ret, err;

	ret = order(IMPORTER, "attach 0 %d %s p2p", buffer, peer_pci);
	if (ret)
		return ret;
	ret = order(IMPORTER, "%s 0", verb);
	err = errno;
	if (!ret)
		order(IMPORTER, "unmap 0");
	order(IMPORTER, "detach 0");
	errno = err;
	return ret;
}

static int do_map(void)
{
	return map_by("map");
}

static int do_map_later(void)
{
	return map_by("later");
}

/* What was free before the memory was given up, and whether that waited for the fence */
static struct pln_gpu_query room;
static bool waited;

/* When a call has failed, the other one waits for the fence; or no call was made */
static void *signal_fence(void *arg)
{
	char point[256];
	int i;

	(void)arg;
	for (i = 0; i < 2000 && !failed(point, sizeof(point)); i++)
		usleep(10000);
	/* For a while: a driver that does not wait gives it back by its work */
	waited = true;
	for (i = 0; i < 30; i++) {
		waited &= gpu_query(gpu).vram_free == room.vram_free - MIB;
		usleep(10000);
	}
	order(IMPORTER, "signal 1");
	return NULL;
}

/* Nothing in unmap may fail; where memory is short it waits for the fence, and the memory with it */
static int do_unmap(void)
{
	struct pln_gpu_alloc a;
	pthread_t thread;
	int ret, buf;

	arm(0);
	room = gpu_query(gpu);
	a = gpu_alloc(gpu, MIB);
	buf = gpu_export(gpu, a.handle, 0, MIB);
	need(!order(IMPORTER, "attach 1 %d %s p2p", buf, peer_pci) &&
	     !order(IMPORTER, "attach 0 %d %s p2p", buf, peer_pci) &&
	     !order(IMPORTER, "map 0") && !order(IMPORTER, "fence 1") &&
	     !gpu_free(gpu, a.handle), "map");
	arm(1);
	need(!pthread_create(&thread, NULL, signal_fence, NULL), "thread");
	ret = order(IMPORTER, "unmap 0");
	pthread_join(thread, NULL);
	need(!order(IMPORTER, "detach 0") && !order(IMPORTER, "detach 1"),
	     "detach");
	close(buf);
	return ret;
}

static int do_get(void)
{
	int ret = order(DRIVER, "get 0 %llu %u plain",
			(unsigned long long)(uintptr_t)dev_ptr, 4 * UNIT), err;

	if (ret)
		return ret;
	ret = order(DRIVER, "map 0 %s", peer_pci);
	err = errno;
	if (!ret)
		order(DRIVER, "unmap 0");
	order(DRIVER, "put 0");
	order(DRIVER, "free 0");
	errno = err;
	return ret;
}

static int do_getp(void)
{
	int ret = order(DRIVER, "getp 0 %llu %u 0",
			(unsigned long long)(uintptr_t)dev_ptr, 4 * UNIT);

	if (ret)
		return ret;
	ret = order(DRIVER, "putp 0 0");
	order(DRIVER, "free 0");
	return ret;
}

static int driver(const char *what)
{
	int fd, ret, err;
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/peerlane_gpu/%s",
		 what);
	fd = open(path, O_WRONLY);
	need(fd >= 0, "%s", path);
	ret = write(fd, gpu_pci, strlen(gpu_pci));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

/* What is freed while a job uses it, comes back by the work of the driver */
static int do_free_busy(void)
{
	struct pln_gpu_alloc a = { .size = MIB };
	struct pln_gpu_wait w;
	struct pln_gpu_op op;
	uint64_t job;

	if (ioctl(gpu, PLN_GPU_IOC_ALLOC, &a))
		return -1;
	op = op_fill(a.handle, 0, MIB, 8, 1);
	need(!gpu_submit(gpu, &op, 1, 0, &job) && !gpu_free(gpu, a.handle),
	     "a job, and free");
	return gpu_wait(gpu, job, SECONDS(20), &w);
}

/* A reset with memory allocated and a job on its way; that alone fails */
static int do_reset(void)
{
	struct pln_gpu_alloc a;
	struct pln_gpu_op op;
	char path[64];
	int fd, ret, err, file;
	uint64_t job;

	arm(0);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", gpu_pci);
	fd = open(path, O_WRONLY);
	file = gpu_open();
	a = gpu_alloc(file, MIB);
	op = op_fill(a.handle, 0, MIB, 8, 1);
	need(fd >= 0 && !gpu_submit(file, &op, 1, 0, &job), "a job");
	arm(armed);
	ret = write(fd, "1", 1);
	err = errno;
	close(fd);
	close(file);
	errno = err;
	return ret < 0 ? -1 : 0;
}

/* Does @op without a call that could fail: of this task, or of the workers */
static bool needs_nothing(const char *what, int (*op)(void))
{
	static char before[1024], now[1024];
	char point[256];
	bool clean;
	int ret;

	is_clean(NULL, before, sizeof(before));
	armed = 1;
	arm(1);
	ret = op();
	clean = is_clean(before, now, sizeof(now));
	if (disarm(point, sizeof(point)))
		printf("# %s: %s\n", what, point);
	else if (ret || !clean) {
		printf("# %s: %s\n", what, ret ? "it failed" : "something is left");
		comment("before", before);
		comment("now", now);
	}
	else
		return true;
	return false;
}

/*
 * What runs in threads of the kernel, interrupts and the work that gives memory back,
 * makes no call that can fail: there is nobody to tell.  What an importer asks for there
 * does.
 */
static void sweep_workers(void)
{
	bool none;

	workers = true;
	sweep("map for an importer, by a thread of the kernel", do_map_later, 4);
	none = needs_nothing("alloc", do_alloc) & needs_nothing("copy", do_copy) &
	       needs_nothing("free in use", do_free_busy) &
	       needs_nothing("get, map", do_get) & needs_nothing("map", do_map);
	workers = false;
	check(none, "threads of the kernel make no call that can fail");
}

/* The driver finds its device while something fails, then while nothing does */
static void sweep_bind(void)
{
	unsigned int n, fails = 0, bad = 0, borne = 0;
	char point[256];
	int ret, err;

	need(!driver("unbind"), "unbind");
	for (n = 1; n <= MAX_CALLS; n++, fails++) {
		arm(n);
		ret = driver("bind");
		err = errno;
		if (!disarm(point, sizeof(point)))
			break;
		printf("# bind: %s: %s\n", point,
		       ret ? strerror(err) : "done without");
		bad += ret && !known(err) && err != EEXIST;
		borne += !ret;
		if (!ret)
			bad += driver("unbind") != 0;
	}
	check(!bad && fails >= 30 && !ret,
	      "bind: %u calls failed, %u times it was done all the same",
	      fails, borne);
}

/*
 * Loading the module whose file is @path.  Where a device of it cannot be had, it is
 * loaded nevertheless, without that.
 */
static int sweep_load(const char *path, const char *name, unsigned int least)
{
	unsigned int n, fails = 0, bad = 0, borne = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret, err;
	char point[256], loaded[96];

	need(fd >= 0, "the module's file");
	snprintf(loaded, sizeof(loaded), "/sys/module/%s", name);
	need(access(loaded, F_OK), "%s is not loaded", name);
	for (n = 1; n <= MAX_CALLS; n += step, fails++) {
		arm(n);
		ret = syscall(SYS_finit_module, fd, "", 0);
		err = errno;
		if (!disarm(point, sizeof(point)))
			break;
		printf("# load %s: %s: %s\n", name, point,
		       ret ? strerror(err) : "done without");
		bad += ret && !known(err);
		/* What has failed is not there, and the rest can be unloaded */
		bad += !access(loaded, F_OK) != !ret;
		borne += !ret;
		if (!ret)
			need(!syscall(SYS_delete_module, name, 0), "unload");
	}
	close(fd);
	check(!ret && !syscall(SYS_delete_module, name, 0),
	      "load %s: it loads, and unloads", name);
	check(!bad && fails >= of_calls(least),
	      "load %s: %u calls failed, %u times it was loaded all the same",
	      name, fails, borne);
	return test_end();
}

static int peerlane, disk;

static int do_pln_open(void)
{
	int fd = open("/dev/peerlane", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int do_pln_query(void)
{
	struct pln_query q = { 0 };

	return ioctl(peerlane, PLN_IOC_QUERY, &q);
}

/* The drive has no way to the GPU, so the IO itself is refused: EREMOTEIO on Linux 6.12 */
static int pln_io_refused(uint32_t handle)
{
	struct pln_io io = { .fd = disk, .handle = handle, .size = MIB };

	if (!ioctl(peerlane, PLN_IOC_IO, &io)) {
		errno = ENODATA;
		return -1;
	}
	return (errno == EINVAL || errno == EREMOTEIO) &&
	       io.reason == PLN_REASON_REFUSED ? 0 : -1;
}

static int do_pln_io(void)
{
	struct pln_register r = { .address = (uintptr_t)dev_ptr, .size = MIB };
	struct pln_unregister u = { 0 };
	int ret, err;

	if (ioctl(peerlane, PLN_IOC_REGISTER, &r))
		return -1;
	ret = pln_io_refused(r.handle);
	err = errno;
	u.handle = r.handle;
	if (ioctl(peerlane, PLN_IOC_UNREGISTER, &u)) {
		ret = -1;
		err = errno;
		need(!ioctl(peerlane, PLN_IOC_UNREGISTER, &u), "unregister");
	}
	errno = err;
	return ret;
}

/* The module peerlane, which kernels without P2PDMA refuse */
static void sweep_peerlane(void)
{
	peerlane = open("/dev/peerlane", O_RDWR | O_CLOEXEC);
	disk = open("/dev/nvme0n1", O_RDONLY | O_CLOEXEC);
	need(peerlane >= 0 && disk >= 0, "open /dev/peerlane and the drive");
	sweep("peerlane: open", do_pln_open, 1);
	sweep("peerlane: query", do_pln_query, 2);
	sweep("peerlane: register, IO", do_pln_io, 10);
	close(disk);
	close(peerlane);
}

#define XA_NODE_SLOTS	64	/* XA_CHUNK_SIZE in Linux */

/* Calls of our device alone: the orders to test modules need memory, too */
static void sweep_allocations(void)
{
	unsigned int i;

	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_nth < 0) {
		printf("# this kernel was built without fault injection\n");
		return;
	}
	need(!shell("cd /sys/kernel/debug/failslab && echo N >ignore-gfp-wait && echo 0 >verbose && "
		    "cd ../fail_page_alloc && echo N >ignore-gfp-wait && echo 0 >min-order && echo 0 >verbose"),
	     "failslab and fail_page_alloc");
	/*
	 * A new handle is the next number, and its only allocation is a node of
	 * the xarray, for 64 numbers.  Behind the node that mem's handle keeps,
	 * each call needs one: whichever numbers the calls before have used.
	 */
	for (i = 0; i < XA_NODE_SLOTS; i++)
		need(!do_alloc(), "alloc");
	sweep("open: allocations", do_open, 2);
	sweep("query: allocations", do_query, 0);
	sweep("alloc: allocations", do_alloc, 3);
	sweep("export: allocations", do_export, 4);
	sweep("export of parts: allocations", do_parts, 5);
	sweep("import: allocations", do_import, 1);
	/* More than without those of pages: page tables, lists of pages */
	sweep("mmap: allocations", do_mmap, 5);
	sweep("copy from user memory: allocations", do_copy, 6);
	close(fail_nth);
	fail_nth = -1;
}

/* The GPU's driver makes no pages of BAR1, so the module does when memory is registered */
static void sweep_own_pages(void)
{
	struct pln_register r;
	struct pln_unregister u;
	unsigned int n, fails = 0, bad = 0;
	char point[256];
	int ret, err;

	need(!shell("echo 0 >/sys/module/peerlane_gpu/parameters/p2pdma") &&
	     !driver("unbind") && !driver("bind"), "a driver without pages");
	gpu = gpu_open();
	mem = gpu_alloc(gpu, MIB);
	dev_ptr = dev_map(gpu, &mem);
	for (n = 1; n <= MAX_CALLS; n += step, fails++) {
		need(!shell("rmmod peerlane && modprobe peerlane own_pages_mib=1"),
		     "load the module anew");
		peerlane = open("/dev/peerlane", O_RDWR | O_CLOEXEC);
		need(peerlane >= 0, "open /dev/peerlane");
		r = (struct pln_register){
			.address = (uintptr_t)dev_ptr, .size = MIB
		};
		arm(n);
		ret = ioctl(peerlane, PLN_IOC_REGISTER, &r);
		err = errno;
		if (!disarm(point, sizeof(point)))
			break;
		if (!ret || !known(err))
			printf("# register with own pages: %s: %s\n", point,
			       ret ? strerror(err) : "done without");
		bad += !ret || !known(err);
		close(peerlane);
	}
	/* Another driver's DMA to memory that has such pages */
	check(!bad && fails >= of_calls(6) && !ret && !do_get(),
	      "register with own pages: %u calls failed", fails);
	u = (struct pln_unregister){ .handle = r.handle };
	need(!ret && !ioctl(peerlane, PLN_IOC_UNREGISTER, &u), "unregister");
	close(peerlane);
	munmap(dev_ptr, MIB);
	close(gpu);
}

int main(int argc, char **argv)
{
	char point[256];

	need(argc == 3 || argc == 4, "usage: pln_failnth GPU PEER, or FILE MODULE LEAST");
	if (getenv("PLN_STEP"))
		step = atoi(getenv("PLN_STEP"));
	if (argc == 4)
		return sweep_load(argv[1], argv[2], atoi(argv[3]));
	gpu_pci = argv[1];
	peer_pci = argv[2];
	gpu = gpu_open();
	mem = gpu_alloc(gpu, MIB);
	dev_ptr = dev_map(gpu, &mem);
	buffer = gpu_export_whole(gpu, &mem);
	need(buffer >= 0, "export");

	sweep("open", do_open, 1);
	sweep("query", do_query, 2);
	sweep("alloc", do_alloc, 4);
	sweep("export", do_export, 5);
	sweep("export of parts", do_parts, 7);
	sweep("import", do_import, 3);
	sweep("mmap", do_mmap, 2);
	sweep("copy from user memory", do_copy, 6);
	sweep("map for an importer", do_map, 4);
	sweep("get, map", do_get, 5);
	sweep("get, persistent", do_getp, 4);
	if (!access("/dev/peerlane", F_OK))
		sweep_peerlane();
	sweep_allocations();
	sweep_workers();
	check(!do_unmap(), "unmap cannot fail");
	arm(0);
	check(failed(point, sizeof(point)) &&
	      strstr(point, "dma_resv_get_singleton"),
	      "not for want of memory, either");
	check(waited, "then it waits for the fence, and the memory with it");
	check(room_is(gpu, &room), "after which that is free");

	close(buffer);
	munmap(dev_ptr, MIB);
	close(gpu);
	check(holds_nothing(), "closed, nothing is held");
	check(needs_nothing("reset", do_reset), "nor does a reset");
	sweep_bind();
	gpu = gpu_open();
	check(!do_alloc() && !do_query(), "it works");
	close(gpu);
	if (!access("/dev/peerlane", F_OK))
		sweep_own_pages();
	return test_end();
}

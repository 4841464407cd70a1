// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: GPU memory that is shared: dma-bufs, their way through BAR1, and
 * handles in other open files; and who has it.
 */
#include <sched.h>

#include "pln_test.h"

#define NOBODY	65534

static void test_dmabuf(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * MIB);
	struct pln_gpu_query q0 = gpu_query(fd), q;
	size_t len = 2 * MIB;
	struct pln_gpu_export e;
	struct pln_gpu_op op;
	uint64_t result;
	char *p, *p2, *in = malloc(len);
	int buf;

	need(in, "memory");
	buf = gpu_export(fd, a.handle, MIB, len);
	need(buf >= 0, "export");
	check(fcntl(buf, F_GETFD) & FD_CLOEXEC, "export: O_CLOEXEC");
	check(lseek(buf, 0, SEEK_END) == (off_t)len, "export: size");
	q = gpu_query(fd);
	check(q.bar1_free == q0.bar1_free, "an export takes no BAR1");

	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	need(p != MAP_FAILED, "mmap of the dma-buf");
	q = gpu_query(fd);
	check(q.bar1_free == q0.bar1_free - len, "a mapping takes BAR1");
	p2 = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 8192);
	q = gpu_query(fd);
	check(p2 != MAP_FAILED && q.bar1_free == q0.bar1_free - len,
	      "a second mapping does not");

	pattern(in, len, 5);
	memcpy(p, in, len);
	op = op_crc(a.handle, MIB, len);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, len),
	      "the engine sees what the CPU wrote through BAR1");
	check(!memcmp(p2, in + 8192, 4096), "the second mapping shows the same");
	munmap(p2, 4096);

	/* Without pages there is nothing to drop */
	check(!madvise(p, len, MADV_DONTNEED) ==
	      !!(q.features & PLN_GPU_FEAT_P2PDMA) && !memcmp(p, in, len),
	      "pages dropped come back");

	/* Part of it goes, and the rest still works */
	munmap(p + UNIT, 4096);
	check(!memcmp(p + 2 * UNIT, in + 2 * UNIT, UNIT), "hole in the mapping");
	munmap(p, len);
	q = gpu_query(fd);
	check(q.bar1_free == q0.bar1_free, "the last mapping gives BAR1 back");

	p = mmap(NULL, len, PROT_READ, MAP_SHARED, buf, 0);
	need(p != MAP_FAILED, "mmap again");
	check(!memcmp(p, in, len), "mapped again, the same data");
	check(!gpu_free(fd, a.handle), "free while exported");
	check(raises_sigbus(p), "SIGBUS behind the mapping");
	q = gpu_query(fd);
	check(q.bar1_free == q0.bar1_free, "BAR1 is back");
	check(mmap(NULL, len, PROT_READ, MAP_SHARED, buf, 0) == MAP_FAILED &&
	      errno == ENODEV, "a revoked dma-buf cannot be mapped");
	munmap(p, len);
	close(buf);

	a = gpu_alloc(fd, MIB);
	e = (struct pln_gpu_export){ .handle = a.handle, .size = UNIT };
#define BAD_EXPORT(what, want, ...)					\
	do {								\
		struct pln_gpu_export x = e;				\
									\
		__VA_ARGS__;						\
		check_errno(ioctl(fd, PLN_GPU_IOC_EXPORT, &x), want,	\
			    "export: " what);				\
	} while (0)
	BAD_EXPORT("no such handle", ENOENT, x.handle = 0x7fffffff);
	BAD_EXPORT("handle 0", ENOENT, x.handle = 0);
	BAD_EXPORT("flags", EINVAL, x.flags = O_APPEND);
	BAD_EXPORT("reserved", EINVAL, x.reserved = 1);
	BAD_EXPORT("for import: a part", EINVAL,
		   x.flags = PLN_GPU_EXPORT_F_IMPORT);
	BAD_EXPORT("size 0", EINVAL, x.size = 0);
	BAD_EXPORT("odd size", EINVAL, x.size = 512);
	BAD_EXPORT("odd offset", EINVAL, x.offset = 512);
	BAD_EXPORT("past the end", EINVAL, x.offset = MIB);
	BAD_EXPORT("range that wraps", EINVAL,
		   x.offset = ~0ull - UNIT + 1);
	buf = gpu_export(fd, a.handle, 0, UNIT);
	check(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, buf, 0) == MAP_FAILED &&
	      errno == EINVAL, "dma-buf mmap: private");
	check(mmap(NULL, UNIT + 4096, PROT_READ, MAP_SHARED, buf, 0) ==
	      MAP_FAILED && errno == EINVAL, "dma-buf mmap: past the end");

	/* A dma-buf outlives its file, revoked */
	p = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, buf, 0);
	need(p != MAP_FAILED, "mmap");
	int other = gpu_open();
	struct pln_gpu_alloc c = gpu_alloc(other, UNIT);
	int obuf = gpu_export(other, c.handle, 0, UNIT);

	p2 = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, obuf, 0);
	need(p2 != MAP_FAILED && !raises_sigbus(p2), "mmap");
	close(other);
	check(raises_sigbus(p2), "closing the GPU revokes its dma-bufs");
	check(!raises_sigbus(p), "and only those");
	munmap(p2, UNIT);
	munmap(p, UNIT);
	close(obuf);
	close(buf);
	gpu_free(fd, a.handle);
	free(in);
}

/* BAR1 may run out: ENOSPC, and nothing is lost */
static void test_bar1_full(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a;
	uint64_t half = q.bar1_size / 2;
	char *p, *p2;
	int b1, b2, b3;

	if (q.vram_free < q.bar1_size) {
		half = q.vram_free / 2 & ~(uint64_t)(UNIT - 1);
		a = gpu_alloc(fd, 2 * half);
	} else {
		a = gpu_alloc(fd, q.bar1_size);
	}
	b1 = gpu_export(fd, a.handle, 0, half);
	b2 = gpu_export(fd, a.handle, half, half);
	b3 = gpu_export(fd, a.handle, 0, UNIT);
	need(b1 >= 0 && b2 >= 0 && b3 >= 0, "exports");
	p = mmap(NULL, half, PROT_READ, MAP_SHARED, b1, 0);
	p2 = mmap(NULL, half, PROT_READ, MAP_SHARED, b2, 0);
	need(p != MAP_FAILED && p2 != MAP_FAILED, "mmap all of BAR1");
	if (gpu_query(fd).bar1_free)
		check(true, "BAR1 is larger than free VRAM");
	else
		check(mmap(NULL, UNIT, PROT_READ, MAP_SHARED, b3, 0) ==
		      MAP_FAILED && errno == ENOSPC, "ENOSPC: BAR1 is full");
	munmap(p, half);
	p = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, b3, 0);
	check(p != MAP_FAILED, "room after munmap");
	munmap(p, UNIT);
	munmap(p2, half);
	close(b1);
	close(b2);
	close(b3);
	gpu_free(fd, a.handle);
	check(gpu_query(fd).bar1_free == q.bar1_free, "BAR1 is free again");
}

static int gpu_import(int fd, struct pln_gpu_import *i, int buf)
{
	memset(i, 0, sizeof(*i));
	i->fd = buf;
	return ioctl(fd, PLN_GPU_IOC_IMPORT, i);
}

/* A second handle, in another open file, of memory that was exported */
static void test_import(int fd)
{
	const char *name = getenv("PLN_GPU");
	uint64_t free0 = gpu_query(fd).vram_free;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export_whole(fd, &a);
	int other = gpu_open(), plain, foreign;
	struct pln_gpu_import i;
	uint32_t word = 0, keep;
	struct pln_gpu_op ops[2] = {
		op_fill(a.handle, 0, MIB, 4, 0x5a5a5a5a),
	};

	gpu_run(fd, ops, 1, NULL);
	check(!gpu_import(other, &i, buf), "import");
	check(i.handle && i.size == MIB && !i.offset &&
	      i.mmap_offset == a.mmap_offset, "it is all of the memory");
	ops[0] = op_from_gpu(&word, i.handle, MIB - 4, 4);
	check(!gpu_run(other, ops, 1, NULL) && word == 0x5a5a5a5a,
	      "the same bytes");
	check(!gpu_free(fd, a.handle), "freed where it was made");
	check(gpu_query(fd).vram_free == free0 - MIB, "it stays");
	word = 0;
	check(!gpu_run(other, ops, 1, NULL) && word == 0x5a5a5a5a,
	      "and works");
	check(!gpu_free(other, i.handle), "the last handle");
	check_errno(gpu_import(other, &i, buf), ENOENT, "import after free");
	close(buf);

	/* Closing a file gives up its handles alone */
	a = gpu_alloc(other, MIB);
	buf = gpu_export_whole(other, &a);
	check(!gpu_import(fd, &i, buf) && !close(other),
	      "the file that made it is closed");
	keep = i.handle;
	check(gpu_query(fd).vram_free == free0 - MIB, "it stays");
	check(!gpu_import(fd, &i, buf), "a further handle in the same file");
	check(!gpu_free(fd, i.handle), "given up");

	memset(&i, 0, sizeof(i));
	i.fd = buf;
	i.flags = 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_IMPORT, &i), EINVAL, "flags");
	i.flags = 0;
	i.reserved = 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_IMPORT, &i), EINVAL, "reserved");
	check_errno(gpu_import(fd, &i, -1), EBADF, "no descriptor");
	plain = open("/dev/zero", O_RDWR);
	check_errno(gpu_import(fd, &i, plain), EINVAL, "no dma-buf");
	close(plain);
	foreign = open(name && strchr(name, '1') ? "/dev/peerlane-gpu0" :
						   "/dev/peerlane-gpu1", O_RDWR);
	if (foreign >= 0) {
		check_errno(gpu_import(foreign, &i, buf), EXDEV,
			    "of another GPU");
		close(foreign);
	}
	check(!gpu_free(fd, keep), "the last handle");
	check_errno(gpu_free(fd, keep), ENOENT, "freed twice");
	close(buf);
}

/* What /sys says that process @pid has; -1: it is not there */
static long long process_has(const struct pln_gpu_query *q, pid_t pid)
{
	long long size, found = -1;
	char path[80];
	FILE *f;
	int p;

	snprintf(path, sizeof(path),
		 "/sys/bus/pci/devices/%04x:%02x:%02x.%x/processes",
		 q->pci_domain, q->pci_bus, q->pci_devfn >> 3,
		 q->pci_devfn & 7);
	f = fopen(path, "re");
	need(f, "%s", path);
	while (fscanf(f, "%d %lld\n", &p, &size) == 2)
		if (p == pid)
			found = size;
	need(feof(f), "%s: all lines are understood", path);
	fclose(f);
	return found;
}

struct holder {
	pid_t pid;
	int end;	/* closed: it ends */
};

/* Another process that has @n units, by two allocations, and an open file of its own */
static struct holder holder(unsigned int n)
{
	struct holder h;
	int ready[2], end[2];
	char byte;

	need(!pipe2(ready, O_CLOEXEC) && !pipe2(end, O_CLOEXEC), "pipes");
	fflush(stdout);
	h.pid = fork();
	need(h.pid >= 0, "fork");
	if (!h.pid) {
		int fd = gpu_open();

		gpu_alloc(fd, UNIT);
		gpu_alloc(fd, (n - 1) * UNIT);
		close(end[1]);
		need(write(ready[1], "", 1) == 1, "write");
		_exit(read(end[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(end[0]);
	need(read(ready[0], &byte, 1) == 1, "another process has memory");
	close(ready[0]);
	h.end = end[1];
	return h;
}

static void holder_ends(struct holder h)
{
	close(h.end);
	need(waitpid(h.pid, NULL, 0) == h.pid, "wait");
}

/* Status of @run in another process */
static int in_child(int (*run)(const struct pln_gpu_query *q, pid_t pid),
		    const struct pln_gpu_query *q, pid_t pid)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	need(child >= 0, "fork");
	if (!child)
		_exit(run(q, pid));
	need(waitpid(child, &status, 0) == child, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int as_nobody(const struct pln_gpu_query *q, pid_t pid)
{
	if (setresuid(NOBODY, NOBODY, NOBODY))
		return 2;
	return process_has(q, pid) != 3 * UNIT;
}

/* In a namespace where it is process 1 and nobody else is */
static int alone(const struct pln_gpu_query *q, pid_t pid)
{
	int fd = gpu_open();

	gpu_alloc(fd, UNIT);
	if (getpid() != 1 || process_has(q, pid) != -1)
		return 3;
	if (process_has(q, 1) != UNIT)
		return 4;
	return process_has(q, 0) != (3 + 5 + 2) * UNIT;
}

static int in_namespace(const struct pln_gpu_query *q, pid_t pid)
{
	if (unshare(CLONE_NEWPID))
		return 2;
	return in_child(alone, q, pid);
}

static int inherited;

static int alloc_and_end(const struct pln_gpu_query *q, pid_t pid)
{
	gpu_alloc(inherited, UNIT);
	return process_has(q, getpid()) != UNIT || pid;
}

/* Who has how much memory, as /sys says */
static void test_processes(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc own = gpu_alloc(fd, 2 * UNIT);
	struct holder a = holder(3), b = holder(5);
	int status;

	check(process_has(&q, getpid()) == 2 * UNIT &&
	      process_has(&q, a.pid) == 3 * UNIT &&
	      process_has(&q, b.pid) == 5 * UNIT &&
	      process_has(&q, 0) == -1, "processes: each with what it has");
	status = in_child(as_nobody, &q, a.pid);
	check(!status, "processes: anybody may know (%d)", status);
	status = in_child(in_namespace, &q, a.pid);
	check(!status,
	      "processes: those of another namespace are process 0 (%d)",
	      status);
	holder_ends(b);
	check(process_has(&q, b.pid) == -1 &&
	      process_has(&q, a.pid) == 3 * UNIT,
	      "processes: one that has ended is not there");
	holder_ends(a);
	gpu_free(fd, own.handle);
	check(process_has(&q, a.pid) == -1 &&
	      process_has(&q, getpid()) == -1, "processes: nor one without memory");

	inherited = gpu_open();
	status = in_child(alloc_and_end, &q, 0);
	check(!status && process_has(&q, 0) == UNIT,
	      "processes: what one that has ended has left to others is of process 0 (%d)",
	      status);
	close(inherited);
	check(process_has(&q, 0) == -1, "processes: until they close it");
}

int main(void)
{
	struct pln_gpu_query q;
	int fd = gpu_open();

	q = gpu_query_idle(fd);
	test_dmabuf(fd);
	test_import(fd);
	test_bar1_full(fd);
	test_processes(fd);
	check(room_is(fd, &q), "all memory is free again");
	close(fd);
	return test_end();
}

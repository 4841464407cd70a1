// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: user mappings of GPU memory, cut, moved, inherited and pinned, and
 * what is left of them when the memory goes.
 *
 *	pln_mapping GPU-PCI-ADDRESS DISK
 *
 * DISK is a block device whose content is overwritten.  Long-term pins are made
 * as soft-RoCE makes them, by io_uring, which needs no network.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "pln_ring.h"

static const char *gpu_pci, *disk;

static bool bar1_used_is(int fd, const struct pln_gpu_query *q0, uint64_t used)
{
	struct pln_gpu_query q = *q0;

	q.vram_free = gpu_query(fd).vram_free;
	q.bar1_free -= used;
	return room_is(fd, &q);
}

/* What debugfs says of retired memory */
static unsigned long long busy_pages(void)
{
	unsigned long long pages = 0;
	char path[96], line[256], *p;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/peerlane_gpu/%s/quarantine",
		 gpu_pci);
	f = fopen(path, "r");
	need(f, "quarantine");
	while (fgets(line, sizeof(line), f)) {
		p = strstr(line, "coherent-pages=");
		if (p)
			pages += strtoull(p + strlen("coherent-pages="), NULL,
					  10);
	}
	fclose(f);
	return pages;
}

static bool clean(int fd, uint32_t handle, size_t len)
{
	struct pln_gpu_op op = op_crc(handle, 0, len);
	void *zeros = calloc(1, len);
	uint64_t crc = 0;
	bool ok;

	need(zeros, "memory");
	ok = !gpu_run(fd, &op, 1, &crc) && crc == crc32c(0, zeros, len);
	free(zeros);
	return ok;
}

static void put_words(int fd, uint32_t handle, uint32_t units)
{
	uint32_t i;

	for (i = 0; i < units; i++) {
		struct pln_gpu_op op = op_fill(handle, i * UNIT, UNIT, 4,
					       0x1000 + i);

		need(!gpu_run(fd, &op, 1, NULL), "fill");
	}
}

static uint32_t word(const volatile char *p)
{
	return *(const volatile uint32_t *)p;
}

/* The child's verdict on what it sees */
static bool in_child(bool (*see)(char *p), char *p)
{
	int status;
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (!pid)
		_exit(see(p) ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		!WEXITSTATUS(status);
}

static bool sees_words(char *p)
{
	*(volatile uint32_t *)(p + 4) = 0x77;
	return word(p) == 0x1000 && word(p + UNIT) == 0x1001;
}

/* The same for both sorts of mapping, of four units that hold words */
static char *test_shapes(char *p, const char *what)
{
	char *q;

	check(in_child(sees_words, p), "%s: a child sees the same", what);
	check(word(p + 4) == 0x77, "%s: and the parent what the child wrote",
	      what);
	q = mremap(p, 4 * UNIT, 8 * UNIT, MREMAP_MAYMOVE);
	check(q == MAP_FAILED, "%s: it does not grow: %s", what,
	      strerror(errno));
	q = mmap(NULL, 4 * UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(q != MAP_FAILED, "reserve");
	q = mremap(p, 4 * UNIT, 4 * UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	check(q != MAP_FAILED && word(q + 2 * UNIT) == 0x1002,
	      "%s: moved, it shows the same", what);
	check(!munmap(q + UNIT, UNIT) && word(q) == 0x1000 &&
	      word(q + 3 * UNIT) == 0x1003, "%s: a hole in the middle", what);
	check(!mprotect(q + 2 * UNIT, UNIT, PROT_READ) &&
	      word(q + 2 * UNIT) == 0x1002, "%s: a piece is made read-only",
	      what);
	return q;
}

static void test_dmabuf(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 8 * UNIT);
	int buf = gpu_export(fd, a.handle, 2 * UNIT, 4 * UNIT), out;
	int pipefd[2], status;
	char *p, *q, c;
	pid_t pid;

	need(buf >= 0, "export");
	put_words(fd, a.handle, 8);
	check_errno(mmap(NULL, 4 * UNIT, PROT_READ, MAP_PRIVATE, buf, 0) ==
		    MAP_FAILED ? -1 : 0, EINVAL, "dma-buf: a private mapping");
	check_errno(mmap(NULL, 4 * UNIT, PROT_READ, MAP_SHARED, buf, UNIT) ==
		    MAP_FAILED ? -1 : 0, EINVAL, "dma-buf: past its end");
	p = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, buf, 3 * UNIT);
	check(p != MAP_FAILED && word(p) == 0x1005,
	      "dma-buf: an offset in it, and its own in memory");
	munmap(p, UNIT);
	put_words(fd, a.handle, 8);
	out = gpu_export(fd, a.handle, 0, 4 * UNIT);
	p = mmap(NULL, 4 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
	need(p != MAP_FAILED, "mmap");
	close(out);
	q = test_shapes(p, "dma-buf");
	check(bar1_used_is(fd, &q0, 4 * UNIT), "dma-buf: pieces hold BAR1");

	/* A child is the last that has it */
	need(!pipe(pipefd), "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		close(pipefd[1]);
		if (read(pipefd[0], &c, 1) != 1)
			_exit(2);
		_exit(raises_sigbus(q) && raises_sigbus(q + 2 * UNIT) &&
		      raises_sigbus(q + 3 * UNIT) ? 0 : 1);
	}
	munmap(q, 4 * UNIT);
	check(bar1_used_is(fd, &q0, 4 * UNIT), "dma-buf: a child's holds it");
	p = mmap(NULL, 2 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	need(p != MAP_FAILED && word(p) == 0x1002, "mmap");
	check(!gpu_free(fd, a.handle), "free");
	check(raises_sigbus(p) && raises_sigbus(p + UNIT),
	      "dma-buf: SIGBUS, touched before or not");
	out = open("/dev/null", O_WRONLY);
	check_errno(read(open("/dev/zero", O_RDONLY), p, 8), EFAULT,
		    "dma-buf: a system call into it");
	close(out);
	need(write(pipefd[1], "x", 1) == 1 && waitpid(pid, &status, 0) == pid,
	     "child");
	check(WIFEXITED(status) && !WEXITSTATUS(status),
	      "dma-buf: SIGBUS in the child, too");
	check(!munmap(p, UNIT) && raises_sigbus(p + UNIT) &&
	      !munmap(p + UNIT, UNIT), "dma-buf: what is left goes in pieces");
	check_errno(mmap(NULL, UNIT, PROT_READ, MAP_SHARED, buf, 0) ==
		    MAP_FAILED ? -1 : 0, ENODEV, "dma-buf: mmap after free");
	close(buf);
	check(room_is(fd, &q0), "dma-buf: nothing is left");
}

struct writer {
	volatile char *p;
	atomic_ulong writes;
};

static __thread sigjmp_buf writer_jump;

static void writer_sigbus(int sig)
{
	(void)sig;
	siglongjmp(writer_jump, 1);
}

/* Until the mapping is gone */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	unsigned long i;

	if (!sigsetjmp(writer_jump, 1))
		for (i = 0;; i++) {
			w->p[i % (4 * UNIT / 4096) * 4096] = 0xdd;
			atomic_fetch_add(&w->writes, 1);
		}
	return NULL;
}

/* A processor writes while memory is freed, and given to somebody else */
static void test_writer(int fd, bool window)
{
	struct sigaction sa = { .sa_handler = writer_sigbus }, old;
	const char *what = window ? "window" : "dma-buf";
	struct pln_gpu_query q0 = gpu_query(fd);
	int i, j, dirty = 0, idle = 0;

	sigaction(SIGBUS, &sa, &old);
	for (i = 0; i < 40; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT), b;
		int buf = gpu_export(fd, a.handle, 0, 4 * UNIT);
		struct writer w = { 0 };
		pthread_t thread;

		w.p = mmap(NULL, 4 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED,
			   window ? fd : buf, window ? a.mmap_offset : 0);
		need(w.p != MAP_FAILED, "mmap");
		need(!pthread_create(&thread, NULL, write_on, &w), "thread");
		for (j = 0; j < 5000 && atomic_load(&w.writes) < 200; j++)
			usleep(200);
		idle += atomic_load(&w.writes) < 200;
		need(!gpu_free(fd, a.handle), "free");
		b = gpu_alloc(fd, 4 * UNIT);
		dirty += !clean(fd, b.handle, 4 * UNIT);
		pthread_join(thread, NULL);
		dirty += !clean(fd, b.handle, 4 * UNIT);
		gpu_free(fd, b.handle);
		munmap((void *)w.p, 4 * UNIT);
		close(buf);
	}
	sigaction(SIGBUS, &old, NULL);
	check(!idle && !dirty,
	      "%s: freed under a processor that writes, %d times: it gets SIGBUS, and nobody else's memory is hit",
	      what, i);
	check(room_is(fd, &q0), "%s: nothing is left", what);
}

static int junk_file(void)
{
	int fd = open("/tmp/junk", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char junk[UNIT];

	memset(junk, 0xdd, sizeof(junk));
	need(fd >= 0 && write(fd, junk, UNIT) == UNIT, "a file");
	return fd;
}

static void test_window(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT);
	char *p, *q;

	put_words(fd, a.handle, 4);
	p = mmap(NULL, 4 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 a.mmap_offset);
	need(p != MAP_FAILED, "mmap");
	q = test_shapes(p, "window");
	check(!gpu_free(fd, a.handle) && raises_sigbus(q) &&
	      raises_sigbus(q + 2 * UNIT) && raises_sigbus(q + 3 * UNIT),
	      "window: SIGBUS after free");
	munmap(q, 4 * UNIT);
	check(room_is(fd, &q0), "window: nothing is left");
}

/* Whoever pinned the pages keeps the memory, also when all mappings are gone */
static void test_pin(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd), now;
	struct pln_gpu_alloc a = gpu_alloc(fd, 2 * UNIT), b;
	int file = junk_file(), i, dirty = 0, unread = 0;
	struct ring r, second;
	char *p;

	p = mmap(NULL, 2 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 a.mmap_offset);
	need(p != MAP_FAILED, "mmap");
	ring_make(&r);
	ring_make(&second);
	check(!ring_pin(&r, p, 2 * UNIT), "window: pinned for long");
	check(!ring_pin(&second, p + UNIT, UNIT), "window: a page pinned twice");
	check(ring_read(&r, file, p, UNIT) == UNIT &&
	      word(p) == 0xdddddddd, "window: written through the pin");
	check(!munmap(p, UNIT), "window: half of it unmapped");
	check(ring_read(&r, file, p, UNIT) == UNIT, "window: the pin holds");
	check(!gpu_free(fd, a.handle) && raises_sigbus(p + UNIT),
	      "window: freed under the pin");
	now = gpu_query(fd);
	check(now.vram_free == q0.vram_free - 2 * UNIT,
	      "window: the memory waits for who has it pinned");
	check(busy_pages() == 2 * UNIT / 4096, "debugfs: and that is %llu pages",
	      busy_pages());
	munmap(p + UNIT, UNIT);
	for (i = 0; i < 4; i++) {
		b = gpu_alloc(fd, 2 * UNIT);
		unread += ring_read(&r, file, p, UNIT) != UNIT;
		unread += ring_read(&second, file, p + UNIT, UNIT) != UNIT;
		dirty += !clean(fd, b.handle, 2 * UNIT);
		gpu_free(fd, b.handle);
	}
	check(!unread, "window: the file is read through the pin (%d times not)",
	      unread);
	check(!dirty, "window: writes through the pin hit nobody's memory");
	check(!ring_unpin(&r) && busy_pages() == UNIT / 4096 &&
	      gpu_query(fd).vram_free == q0.vram_free - 2 * UNIT,
	      "window: one unpinned, the other holds it still");
	check(!ring_unpin(&second) && room_is(fd, &q0),
	      "window: both unpinned, it is free");
	b = gpu_alloc(fd, 2 * UNIT);
	check(clean(fd, b.handle, 2 * UNIT), "window: and clean");
	gpu_free(fd, b.handle);
	ring_end(&r);
	ring_end(&second);
	close(file);
}

static char *disk_data;	/* UNIT bytes */

static bool hold_pinned(void)
{
	int own = gpu_open(), d = open(disk, O_RDONLY | O_DIRECT);
	struct pln_gpu_alloc a = gpu_alloc(own, UNIT);
	struct pln_gpu_op op = op_crc(a.handle, 0, UNIT);
	char *p = dev_map(own, &a);
	uint64_t crc = 0;
	struct ring r;

	ring_make(&r);
	return (!ring_pins_mappings() || !ring_pin(&r, p, UNIT)) &&
		pread(d, p, UNIT, 0) == UNIT && !gpu_run(own, &op, 1, &crc) &&
		crc == crc32c(0, disk_data, UNIT);
}

/* A disk and a long-term pin on the same pages; the program is killed */
static void test_kill(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	int d = open(disk, O_WRONLY | O_DIRECT);

	disk_data = aligned_alloc(4096, UNIT);
	need(disk_data && d >= 0, "open %s", disk);
	pattern(disk_data, UNIT, 9);
	need(pwrite(d, disk_data, UNIT, 0) == UNIT, "write");
	end_holder(start_holder(hold_pinned));
	check(room_is(fd, &q0),
	      "window: a disk reads into pinned pages; kill -9 gives all back");
	close(d);
	free(disk_data);
}

static int bind_driver(const char *what)
{
	return shell("echo %s > /sys/bus/pci/drivers/peerlane_gpu/%s", gpu_pci,
		     what);
}

/* Mappings are no reason to wait: who has them gets SIGBUS */
static int test_unbind_mapped(int fd)
{
	bool coherent = gpu_query(fd).features & PLN_GPU_FEAT_COHERENT;
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT);
	int buf = gpu_export(fd, a.handle, 0, 4 * UNIT), zero, next;
	char *bar1, *window = NULL;

	bar1 = mmap(NULL, 4 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	need(bar1 != MAP_FAILED && !raises_sigbus(bar1), "mmap");
	if (coherent) {
		window = mmap(NULL, 4 * UNIT, PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, a.mmap_offset);
		need(window != MAP_FAILED && !raises_sigbus(window), "mmap");
	}
	need(!shell("dmesg -c >/dev/null"), "dmesg");
	check(!bind_driver("unbind"), "unbind while memory is mapped");
	check(shell("dmesg | grep 'removal waits'"),
	      "unbind: mappings do not hold it up");
	check(raises_sigbus(bar1) && raises_sigbus(bar1 + 2 * UNIT),
	      "unbind: SIGBUS behind BAR1, touched before or not");
	if (coherent)
		check(raises_sigbus(window) && raises_sigbus(window + 2 * UNIT),
		      "unbind: SIGBUS behind the window, touched before or not");
	zero = open("/dev/zero", O_RDONLY);
	check_errno(read(zero, bar1, 8), EFAULT, "unbind: a system call into it");
	close(zero);

	need(!bind_driver("bind"), "bind");
	next = reopen();
	check(raises_sigbus(bar1) && (!coherent || raises_sigbus(window)),
	      "bound again: SIGBUS all the same");
	munmap(bar1, 4 * UNIT);
	if (coherent)
		munmap(window, 4 * UNIT);
	close(buf);
	close(fd);
	return next;
}

/* Pins are: the pages go away with the driver.  It says whom it waits for */
static int test_unbind_pinned(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, 2 * UNIT);
	int status, i, next;
	struct ring r;
	pid_t pid;
	char *p;

	p = mmap(NULL, 2 * UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 a.mmap_offset);
	need(p != MAP_FAILED, "mmap");
	ring_make(&r);
	need(!ring_pin(&r, p, 2 * 4096), "pin");
	need(!shell("dmesg -c >/dev/null"), "dmesg");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(bind_driver("unbind"));
	for (i = 0; i < 3000; i++) {
		if (!shell("dmesg | grep -q 'removal waits for %u bytes of GPU memory of process %d (pln_mapping), held by.* coherent-pages=2;'",
			   2 * UNIT, getpid()))
			break;
		usleep(10000);
	}
	check(i < 3000, "unbind under a pin: the log says what it waits for");
	check(raises_sigbus(p) && raises_sigbus(p + UNIT),
	      "unbind under a pin: SIGBUS meanwhile");
	check(!waitpid(pid, &status, WNOHANG), "and it waits");
	check(!ring_unpin(&r), "unpin");
	need(waitpid(pid, &status, 0) == pid, "wait");
	check(WIFEXITED(status) && !WEXITSTATUS(status), "then it is done");
	munmap(p, 2 * UNIT);
	ring_end(&r);

	need(!bind_driver("bind"), "bind");
	next = reopen();
	close(fd);
	return next;
}

int main(int argc, char **argv)
{
	bool coherent, pins;
	int fd;

	need(argc == 3, "usage: pln_mapping GPU-PCI-ADDRESS DISK");
	gpu_pci = argv[1];
	disk = argv[2];
	fd = gpu_open();
	test_dmabuf(fd);
	test_writer(fd, false);
	coherent = gpu_query(fd).features & PLN_GPU_FEAT_COHERENT;
	pins = ring_pins_mappings();
	if (coherent) {
		test_window(fd);
		test_writer(fd, true);
		if (pins)
			test_pin(fd);
		test_kill(fd);
	}
	fd = test_unbind_mapped(fd);
	if (coherent && pins)
		fd = test_unbind_pinned(fd);
	else if (coherent)
		printf("ok %d - window: pinned for long # SKIP io_uring of this kernel pins no mappings of devices\n",
		       ++test_count);
	close(fd);
	return test_end();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: GDRCopy's driver, gdrdrv, gives a program a mapping of GPU memory.
 *
 *	pln_gdrdrv MODULE PERSISTENT SECONDS use|race
 *
 * MODULE is the file of gdrdrv, which is loaded; PERSISTENT 1 or 0, as its module
 * parameter use_persistent_mapping; SECONDS of each race.  "race": the memory is
 * freed while it is unpinned; "use": all else.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pln_test.h"

#define NODE "/tmp/gdrdrv"

/* Its calls: magic number, number, and the size of what the caller gives */
struct gdr_pin {
	uint64_t addr, size, token;
	uint32_t va_space;
	uint64_t handle;
};

struct gdr_flag {
	uint64_t handle;
	uint32_t flag;
};

struct gdr_info {
	uint64_t handle, va, mapped_size;
	uint32_t page_size, tsc_khz;
	uint64_t tm_cycles;
	uint32_t mapping_type;
};

#define GDR_PIN		_IOWR(0xda, 1, struct gdr_pin)
#define GDR_UNPIN	_IOWR(0xda, 2, void *)
#define GDR_CB_FLAG	_IOWR(0xda, 3, void *)
#define GDR_INFO	_IOWR(0xda, 5, void *)

static int gdr_open(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	need(fd >= 0, "open gdrdrv");
	return fd;
}

static int gdr_pin(int gdr, const char *p, size_t len, uint64_t *handle)
{
	struct gdr_pin pin = { .addr = (uintptr_t)p, .size = len };
	int ret = ioctl(gdr, GDR_PIN, &pin);

	*handle = pin.handle;
	return ret;
}

static char *gdr_map(int gdr, uint64_t handle, size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, gdr,
		    handle << 12);
}

static void test_use(int fd, bool persistent)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT);
	char *p = dev_map(fd, &a), *m, *host = malloc(UNIT);
	static char data[2 * UNIT];
	struct gdr_flag flag;
	struct pln_gpu_op op;
	struct gdr_info info;
	uint64_t handle, crc;
	int gdr = gdr_open();

	check(gdr_pin(gdr, host, UNIT, &handle) == -1,
	      "pin: memory that is no GPU's: %s", strerror(errno));
	check(!gdr_pin(gdr, p + UNIT, 2 * UNIT, &handle), "pin");
	check(gpu_query(fd).bar1_free == q0.bar1_free - 2 * UNIT,
	      "it takes BAR1");
	info.handle = handle;
	check(!ioctl(gdr, GDR_INFO, &info) &&
	      info.va == (uintptr_t)p + UNIT && info.mapped_size == 2 * UNIT &&
	      info.page_size == UNIT, "what it says of the pin");
	m = gdr_map(gdr, handle, 2 * UNIT);
	check(m != MAP_FAILED, "map");
	pattern(data, sizeof(data), 3);
	memcpy(m, data, sizeof(data));
	op = op_crc(a.handle, UNIT, 2 * UNIT);
	check(!gpu_run(fd, &op, 1, &crc) &&
	      crc == crc32c(0, data, sizeof(data)),
	      "the CPU writes, the GPU has it");
	op = op_fill(a.handle, 2 * UNIT, UNIT, 1, 0x5a);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	check(m[0] == data[0] && m[UNIT] == 0x5a && m[2 * UNIT - 1] == 0x5a,
	      "the GPU writes, the CPU has it");

	check(!gpu_free(fd, a.handle), "free under the pin");
	flag.handle = handle;
	check(!ioctl(gdr, GDR_CB_FLAG, &flag) && flag.flag == !persistent,
	      "gdrdrv was %stold", persistent ? "not " : "");
	if (persistent)
		check(m[UNIT] == 0x5a && gpu_query(fd).vram_free ==
		      q0.vram_free - 4 * UNIT, "the pin keeps the memory");
	else
		check(raises_sigbus(m), "SIGBUS behind the mapping");
	munmap(m, 2 * UNIT);
	check(!ioctl(gdr, GDR_UNPIN, &handle), "unpin");
	check(room_is(fd, &q0), "nothing is left");
	munmap(p, 4 * UNIT);
	free(host);
	close(gdr);
}

static bool hold_mapped(void)
{
	int own = gpu_open(), gdr = gdr_open();
	struct pln_gpu_alloc a = gpu_alloc(own, UNIT);
	uint64_t handle;
	char *m;

	if (gdr_pin(gdr, dev_map(own, &a), UNIT, &handle))
		return false;
	m = gdr_map(gdr, handle, UNIT);
	if (m == MAP_FAILED)
		return false;
	*m = 1;
	return true;
}

static void test_kill(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);

	end_holder(start_holder(hold_mapped));
	check(room_is(fd, &q0), "kill -9 gives all of it back");
}

/* The node of the module, which has another number each time it is loaded */
static void make_node(void)
{
	FILE *f = popen("awk '$2 == \"gdrdrv\" { print $1 }' /proc/devices", "r");
	int major;

	need(f && fscanf(f, "%d", &major) == 1, "number of the device");
	pclose(f);
	unlink(NODE);
	need(!mknod(NODE, S_IFCHR | 0600, makedev(major, 0)), "mknod");
}

struct racer {
	pthread_barrier_t start;
	volatile char *m;
	atomic_ulong writes;
	atomic_bool stop;
	uint32_t handle;
	int fd;
	bool ok;
};

static void *race_free(void *arg)
{
	struct racer *r = arg;

	pthread_barrier_wait(&r->start);
	r->ok = !gpu_free(r->fd, r->handle);
	return NULL;
}

/* The memory is freed while it is unpinned; with @mapped the pin has a mapping */
static void test_race(int fd, int seconds, bool mapped)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct racer r = { .fd = fd };
	double end = now() + seconds;
	int gdr = gdr_open(), rounds = 0, told = 0, bad = 0;

	pthread_barrier_init(&r.start, NULL, 2);
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		char *p = dev_map(fd, &a), *m = NULL;
		struct gdr_flag flag = { 0 };
		pthread_t thread;

		need(!gdr_pin(gdr, p, UNIT, &flag.handle), "pin");
		if (mapped) {
			m = gdr_map(gdr, flag.handle, UNIT);
			need(m != MAP_FAILED && !raises_sigbus(m), "map");
		}
		r.handle = a.handle;
		need(!pthread_create(&thread, NULL, race_free, &r), "thread");
		pthread_barrier_wait(&r.start);
		/* Sometimes late */
		if (rounds % 3 == 2)
			usleep(rounds % 300);
		told += !ioctl(gdr, GDR_CB_FLAG, &flag) && flag.flag;
		bad += ioctl(gdr, GDR_UNPIN, &flag.handle) != 0;
		pthread_join(thread, NULL);
		bad += !r.ok;
		if (mapped)
			munmap(m, UNIT);
		munmap(p, UNIT);
		rounds++;
	} while (now() < end || rounds < 100);
	check(!bad, "%sfree and unpin at once, %d times (%d told before)",
	      mapped ? "mapped: " : "", rounds, told);
	close(gdr);
	check(room_is(fd, &q0), "nothing is left");
	pthread_barrier_destroy(&r.start);
}

static __thread sigjmp_buf writer_jump;

static void writer_sigbus(int sig)
{
	(void)sig;
	siglongjmp(writer_jump, 1);
}

/* Until the mapping is gone, or it shall stop */
static void *write_on(void *arg)
{
	struct racer *w = arg;
	unsigned long i;

	if (!sigsetjmp(writer_jump, 1))
		for (i = 0; !atomic_load(&w->stop); i++) {
			w->m[i % (UNIT / 4096) * 4096] = 0xdd;
			atomic_fetch_add(&w->writes, 1);
		}
	return NULL;
}

static bool clean(int fd, uint32_t handle)
{
	struct pln_gpu_op op = op_crc(handle, 0, UNIT);
	static const char zeros[UNIT];
	uint64_t crc;

	return !gpu_run(fd, &op, 1, &crc) && crc == crc32c(0, zeros, UNIT);
}

/* A processor writes through the mapping while the memory is freed and given out */
static void test_writer(int fd, bool persistent, int seconds)
{
	struct sigaction sa = { .sa_handler = writer_sigbus }, old;
	struct pln_gpu_query q0 = gpu_query(fd);
	int gdr = gdr_open(), rounds = 0, dirty = 0, bad = 0;
	double end = now() + seconds;

	sigaction(SIGBUS, &sa, &old);
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT), b;
		char *p = dev_map(fd, &a);
		struct racer w = { 0 };
		pthread_t thread;
		uint64_t handle;
		int i;

		need(!gdr_pin(gdr, p, UNIT, &handle), "pin");
		w.m = gdr_map(gdr, handle, UNIT);
		need(w.m != MAP_FAILED, "map");
		need(!pthread_create(&thread, NULL, write_on, &w), "thread");
		for (i = 0; i < 5000 && atomic_load(&w.writes) < 50; i++)
			usleep(200);
		bad += atomic_load(&w.writes) < 50;
		need(!gpu_free(fd, a.handle), "free");
		b = gpu_alloc(fd, UNIT);
		dirty += !clean(fd, b.handle);
		/* The persistent pin is the program's to end, and its mapping with it */
		if (persistent)
			bad += ioctl(gdr, GDR_UNPIN, &handle) != 0;
		pthread_join(thread, NULL);
		dirty += !clean(fd, b.handle);
		if (!persistent)
			bad += ioctl(gdr, GDR_UNPIN, &handle) != 0;
		gpu_free(fd, b.handle);
		munmap((void *)w.m, UNIT);
		munmap(p, UNIT);
		rounds++;
	} while (now() < end || rounds < 20);
	sigaction(SIGBUS, &old, NULL);
	close(gdr);
	check(!bad && !dirty,
	      "freed under a processor that writes, %d times: nobody else's memory is hit",
	      rounds);
	check(room_is(fd, &q0), "nothing is left");
}

/* Pins, maps and frees until it is killed; counts how often */
static void use_forever(atomic_ulong *loops)
{
	int fd = gpu_open(), gdr = gdr_open();

	for (;;) {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		char *p = dev_map(fd, &a), *m;
		uint64_t handle;

		need(!gdr_pin(gdr, p, UNIT, &handle), "pin");
		m = gdr_map(gdr, handle, UNIT);
		need(m != MAP_FAILED, "map");
		memset(m, 1, UNIT);
		gpu_free(fd, a.handle);
		munmap(m, UNIT);
		munmap(p, UNIT);
		ioctl(gdr, GDR_UNPIN, &handle);
		atomic_fetch_add(loops, 1);
	}
}

/* A program is killed in the middle of it all, and the module goes at once */
static void test_unload(int fd, const char *module, bool persistent, int seconds)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	double end = now() + seconds;
	int rounds = 0, bad = 0, i, status;
	atomic_ulong *loops;
	pid_t pid;

	loops = mmap(NULL, sizeof(*loops), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(loops != MAP_FAILED, "memory");
	do {
		double limit = now() + 30;

		atomic_store(loops, 0);
		fflush(stdout);
		pid = fork();
		need(pid >= 0, "fork");
		if (!pid)
			use_forever(loops);
		while (atomic_load(loops) < 1ul + rounds % 5 && now() < limit)
			usleep(rounds * 7919 % 1000);
		need(atomic_load(loops), "the program comes to work");
		need(!kill(pid, SIGKILL), "kill");
		/* Its last reference goes with the process, which ends by and by */
		for (i = 0; i < 1000 && shell("rmmod gdrdrv 2>/dev/null"); i++)
			usleep(1000);
		bad += i == 1000;
		need(waitpid(pid, &status, 0) == pid, "wait");
		bad += !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
		need(!shell("insmod %s use_persistent_mapping=%d", module,
			    persistent), "load it again");
		make_node();
		rounds++;
	} while (now() < end || rounds < 3);
	check(!bad, "killed, and unloaded at once, %d times", rounds);
	check(room_is(fd, &q0), "nothing is left");
	munmap(loops, sizeof(*loops));
}

int main(int argc, char **argv)
{
	bool persistent;
	int fd, seconds;

	need(argc == 5, "usage: pln_gdrdrv MODULE PERSISTENT SECONDS use|race");
	persistent = atoi(argv[2]);
	seconds = atoi(argv[3]);
	make_node();
	fd = gpu_open();
	/*
	 * Where a callback and an unpin meet, gdrdrv counts its table down twice,
	 * since put of a table that has gone is no error, here as with NVIDIA's
	 * driver; with a count that is not 0 it must not be unloaded.
	 */
	if (!strcmp(argv[4], "race")) {
		test_race(fd, seconds, false);
		test_race(fd, seconds, true);
	} else {
		test_use(fd, persistent);
		test_kill(fd);
		test_writer(fd, persistent, seconds);
		test_unload(fd, argv[1], persistent, seconds);
	}
	close(fd);
	return test_end();
}

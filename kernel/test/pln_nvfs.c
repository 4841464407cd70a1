// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: NVIDIA's file system driver, nvidia-fs, pins GPU memory for a program.
 *
 *	pln_nvfs SECONDS MODULE
 *
 * SECONDS of each race.  MODULE is the file of nvidia-fs.  Files are not read: that needs a driver of the disk with
 * hooks for nvidia-fs, which no kernel of Debian has.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "pln_test.h"

#define NODE "/dev/nvidia-fs0"

/* Its call: what it pins, and the program's shadow buffer that stands for it */
struct nvfs_map {
	int64_t size;
	uint64_t pci_address, shadow, gpu, fence;
	uint32_t blocks;	/* of 4 KiB, of the shadow buffer */
	uint16_t bounce;
	uint8_t reserved[2];
	char unused[512];	/* it copies the largest argument of all its calls */
};

#define NVFS_MAP	_IOW('t', 3, int)

static char *fence;

static char *shadow_map(int nvfs)
{
	return mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, nvfs, 0);
}

static int pin(int nvfs, const char *p, char *shadow)
{
	struct nvfs_map map = {
		.size = UNIT, .shadow = (uintptr_t)shadow,
		.gpu = (uintptr_t)p, .fence = (uintptr_t)fence,
		.blocks = UNIT / 4096,
	};

	return ioctl(nvfs, NVFS_MAP, &map);
}

static int nvfs_open(void)
{
	int nvfs = open(NODE, O_RDWR | O_CLOEXEC);

	need(nvfs >= 0, "open nvidia-fs");
	return nvfs;
}

static void test_use(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p = dev_map(fd, &a), *host = aligned_alloc(UNIT, UNIT), *shadow;
	int nvfs = nvfs_open();

	shadow = shadow_map(nvfs);
	need(shadow != MAP_FAILED, "shadow buffer");
	check(pin(nvfs, host, shadow) == -1, "pin: memory that is no GPU's");
	munmap(shadow, UNIT);
	shadow = shadow_map(nvfs);
	check(!pin(nvfs, p, shadow), "pin");
	check(gpu_query(fd).bar1_free == q0.bar1_free - UNIT, "it takes BAR1");
	munmap(shadow, UNIT);
	check(gpu_query(fd).bar1_free == q0.bar1_free,
	      "the end of the shadow buffer is that of the pin");

	shadow = shadow_map(nvfs);
	need(!pin(nvfs, p, shadow), "pin");
	check(!gpu_free(fd, a.handle), "free under the pin");
	check(room_is(fd, &q0), "nvidia-fs is told, and the memory is free");
	munmap(shadow, UNIT);
	munmap(p, UNIT);
	close(nvfs);
	free(host);
}

struct racer {
	pthread_barrier_t start;
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

/* The memory is freed while the program ends the pin */
static void test_race(int fd, int seconds)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct racer r = { .fd = fd };
	double end = now() + seconds;
	int nvfs = nvfs_open(), rounds = 0, bad = 0;

	pthread_barrier_init(&r.start, NULL, 2);
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		char *p = dev_map(fd, &a), *shadow = shadow_map(nvfs);
		pthread_t thread;

		need(shadow != MAP_FAILED && !pin(nvfs, p, shadow), "pin");
		r.handle = a.handle;
		need(!pthread_create(&thread, NULL, race_free, &r), "thread");
		pthread_barrier_wait(&r.start);
		if (rounds % 3 == 2)
			usleep(rounds % 300);
		bad += munmap(shadow, UNIT) != 0;
		pthread_join(thread, NULL);
		bad += !r.ok;
		munmap(p, UNIT);
		rounds++;
	} while (now() < end || rounds < 50);
	close(nvfs);
	check(!bad, "free and the pin's end at once, %d times", rounds);
	check(room_is(fd, &q0), "nothing is left");
	pthread_barrier_destroy(&r.start);
}

#define RELOADS	20

/* What two processes share */
struct reloading {
	atomic_bool stop, loading;
	atomic_int count;
};

/* Unloads nvidia-fs whenever nobody has it open, and loads it again */
static void reload(const char *module, struct reloading *r)
{
	while (!r->stop) {
		int file;

		if (syscall(SYS_delete_module, "nvidia_fs", O_NONBLOCK))
			continue;
		r->loading = true;
		file = open(module, O_RDONLY | O_CLOEXEC);
		if (file < 0 || syscall(SYS_finit_module, file, "", 0))
			_exit(1);
		r->loading = false;
		close(file);
		r->count++;
	}
	_exit(0);
}

/* It is unloaded as soon as its file is closed, with the memory freed at that moment */
static void test_unload(int fd, int seconds, const char *module)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	double end = now() + seconds;
	struct racer r = { .fd = fd };
	int pins = 0, bad = 0, nvfs;
	struct reloading *shared;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(shared != MAP_FAILED, "memory");
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		reload(module, shared);
	pthread_barrier_init(&r.start, NULL, 2);
	while (now() < end || (shared->count < RELOADS && now() < end + 60)) {
		struct pln_gpu_alloc a;
		pthread_t thread;
		char *p, *shadow;

		nvfs = open(NODE, O_RDWR | O_CLOEXEC);
		if (nvfs < 0)
			continue;	/* just now it is not loaded */
		/*
		 * It has its device before it is ready: nvfs_init() empties the table of
		 * GPUs later, and who has pinned by then meets a BUG_ON()
		 */
		while (shared->loading)
			sched_yield();
		a = gpu_alloc(fd, UNIT);
		p = dev_map(fd, &a);
		shadow = shadow_map(nvfs);
		need(shadow != MAP_FAILED && !pin(nvfs, p, shadow), "pin");
		r.handle = a.handle;
		need(!pthread_create(&thread, NULL, race_free, &r), "thread");
		pthread_barrier_wait(&r.start);
		bad += munmap(shadow, UNIT) != 0;
		close(nvfs);
		pthread_join(thread, NULL);
		bad += !r.ok;
		munmap(p, UNIT);
		pins++;
	}
	shared->stop = true;
	check(ends_well(pid) && shared->count >= RELOADS && pins >= RELOADS &&
	      !bad, "unloaded and loaded %d times beside %d pins and frees",
	      shared->count, pins);
	munmap(shared, sizeof(*shared));
	check(room_is(fd, &q0), "nothing is left");
	pthread_barrier_destroy(&r.start);
}

static bool hold_pin(void)
{
	int own = gpu_open(), nvfs = nvfs_open();
	struct pln_gpu_alloc a = gpu_alloc(own, UNIT);

	return !pin(nvfs, dev_map(own, &a), shadow_map(nvfs));
}

static void test_kill(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	int i;

	for (i = 0; i < 5; i++)
		end_holder(start_holder(hold_pin));
	check(room_is(fd, &q0), "kill -9 gives all of it back");
}

int main(int argc, char **argv)
{
	int fd;

	need(argc == 3, "usage: pln_nvfs SECONDS MODULE");
	fence = aligned_alloc(4096, 4096);
	need(fence, "memory");
	memset(fence, 0, 4096);
	fd = gpu_open();
	test_use(fd);
	test_kill(fd);
	test_race(fd, atoi(argv[1]));
	test_unload(fd, atoi(argv[1]), argv[2]);
	close(fd);
	return test_end();
}

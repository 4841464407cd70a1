// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: NVIDIA's file system driver, nvidia-fs, pins GPU memory for a program.
 *
 *	pln_nvfs SECONDS MODULE DISK
 *
 * SECONDS of each race.  MODULE is the file of nvidia-fs.  DISK is a disk whose driver
 * has hooks for nvidia-fs: that of kernel/test/nvfs_disk.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

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

/* Its call: what moves between the disk and the GPU memory behind a shadow buffer */
struct nvfs_io {
	uint64_t shadow, offset, size, fence_value;
	int64_t ret;
	uint64_t inode;
	uint32_t generation, major, minor;
	uint64_t gpu_offset;
	uint32_t pad;
	int fd;
	uint8_t flags;		/* 1: the call waits */
	uint8_t reserved[3];
	char unused[512];
} __attribute__((packed, aligned(8)));

#define NVFS_READ	_IOW('t', 2, int)
#define NVFS_MAP	_IOW('t', 3, int)
#define NVFS_WRITE	_IOW('t', 4, int)

static char *fence;
static int disk;

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

/* UNIT at @offset of the disk; true: all of it was moved */
static bool nvfs_io(int nvfs, unsigned long call, const char *shadow,
		    uint64_t offset)
{
	struct nvfs_io io = {
		.shadow = (uintptr_t)shadow, .offset = offset, .size = UNIT,
		.fd = disk, .flags = 1,
	};
	struct stat st;

	need(!fstat(disk, &st), "disk");
	io.inode = st.st_ino;
	io.major = major(st.st_rdev);
	io.minor = minor(st.st_rdev);
	return !ioctl(nvfs, call, &io) && io.ret == UNIT;
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

static bool fill(int fd, uint32_t handle, uint8_t value)
{
	struct pln_gpu_op op = op_fill(handle, 0, UNIT, 1, value);

	return !gpu_run(fd, &op, 1, NULL);
}

static uint32_t crc_now(int fd, uint32_t handle)
{
	struct pln_gpu_op op = op_crc(handle, 0, UNIT);
	uint64_t crc = 0;

	need(!gpu_run(fd, &op, 1, &crc), "CRC");
	return crc;
}

/* The disk has a pattern in its first unit from now on */
static void test_io(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p = dev_map(fd, &a), *host = aligned_alloc(UNIT, UNIT), *shadow;
	unsigned int i, others = 0;
	int nvfs = nvfs_open();

	shadow = shadow_map(nvfs);
	need(host && shadow != MAP_FAILED && !pin(nvfs, p, shadow), "pin");
	pattern(host, UNIT, 5);
	need(pwrite(disk, host, UNIT, 0) == UNIT, "write the disk");
	check(nvfs_io(nvfs, NVFS_READ, shadow, 0) &&
	      crc_now(fd, a.handle) == crc32c(0, host, UNIT),
	      "read: the disk's data is in GPU memory");
	for (i = 0; i < UNIT; i++)
		others += shadow[i] != 0;
	check(!others, "read: it did not come by the shadow buffer");
	need(fill(fd, a.handle, 0xa5), "fill");
	check(nvfs_io(nvfs, NVFS_WRITE, shadow, UNIT), "write");
	need(pread(disk, host, UNIT, UNIT) == UNIT, "read the disk");
	for (i = 0, others = 0; i < UNIT; i++)
		others += (uint8_t)host[i] != 0xa5;
	check(!others, "write: GPU memory's data is on the disk");
	munmap(shadow, UNIT);
	gpu_free(fd, a.handle);
	munmap(p, UNIT);
	close(nvfs);
	free(host);
	check(room_is(fd, &q0), "nothing is left");
}

struct reader {
	char *shadow;
	int nvfs;
	atomic_int done;	/* reads */
	atomic_bool freeing;
	bool missed;
};

/*
 * nvidia-fs can miss that memory goes away: nvfs_io_terminate_requested() looks
 * for a state after the other, and a read that ends in between is in none of
 * them.  Reads go on then, and its callback spins until the shadow buffer ends.
 */
static void *read_on(void *arg)
{
	struct reader *r = arg;
	double end = 0;

	while (nvfs_io(r->nvfs, NVFS_READ, r->shadow, 0)) {
		atomic_fetch_add(&r->done, 1);
		if (!end && atomic_load(&r->freeing))
			end = now() + 5;
		if (end && now() > end) {
			r->missed = true;
			break;
		}
	}
	munmap(r->shadow, UNIT);
	return NULL;
}

/* Memory is freed while the disk's DMA goes there: none of it lands there later */
static void test_io_race(int fd, int seconds)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	int nvfs = nvfs_open(), rounds = 0, bad = 0, dirty = 0, missed = 0, i;
	double end = now() + seconds;
	void *zeros = calloc(1, UNIT);
	uint32_t clean = crc32c(0, zeros, UNIT);

	free(zeros);
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT), b;
		struct reader r = { .nvfs = nvfs, .shadow = shadow_map(nvfs) };
		char *p = dev_map(fd, &a), *after;
		pthread_t thread;

		need(r.shadow != MAP_FAILED &&
		     !pin(nvfs, p, (char *)r.shadow), "pin");
		need(!pthread_create(&thread, NULL, read_on, &r), "thread");
		for (i = 0; i < 30000 && atomic_load(&r.done) <= rounds % 3; i++)
			usleep(1000);
		bad += i == 30000 || crc_now(fd, a.handle) == clean;
		atomic_store(&r.freeing, true);
		bad += gpu_free(fd, a.handle) != 0;
		/* in the same place of BAR1, if that is free */
		b = gpu_alloc(fd, UNIT);
		after = dev_map(fd, &b);
		dirty += *(volatile char *)after != 0;
		dirty += crc_now(fd, b.handle) != clean;
		pthread_join(thread, NULL);
		dirty += crc_now(fd, b.handle) != clean;
		missed += r.missed;
		gpu_free(fd, b.handle);
		munmap(after, UNIT);
		munmap(p, UNIT);
		rounds++;
	} while (now() < end || rounds < 20);
	close(nvfs);
	check(!bad && !dirty && missed < rounds / 2,
	      "freed while the disk is read, %d times: nobody else's memory is hit",
	      rounds);
	printf("# nvidia-fs missed %d of them\n", missed);
	check(room_is(fd, &q0), "nothing is left");
}

/* Reads until it is killed; counts how often */
static void use_forever(atomic_int *reads)
{
	int own = gpu_open(), nvfs = nvfs_open();

	for (;;) {
		struct pln_gpu_alloc a = gpu_alloc(own, UNIT);
		char *p = dev_map(own, &a), *shadow = shadow_map(nvfs);

		need(shadow != MAP_FAILED && !pin(nvfs, p, shadow), "pin");
		need(nvfs_io(nvfs, NVFS_READ, shadow, 0), "read");
		atomic_fetch_add(reads, 1);
		munmap(shadow, UNIT);
		gpu_free(own, a.handle);
		munmap(p, UNIT);
	}
}

static void test_io_kill(int fd, int seconds)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	double end = now() + seconds, limit;
	int rounds = 0, bad = 0, status;
	atomic_int *reads;
	pid_t pid;

	reads = mmap(NULL, sizeof(*reads), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(reads != MAP_FAILED, "memory");
	do {
		*reads = 0;
		fflush(stdout);
		pid = fork();
		need(pid >= 0, "fork");
		if (!pid)
			use_forever(reads);
		limit = now() + 30;
		while (*reads < 1 + rounds % 5 && now() < limit)
			usleep(rounds * 7919 % 1000);
		need(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid,
		     "kill");
		bad += !*reads || !WIFSIGNALED(status) ||
		       WTERMSIG(status) != SIGKILL;
		rounds++;
	} while (now() < end || rounds < 5);
	check(!bad, "killed while it reads, %d times", rounds);
	check(room_is(fd, &q0), "nothing is left");
	munmap(reads, sizeof(*reads));
}

/* At least so many, however slow the machine */
#define RELOADS	5

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
	while (now() < end || (shared->count < RELOADS && now() < end + 120)) {
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

	need(argc == 4, "usage: pln_nvfs SECONDS MODULE DISK");
	fence = aligned_alloc(4096, 4096);
	need(fence, "memory");
	memset(fence, 0, 4096);
	disk = open(argv[3], O_RDWR | O_DIRECT | O_CLOEXEC);
	need(disk >= 0, "open the disk");
	fd = gpu_open();
	test_use(fd);
	test_kill(fd);
	test_io(fd);
	test_io_race(fd, atoi(argv[1]));
	test_io_kill(fd, atoi(argv[1]));
	test_race(fd, atoi(argv[1]));
	test_unload(fd, atoi(argv[1]), argv[2]);
	close(disk);
	close(fd);
	return test_end();
}

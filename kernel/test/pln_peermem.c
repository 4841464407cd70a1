// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: an RDMA core registers GPU memory through peerlane_peermem.
 *
 *	pln_peermem GPU-PCI-ADDRESS PEER-PCI-ADDRESS FAR-PCI-ADDRESS KIND
 *
 * The module peerlane_peercore_test is the core.  KIND new: it knows the flags
 * of clients; old: it does not; nvidia: the client is nvidia-peermem, which
 * checks less, and pins by the persistent flavour from driver 560 on.  DMA of
 * PEER gets to the GPU, that of FAR does not.  PEER has an engine, of the module
 * peerlane_p2p_test.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "pln_test.h"

#define DIR "/sys/kernel/debug/peerlane_peercore_test/"

#include "pln_debugfs.h"

static const char *gpu_pci, *peer_pci, *far_pci;
static bool old, nvidia, persistent;

struct region {
	int acquired, pinned, mapped, invalidated, entries;
	unsigned long long addr;
	unsigned int bad;
	unsigned long size;
};

static struct region region(unsigned int slot)
{
	struct region r = { 0 };
	FILE *f = fopen(DIR "state", "r");
	bool found = false;
	unsigned int n;
	char line[256];

	need(f, "state of the core");
	while (!found && fgets(line, sizeof(line), f)) {
		memset(&r, 0, sizeof(r));
		found = sscanf(line, "region %u acquired %d pinned %d mapped %d invalidated %d entries %d addr %llx bad %u size %lu",
			       &n, &r.acquired, &r.pinned, &r.mapped,
			       &r.invalidated, &r.entries, &r.addr, &r.bad,
			       &r.size) >= 5 && n == slot;
	}
	fclose(f);
	need(found, "region %u", slot);
	return r;
}

static int acquire(unsigned int slot, const void *va, size_t len)
{
	return cmd("acquire %u %llu %zu", slot,
		   (unsigned long long)(uintptr_t)va, len);
}

static void test_client(void)
{
	char name[64], version[16];
	FILE *f = fopen(DIR "state", "r");
	unsigned int flags;

	need(f && fscanf(f, "client %63s version %15s flags %u", name, version,
			 &flags) == 3, "the client");
	fclose(f);
	check(!strcmp(name, nvidia ? "nv_mem" : "peerlane"),
	      "the client is registered: %s %s", name, version);
	persistent = nvidia && !flags;
	if (!nvidia)
		check(flags == (old ? 0 : 1), "the core knows its flags: %s",
		      old ? "no" : "yes");
}

static void test_acquire(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT), b;
	char *p = dev_map(fd, &a), *host = malloc(UNIT), *all;
	int buf;

	check_errno(acquire(0, host, UNIT), ENXIO, "acquire: host memory");
	check_errno(acquire(0, p, 0), ENXIO, "acquire: nothing");
	check_errno(acquire(0, p, -(size_t)4096), ENXIO,
		    "acquire: a length that wraps");
	check_errno(acquire(0, p + 2 * UNIT, 2 * UNIT + 1), ENXIO,
		    "acquire: past the end");
	check(!acquire(0, p + 2 * UNIT, 2 * UNIT), "acquire: up to the end");
	check(gpu_query(fd).bar1_free == q.bar1_free,
	      "acquire alone takes no BAR1");
	check(!cmd("release 0"), "release");

	/* BAR1 is full, before acquire or after it */
	b = gpu_alloc(fd, q.bar1_size);
	need(!acquire(1, p, 1), "acquire");
	buf = gpu_export(fd, b.handle, 0, b.size);
	all = mmap(NULL, b.size, PROT_READ, MAP_SHARED, buf, 0);
	need(all != MAP_FAILED, "fill BAR1");
	check_errno(acquire(0, p, 1), ENOMEM, "acquire: no BAR1");
	check_errno(cmd("get 1"), ENOMEM, "get: no BAR1");
	munmap(all, b.size);
	close(buf);
	gpu_free(fd, b.handle);
	check(!cmd("get 1"), "get: there is BAR1 again");
	cmd("end 1");
	gpu_free(fd, a.handle);
	free(host);
	check(room_is(fd, &q), "nothing is left");
}

static void test_order(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	struct region r;
	int i;

	check(!acquire(0, p + UNIT + 100, UNIT), "acquire an odd piece");
	for (i = 0; i < 2; i++) {
		check(!cmd("get 0"), "get");
		if (!nvidia)
			check_errno(cmd("map 0 none"), EINVAL,
				    "map: a device that is not on PCI");
		check_errno(cmd("map 0 %s", far_pci),
			    nvidia ? ENOTSUPP : EOPNOTSUPP,
			    "map: a device that has no way there");
		check(!cmd("map 0 %s", peer_pci), "map");
		r = region(0);
		check(r.entries == 2 && !r.bad && r.size == UNIT && r.addr,
		      "two pages around the piece, at %#llx", r.addr);
		check(!cmd("unmap 0") && !cmd("map 0 %s", peer_pci),
		      "unmap, map again");
		check(!cmd("unmap 0") && !cmd("put 0"), "unmap, put");
		check(gpu_query(fd).bar1_free == q.bar1_free, "BAR1 is back");
	}
	check(!cmd("get 0") && !cmd("put 0"), "get, put");
	check(!cmd("release 0"), "release");
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "nothing is left");
}

/* The memory goes away after so many steps */
static void test_free(int fd, int steps)
{
	static const char * const after[] = {
		"acquire", "get", "map", "unmap", "put",
	};
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	const char *what = after[steps - 1];
	bool pinned = steps >= 2 && steps <= 4;
	/* NVIDIA's tells of mapped memory alone */
	bool told = pinned && !persistent && !(nvidia && steps == 2);
	struct region r;

	need(!acquire(0, p, MIB), "acquire");
	need(steps < 2 || !cmd("get 0"), "get");
	need(steps < 3 || !cmd("map 0 %s", peer_pci), "map");
	need(steps < 4 || !cmd("unmap 0"), "unmap");
	need(steps < 5 || !cmd("put 0"), "put");
	check(!gpu_free(fd, a.handle), "free after %s", what);
	r = region(0);
	check(r.invalidated == told, "free after %s: the core is %stold", what,
	      told ? "" : "not ");
	if (persistent && pinned)
		check(gpu_query(fd).vram_free == q.vram_free - MIB,
		      "free after %s: the region keeps the memory", what);
	else
		check(room_is(fd, &q), "free after %s: memory and BAR1 are back",
		      what);
	if (told && old)
		check(!r.acquired && !r.pinned && !r.mapped,
		      "free after %s: the core has undone it all", what);
	else
		check(r.acquired && r.pinned == pinned && r.mapped == (steps == 3),
		      "free after %s: the core undoes it later", what);
	if (told && !old && !nvidia && steps != 3)
		check_errno(cmd("map 0 %s", peer_pci), EINVAL,
			    "map: after it was told");
	if (!pinned)
		check_errno(cmd("get 0"), EINVAL, "get: after free");
	check(!cmd("end 0"), "free after %s: the rest is undone", what);
	check(room_is(fd, &q) && !region(0).acquired,
	      "free after %s: nothing is left", what);
	munmap(p, MIB);
}

static bool hold_region(void)
{
	int own = gpu_open();
	struct pln_gpu_alloc a = gpu_alloc(own, MIB);

	return !acquire(0, dev_map(own, &a), MIB) && !cmd("get 0") &&
		!cmd("map 0 %s", peer_pci);
}

/* A process is killed, whose region outlives its memory for a moment */
static void test_kill(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);

	end_holder(start_holder(hold_region));
	if (!persistent)
		check(room_is(fd, &q) && region(0).invalidated == 1,
		      "kill -9: the core is told, the memory is back");
	check(!cmd("end 0") && room_is(fd, &q),
	      "kill -9: the region ends later");
}

static void test_reset(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a), path[96];
	int f;

	need(!acquire(0, p, MIB) && !cmd("get 0") && !cmd("map 0 %s", peer_pci),
	     "a region");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", gpu_pci);
	f = open(path, O_WRONLY);
	need(f >= 0 && write(f, "1", 1) == 1, "reset");
	close(f);
	check(region(0).invalidated == !persistent, "reset: the core is %stold",
	      persistent ? "not " : "");
	check(!cmd("end 0"), "reset: the region ends");
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "reset: nothing is left");
	munmap(p, MIB);
}

struct live {
	atomic_int done;	/* DMAs */
	int err;		/* of the last one */
};

static void *live_dma(void *arg)
{
	struct live *live = arg;

	while (!cmd("dma 0 write 1"))
		atomic_fetch_add(&live->done, 1);
	live->err = errno;
	return NULL;
}

/* What the peer writes */
static void fill_peer(void)
{
	int fd = open("/sys/kernel/debug/peerlane_p2p_test/buf", O_WRONLY);
	static char data[UNIT];

	memset(data, 0xdd, UNIT);
	need(fd >= 0 && write(fd, data, UNIT) == UNIT, "the peer's buffer");
	close(fd);
}

static uint64_t crc_now(int fd, uint32_t handle)
{
	struct pln_gpu_op op = op_crc(handle, 0, MIB);
	uint64_t crc = 0;

	need(!gpu_run(fd, &op, 1, &crc), "CRC");
	return crc;
}

/*
 * Memory goes away while the device of the region does DMA: its next use fails,
 * and the memory is clean when it is somebody else's.
 */
static void test_live(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	void *zeros = calloc(1, MIB);
	uint32_t clean = crc32c(0, zeros, MIB);
	int i, j, bad = 0, dirty = 0, hit = 0;

	free(zeros);
	fill_peer();
	for (i = 0; i < 6; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b;
		char *p = dev_map(fd, &a);
		struct live live = { 0 };
		pthread_t thread;

		need(!acquire(0, p, MIB) && !cmd("get 0") &&
		     !cmd("map 0 %s", peer_pci), "a region");
		need(!pthread_create(&thread, NULL, live_dma, &live), "thread");
		for (j = 0; j < 5000 && atomic_load(&live.done) < 3; j++)
			usleep(1000);
		hit += crc_now(fd, a.handle) != clean;
		bad += gpu_free(fd, a.handle) != 0;
		b = gpu_alloc(fd, MIB);
		dirty += crc_now(fd, b.handle) != clean;
		pthread_join(thread, NULL);
		bad += live.err != ENODEV;
		dirty += crc_now(fd, b.handle) != clean;
		gpu_free(fd, b.handle);
		cmd("end 0");
		munmap(p, MIB);
	}
	check(hit == 6, "DMA goes on in a region");
	check(!bad, "free: the next DMA fails, the core was told");
	check(!dirty, "nothing lands in memory that is given out again");
	check(room_is(fd, &q), "nothing is left");
}

struct racer {
	pthread_barrier_t barrier;
	int fd;
	uint32_t handle;
	bool ok;
};

static void *race_free(void *arg)
{
	struct racer *r = arg;

	pthread_barrier_wait(&r->barrier);
	r->ok = !gpu_free(r->fd, r->handle);
	return NULL;
}

/* The region ends while its memory is freed */
static void test_race(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	int i, told = 0, wrong = 0, others = 0, rounds = 100;
	struct racer r = { .fd = fd };
	struct pln_gpu_alloc b = gpu_alloc(fd, UNIT);
	char *pb = dev_map(fd, &b);

	pthread_barrier_init(&r.barrier, NULL, 2);
	for (i = 0; i < rounds; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		char *p = dev_map(fd, &a);
		pthread_t thread;

		need(!acquire(0, p, UNIT) && !cmd("get 0") &&
		     !cmd("map 0 %s", peer_pci), "a region");
		r.handle = a.handle;
		need(!pthread_create(&thread, NULL, race_free, &r), "thread");
		pthread_barrier_wait(&r.barrier);
		wrong += cmd("end 0") != 0;
		/* A region that begins while the other's end is still told */
		wrong += acquire(1, pb, UNIT) || cmd("get 1");
		pthread_join(thread, NULL);
		others += region(1).invalidated;
		wrong += cmd("end 1") || !r.ok || region(0).acquired;
		told += region(0).invalidated;
		munmap(p, UNIT);
	}
	check(!wrong, "free and the region's end at once, %d times (%d told)",
	      rounds, told);
	check(told && told < rounds, "each of them has won");
	check(!others, "nobody else is told");
	gpu_free(fd, b.handle);
	munmap(pb, UNIT);
	check(room_is(fd, &q), "nothing is left");
	pthread_barrier_destroy(&r.barrier);
}

int main(int argc, char **argv)
{
	int fd, steps;

	need(argc == 5, "usage: pln_peermem GPU PEER FAR KIND");
	gpu_pci = argv[1];
	peer_pci = argv[2];
	far_pci = argv[3];
	old = !strcmp(argv[4], "old");
	nvidia = !strcmp(argv[4], "nvidia");

	fd = gpu_open();
	test_client();
	if (!nvidia)
		test_acquire(fd);
	test_order(fd);
	for (steps = 1; steps <= 5; steps++)
		test_free(fd, steps);
	test_kill(fd);
	test_reset(fd);
	/* Its callback may find what it uses freed */
	if (!nvidia) {
		test_live(fd);
		test_race(fd);
	}
	close(fd);
	return test_end();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: an RDMA core registers GPU memory through nvidia-peermem.
 *
 *	pln_peermem MODULE GPU-PCI-ADDRESS PEER-PCI-ADDRESS FAR-PCI-ADDRESS SECONDS
 *		MODULE: the file of nvidia-peermem, which is loaded
 *		SECONDS of each race, 0: none but that of frees and DMA
 *
 * The module peerlane_peercore_test is the core.  nvidia-peermem pins by the
 * callback flavour, or by the persistent one: from driver 560 on, and before where
 * the core takes its other client.  DMA of PEER
 * gets to the GPU, that of FAR does not.  PEER has an engine, of the module
 * peerlane_p2p_test.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "pln_test.h"

#define DIR "/sys/kernel/debug/peerlane_peercore_test/"

#include "pln_debugfs.h"
#include "pln_peer.h"

static bool persistent;

struct region {
	int registered, reachable, invalidated, entries;
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
		found = sscanf(line, "region %u registered %d reachable %d invalidated %d entries %d addr %llx bad %u size %lu",
			       &n, &r.registered, &r.reachable, &r.invalidated,
			       &r.entries, &r.addr, &r.bad, &r.size) >= 4 &&
			n == slot;
	}
	fclose(f);
	need(found, "region %u", slot);
	return r;
}

static int reg_for(unsigned int slot, const void *va, size_t len,
		   const char *pci)
{
	return cmd("reg %u %llu %zu %s", slot,
		   (unsigned long long)(uintptr_t)va, len, pci);
}

static int reg(unsigned int slot, const void *va, size_t len)
{
	return reg_for(slot, va, len, peer_pci);
}

static void test_client(void)
{
	char name[64], version[16];
	FILE *f = fopen(DIR "state", "r");

	need(f && fscanf(f, "client %63s version %15s", name, version) == 2,
	     "the client");
	fclose(f);
	check(!strcmp(name, "nv_mem"), "the client is registered: %s %s", name,
	      version);
}

/* Who pins by the callback flavour tells the core when memory goes away */
static void test_flavour(int fd, const char *flavour)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p = dev_map(fd, &a);

	need(!reg(0, p, UNIT), "a region");
	gpu_free(fd, a.handle);
	persistent = !region(0).invalidated;
	cmd("dereg 0");
	munmap(p, UNIT);
	need(room_is(fd, &q), "the memory is free again");
	check(!strcmp(flavour, persistent ? "persistent" : "callback"),
	      "it pins by the %s flavour", flavour);
}

static void test_reg(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT), b;
	char *p = dev_map(fd, &a), *host = malloc(UNIT), *all;
	struct region r;
	int buf, i;

	check_errno(reg(0, host, UNIT), ENXIO, "host memory is not the client's");
	check_errno(reg(0, p + 2 * UNIT, 2 * UNIT + 1), ENXIO,
		    "nor what goes past the end of GPU memory");
	check_errno(reg_for(0, p, UNIT, far_pci), ENOTSUPP,
		    "a device that has no way there");
	for (i = 0; i < 2; i++) {
		check(!reg(0, p + UNIT + 100, UNIT), "register an odd piece");
		r = region(0);
		check(r.entries == 2 && !r.bad && r.size == UNIT && r.addr,
		      "two pages around the piece, at %#llx", r.addr);
		check(!cmd("dereg 0") &&
		      gpu_query(fd).bar1_free == q.bar1_free, "and its end");
	}

	/* BAR1 is full */
	b = gpu_alloc(fd, q.bar1_size);
	buf = gpu_export(fd, b.handle, 0, b.size);
	all = mmap(NULL, b.size, PROT_READ, MAP_SHARED, buf, 0);
	need(all != MAP_FAILED, "fill BAR1");
	check(reg(0, p, 1) == -1, "no BAR1 (errno %d)", errno);
	munmap(all, b.size);
	close(buf);
	gpu_free(fd, b.handle);
	check(!reg(0, p, 1) && !cmd("dereg 0"), "there is BAR1 again");
	gpu_free(fd, a.handle);
	munmap(p, 4 * UNIT);
	free(host);
	check(room_is(fd, &q), "nothing is left");
}

/* The memory goes away under a region */
static void test_free(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	struct region r;

	need(!reg(0, p, MIB), "a region");
	check(!gpu_free(fd, a.handle), "free");
	r = region(0);
	check(r.invalidated == !persistent, "free: the core is %stold",
	      persistent ? "not " : "");
	if (persistent)
		check(gpu_query(fd).vram_free == q.vram_free - MIB,
		      "free: the region keeps the memory");
	else
		check(room_is(fd, &q), "free: memory and BAR1 are back");
	check(!cmd("dereg 0") && room_is(fd, &q), "the region ends later");
	munmap(p, MIB);
}

static bool hold_region(void)
{
	int own = gpu_open();
	struct pln_gpu_alloc a = gpu_alloc(own, MIB);

	return !reg(0, dev_map(own, &a), MIB);
}

/* A process is killed, whose region outlives its memory for a moment */
static void test_kill(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);

	end_holder(start_holder(hold_region));
	if (!persistent)
		check(room_is(fd, &q) && region(0).invalidated == 1,
		      "kill -9: the core is told, the memory is back");
	check(!cmd("dereg 0") && room_is(fd, &q),
	      "kill -9: the region ends later");
}

static void test_reset(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a), path[96];
	int f;

	need(!reg(0, p, MIB), "a region");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", gpu_pci);
	f = open(path, O_WRONLY);
	need(f >= 0 && write(f, "1", 1) == 1, "reset");
	close(f);
	check(region(0).invalidated == !persistent, "reset: the core is %stold",
	      persistent ? "not " : "");
	check(!cmd("dereg 0"), "reset: the region ends");
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

static uint64_t crc_now(int fd, uint32_t handle)
{
	struct pln_gpu_op op = op_crc(handle, 0, MIB);
	uint64_t crc = 0;

	need(!gpu_run(fd, &op, 1, &crc), "CRC");
	return crc;
}

/*
 * Memory goes away while the device of the region does DMA.  Told, the device
 * stops; not told, what it writes is in memory that stays the region's.
 */
static void test_live(int fd, int seconds)
{
	struct pln_gpu_query q = gpu_query(fd);
	void *zeros = calloc(1, MIB);
	uint32_t clean = crc32c(0, zeros, MIB);
	int rounds = 0, j, bad = 0, dirty = 0, hit = 0;
	double end = now() + seconds;
	static char data[UNIT];

	free(zeros);
	memset(data, 0xdd, UNIT);
	buffer(data, true);
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b;
		char *p = dev_map(fd, &a);
		struct live live = { 0 };
		pthread_t thread;

		need(!reg(0, p, MIB), "a region");
		need(!pthread_create(&thread, NULL, live_dma, &live), "thread");
		for (j = 0; j < 5000 && atomic_load(&live.done) < 3; j++)
			usleep(1000);
		hit += crc_now(fd, a.handle) != clean;
		bad += gpu_free(fd, a.handle) != 0;
		b = gpu_alloc(fd, MIB);
		dirty += crc_now(fd, b.handle) != clean;
		if (persistent)
			bad += cmd("dereg 0");
		pthread_join(thread, NULL);
		bad += live.err != ENODEV;
		dirty += crc_now(fd, b.handle) != clean;
		gpu_free(fd, b.handle);
		if (!persistent)
			bad += cmd("dereg 0");
		munmap(p, MIB);
		rounds++;
	} while (now() < end || rounds < 6);
	check(hit == rounds, "DMA goes on in a region, %d times", rounds);
	check(!bad, "free: DMA ends with %s",
	      persistent ? "the region" : "the memory");
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

/* The region ends while its memory is freed, for so many seconds */
static void test_race(int fd, int seconds)
{
	struct pln_gpu_query q = gpu_query(fd);
	int told = 0, wrong = 0, others = 0, rounds = 0;
	struct racer r = { .fd = fd };
	struct pln_gpu_alloc b = gpu_alloc(fd, UNIT);
	char *pb = dev_map(fd, &b);
	double end = now() + seconds;

	pthread_barrier_init(&r.barrier, NULL, 2);
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		char *p = dev_map(fd, &a);
		pthread_t thread;

		need(!reg(0, p, UNIT), "a region");
		r.handle = a.handle;
		need(!pthread_create(&thread, NULL, race_free, &r), "thread");
		pthread_barrier_wait(&r.barrier);
		wrong += cmd("dereg 0") != 0;
		/* A region that begins while the other's end is still told */
		wrong += reg(1, pb, UNIT);
		pthread_join(thread, NULL);
		others += region(1).invalidated;
		wrong += cmd("dereg 1") || !r.ok || region(0).registered;
		told += region(0).invalidated;
		munmap(p, UNIT);
		rounds++;
	} while (now() < end || rounds < 100);
	check(!wrong, "free and the region's end at once, %d times (%d told)",
	      rounds, told);
	/* Which of the two is first is nobody's to say */
	check(!persistent || !told, "a persistent pin: nobody is told");
	check(!others, "nobody else is told");
	gpu_free(fd, b.handle);
	munmap(pb, UNIT);
	check(room_is(fd, &q), "nothing is left");
	pthread_barrier_destroy(&r.barrier);
}

struct loader {
	const char *module;
	atomic_int rounds;	/* of the regions */
	atomic_bool end;
	atomic_int loads;
	int tries, bad;
};

/* The module goes and comes, each time when there have been new regions */
static void *reload(void *arg)
{
	struct loader *l = arg;
	int from, i;

	while (!atomic_load(&l->end)) {
		from = atomic_load(&l->rounds);
		for (i = 0; i < 30000 && !atomic_load(&l->end) &&
		     atomic_load(&l->rounds) - from <= l->loads % 5; i++)
			usleep(1000);
		if (atomic_load(&l->end))
			break;
		usleep(l->loads * 7919 % 1000);
		l->bad += i == 30000;
		/* Each region holds it */
		for (i = 0; i < 1000 && shell("rmmod nvidia_peermem 2>/dev/null"); i++)
			l->tries++;
		l->bad += i == 1000;
		l->bad += shell("insmod %s", l->module) != 0;
		l->loads++;
	}
	return NULL;
}

/*
 * nvidia-peermem is unloaded while regions begin and end and their memory is freed.
 * It lets go of itself when a region ends, before the core has done with it, and then
 * nothing of it may run: no callback either.
 */
static void test_unload(int fd, const char *module, int seconds)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct loader l = { .module = module };
	int wrong = 0, none = 0;
	double end = now() + seconds;
	struct racer r = { .fd = fd };
	pthread_t loader, thread;

	pthread_barrier_init(&r.barrier, NULL, 2);
	need(!pthread_create(&loader, NULL, reload, &l), "thread");
	do {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		char *p = dev_map(fd, &a);

		if (reg(0, p, UNIT)) {
			/* Whose memory it is nobody knows while there is no client */
			wrong += errno != ENXIO;
			none++;
			gpu_free(fd, a.handle);
			munmap(p, UNIT);
			continue;
		}
		r.handle = a.handle;
		need(!pthread_create(&thread, NULL, race_free, &r), "thread");
		pthread_barrier_wait(&r.barrier);
		wrong += cmd("dereg 0") != 0;
		pthread_join(thread, NULL);
		wrong += !r.ok || region(0).registered;
		munmap(p, UNIT);
		atomic_fetch_add(&l.rounds, 1);
	} while (now() < end || (l.loads < 3 && now() < end + 120));
	atomic_store(&l.end, true);
	pthread_join(loader, NULL);
	check(!wrong && l.rounds, "%d regions and frees, %d met no client",
	      l.rounds, none);
	check(!l.bad && l.loads > 2 && none,
	      "unloaded and loaded meanwhile, %d times; in use when tried %d times",
	      l.loads, l.tries);
	test_client();
	check(room_is(fd, &q), "nothing is left");
	pthread_barrier_destroy(&r.barrier);
}

int main(int argc, char **argv)
{
	int fd, seconds;

	need(argc == 7,
	     "usage: pln_peermem MODULE GPU PEER FAR SECONDS FLAVOUR");
	gpu_pci = argv[2];
	peer_pci = argv[3];
	far_pci = argv[4];
	seconds = atoi(argv[5]);

	fd = gpu_open();
	test_client();
	test_flavour(fd, argv[6]);
	test_reg(fd);
	test_free(fd);
	test_kill(fd);
	test_reset(fd);
	test_live(fd, seconds);
	/*
	 * A core that does not know the client's flags unmaps under the lock that
	 * invalidation takes, and put waits for the callback that invalidates: the
	 * two lock each other out, as they would with NVIDIA's driver.
	 */
	if (seconds) {
		test_race(fd, seconds);
		test_unload(fd, argv[1], seconds);
	}
	close(fd);
	return test_end();
}

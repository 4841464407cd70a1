// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: another driver pins GPU memory by nvidia_p2p_*, and it goes away.
 *
 *	pln_p2pabi NAME GPU-PCI-ADDRESS PEER-PCI-ADDRESS FAR-PCI-ADDRESS WAY
 *
 * NAME is the GPU's for the host side.  The module peerlane_p2p_test is the
 * other driver, PEER its device.  WAY of that: bus (addresses of the bus), iommu
 * (of the IOMMU) or refused; FAR is a device whose DMA must be refused, or "-".
 * Races take PLN_RACE_MS each; PLN_SEED is that of the random arguments.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "pln_test.h"

#include "pln_p2pabi.h"

#define UNBIND "echo %s > /sys/bus/pci/drivers/peerlane_gpu/unbind"
#define PARAMETERS "/sys/module/peerlane_gpu/parameters/"
#define ABI PARAMETERS "p2p_abi"

static const char *gpu_name;
static bool reachable;

/* As NVIDIA's driver, or a bit more */
static void be_strict(bool strict)
{
	int f = open(PARAMETERS "p2p_strict", O_WRONLY);

	need(f >= 0 && write(f, strict ? "1" : "0", 1) == 1, "p2p_strict");
	close(f);
}

static void test_arguments(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT);
	struct pln_gpu_alloc b = gpu_alloc(fd, 4 * UNIT);
	char *p, *odd, *host;

	/* Two allocations side by side */
	p = reserve(8 * UNIT);
	map_at(fd, p, a.mmap_offset, a.size);
	map_at(fd, p + a.size, b.mmap_offset, b.size);
	check_errno(bad("nocb", p), EINVAL, "get: no callback");
	check_errno(bad("notable", p), EINVAL, "get: no place for the table");
	check_errno(bad("token", p), EINVAL, "get: a token");
	check_errno(bad("space", p), EINVAL, "get: an address space");
	check_errno(get(0, p + 4096, UNIT, "plain"), EINVAL,
		    "get: an address in the middle of a page");
	check_errno(get(0, p, UNIT + 4096, "plain"), EINVAL,
		    "get: a length that is no multiple of 64 KiB");
	check_errno(get(0, p, 0, "plain"), EINVAL, "get: no length");
	check_errno(get(0, p, -(size_t)UNIT, "plain"), EINVAL,
		    "get: a length that wraps");
	check_errno(get(0, p, 5 * UNIT, "plain"), EINVAL,
		    "get: across the end of an allocation");
	check_errno(get(0, NULL, UNIT, "plain"), EINVAL, "get: nothing there");
	host = reserve(UNIT);
	check_errno(get(0, host, UNIT, "plain"), EINVAL,
		    "get: memory that is no GPU's");
	odd = map_at(fd, reserve(UNIT), a.mmap_offset + 4096, UNIT);
	check_errno(get(0, odd, UNIT, "plain"), EINVAL,
		    "get: an address that is not aligned in the memory");
	check_errno(getp(0, p, UNIT, 2), EINVAL, "get, persistent: flags");
	check_errno(getp(0, host, UNIT, 0), EINVAL,
		    "get, persistent: memory that is no GPU's");
	check_errno(bad("map", p), EINVAL, "map: no arguments");
	check_errno(bad("unmap", p), EINVAL, "unmap: no arguments");
	check(!bad("putnull", p), "put: no table is no error");

	/* Mappings in pieces mean the same memory */
	need(!munmap(p + 2 * UNIT, UNIT), "munmap");
	check_errno(get(0, p, 4 * UNIT, "plain"), EINVAL, "get: a hole");
	check(!get(0, p, 2 * UNIT, "plain") && !cmd("put 0"),
	      "what is before the hole");
	cmd("free 0");
	map_at(fd, p + 2 * UNIT, a.mmap_offset + 2 * UNIT, UNIT);
	check(!get(0, p, 4 * UNIT, "plain") && !cmd("put 0"),
	      "the hole filled: a table again");
	cmd("free 0");
	map_at(fd, p + 2 * UNIT, a.mmap_offset + 3 * UNIT, UNIT);
	check_errno(get(0, p, 4 * UNIT, "plain"), EINVAL,
		    "get: pieces of memory out of order");

	gpu_free(fd, a.handle);
	check_errno(get(0, p, UNIT, "plain"), EINVAL, "get: after free");
	gpu_free(fd, b.handle);
	check(room_is(fd, &q), "all failures leave nothing");
}

static void test_table(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	unsigned long long bar1 = bar1_start();
	char *p = dev_map(fd, &a), uuid[33];
	struct state s;
	int abi, i;

	for (i = 0; i < 16; i++)
		sprintf(uuid + 2 * i, "%02x", q.uuid[i]);
	for (abi = 1; abi <= 2; abi++) {
		int f = open(ABI, O_WRONLY);

		need(f >= 0 && write(f, abi == 1 ? "1" : "2", 1) == 1, ABI);
		check(write(f, "0", 1) == -1 && write(f, "3", 1) == -1,
		      "no other version can be chosen");
		close(f);
		check(!get(0, p + UNIT, 3 * UNIT, "plain"), "get");
		s = state(0);
		check(s.version == (abi == 1 ? 0x00010002u : 0x00020000u),
		      "version %d: %#x", abi, s.version);
		check(s.size == 1 && s.pages == 3 && !s.gaps && !s.flags,
		      "three pages of 64 KiB");
		check(s.phys >= bar1 && s.phys + 3 * UNIT <= bar1 + q.bar1_size,
		      "in BAR1 (%#llx)", s.phys);
		check(!strcmp(s.uuid, uuid), "the GPU's UUID");
		check(gpu_query(fd).bar1_free == q.bar1_free - 3 * UNIT,
		      "they take BAR1");
		check(!cmd("put 0"), "put");
		check(gpu_query(fd).bar1_free == q.bar1_free,
		      "it gives BAR1 back");
		check(!cmd("put 0"), "a late put is no error");
		cmd("free 0");
	}

	/* Not all of a large allocation fits */
	gpu_free(fd, a.handle);
	a = gpu_alloc(fd, q.bar1_size + UNIT);
	p = dev_map(fd, &a);
	check_errno(get(0, p, a.size, "plain"), ENOMEM, "get: BAR1 too small");
	check(!get(0, p, q.bar1_size, "plain") && !gpu_query(fd).bar1_free,
	      "all of BAR1");
	check_errno(getp(1, p, UNIT, 0), ENOMEM, "and no more");
	cmd("put 0");
	cmd("free 0");
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "nothing is left");
}

static void test_dma(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	struct pln_gpu_op op;
	struct state s;
	uint64_t crc;
	char *data;

	data = malloc(UNIT);
	need(data && !get(0, p + 2 * UNIT, 8 * UNIT, "plain"), "get");
	if (!reachable) {
		check_errno(cmd("map 0 %s", peer_pci), ENOTSUPP,
			    "map: the way to the peer is not certain");
	} else {
		check(!cmd("map 0 %s", peer_pci), "map");
		s = state(0);
		check(s.mapped && s.map_version == 0x00020003 &&
		      s.map_size == 1 && s.map_pages == 8 && s.map_peer,
		      "a mapping for the peer, of all pages");
		if (!strcmp(way, "bus"))
			check(s.dma == s.phys && !s.map_gaps,
			      "by addresses of the bus");
		else
			check(s.dma != s.phys, "by addresses of the IOMMU (%#llx)",
			      s.dma);

		pattern(data, UNIT, 42);
		buffer(data, true);
		check(!cmd("dma 0 write 5"), "the peer writes");
		op = op_crc(a.handle, 7 * UNIT, UNIT);
		check(!gpu_run(fd, &op, 1, &crc) &&
		      crc == crc32c(0, data, UNIT), "what arrived is right");
		memset(data, 0, UNIT);
		op = op_crc(a.handle, 6 * UNIT, UNIT);
		check(!gpu_run(fd, &op, 1, &crc) &&
		      crc == crc32c(0, data, UNIT), "and nowhere else");
		memset(data, 0x5a, UNIT);
		op = op_fill(a.handle, 4 * UNIT, UNIT, 1, 0xc3);
		need(!gpu_run(fd, &op, 1, NULL), "fill");
		check(!cmd("dma 0 read 2"), "the peer reads");
		buffer(data, false);
		for (crc = 0; crc < UNIT && data[crc] == (char)0xc3; crc++)
			;
		check(crc == UNIT, "what it read is right");
		check_errno(cmd("unmap 0 %s", gpu_pci), EINVAL,
			    "unmap: another device");
		check(state(0).mapped, "the mapping is still there");
		check(!cmd("unmap 0"), "unmap");
		check(!cmd("map 0 %s", peer_pci) && state(0).dma, "and again");
		check(!cmd("put 0"), "put takes the mapping along");
		check(!cmd("unmap 0"), "a late unmap is no error");
		check_errno(cmd("map 0 %s", peer_pci), EINVAL,
			    "map: after put");
		cmd("free 0");
	}
	cmd("put 0");
	cmd("free 0");

	if (strcmp(far_pci, "-")) {
		check(!get(0, p, UNIT, "plain"), "get");
		check_errno(cmd("map 0 %s", far_pci), ENOTSUPP,
			    "map: a device that has no way there");
		cmd("put 0");
		cmd("free 0");
	}
	check(!getp(0, p, UNIT, 1) && state(0).phys,
	      "persistent, through BAR1 by force");
	check_errno(cmd("map 0 %s", peer_pci), ENOTSUPP,
		    "it is for the CPU only");
	check(!cmd("putp 0 0"), "put");
	cmd("free 0");
	gpu_free(fd, a.handle);
	free(data);
	check(room_is(fd, &q), "nothing is left");
}

static void test_free(int fd, const char *how, unsigned int refused)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	struct state s;

	check(!get(0, p, MIB, how) && !get(1, p + UNIT, UNIT, how),
	      "%s: two tables of one allocation", how);
	if (reachable)
		check(!cmd("map 0 %s", peer_pci), "%s: map", how);
	check(!gpu_free(fd, a.handle), "%s: free under both", how);
	s = state(0);
	check(s.begun == 1 && s.ended == 1 && state(1).ended == 1,
	      "%s: each callback was called, once", how);
	check(s.entries == 16 && state(1).entries == 1,
	      "%s: the tables were whole until it returned", how);
	check(!s.inner, "%s: unmap and free did not fail", how);
	check(s.refused == refused, "%s: %u calls were refused", how, refused);
	check(room_is(fd, &q), "%s: tables, mapping and memory are gone", how);
	check(!cmd("put 0") && !cmd("put 1"), "%s: a late put is no error", how);
	if (reachable)
		check(!cmd("unmap 0"), "%s: nor a late unmap", how);
	check_errno(cmd("map 1 %s", peer_pci), EINVAL, "map: after the callback");
	cmd("free 0");
	cmd("free 1");
	munmap(p, MIB);
}

static void test_persistent(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b;
	char *p = dev_map(fd, &a), *data = malloc(UNIT);
	struct pln_gpu_op op;
	uint64_t crc;

	check(!getp(0, p, MIB, 0), "persistent: get");
	check_errno(cmd("put 0"), EINVAL, "persistent: the other put");
	check_errno(cmd("putp 0 1"), EINVAL, "persistent: put with flags");
	check(!gpu_free(fd, a.handle), "persistent: free under it");
	check(!state(0).begun && state(0).phys, "persistent: the table stays");
	check(gpu_query(fd).vram_free == q.vram_free - MIB,
	      "persistent: the memory belongs to nobody else");
	if (reachable) {
		check(!cmd("map 0 %s", peer_pci), "persistent: map after free");
		b = gpu_alloc(fd, MIB);
		memset(data, 0xaa, UNIT);
		buffer(data, true);
		check(!cmd("dma 0 write 0"), "persistent: DMA after free");
		memset(data, 0, UNIT);
		op = op_crc(b.handle, 0, UNIT);
		check(!gpu_run(fd, &op, 1, &crc) &&
		      crc == crc32c(0, data, UNIT),
		      "persistent: it does not hit new memory");
		memset(data, 0, UNIT);
		check(!cmd("dma 0 read 0"), "persistent: and back");
		buffer(data, false);
		check(data[0] == (char)0xaa && data[UNIT - 1] == (char)0xaa,
		      "persistent: it hit the old memory");
		gpu_free(fd, b.handle);
	}
	check(!cmd("putp 0 0") && room_is(fd, &q),
	      "persistent: put gives the memory back");
	check_errno(cmd("putp 0 0"), EINVAL, "persistent: put twice");
	cmd("free 0");
	munmap(p, MIB);

	a = gpu_alloc(fd, UNIT);
	p = dev_map(fd, &a);
	check(!get(0, p, UNIT, "plain"), "get");
	check_errno(cmd("putp 0 0"), EINVAL, "put: of the other flavour");
	check(state(0).phys && !cmd("put 0"), "the table stayed");
	cmd("free 0");
	gpu_free(fd, a.handle);
	free(data);
}

struct racer {
	pthread_barrier_t *barrier;
	int fd;
	uint32_t handle;
	unsigned int slot;
	bool ok;
};

static void *race_free(void *arg)
{
	struct racer *r = arg;

	if (r->barrier)
		pthread_barrier_wait(r->barrier);
	r->ok = !gpu_free(r->fd, r->handle);
	return NULL;
}

static void *race_put(void *arg)
{
	struct racer *r = arg;

	pthread_barrier_wait(r->barrier);
	r->ok = !cmd("put %u", r->slot);
	return NULL;
}

struct putter {
	pthread_t thread;
	atomic_int tid;
	bool ok;
};

static void *late_put(void *arg)
{
	struct putter *p = arg;

	atomic_store(&p->tid, gettid());
	p->ok = !cmd("put 0");
	return NULL;
}

/* Sleeps in the kernel until what it waits for has come, whatever is sent to it */
static bool is_waiting(struct putter *p)
{
	char path[64], line[512], *at;
	int i, f;

	for (i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
			 atomic_load(&p->tid));
		f = open(path, O_RDONLY);
		if (f >= 0) {
			ssize_t n = read(f, line, sizeof(line) - 1);

			close(f);
			line[n < 0 ? 0 : n] = 0;
			at = strrchr(line, ')');
			if (at && at[2] == 'D')
				return true;
		}
		usleep(10000);
	}
	return false;
}

static bool put_by_another(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(cmd("put 0") ? 1 : 0);
	need(waitpid(pid, &status, 0) == pid, "wait");
	return !status;
}

/* In strict mode a table is its process's */
static void test_put_elsewhere(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p = dev_map(fd, &a);

	need(!get(0, p, UNIT, "plain"), "get");
	check(put_by_another() && gpu_query(fd).bar1_free == q.bar1_free - UNIT,
	      "put by another process: no error, and the pages stay");
	check(!gpu_free(fd, a.handle) && state(0).ended == 1,
	      "free calls the callback");
	cmd("free 0");
	be_strict(false);
	a = gpu_alloc(fd, UNIT);
	munmap(p, UNIT);
	p = dev_map(fd, &a);
	need(!get(0, p, UNIT, "plain"), "get");
	check(put_by_another() && gpu_query(fd).bar1_free == q.bar1_free,
	      "not strict: anybody may put");
	be_strict(true);
	cmd("free 0");
	gpu_free(fd, a.handle);
	munmap(p, UNIT);
	check(room_is(fd, &q), "nothing is left");
}

/* Put comes while the callback runs */
static void test_put_meanwhile(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	struct racer f = { .fd = fd, .handle = a.handle };
	struct putter put = { .ok = false };
	char *p = dev_map(fd, &a);
	pthread_t thread;

	need(!get(0, p, MIB, "hold"), "get");
	need(!reachable || !cmd("map 0 %s", peer_pci), "map");
	need(!pthread_create(&thread, NULL, race_free, &f), "thread");
	check(begun(0), "free has called the callback");
	check(gpu_query(fd).vram_free == q.vram_free - MIB,
	      "until it returns the memory belongs to nobody else");
	check(!reachable || !cmd("unmap 0"), "unmap while the callback runs");
	check_errno(cmd("map 0 %s", peer_pci), EINVAL,
		    "map: while the callback runs");
	check(gpu_query(fd).bar1_free == q.bar1_free - MIB,
	      "and what the table names stays");
	need(!pthread_create(&put.thread, NULL, late_put, &put), "thread");
	check(is_waiting(&put) && !state(0).ended,
	      "put waits while the callback runs");
	cmd("go 0");
	pthread_join(put.thread, NULL);
	check(put.ok && state(0).put_after == 1,
	      "put returns when the callback has");
	pthread_join(thread, NULL);
	check(f.ok && room_is(fd, &q) && !state(0).inner &&
	      state(0).entries == 16, "then all is gone");
	cmd("free 0");
	munmap(p, MIB);
}

/* Races take no time of their own, unless PLN_RACE_MS gives them some */
static double race_end(void)
{
	const char *ms = getenv("PLN_RACE_MS");

	return now() + (ms ? atoi(ms) / 1000.0 : 0);
}

static void test_race(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	pthread_barrier_t barrier;
	int i, called = 0, wrong = 0;
	double end = race_end();

	pthread_barrier_init(&barrier, NULL, 3);
	for (i = 0; i < 100 || now() < end; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		struct racer f = { &barrier, fd, a.handle, 0, false };
		struct racer r = { &barrier, fd, 0, 0, false };
		char *p = dev_map(fd, &a);
		struct racer r2 = r;
		pthread_t tf, tr, tr2;
		struct state s;

		need(!get(0, p, UNIT, i & 1 ? "calls" : "plain"), "get");
		if (reachable)
			need(!cmd("map 0 %s", peer_pci), "map");
		need(!pthread_create(&tf, NULL, race_free, &f) &&
		     !pthread_create(&tr, NULL, race_put, &r) &&
		     !pthread_create(&tr2, NULL, race_put, &r2), "threads");
		pthread_join(tf, NULL);
		pthread_join(tr, NULL);
		pthread_join(tr2, NULL);
		s = state(0);
		wrong += !f.ok || !r.ok || !r2.ok || s.begun != s.ended ||
			 s.begun > 1 || s.inner;
		called += s.begun;
		cmd("free 0");
		munmap(p, UNIT);
	}
	check(!wrong, "free and two puts at once, %d times (%d callbacks)",
	      i, called);
	check(room_is(fd, &q), "nothing is left");
	pthread_barrier_destroy(&barrier);
}

#define RANDOM_THREADS	2
#define RANDOM_BUFS	4
#define RANDOM_ROUNDS	200

struct chance {
	char *base;		/* of RANDOM_BUFS allocations of 4 units */
	unsigned int slot, seed;
	atomic_uint pinned, mapped;
	atomic_bool *stop;
	char wrong[96];
};

static bool allowed(struct chance *c, const char *what, int ret, const int *errnos)
{
	int err = errno;

	if (!ret)
		return true;
	for (; *errnos; errnos++)
		if (err == *errnos)
			return false;
	snprintf(c->wrong, sizeof(c->wrong), "%s: %s", what, strerror(err));
	return false;
}

/* Pins, maps and puts what may be there, or not, or just going */
static void *random_calls(void *arg)
{
	static const int of_get[] = { EINVAL, ENOMEM, 0 };
	static const int of_map[] = { EINVAL, ENOTSUPP, 0 };
	static const int of_bad_put[] = { EINVAL, 0 };
	static const int of_put[] = { 0 };
	/*
	 * A table is freed behind its callback, and another thread may have one of the other
	 * flavour at that address by now, of the same memory
	 */
	static const int of_late_put[] = { EINVAL, 0 };
	struct chance *c = arg;
	unsigned int *s = &c->seed;

	while (!atomic_load(c->stop) && !*c->wrong) {
		char *va = c->base + rand_r(s) % (RANDOM_BUFS * 4) * UNIT;
		size_t len = (1 + rand_r(s) % 4) * (size_t)UNIT;
		bool persistent = rand_r(s) % 2;
		unsigned int flags = rand_r(s) % 8 ? rand_r(s) % 2 : rand_r(s);

		if (!(rand_r(s) % 8))
			va += rand_r(s) % UNIT;
		if (!(rand_r(s) % 8))
			len = rand_r(s) % 2 ? 0 : -(size_t)UNIT * (rand_r(s) % 3);
		if (!allowed(c, "get", persistent ?
			     cmd("getp %u %llu %zu %u", c->slot,
				 (unsigned long long)(uintptr_t)va, len, flags) :
			     get(c->slot, va, len, rand_r(s) % 2 ? "plain" : "calls"),
			     of_get))
			continue;
		c->pinned++;
		if (rand_r(s) % 2 &&
		    allowed(c, "map", cmd("map %u %s", c->slot,
					  rand_r(s) % 4 || !strcmp(far_pci, "-") ?
						peer_pci : far_pci), of_map)) {
			c->mapped++;
			if (rand_r(s) % 2)
				allowed(c, "unmap", cmd("unmap %u", c->slot), of_put);
		}
		if (!(rand_r(s) % 4))	/* refused, and the table stays */
			allowed(c, "put with bad flags", cmd(persistent ? "putp %u 2" :
							     "put %u 7", c->slot), of_bad_put);
		allowed(c, "put", cmd(persistent ? "putp %u 0" : "put %u",
				      c->slot), persistent ? of_put : of_late_put);
		cmd("free %u", c->slot);
	}
	return NULL;
}

/* Random arguments, while the memory comes and goes */
static void test_random(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct chance chance[RANDOM_THREADS];
	struct pln_gpu_alloc a[RANDOM_BUFS] = { 0 };
	pthread_t thread[RANDOM_THREADS];
	atomic_bool stop = false;
	double end = race_end(), limit = end + 30;
	const char *text = getenv("PLN_SEED");
	unsigned int i, n, seed = text ? strtoul(text, NULL, 0) : end;
	char *base = reserve(RANDOM_BUFS * 4 * UNIT), *wrong = "";
	unsigned int pinned = 0, mapped = 0;

	printf("# seed %u\n", seed);
	for (i = 0; i < RANDOM_THREADS; i++) {
		chance[i] = (struct chance){
			.base = base, .slot = i, .seed = seed + i, .stop = &stop,
		};
		need(!pthread_create(&thread[i], NULL, random_calls, &chance[i]),
		     "thread");
	}
	for (i = 0; i < RANDOM_ROUNDS || now() < end ||
	     ((!pinned || (reachable && !mapped)) && now() < limit); i++) {
		for (n = pinned = mapped = 0; n < RANDOM_THREADS; n++) {
			pinned += atomic_load(&chance[n].pinned);
			mapped += atomic_load(&chance[n].mapped);
		}
		n = i % RANDOM_BUFS;
		if (a[n].handle)
			need(!gpu_free(fd, a[n].handle), "free");
		a[n] = gpu_alloc(fd, 4 * UNIT);
		map_at(fd, base + n * 4 * UNIT, a[n].mmap_offset, 4 * UNIT);
	}
	atomic_store(&stop, true);
	for (i = pinned = mapped = 0; i < RANDOM_THREADS; i++) {
		pthread_join(thread[i], NULL);
		pinned += chance[i].pinned;
		mapped += chance[i].mapped;
		if (*chance[i].wrong)
			wrong = chance[i].wrong;
	}
	for (n = 0; n < RANDOM_BUFS; n++)
		gpu_free(fd, a[n].handle);
	munmap(base, RANDOM_BUFS * 4 * UNIT);
	check(pinned && (mapped || !reachable) && !*wrong,
	      "random arguments: %u tables, %u mappings %s", pinned, mapped, wrong);
	check(room_is(fd, &q), "nothing is left");
}

static bool closes;

static bool hold_tables(void)
{
	int own = gpu_open();
	struct pln_gpu_alloc a = gpu_alloc(own, MIB);
	char *p = dev_map(own, &a);

	if (get(0, p, MIB, "plain") || getp(1, p, UNIT, 0) ||
	    (reachable && cmd("map 0 %s", peer_pci)))
		return false;
	/* The mapping keeps the file, so it goes first */
	return !closes || (!munmap(p, MIB) && !close(own));
}

/* The process that owns the memory goes away, or closes its file */
static void test_gone(int fd, bool killed)
{
	const char *what = killed ? "kill -9" : "close";
	struct pln_gpu_query q = gpu_query(fd);
	pid_t pid;

	closes = !killed;
	pid = start_holder(hold_tables);
	if (killed)
		end_holder(pid);
	check(begun(0) && state(0).ended == 1, "%s: the callback was called",
	      what);
	check(!state(1).begun && gpu_query(fd).vram_free == q.vram_free - MIB,
	      "%s: the persistent table keeps the memory", what);
	check(!cmd("put 0") && !cmd("putp 1 0") && room_is(fd, &q),
	      "%s: put gives it back", what);
	cmd("free 0");
	cmd("free 1");
	if (!killed)
		end_holder(pid);
}

/* A child has what it inherits: device pointers only with a coherent window */
static void test_fork(int fd)
{
	bool coherent = gpu_query(fd).features & PLN_GPU_FEAT_COHERENT;
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p = dev_map(fd, &a);
	int status;
	pid_t pid;

	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(get(0, p, UNIT, "plain") || cmd("put 0") ? errno : 0);
	need(waitpid(pid, &status, 0) == pid, "wait");
	check(WIFEXITED(status) &&
	      WEXITSTATUS(status) == (coherent ? 0 : EINVAL),
	      "get in a forked child: %s", coherent ? "works" : "EINVAL");
	cmd("free 0");
	gpu_free(fd, a.handle);
	munmap(p, UNIT);
}

static void test_old(void)
{
	check(!cmd("old"), "what is not supported says so, no-ops are no-ops");
	check_errno(cmd("rsync registers"), ENODEV, "rsync: registers");
	check_errno(cmd("rsync version"), EINVAL, "rsync: another version");
	check_errno(cmd("rsync function"), EINVAL, "rsync: a function missing");
	check(!cmd("rsync register"), "rsync: register");
	check_errno(cmd("rsync register"), EBUSY, "rsync: another one");
	check(!cmd("rsync unregister") && !cmd("rsync register") &&
	      !cmd("rsync unregister"), "rsync: unregister, and again");
}

/* The GPU loses its memory */
static void test_lost(int fd, const char *what, const char *how)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	int status, reset = !strcmp(what, "reset");
	pid_t pid;

	need(!get(0, p, MIB, "plain") && !getp(1, p, UNIT, 0), "get");
	if (reachable)
		need(!cmd("map 0 %s", peer_pci), "map");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(shell(how, gpu_pci) != 0);
	check(begun(0) && state(0).ended == 1, "%s: the callback was called",
	      what);
	check(!cmd("put 0") && (!reachable || !cmd("unmap 0")),
	      "%s: late calls are no error", what);
	check_errno(cmd("map 0 %s", peer_pci), EINVAL, "map: of a lost table");
	cmd("free 0");
	if (!reset)
		check(!waitpid(pid, &status, WNOHANG),
		      "%s: it waits for the persistent table", what);
	else
		need(waitpid(pid, &status, 0) == pid && !status, "reset");
	check_errno(get(0, p, UNIT, "plain"), EINVAL, "get: lost memory");
	check_errno(cmd("map 1 %s", peer_pci), EIO,
		    "map: a persistent table of lost memory");
	check(!cmd("putp 1 0"), "%s: put of the persistent table", what);
	cmd("free 1");
	if (!reset) {
		check(waitpid(pid, &status, 0) == pid && !status,
		      "%s: then it ends", what);
	} else {
		gpu_free(fd, a.handle);
		check(room_is(fd, &q), "reset: nothing is left");
	}
	munmap(p, MIB);
}

int main(int argc, char **argv)
{
	char surprise[160];
	int fd;

	need(argc == 6, "usage: pln_p2pabi NAME GPU PEER FAR bus|iommu|refused");
	gpu_name = argv[1];
	gpu_pci = argv[2];
	peer_pci = argv[3];
	far_pci = argv[4];
	way = argv[5];
	reachable = strcmp(way, "refused");

	fd = gpu_open();
	test_arguments(fd);
	test_table(fd);
	test_dma(fd);
	be_strict(false);
	test_free(fd, "calls", 0);
	be_strict(true);
	test_free(fd, "calls", reachable ? 4 : 3);
	test_free(fd, "plain", 0);
	test_persistent(fd);
	test_put_meanwhile(fd);
	test_put_elsewhere(fd);
	test_race(fd);
	test_random(fd);
	test_gone(fd, false);
	test_gone(fd, true);
	test_fork(fd);
	test_old();
	test_lost(fd, "reset", "echo 1 > /sys/bus/pci/devices/%s/reset");
	test_lost(fd, "unbind", UNBIND);
	close(fd);
	need(!shell("echo %s > /sys/bus/pci/drivers/peerlane_gpu/bind",
		    gpu_pci), "bind");
	fd = reopen();
	snprintf(surprise, sizeof(surprise),
		 "host set %s surprise-removed true >/dev/null && " UNBIND,
		 gpu_name, "%s");
	test_lost(fd, "surprise removal", surprise);
	close(fd);
	return test_end();
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane: memory goes away while importers do DMA there; a part of
 * pln_dmabuf.
 */
#ifndef PLN_DMABUF_LIVE_H
#define PLN_DMABUF_LIVE_H

#include <stdatomic.h>
#include <time.h>

#define RACERS		4
#define RACE_MS		1000	/* unless PLN_RACE_MS says otherwise */
#define RACE_MOST_S	20	/* for the first DMA and the first refusal */

static void gpu_reset(void)
{
	char path[96];
	int f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", gpu_pci);
	f = open(path, O_WRONLY);
	need(f >= 0 && write(f, "1", 1) == 1, "reset");
	close(f);
}

static unsigned long long counter(const char *name)
{
	unsigned long long value;
	char path[96], key[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/peerlane_gpu/%s/counters",
		 gpu_pci);
	f = fopen(path, "r");
	need(f, "counters");
	while (fscanf(f, "%63s %llu", key, &value) == 2)
		if (!strcmp(key, name)) {
			fclose(f);
			return value;
		}
	need(false, "counter %s", name);
	return 0;
}

static unsigned long long quarantined(void)
{
	unsigned long long bytes = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vram_quarantined",
		 gpu_pci);
	f = fopen(path, "r");
	need(f && fscanf(f, "%llu", &bytes) == 1, "vram_quarantined");
	fclose(f);
	return bytes;
}

/* debugfs names who has the memory */
static bool held_by(const char *who)
{
	char path[96], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/peerlane_gpu/%s/quarantine",
		 gpu_pci);
	f = fopen(path, "r");
	need(f, "quarantine");
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, who) != NULL;
	fclose(f);
	return found;
}

struct live {
	atomic_int done;	/* DMAs */
	int err;		/* of the last one */
};

static void *live_dma(void *arg)
{
	struct live *live = arg;

	while (!cmd("dma 0 write %u", UNIT))
		atomic_fetch_add(&live->done, 1);
	live->err = errno;
	return NULL;
}

/* The next use fails cleanly, and nobody else's memory is hit */
static void test_live(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	static char data[UNIT];
	int i, j, dirty = 0, bad = 0;

	memset(data, 0xdd, UNIT);
	buffer(data, true);
	for (i = 0; i < 8; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b;
		int buf = gpu_export(fd, a.handle, 0, MIB);
		struct live live = { 0 };
		pthread_t thread;

		need(!attach(0, buf, peer_pci, i % 2 ? "auto" : "p2p") &&
		     !cmd("map 0"), "map");
		need(!pthread_create(&thread, NULL, live_dma, &live), "thread");
		for (j = 0; j < 2000 && atomic_load(&live.done) < 3; j++)
			usleep(1000);
		bad += atomic_load(&live.done) < 3;
		bad += gpu_free(fd, a.handle) != 0;
		/* The lowest that is free: what it was, when it is back */
		b = gpu_alloc(fd, MIB);
		dirty += !crc_is(fd, b.handle, 0, MIB, crc_of_zeros(MIB));
		pthread_join(thread, NULL);
		bad += live.err != ENODEV;
		dirty += !crc_is(fd, b.handle, 0, MIB, crc_of_zeros(MIB));
		gpu_free(fd, b.handle);
		bad += (cmd("unmap 0") == 0) == (i % 2);
		bad += cmd("detach 0") != 0;
		close(buf);
	}
	check(!bad, "free while DMA goes on: the next DMA fails with ENODEV");
	check(!dirty, "nothing lands in memory that is given out again");
	check(room_is(fd, &q), "nothing is left");
}

/* An importer that does not listen hurts nobody but itself */
static void test_careless(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);
	static char data[UNIT];

	memset(data, 0xdd, UNIT);
	buffer(data, true);
	check(!quarantined() && !held_by("size"), "nothing is in quarantine");
	need(!attach(0, buf, peer_pci, "careless") && !cmd("map 0"), "map");
	close(buf);
	gpu_free(fd, a.handle);
	check(state(0).invalidated == 1 && !cmd("dma 0 write 0"),
	      "an importer goes on with DMA after it was told");
	check(quarantined() == MIB, "sysfs: the memory is in quarantine");
	check(held_by(peer_pci), "debugfs: it is the peer that holds it");
	check(others_clean(fd), "what it wrote is in nobody's memory");
	check(!cmd("dma 0 write 0") && others_clean(fd), "and again");
	check(!cmd("unmap 0") && room_is(fd, &q), "unmap: it is free");
	check(!quarantined() && others_clean(fd), "and clean");
	cmd("detach 0");
}

static void test_careless_reset(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);
	unsigned long long lost;
	time_t start;

	need(!attach(0, buf, peer_pci, "careless") && !cmd("map 0"), "map");
	start = time(NULL);
	gpu_reset();
	check(time(NULL) - start < 20, "reset with a live mapping: it ends");
	check(state(0).invalidated == 1, "reset: the importer is told");
	check(quarantined() == MIB && held_by(peer_pci),
	      "reset: the memory is in quarantine");
	lost = counter("bar1-unmapped");
	cmd("dma 0 write 0");
	check(counter("bar1-unmapped") > lost,
	      "DMA after the reset goes nowhere");
	check(others_clean(fd), "no memory is hit");
	check(mmap(NULL, UNIT, PROT_READ, MAP_SHARED, buf, 0) == MAP_FAILED &&
	      errno == ENODEV, "mmap of the lost dma-buf: No such device");
	check(!cmd("unmap 0") && !cmd("detach 0"), "unmap, detach");
	close(buf);
	check(!gpu_free(fd, a.handle) && room_is(fd, &q), "nothing is left");
}

struct race {
	int fd;
	atomic_uint handle;	/* 0: none now */
	atomic_bool stop;
	atomic_int dmas, refused, told, wrong;
};

struct racer {
	struct race *race;
	unsigned int slot;
};

static bool expected(int ret, struct race *race)
{
	if (!ret)
		return true;
	if (errno != ENODEV && errno != ENOENT && errno != EIO) {
		printf("# unexpected: %s\n", strerror(errno));
		atomic_fetch_add(&race->wrong, 1);
	}
	atomic_fetch_add(&race->refused, 1);
	return false;
}

static void *race_importer(void *arg)
{
	struct racer *racer = arg;
	struct race *race = racer->race;
	unsigned int slot = racer->slot, handle;
	bool unmaps = slot % 2;
	int buf;

	while (!atomic_load(&race->stop)) {
		handle = atomic_load(&race->handle);
		if (!handle) {
			usleep(100);
			continue;
		}
		buf = gpu_export(race->fd, handle, 0, 2 * UNIT);
		if (!expected(buf < 0, race))
			continue;
		if (expected(attach(slot, buf, peer_pci,
				    unmaps ? "auto" : "p2p"), race)) {
			if (expected(cmd("map %u", slot), race)) {
				if (expected(cmd("dma %u write %u", slot,
						 UNIT), race))
					atomic_fetch_add(&race->dmas, 1);
				if (cmd("unmap %u", slot) && !unmaps)
					atomic_fetch_add(&race->wrong, 1);
			}
			atomic_fetch_add(&race->told, state(slot).invalidated);
			if (cmd("detach %u", slot))
				atomic_fetch_add(&race->wrong, 1);
		}
		close(buf);
	}
	return NULL;
}

static double race_seconds(void)
{
	const char *ms = getenv("PLN_RACE_MS");

	return (ms ? strtoul(ms, NULL, 10) : RACE_MS) / 1e3;
}

/* Importers come and go while memory is freed, or the GPU is reset */
static void test_race(int fd, bool reset)
{
	const char *what = reset ? "reset" : "free";
	struct pln_gpu_query q = gpu_query(fd);
	uint32_t clean = crc_of_zeros(2 * UNIT);
	struct race race = { .fd = fd };
	double start = now(), end = start + race_seconds();
	struct racer racers[RACERS];
	pthread_t threads[RACERS];
	int i, rounds = 0, dirty = 0;

	for (i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){ .race = &race, .slot = i };
		need(!pthread_create(&threads[i], NULL, race_importer,
				     &racers[i]), "thread");
	}
	/* On a busy machine the time may be over before both have happened */
	while (now() < end || ((!race.dmas || !race.refused) &&
			       now() < start + RACE_MOST_S)) {
		struct pln_gpu_alloc a = gpu_alloc(fd, 2 * UNIT);

		dirty += !crc_is(fd, a.handle, 0, 2 * UNIT, clean);
		atomic_store(&race.handle, a.handle);
		usleep(2000 + rounds % 7 * 3000);
		if (reset)
			gpu_reset();
		atomic_store(&race.handle, 0);
		need(!gpu_free(fd, a.handle), "free");
		rounds++;
	}
	atomic_store(&race.stop, true);
	for (i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	printf("# %s: %d rounds, %d DMAs, %d refused, %d times told\n", what,
	       rounds, race.dmas, race.refused, race.told);
	check(!race.wrong && race.dmas && race.refused,
	      "importers against %s: each call works or says why not", what);
	check(!dirty, "importers against %s: new memory is clean", what);
	check(room_is(fd, &q), "importers against %s: nothing is left", what);
}

#endif /* PLN_DMABUF_LIVE_H */

// SPDX-License-Identifier: MIT
/* Batches of reads and writes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "asleep.h"
#include "unit.h"

#define N	16
#define SIZE	KIB(64)

static CUfileIOParams_t param(CUfileHandle_t fh, CUfileOpcode_t op, void *base,
			      size_t size, off_t off, off_t buf_off)
{
	return (CUfileIOParams_t){
		.mode = CUFILE_BATCH, .fh = fh, .opcode = op,
		.u.batch = { base, off, buf_off, size },
	};
}

/* @n events, waiting for all of them; the number that came. */
static unsigned int take(CUfileBatchHandle_t b, CUfileIOEvents_t *e,
			 unsigned int n)
{
	struct timespec t = { .tv_sec = 20 };
	unsigned int got = n;

	return cuFileBatchIOGetStatus(b, n, &got, e, &t).err ? 0 : got;
}

void test_batch(void)
{
	char *data = malloc(N * SIZE), *g;
	CUfileIOParams_t p[N + 1];
	CUfileIOEvents_t e[N + 1];
	CUfileBatchHandle_t b, other_b;
	struct pln_file_stats s;
	CUfileHandle_t fh;
	unsigned int i, n, seen = 0;
	int fd;

	fresh(NULL);
	noise(data, N * SIZE);
	fd = make(path, 0, data, N * SIZE);
	fh = reg(fd);
	g = gpu(N * SIZE);
	is(cuFileBatchIOSetUp(&b, N).err, 0, "a batch is made");
	is(cuFileBatchIOSetUp(&other_b, 1).err, 0, "and another");
	check(b != other_b, "their handles differ");
	for (i = 0; i < N; i++) {
		p[i] = param(fh, CUFILE_READ, g, SIZE, (off_t)(i * SIZE),
			     (off_t)((N - 1 - i) * SIZE));
		p[i].cookie = (void *)(uintptr_t)(1u << i);
	}
	is(cuFileBatchIOSubmit(b, N, p, 0).err, 0, "reads are started");
	memset(p, 0, sizeof(p));	/* not used any more */
	n = take(b, e, N);
	is(n, N, "and all end");
	for (i = 0; i < n; i++)
		if (e[i].status == CUFILE_COMPLETE && e[i].ret == SIZE)
			seen |= (unsigned int)(uintptr_t)e[i].cookie;
	is(seen, (1u << N) - 1, "each with its cookie, once, and its bytes");
	for (i = 0; i < N; i++)
		if (memcmp(data + i * SIZE, mem(g) + (N - 1 - i) * SIZE, SIZE))
			break;
	is(i, N, "the data is right");
	s = stats_of(fh);
	is((long long)s.path[PLN_PATH_P2P].bytes_read, N * SIZE, "all by p2p");
	n = 4;
	is(cuFileBatchIOGetStatus(b, 2, &n, e, NULL).err, 0,
	   "nothing under way: no wait, though two are wanted");
	is(n, 0, "and no event comes twice");

	/* again, written, and of both kinds of memory */
	noise(mem(g), SIZE);
	p[0] = param(fh, CUFILE_WRITE, g, SIZE, SIZE, 0);
	p[1] = param(fh, CUFILE_READ, data, SIZE, 0, 0);
	p[2] = param(fh, CUFILE_READ, g, 0, 0, 0);
	p[3] = param(fh, CUFILE_READ, g, SIZE, N * SIZE - 100, SIZE);
	p[4] = param(fh, CUFILE_READ, g, SIZE, 2 * N * SIZE, 2 * SIZE);
	for (i = 0; i < 5; i++)
		p[i].cookie = &p[i];
	is(cuFileBatchIOSubmit(b, 5, p, 0).err, 0, "a batch is used again");
	is(take(b, e, 5), 5, "five end");
	for (i = 0, seen = 0; i < 5; i++) {
		static const size_t want[] = { SIZE, SIZE, 0, 100, 0 };
		size_t at = (size_t)((CUfileIOParams_t *)e[i].cookie - p);

		if (e[i].status == CUFILE_COMPLETE && e[i].ret == want[at])
			seen |= 1u << at;
	}
	is(seen, 31, "a write, host memory, nothing, end of the file, behind it");
	is(pread(fd, data, SIZE, SIZE), SIZE, "what was written is read");
	check(!memcmp(data, mem(g), SIZE), "and is right");

	/* in parts */
	for (i = 0; i < 4; i++)
		p[i] = param(fh, CUFILE_READ, g, SIZE, 0, (off_t)(i * SIZE));
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 0, "four more");
	is(take(b, e, 3), 3, "three events are asked for");
	is(take(b, e, 4), 1, "and then there is one left");
	cuFileBatchIODestroy(b);
	cuFileBatchIODestroy(b);
	n = 1;
	is(cuFileBatchIOGetStatus(b, 0, &n, e, NULL).err, 5041,
	   "a batch that was given up");
	is(cuFileBatchIOSubmit(b, 1, p, 0).err, 5040, "takes nothing");
	cuFileBatchIODestroy(other_b);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

void test_batch_errors(void)
{
	struct timespec bad = { .tv_nsec = 1000000000 }, none = { 0 };
	char *data = calloc(1, 2 * SIZE), *g;
	CUfileHandle_t fh, ro, wo;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[4];
	CUfileIOEvents_t e[4];
	unsigned int i, n;
	int fd, fd_ro, fd_wo;

	fresh("{\"properties\":{\"io_batchsize\":4},"
	      "\"peerlane\":{\"prefer_iouring\":false}}");
	fd = make(path, 0, data, 2 * SIZE);
	fd_ro = open(path, O_RDONLY);
	fd_wo = open(path, O_WRONLY);
	fh = reg(fd);
	ro = reg(fd_ro);
	wo = reg(fd_wo);
	g = gpu(2 * SIZE);
	is(cuFileBatchIOSetUp(NULL, 1).err, 5022, "nowhere to put a batch");
	is(cuFileBatchIOSetUp(&b, 0).err, 5022, "a batch of nothing");
	is(cuFileBatchIOSetUp(&b, 5).err, 5022, "more than io_batchsize");
	is(cuFileBatchIOSetUp(&b, 4).err, 0, "as many as io_batchsize");
	for (i = 0; i < 4; i++)
		p[i] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 0, p, 0).err, 5040, "no entries");
	is(cuFileBatchIOSubmit(b, 1, NULL, 0).err, 5040, "no array");
	is(cuFileBatchIOSubmit(b, 5, p, 0).err, 5040, "more than it holds");
	is(cuFileBatchIOSubmit((void *)5, 1, p, 0).err, 5040, "no such batch");
	p[3].mode = 2;
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "another mode");
	p[3] = param(fh, 7, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "another opcode");
	p[3] = param((void *)4, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "no such file");
	p[3] = param(fh, CUFILE_READ, NULL, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "no memory");
	p[3] = param(fh, CUFILE_READ, g, 4096, -4096, 0);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "a negative offset");
	p[3] = param(fh, CUFILE_READ, g, 4096, 0, -4096);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "one in memory");
	p[3] = param(wo, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "a file to write only");
	p[3] = param(ro, CUFILE_WRITE, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "a file to read only");
	is(cuFileBufRegister(g, 4096, 0).err, 0, "a buffer is registered");
	p[3] = param(fh, CUFILE_READ, g, 4096, 0, 4096);
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 5040, "beyond the buffer");
	is((long long)stats_of(fh).path[PLN_PATH_P2P].reads, 0,
	   "nothing of what was refused was done");
	cuFileBufDeregister(g);
	p[3] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 3, p, 9).err, 0, "three of four, with flags");
	is(cuFileBatchIOSubmit(b, 2, p, 0).err, 5040, "two more have no room");
	is(cuFileBatchIOSubmit(b, 1, p + 3, 0).err, 0, "one has");
	is(take(b, e, 4), 4, "four end");

	n = 4;
	is(cuFileBatchIOGetStatus(b, 5, &n, e, NULL).err, 5022,
	   "more wanted than there is room for");
	is(cuFileBatchIOGetStatus(b, 0, NULL, e, NULL).err, 5022, "no number");
	is(cuFileBatchIOGetStatus(b, 0, &n, NULL, NULL).err, 5022, "no room");
	is(cuFileBatchIOGetStatus(b, 0, &n, e, &bad).err, 5022, "no such time");

	mock.media_errno = EIO;
	mock.bad_to = 4096;
	is(cuFileBatchIOSubmit(b, 1, p, 0).err, 0, "a bad block");
	is(take(b, e, 1), 1, "has an event");
	is(e[0].status, CUFILE_FAILED, "that says so");
	is((ssize_t)e[0].ret, -EIO, "and why");
	mock.bad_to = 0;
	p[0] = param(fh, CUFILE_READ, g, 4096, 0, 2 * SIZE);
	is(cuFileBatchIOSubmit(b, 1, p, 0).err, 0, "beyond the memory");
	is(take(b, e, 1), 1, "has an event");
	check(e[0].status == CUFILE_FAILED && (ssize_t)e[0].ret < -5000,
	      "with the library's code");

	mock.hold_io = true;
	p[0] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 1, p, 0).err, 0, "a slow one");
	n = 4;
	is(cuFileBatchIOGetStatus(b, 1, &n, e, &none).err, 0, "no time to wait");
	is(n, 0, "so it has not ended");
	mock.hold_io = false;
	is(take(b, e, 1), 1, "later it has");
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(ro);
	cuFileHandleDeregister(wo);
	close(fd);
	close(fd_ro);
	close(fd_wo);
	gpu_free(g);
	free(data);
}

void test_batch_cancel(void)
{
	char *data = calloc(1, SIZE), *g;
	unsigned int i, n, done = 0, gone = 0, other_n = 0;
	CUfileStatsLevel1_t s;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[32];
	CUfileIOEvents_t e[32];
	CUfileHandle_t fh;
	int fd;

	fresh("{\"peerlane\":{\"max_io_threads\":2,\"prefer_iouring\":false},"
	      "\"profile\":{\"cufile_stats\":1}}");
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	is(cuFileBatchIOCancel((void *)3).err, 0, "no such batch to cancel");
	cuFileBatchIOSetUp(&b, 32);
	for (i = 0; i < 32; i++)
		p[i] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	mock.hold_io = true;
	is(cuFileBatchIOSubmit(b, 32, p, 0).err, 0, "thirty-two slow ones");
	while (!mock.in_io)
		usleep(100);
	is(cuFileBatchIOCancel(b).err, 0, "are cancelled");
	mock.hold_io = false;
	n = take(b, e, 32);
	is(n, 32, "and all have events");
	for (i = 0; i < n; i++) {
		if (e[i].status == CUFILE_COMPLETE && e[i].ret == 4096)
			done++;
		else if (e[i].status == CUFILE_CANCELED && !e[i].ret)
			gone++;
		else
			other_n++;
	}
	check(done && gone && !other_n,
	      "what had begun is done (%u), the rest is cancelled (%u)", done,
	      gone);
	cuFileGetStatsL1(&s);
	is(s.batch_completion_lat_avg_us ?
	   (long long)(s.batch_completion_lat_sum_us /
		       s.batch_completion_lat_avg_us) : 0, done,
	   "the time that entries take is of those that were done");
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 0, "the batch goes on");
	is(take(b, e, 4), 4, "and its transfers end");

	mock.slow_ms = 500;
	is(cuFileBatchIOSubmit(b, 32, p, 0).err, 0, "slow ones again");
	while (!mock.in_io)
		usleep(100);
	cuFileBatchIODestroy(b);
	is(mock.in_io, 0, "who destroys a batch waits for what had begun");
	check(mock.most_in_io <= 2, "two threads did all of it");
	mock.slow_ms = 0;
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

#define THREADS	6
#define ROUNDS	60

static struct {
	CUfileBatchHandle_t batch;
	CUfileHandle_t fh;
	char *g;
	_Atomic unsigned int ended, wrong, sent;
} t;

static void *submit_some(void *arg)
{
	CUfileIOParams_t p[3];
	unsigned int i, k;

	for (i = 0; i < ROUNDS; ) {
		for (k = 0; k < 3; k++)
			p[k] = param(t.fh, CUFILE_READ, t.g, 4096,
				     (off_t)(k * 4096), (off_t)(k * 4096));
		if (cuFileBatchIOSubmit(t.batch, 3, p, 0).err) {
			usleep(50);
			continue;
		}
		t.sent += 3;
		i++;
	}
	return arg;
}

static void *take_some(void *arg)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	CUfileIOEvents_t e[5];
	unsigned int i, n;

	while (t.ended < THREADS * ROUNDS * 3) {
		n = 5;
		if (cuFileBatchIOGetStatus(t.batch, 1, &n, e, &ms).err)
			t.wrong++;
		for (i = 0; i < n; i++)
			if (e[i].status != CUFILE_COMPLETE || e[i].ret != 4096)
				t.wrong++;
		t.ended += n;
	}
	return arg;
}

/* Who waits for all is not woken by each */
void test_batch_wakes(void)
{
	char *data = calloc(1, SIZE), *g;
	struct rusage before, after;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[N];
	CUfileIOEvents_t e[N];
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	fresh("{\"peerlane\":{\"prefer_iouring\":false,\"max_io_threads\":1}}");
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	cuFileBatchIOSetUp(&b, N);
	for (i = 0; i < N; i++)
		p[i] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	mock.slow_ms = 20;	/* time to wake, and to sleep again */
	is(cuFileBatchIOSubmit(b, N, p, 0).err, 0, "reads one after the other");
	getrusage(RUSAGE_THREAD, &before);
	is(take(b, e, N), N, "all of them are waited for");
	getrusage(RUSAGE_THREAD, &after);
	mock.slow_ms = 0;
	check(after.ru_nvcsw - before.ru_nvcsw < N / 2, "in one sleep");
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

void test_batch_threads(void)
{
	char *data = malloc(SIZE);
	pthread_t in[THREADS], out[3];
	unsigned int i;
	int fd;

	fresh(NULL);
	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	memset(&t, 0, sizeof(t));
	t.fh = reg(fd);
	t.g = gpu(SIZE);
	cuFileBatchIOSetUp(&t.batch, 20);
	for (i = 0; i < THREADS; i++)
		pthread_create(&in[i], NULL, submit_some, NULL);
	for (i = 0; i < 3; i++)
		pthread_create(&out[i], NULL, take_some, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_join(in[i], NULL);
	for (i = 0; i < 3; i++)
		pthread_join(out[i], NULL);
	is(t.ended, t.sent, "many threads on a batch: each transfer ends once");
	is(t.wrong, 0, "and well");
	check(!memcmp(mem(t.g), data, 3 * 4096), "with the right data");
	cuFileBatchIODestroy(t.batch);
	cuFileHandleDeregister(t.fh);
	close(fd);
	gpu_free(t.g);
	free(data);
}

void test_batch_close(void)
{
	char *data = calloc(1, SIZE), *g;
	CUfileBatchHandle_t b, again;
	CUfileIOParams_t p[8];
	CUfileIOEvents_t e[8];
	CUfileHandle_t fh;
	unsigned int i, n = 1;
	int fd;

	fresh("{\"peerlane\":{\"prefer_iouring\":false}}");
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	cuFileBatchIOSetUp(&b, 8);
	for (i = 0; i < 8; i++)
		p[i] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	mock.slow_ms = 30;
	is(cuFileBatchIOSubmit(b, 8, p, 0).err, 0, "eight are started");
	cuFileHandleDeregister(fh);
	is(take(b, e, 2), 2, "they end well though the handle is given up");
	check(e[0].status == CUFILE_COMPLETE, "they do");
	is(cuFileDriverClose().err, 0, "the library is closed");
	is(mock.in_io, 0, "after the last of them");
	is(cuFileBatchIOGetStatus(b, 0, &n, e, NULL).err, 5041,
	   "batches end with it");
	is(cuFileBatchIOSubmit(b, 1, p, 0).err, 5040, "and take nothing");
	is(cuFileUseCount(), 0, "and do not open it");
	is(cuFileBatchIOSetUp(&again, 1).err, 0, "a new one does");
	is(cuFileUseCount(), 1, "so it does");
	check(again != b, "and has another handle");
	close(fd);
	gpu_free(g);
	free(data);
}

/* Of what goes p2p, all at once. */
void test_batch_ring(void)
{
	char *data = malloc(MIB(2)), *g, *got = malloc(MIB(2));
	const uintptr_t top = (uintptr_t)1 << 63;
	CUfileStatsLevel1_t before, after;
	unsigned int i, n, good = 0;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[N];
	CUfileIOEvents_t e[N];
	CUfileHandle_t fh;
	uint64_t calls;
	int fd, turn;

	fresh("{\"profile\":{\"cufile_stats\":1}}");
	noise(data, MIB(2));
	fd = make(path, 0, data, MIB(2));
	fh = reg(fd);
	g = gpu(MIB(2));
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p is found to work");
	cuFileBatchIOSetUp(&b, N);
	for (turn = 0; turn < 3; turn++) {
		memset(mem(g), 0, MIB(2));
		for (i = 0; i < N; i++)
			p[i] = param(fh, CUFILE_READ, g, SIZE,
				     (off_t)((N - 1 - i) * SIZE),
				     (off_t)((N - 1 - i) * SIZE));
		cuFileGetStatsL1(&before);
		is(cuFileBatchIOSubmit(b, N, p, 0).err, 0, "reads in a ring");
		n = take(b, e, N);
		for (good = i = 0; i < n; i++)
			good += e[i].status == CUFILE_COMPLETE &&
				e[i].ret == SIZE;
		is(good, N, "all end well");
		check(!memcmp(mem(g), data, N * SIZE), "with the right data");
		cuFileGetStatsL1(&after);
		is((long long)(after.batch_iouring_submit_ops.ok -
			       before.batch_iouring_submit_ops.ok), N,
		   "all of them in the ring");
	}
	is(mock.p2p_calls, 1, "and none by a call of a thread");
	is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read,
	   3 * N * SIZE + SIZE, "all counted as p2p");

	noise(mem(g), N * SIZE);
	for (i = 0; i < N; i++)
		p[i] = param(fh, CUFILE_WRITE, g, SIZE, (off_t)(i * SIZE),
			     (off_t)(i * SIZE));
	cuFileBatchIOSubmit(b, N, p, 0);
	is(take(b, e, N), N, "writes in the ring");
	check(pread(fd, got, N * SIZE, 0) == N * SIZE &&
	      !memcmp(got, mem(g), N * SIZE), "are in the file");

	/* what is not for the ring, and what the ring cannot do */
	p[0] = param(fh, CUFILE_READ, g, 1000, 0, 0);
	p[1] = param(fh, CUFILE_READ, g, SIZE, MIB(2) - 4096, SIZE);
	p[2] = param(fh, CUFILE_READ, g, SIZE, 0, 2 * SIZE);
	p[3] = param(fh, CUFILE_READ, got, SIZE, 0, 0);
	cuFileGetStatsL1(&before);
	cuFileBatchIOSubmit(b, 4, p, 0);
	is(take(b, e, 4), 4, "odd, at the end, whole, and to host memory");
	cuFileGetStatsL1(&after);
	is((long long)(after.batch_iouring_submit_ops.ok -
		       before.batch_iouring_submit_ops.ok), 1,
	   "one of them in the ring");
	for (i = 0, n = 0; i < 4; i++)
		n += (unsigned int)e[i].ret;
	is(n, 1000 + 4096 + 2 * SIZE, "and all have their bytes");
	/* base and offset together are memory of the GPU, past the end of all */
	p[0] = param(fh, CUFILE_READ, g, SIZE, 0, 0);
	p[0].u.batch.devPtr_base = (void *)(top + 2 * (uintptr_t)g);
	p[0].u.batch.devPtr_offset = (off_t)(top - (uintptr_t)g);
	cuFileBatchIOSubmit(b, 1, p, 0);
	is(take(b, e, 1), 1, "an address beyond the last one");
	is((ssize_t)e[0].ret, -5022, "is none");

	/* the file is shorter than it was when it was looked at */
	for (i = 0; i < N; i++)
		p[i] = param(fh, CUFILE_READ, g, SIZE, (off_t)(i * SIZE),
			     (off_t)(i * SIZE));
	for (turn = 0, good = 0; turn < 20; turn++) {
		if (ftruncate(fd, MIB(2)))
			abort();
		cuFileBatchIOSubmit(b, N, p, 0);
		if (ftruncate(fd, 4096))
			abort();
		n = take(b, e, N);
		good += n == N;
		for (i = 0; i < n; i++)
			good -= e[i].status != CUFILE_COMPLETE;
	}
	is(good, 20, "a file that is cut short meanwhile: events, no errors");
	if (ftruncate(fd, MIB(2)))
		abort();
	memset(mem(g), 0, N * SIZE);
	calls = mock.p2p_calls;
	cuFileBatchIOSubmit(b, N, p, 0);
	is(cuFileDriverClose().err, 0, "closed with requests in the ring");
	check(mock.p2p_calls == calls && pread(fd, got, N * SIZE, 0) == N * SIZE &&
	      !memcmp(mem(g), got, N * SIZE), "they were there, and ended");
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
	free(got);
}

/* Reads of the whole file in a batch; how many of them ended well. */
static unsigned int read_all(CUfileBatchHandle_t b, CUfileHandle_t fh, char *g)
{
	CUfileIOParams_t p[N];
	CUfileIOEvents_t e[N];
	unsigned int i, n, good = 0;

	memset(mem(g), 0, N * SIZE);
	for (i = 0; i < N; i++)
		p[i] = param(fh, CUFILE_READ, g, SIZE, (off_t)(i * SIZE),
			     (off_t)(i * SIZE));
	if (cuFileBatchIOSubmit(b, N, p, 0).err)
		return 0;
	n = take(b, e, N);
	for (i = 0; i < n; i++)
		good += e[i].status == CUFILE_COMPLETE && e[i].ret == SIZE;
	return good;
}

void forbid(unsigned int nr, int err)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

struct forbidden {
	unsigned int nr, good;
	int err;
	CUfileBatchHandle_t b;
	CUfileHandle_t fh;
	char *g;
};

static void *without(void *arg)
{
	struct forbidden *f = arg;

	forbid(f->nr, f->err);
	f->good = read_all(f->b, f->fh, f->g);
	return arg;
}

/*
 * The descriptors of this process that lead to @name and have @flags become @to, or are
 * closed when that is negative; their number.  @to has the library's mark, so that it is
 * used.
 */
static unsigned int redirect(const char *name, int flags, int to)
{
	char link[64], target[256];
	unsigned int n = 0;
	ssize_t len;
	int i;

	if (to >= 0 && fcntl(to, F_SETSIG, SIGURG))
		abort();
	for (i = 3; i < 1024; i++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", i);
		len = readlink(link, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (!strcmp(target, name) && (fcntl(i, F_GETFL) & flags) == flags)
			n += to < 0 ? !close(i) : dup2(to, i) == i;
	}
	return n;
}

static double cpu_time(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* A ring that cannot be had, ends to work, or is small: the threads do the rest. */
void test_batch_no_ring(void)
{
	static const char one[] = "{\"execution\":{\"max_io_queue_depth\":1}}";
	static const char info[] = "{\"logging\":{\"level\":\"INFO\"}}";
	/* by a filter of system calls, or a security module */
	static const struct {
		unsigned int nr;
		int err;
		const char *words;
	} how[] = {
		{ __NR_io_uring_setup, EPERM, "no io_uring: Operation not permitted; batches" },
		{ __NR_io_uring_setup, EACCES, "no io_uring: Permission denied; batches" },
		{ __NR_io_uring_enter, EPERM,
		  "io_uring does not work any more: Operation not permitted; batches" },
		{ __NR_io_uring_enter, EACCES,
		  "io_uring does not work any more: Permission denied; batches" },
	};
	const unsigned int n = sizeof(how) / sizeof(how[0]);
	char *data = malloc(N * SIZE), *g = gpu(N * SIZE);
	struct forbidden f;
	unsigned int turn;
	pthread_t thread;
	double began;
	int fd;

	noise(data, N * SIZE);
	fd = make(path, 0, data, N * SIZE);
	for (turn = 0; turn <= n; turn++) {
		fresh(turn == n ? one : info);
		f = (struct forbidden){ .fh = reg(fd), .g = g };
		is(cuFileRead(f.fh, g, SIZE, 0, 0), SIZE, "p2p works");
		cuFileBatchIOSetUp(&f.b, N);
		began = cpu_time();
		if (turn < n) {
			f.nr = how[turn].nr;
			f.err = how[turn].err;
			pthread_create(&thread, NULL, without, &f);
			pthread_join(thread, NULL);
			is(f.good, N, "a call is forbidden: the threads do all");
			is(log_count("io_uring"), 1, "one line of the log");
			check(log_has(how[turn].words), "says: %s", how[turn].words);
		} else {
			is(read_all(f.b, f.fh, g), N, "a ring of one");
		}
		check(!memcmp(mem(g), data, N * SIZE), "the data is right");
		check(cpu_time() - began < 2, "nobody spins");
		is(read_all(f.b, f.fh, g), N, "once more");
		cuFileBatchIODestroy(f.b);
		is(cuFileDriverClose().err, 0, "the close comes to an end");
	}
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
}

/* ---- a program that closes all descriptors, as daemons do ---- */

#define OWN	64

/*
 * Those that the program opens then are its own: of another file, of a pipe, none, or of the
 * same file.
 */
enum own { FILES, PIPES, NONE, READS, DIRECTS, APPENDS, ALIKE, OWNS };
/* What is wrong */
enum { NO_TRIAL = 1, NEW_FAILS = 2, OLD_WORKS = 4, MOVED = 8, CLOSED = 16 };

/* In a process of its own */
static int closes_all(enum own which)
{
	static char data[N * SIZE], was[SIZE], now[SIZE];
	int own[OWN], end[2] = { -1, -1 }, fd, wrong = 0, bytes = 0;
	struct stat st[OWN], then;
	CUfileBatchHandle_t b;
	CUfileHandle_t fh, old;
	unsigned int i;
	char *g;

	alarm(20);
	fresh(NULL);
	/* with the devices of the kernel module, and of NVIDIA's drivers */
	cuFileDriverClose();
	mock.module = PLN_ABI_VERSION;
	setenv("PEERLANE_NVIDIA_UVM", "1", 1);
	if (cuFileDriverOpen().err)
		return NO_TRIAL;
	mock.nvidia = "580.95.05";
	mock.kernel = "6.14.11-generic";
	mock.vmm = true;
	noise(data, sizeof(data));
	noise(was, sizeof(was));
	old = reg(make(path, 0, data, sizeof(data)));
	close(make(other, 0, was, sizeof(was)));
	g = gpu(N * SIZE);
	cuFileBatchIOSetUp(&b, N);
	if (cuFileRead(old, g, SIZE, 0, 0) != SIZE || read_all(b, old, g) != N ||
	    mock.nv_open != 2)
		return NO_TRIAL;

	if (syscall(SYS_close_range, 3, ~0u, 0))
		return NO_TRIAL;
	if (which == PIPES && (pipe2(end, O_NONBLOCK) ||
			       write(end[1], was, 4096) != 4096))
		return NO_TRIAL;
	for (i = 0; i < OWN && which != NONE; i++) {
		own[i] = which == PIPES ? dup(end[0]) :
			 open(which == FILES ? other : path,
			      which == READS ? O_RDONLY : which == DIRECTS ? O_RDWR | O_DIRECT :
			      which == APPENDS ? O_RDWR | O_APPEND : O_RDWR);
		if (fstat(own[i], &st[i]) || (which != PIPES && lseek(own[i], i, SEEK_SET) != i))
			return NO_TRIAL;
	}
	fd = open(path, O_RDWR);
	fh = reg(fd);
	if (cuFileRead(fh, g, SIZE, 0, 0) != SIZE || read_all(b, fh, g) != N ||
	    memcmp(mem(g), data, sizeof(data)))
		wrong |= NEW_FAILS;
	if (cuFileRead(old, g, SIZE, 0, 0) >= 0)
		wrong |= OLD_WORKS;
	if (cuFileWrite(old, g, SIZE, 0, 0) >= 0)
		wrong |= OLD_WORKS;
	if (read_all(b, old, g))
		wrong |= OLD_WORKS;
	cuFileHandleDeregister(old);
	if (read_all(b, fh, g) != N)
		wrong |= NEW_FAILS;
	cuFileBatchIODestroy(b);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();

	for (i = 0; i < OWN && which != NONE; i++)
		if (fstat(own[i], &then) || then.st_ino != st[i].st_ino ||
		    (which != PIPES && lseek(own[i], 0, SEEK_CUR) != i))
			wrong |= CLOSED;
	fd = open(other, O_RDONLY);
	if (read(fd, now, sizeof(now)) != sizeof(now) || memcmp(was, now, sizeof(was)))
		wrong |= MOVED;
	if (which == PIPES && (ioctl(end[0], FIONREAD, &bytes) || bytes != 4096))
		wrong |= MOVED;
	return wrong;
}

/* First: in processes whose parent has not opened the library */
void test_closes_all(void)
{
	static const char *const names[] = {
		"files", "pipes", "nothing", "the same file to read", "with O_DIRECT",
		"with O_APPEND", "as before"
	};
	enum own which;
	int status;
	pid_t pid;

	for (which = FILES; which < OWNS; which++) {
		fflush(stdout);
		pid = fork();
		if (!pid)
			_exit(closes_all(which));
		waitpid(pid, &status, 0);
		status = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
		check(!(status & (NO_TRIAL | NEW_FAILS)), "all descriptors are closed, "
		      "and %s opened: a file registered then is read", names[which]);
		check(!(status & OLD_WORKS), "those registered before are refused");
		check(!(status & MOVED), "no byte of the program's own is moved");
		check(!(status & CLOSED), "and none of its own is closed");
	}
}

/* ---- faults of the ring: its descriptors lead to other files ---- */

void test_ring_errors(void)
{
	char *data = malloc(N * SIZE), *g;
	int fd, bad = open("/proc/self/mem", O_RDONLY);
	CUfileStatsLevel1_t s;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p;
	CUfileIOEvents_t e;
	CUfileHandle_t fh;
	uint64_t calls;

	fresh("{\"profile\":{\"cufile_stats\":1}}");
	noise(data, N * SIZE);
	fd = make(path, 0, data, N * SIZE);
	fh = reg(fd);
	g = gpu(N * SIZE);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p works");
	cuFileBatchIOSetUp(&b, N);
	is(read_all(b, fh, g), N, "a ring at work");

	/* a write into the page cache may have come between */
	is(redirect(path, O_DIRECT, bad), 1, "a file that gives EIO");
	memset(mem(g), 0, SIZE);
	p = param(fh, CUFILE_READ, g, SIZE, 0, 0);
	is(cuFileBatchIOSubmit(b, 1, &p, 0).err, 0, "a read of it");
	is(take(b, &e, 1), 1, "ends");
	is(e.status, CUFILE_COMPLETE, "well");
	check(!memcmp(mem(g), data, SIZE), "the page cache has the data");
	mock.host_errno = EIO;
	is(cuFileBatchIOSubmit(b, 1, &p, 0).err, 0, "where nothing has");
	is(take(b, &e, 1), 1, "it ends");
	is(e.status, CUFILE_FAILED, "badly");
	is((ssize_t)e.ret, -EIO, "as the kernel says");
	mock.host_errno = 0;
	cuFileGetStatsL1(&s);
	is((long long)s.read_ops.err, 1, "is counted, once");
	is((long long)s.read_ops.ok, N + 2, "so are the others");
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);

	/* nobody tries again where no other way is allowed */
	fresh("{\"profile\":{\"cufile_stats\":1},\"peerlane\":{\"strict\":true}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p works");
	cuFileBatchIOSetUp(&b, N);
	is(redirect(path, O_DIRECT, bad), 1, "strict: a file that gives EIO");
	calls = mock.p2p_calls;
	p = param(fh, CUFILE_READ, g, SIZE, 0, 0);
	is(cuFileBatchIOSubmit(b, 1, &p, 0).err, 0, "a read of it");
	is(take(b, &e, 1), 1, "ends");
	is(e.status, CUFILE_FAILED, "badly");
	is((ssize_t)e.ret, -EIO, "as the kernel says");
	is((long long)(mock.p2p_calls - calls), 0, "at once");
	cuFileGetStatsL1(&s);
	is((long long)s.read_ops.err, 1, "is counted");
	is((long long)stats_of(fh).errors, 1, "also with the file");
	check(strstr(stats_of(fh).reason, "EIO"), "with the reason: %s",
	      stats_of(fh).reason);
	cuFileHandleDeregister(fh);

	/* what may be for the way is tried another way */
	cuFileBatchIODestroy(b);
	fresh(NULL);
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p works");
	cuFileBatchIOSetUp(&b, N);
	mock_revoke();
	is(read_all(b, fh, g), N, "EFAULT of all in the ring");
	check(!memcmp(mem(g), data, N * SIZE), "and the data is right");
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);
	close(bad);
	close(fd);
	gpu_free(g);
	free(data);
}

/* ---- the end of the device: what the ring has moved is not moved again ---- */

/* One entry: its result, and what a thread has done for it */
static void one_entry(CUfileIOParams_t p, long long result, uint64_t calls, uint64_t bytes,
		      const char *what)
{
	struct pln_file_result now = { .size = sizeof(now) };
	uint64_t calls_before = mock.p2p_calls, bytes_before = mock.p2p_bytes;
	struct pln_file_stats s = stats_of(p.fh), after;
	CUfileStatsLevel1_t l, m;
	CUfileBatchHandle_t b;
	CUfileIOEvents_t e;
	bool write = p.opcode == CUFILE_WRITE;

	cuFileGetStatsL1(&l);
	cuFileBatchIOSetUp(&b, 1);
	pln_file_next_result(&now, 1);
	is(cuFileBatchIOSubmit(b, 1, &p, 0).err, 0, what);
	is(take(b, &e, 1), 1, "ends");
	is((ssize_t)e.ret, result, "with its bytes");
	is((long long)(mock.p2p_calls - calls_before), (long long)calls,
	   "so many calls of a thread");
	is((long long)(mock.p2p_bytes - bytes_before), (long long)bytes,
	   "and so many bytes");
	after = stats_of(p.fh);
	is((long long)(write ? after.path[PLN_PATH_P2P].bytes_written - s.path[PLN_PATH_P2P].bytes_written :
			       after.path[PLN_PATH_P2P].bytes_read - s.path[PLN_PATH_P2P].bytes_read),
	   result, "each byte counts once");
	check(now.result == result && (long long)now.bytes[PLN_PATH_P2P] == result,
	      "so says its result");
	cuFileGetStatsL1(&m);
	is((long long)(write ? m.write_ops.ok - l.write_ops.ok : m.read_ops.ok - l.read_ops.ok), 1,
	   "and so do the statistics");
	cuFileBatchIODestroy(b);
}

void test_ring_ends(void)
{
	const size_t end = 3 * 4096;
	char *data = malloc(2 * SIZE), *g;
	struct rlimit all, some;
	off_t off = 4096, zero = 0;
	size_t size = SIZE;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p;
	CUfileIOEvents_t e;
	CUfileHandle_t fh;
	uint64_t before;
	int fd, longer;
	ssize_t r = -9;

	fresh("{\"profile\":{\"cufile_stats\":1}}");
	noise(data, 2 * SIZE);
	fd = make(path, 0, data, end);
	g = gpu(2 * SIZE);
	mock.block = true;	/* so nobody knows its size */
	fh = reg(fd);
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "p2p works");
	memset(mem(g), 0, 2 * SIZE);
	one_entry(param(fh, CUFILE_READ, g, SIZE, 4096, 0), 8192, 1, 0, "across the end");
	check(!memcmp(mem(g), data + 4096, 8192), "the right bytes");
	one_entry(param(fh, CUFILE_READ, g, SIZE, (off_t)end, 0), 0, 0, 0, "at the end");
	is(ftruncate(fd, (off_t)end - 4000), 0, "an end within a block");
	one_entry(param(fh, CUFILE_READ, g, SIZE, 4096, 0), 4192, 0, 0, "across that");
	check(!memcmp(mem(g), data + 4096, 4192), "the right bytes");
	is(pwrite(fd, data, end, 0), (ssize_t)end, "the end as before");

	/* a stream */
	memset(mem(g), 0, SIZE);
	before = mock.p2p_bytes;
	is(cuFileReadAsync(fh, g, &size, &off, &zero, &r, (CUstream)(uintptr_t)16).err, 0,
	   "in a stream");
	mock_settle();
	is(r, 8192, "to the end");
	is((long long)(mock.p2p_bytes - before), 0, "and not twice");
	check(!memcmp(mem(g), data + 4096, 8192), "the right bytes");

	/* a full device: the kernel lets files have so many bytes, which what is printed here is far from */
	getrlimit(RLIMIT_FSIZE, &all);
	some = all;
	some.rlim_cur = MIB(64);
	signal(SIGXFSZ, SIG_IGN);
	noise(mem(g), SIZE);
	setrlimit(RLIMIT_FSIZE, &some);
	one_entry(param(fh, CUFILE_WRITE, g, SIZE, MIB(64) - 4096, 0), 4096, 1, 0, "a write across the end");
	setrlimit(RLIMIT_FSIZE, &all);
	check(strstr(stats_of(fh).reason, "EFBIG"), "why: %s", stats_of(fh).reason);
	is(pread(fd, data, 4096, MIB(64) - 4096), 4096, "what was written");
	check(!memcmp(mem(g), data, 4096), "is right");
	is(ftruncate(fd, 0), 0, "all of it goes");

	/* it was no end: the rest is where it belongs */
	noise(data, 2 * SIZE);
	is(pwrite(fd, data, end, 0), (ssize_t)end, "a short file");
	close(make(other, 0, data, SIZE));
	longer = open(other, O_RDWR | O_DIRECT);
	memset(mem(g), 0, SIZE);
	p = param(fh, CUFILE_READ, g, SIZE, 0, 0);
	cuFileBatchIOSetUp(&b, 1);
	mock.hold_io = true;
	before = mock.p2p_bytes;
	is(cuFileBatchIOSubmit(b, 1, &p, 0).err, 0, "a read that comes to no end");
	AWAIT(mock.in_io);
	is(redirect(path, O_DIRECT, longer), 1, "as there is more now");
	mock.hold_io = false;
	is(take(b, &e, 1), 1, "ends");
	is((ssize_t)e.ret, SIZE, "with all its bytes");
	is((long long)(mock.p2p_bytes - before), (long long)(SIZE - end), "each of them moved once");
	check(!memcmp(mem(g), data, SIZE), "the right ones");
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);
	mock.block = false;
	close(longer);
	close(fd);
	gpu_free(g);
	free(data);
	fresh(NULL);
}

static struct {
	CUfileBatchHandle_t b;
	_Atomic int tid;
	_Atomic bool done;
} destroyer;

static void *destroy_it(void *arg)
{
	destroyer.tid = (int)syscall(SYS_gettid);
	cuFileBatchIODestroy(destroyer.b);
	destroyer.done = true;
	return arg;
}

/* In a child of a process with requests under way: the status of its exit */
static int child_of_ring(CUfileBatchHandle_t b, const CUfileIOParams_t *p)
{
	CUfileIOParams_t again = *p;
	CUfileIOEvents_t e;
	unsigned int n = 1;
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(10);
		if (cuFileBatchIOGetStatus(b, 1, &n, &e, NULL).err != 5041)
			_exit(1);
		if (cuFileBatchIOSubmit(b, 1, &again, 0).err != 5040)
			_exit(2);
		if (cuFileBatchIOCancel(b).err)
			_exit(3);
		cuFileBatchIODestroy(b);
		_exit(cuFileDriverClose().err != 5001 ? 4 : 0);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* Requests that the kernel has begun, and that end when a pipe is written to. */
void test_ring_waits(void)
{
	char *data = malloc(N * SIZE), *g;
	int fd, fd_other, end[2];
	CUfileHandle_t fh, fh_other;
	CUfileBatchHandle_t b, held;
	CUfileIOParams_t p;
	CUfileIOEvents_t e;
	pthread_t thread;

	fresh(NULL);
	noise(data, N * SIZE);
	fd = make(path, 0, data, N * SIZE);
	fd_other = make(other, 0, data, N * SIZE);
	fh = reg(fd);
	fh_other = reg(fd_other);
	g = gpu(N * SIZE);
	if (pipe(end))
		abort();
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p works");
	cuFileBatchIOSetUp(&b, N);
	cuFileBatchIOSetUp(&held, 1);
	is(redirect(path, O_DIRECT, end[0]), 1, "a file that is slow");
	p = param(fh, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(held, 1, &p, 0).err, 0, "a read of it");
	is(child_of_ring(held, &p), 0, "a child's calls are refused meanwhile");
	is(read_all(b, fh_other, g), N, "the ring goes on in the parent");
	is(write(end[1], data + SIZE, 4096), 4096, "the data comes");
	is(take(held, &e, 1), 1, "and the read ends");
	check(e.status == CUFILE_COMPLETE && !memcmp(mem(g), data + SIZE, 4096),
	      "well");

	is(cuFileBatchIOSubmit(held, 1, &p, 0).err, 0, "another read");
	destroyer.b = held;
	pthread_create(&thread, NULL, destroy_it, NULL);
	while (!asleep(destroyer.tid))
		usleep(1000);
	check(!destroyer.done, "who destroys its batch waits for it");
	is(write(end[1], data, 4096), 4096, "until the data has come");
	pthread_join(thread, NULL);
	check(!memcmp(mem(g), data, 4096), "and not longer");

	/* the last reference to a file: closing it takes long */
	cuFileBatchIOSetUp(&held, 1);
	is(cuFileBatchIOSubmit(held, 1, &p, 0).err, 0, "a third one");
	cuFileHandleDeregister(fh);
	mock.hold_close = true;
	is(write(end[1], data, 4096), 4096, "ends when the handle is gone");
	while (!mock.in_close)
		usleep(100);
	is(read_all(b, fh_other, g), N, "the ring does not wait for the close");
	mock.hold_close = false;
	cuFileBatchIODestroy(b);
	cuFileBatchIODestroy(held);
	cuFileHandleDeregister(fh_other);
	close(end[0]);
	close(end[1]);
	close(fd);
	close(fd_other);
	gpu_free(g);
	free(data);
}

/* A file whose last user is the ring, and that the page cache path has a lease of */
void test_ring_leased(void)
{
	char *data = malloc(MIB(4)), *g, *far;
	int fd, end[2], tries;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p;
	CUfileIOEvents_t e;
	CUfileHandle_t fh;

	noise(data, MIB(4));
	fresh_cache(NULL);
	unlink(path);		/* another test may have it open to write */
	close(make(path, 0, data, MIB(4)));
	fd = open(path, O_RDONLY);
	fh = reg(fd);
	g = gpu(SIZE);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p works");
	mock.handle_error = 801;
	far = gpu(MIB(4));
	is(cuFileRead(fh, far, MIB(4), 0, 0), MIB(4), "a read that p2p does not do");
	is((long long)stats_of(NULL).leases, 1, "gets a lease");
	mock.handle_error = 0;
	if (pipe(end))
		abort();
	is(redirect(path, O_DIRECT, end[0]), 1, "the file is slow");
	cuFileBatchIOSetUp(&b, 1);
	p = param(fh, CUFILE_READ, g, 4096, 0, 0);
	is(cuFileBatchIOSubmit(b, 1, &p, 0).err, 0, "a read in the ring");
	cuFileHandleDeregister(fh);
	is(write(end[1], data, 4096), 4096, "ends when the handle is gone");
	is(take(b, &e, 1), 1, "and is told");
	for (tries = 0; tries < 20000 && stats_of(NULL).leases; tries++)
		usleep(1000);
	is((long long)stats_of(NULL).leases, 0, "the lease goes with the file");
	cuFileBatchIODestroy(b);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	close(end[0]);
	close(end[1]);
	close(fd);
	gpu_free(g);
	gpu_free(far);
	free(data);
}

/* ---- a kernel without memory for a while: EAGAIN ---- */

#define REFUSALS	20

static struct {
	struct forbidden f;
	_Atomic int listener;		/* + 1 */
	_Atomic unsigned int refused;
	_Atomic uint64_t since, took;	/* first and last of them, ns */
} scarce;

static uint64_t ns_now(void)
{
	struct timespec at;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Decides about each io_uring_enter() of the ring's thread, until it has ended. */
static void *supervise(void *arg)
{
	struct seccomp_notif_resp answer;
	struct seccomp_notif asked;
	struct pollfd p = { .events = POLLIN };

	while (!scarce.listener)
		usleep(100);
	p.fd = scarce.listener - 1;
	for (;;) {
		if (poll(&p, 1, -1) < 0 || !(p.revents & POLLIN))
			break;
		memset(&asked, 0, sizeof(asked));
		if (ioctl(p.fd, SECCOMP_IOCTL_NOTIF_RECV, &asked))
			continue;
		memset(&answer, 0, sizeof(answer));
		answer.id = asked.id;
		if (scarce.refused < REFUSALS) {
			answer.error = -EAGAIN;
			if (!scarce.refused++)
				scarce.since = ns_now();
			scarce.took = ns_now() - scarce.since;
		} else {
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		ioctl(p.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return arg;
}

static void *with_refusals(void *arg)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_enter, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = f };
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		abort();
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0)
		abort();
	scarce.listener = fd + 1;
	scarce.f.good = read_all(scarce.f.b, scarce.f.fh, scarce.f.g);
	return arg;
}

void test_ring_again(void)
{
	char *data = malloc(N * SIZE), *g;
	pthread_t decides, reads;
	double cpu;
	int fd;

	fresh(NULL);
	noise(data, N * SIZE);
	fd = make(path, 0, data, N * SIZE);
	g = gpu(N * SIZE);
	scarce.f = (struct forbidden){ .fh = reg(fd), .g = g };
	is(cuFileRead(scarce.f.fh, g, SIZE, 0, 0), SIZE, "p2p works");
	cuFileBatchIOSetUp(&scarce.f.b, N);
	cpu = cpu_time();
	pthread_create(&decides, NULL, supervise, NULL);
	pthread_create(&reads, NULL, with_refusals, NULL);
	pthread_join(reads, NULL);
	is(scarce.f.good, N, "EAGAIN, and then memory again");
	check(!memcmp(mem(g), data, N * SIZE), "the data is right");
	is(scarce.refused, REFUSALS, "it was asked again and again");
	check(scarce.took > (REFUSALS - 1) * 5000000ull,
	      "after a while each time: %llu us",
	      (unsigned long long)scarce.took / 1000);
	check(cpu_time() - cpu < 1, "nobody spins");
	cuFileBatchIODestroy(scarce.f.b);
	is(cuFileDriverClose().err, 0, "the close comes to an end");
	pthread_join(decides, NULL);
	close(scarce.listener - 1);
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
}

/* ---- threads ---- */

void test_most_threads(void)
{
	char *data = calloc(1, SIZE), *g;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[100];
	CUfileIOEvents_t e[100];
	unsigned int i, before;
	CUfileHandle_t fh;
	int fd;

	fresh("{\"peerlane\":{\"max_io_threads\":64,\"prefer_iouring\":false}}");
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	cuFileBatchIOSetUp(&b, 100);
	for (i = 0; i < 100; i++)
		p[i] = param(fh, CUFILE_READ, g, 4096, 0, 0);
	for (i = 0, before = tasks(); i < 20; i++) {
		usleep(1000);
		if (tasks() < before)
			before = tasks();
	}
	mock.hold_stat = true;
	is(cuFileBatchIOSubmit(b, 100, p, 0).err, 0, "a hundred slow ones");
	while (mock.in_stat < 64)
		usleep(100);
	is(tasks() - before, 64, "sixty-four threads do them");
	mock.hold_stat = false;
	is(take(b, e, 100), 100, "and all end");
	cuFileBatchIODestroy(b);
	cuFileDriverClose();
	for (i = 0; i < 5000 && tasks() > before; i++)
		usleep(1000);
	is(tasks(), before, "the threads end with the library");
	is(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 65).err,
	   5003, "more cannot be asked for");
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
}

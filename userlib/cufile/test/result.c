// SPDX-License-Identifier: MIT
/* What came of each transfer: pln_file_next_result(). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#define SIZE	KIB(64)
#define N	6

/* A program that is newer than the library */
struct larger {
	struct pln_file_result r;
	uint64_t more;
};

static struct {
	CUfileHandle_t fh;
	char *data, *g;
	int fd;
} t;

static void begin(const char *json)
{
	fresh(json);
	t.data = malloc(4 * SIZE);
	noise(t.data, 4 * SIZE);
	t.fd = make(path, 0, t.data, 4 * SIZE);
	t.fh = reg(t.fd);
	t.g = gpu(4 * SIZE);
}

static void end(void)
{
	cuFileHandleDeregister(t.fh);
	close(t.fd);
	gpu_free(t.g);
	free(t.data);
}

/* Rubbish in all but the size */
static void ask(struct pln_file_result *r, unsigned int n)
{
	memset(r, 0x5a, n * sizeof(*r));
	r->size = sizeof(*r);
	is(pln_file_next_result(r, n), 0, "results are asked for");
}

static bool untouched(const struct pln_file_result *r)
{
	return r->path == 0x5a5a5a5a && r->reserved[3] == 0x5a5a5a5a5a5a5a5a;
}

static bool good(const struct pln_file_result *r, unsigned int path_is,
		 uint64_t bytes)
{
	return r->size == sizeof(*r) && r->path == path_is && !r->error &&
	       r->result == (int64_t)bytes && r->bytes[path_is] == bytes &&
	       !r->reserved[3] && !r->zero;
}

/* What is behind the end of a file makes no read of it unaligned */
static void test_end(void)
{
	struct pln_file_result r;

	begin(NULL);
	ask(&r, 1);
	is(cuFileRead(t.fh, t.g, 2 * SIZE + 100, 2 * SIZE, 0), 2 * SIZE,
	   "more than the file has");
	check(good(&r, PLN_PATH_P2P, 2 * SIZE) && !r.reason[0],
	      "goes p2p, with nothing to excuse: %s", r.reason);
	end();
}

static void test_calls(void)
{
	CUfileIOVec_t v[2];
	struct pln_file_result r;
	struct larger l;

	begin(NULL);
	memset(&r, 0, sizeof(r));
	is(pln_file_next_result(&r, 1), -EINVAL, "a size that was not set");
	r.size = sizeof(r) - 1;
	is(pln_file_next_result(&r, 1), -EINVAL, "a smaller one");
	r.size = sizeof(r);
	is(pln_file_next_result(&r, 0), -EINVAL, "no results");
	is(pln_file_next_result(NULL, 1), -EINVAL, "nowhere to put one");

	ask(&r, 1);
	is(cuFileRead(t.fh, t.g, SIZE, 0, 0), SIZE, "a read");
	check(good(&r, PLN_PATH_P2P, SIZE) && !r.reason[0], "was p2p, all of it");
	memset(&r, 0x5a, sizeof(r));
	is(cuFileRead(t.fh, t.g, SIZE, 0, 0), SIZE, "the next one");
	check(untouched(&r), "says nothing, nobody has asked");
	ask(&r, 1);
	is(pln_file_next_result(NULL, 0), 0, "or no longer");
	is(cuFileRead(t.fh, t.g, SIZE, 0, 0), SIZE, "a read");
	check(untouched(&r), "that says nothing");

	ask(&r, 1);
	is(cuFileWrite(t.fh, t.g, SIZE + 100, 0, 0), SIZE + 100,
	   "a write whose end is no block");
	check(r.path == PLN_PATH_P2P && r.result == SIZE + 100 &&
	      r.bytes[PLN_PATH_P2P] == SIZE && r.bytes[PLN_PATH_BOUNCE] == 100 &&
	      r.reason[0], "by two paths, with a reason: %s", r.reason);
	ask(&r, 1);
	is(cuFileRead(t.fh, t.data, 100, 0, 0), 100, "a read to host memory");
	check(good(&r, PLN_PATH_POSIX, 100), "by posix");
	ask(&r, 1);
	is(cuFileRead(t.fh, t.g, SIZE, 8 * SIZE, 0), 0, "behind the end");
	check(r.path == PLN_PATH_NONE && !r.result && !r.error,
	      "nothing has moved");

	/* two buffers are one transfer */
	v[0] = (CUfileIOVec_t){ t.g, SIZE };
	v[1] = (CUfileIOVec_t){ t.data, 100 };
	ask(&r, 1);
	is(cuFileReadv(t.fh, v, 2, 0, 0), SIZE + 100, "a read of two buffers");
	check(r.path == PLN_PATH_P2P && r.result == SIZE + 100 &&
	      r.bytes[PLN_PATH_P2P] == SIZE && r.bytes[PLN_PATH_POSIX] == 100,
	      "says what both have");

	memset(&l, 0xff, sizeof(l));
	l.r.size = sizeof(l);
	is(pln_file_next_result(&l.r, 1), 0, "a larger one is asked for");
	l.r.size = 1;			/* later it does not count */
	is(cuFileRead(t.fh, t.g, SIZE, 0, 0), SIZE, "a read");
	check(l.r.size == sizeof(l) && l.r.path == PLN_PATH_P2P && !l.more,
	      "the rest is 0");
	end();
}

static void test_failures(void)
{
	struct pln_file_result r;

	begin(NULL);
	mock.p2p_errno = EREMOTEIO;
	ask(&r, 1);
	is(cuFileRead(t.fh, t.g, SIZE, 0, 0), SIZE, "a read that is refused p2p");
	check(r.path == PLN_PATH_BOUNCE && r.bytes[PLN_PATH_BOUNCE] == SIZE &&
	      r.error == EREMOTEIO && strstr(r.reason, "EREMOTEIO"),
	      "is staged, and says why: %s", r.reason);
	mock.media_errno = EIO;
	mock.bad_from = SIZE;
	mock.bad_to = 2 * SIZE;
	ask(&r, 1);
	is(cuFileRead(t.fh, t.g, SIZE, SIZE, 0), -1, "a medium that cannot be read");
	check(r.result == -1 && r.error == EIO && strstr(r.reason, "EIO"),
	      "errno, in words: %s", r.reason);
	ask(&r, 1);
	is(cuFileRead((void *)1, t.g, SIZE, 0, 0), -5027, "no such file");
	check(r.result == -5027 && !r.path && !r.reason[0],
	      "nothing came of it");
	end();
	cuFileDriverClose();
	mock_reset();
}

static void test_streams(void)
{
	CUstream s = (CUstream)(uintptr_t)16;
	struct pln_file_result r, q, none;
	off_t off = 0, bad = SIZE, buf_off = 0;
	size_t size = SIZE;
	ssize_t n, m;

	begin(NULL);
	mock.p2p_errno = EREMOTEIO;
	mock.media_errno = EIO;
	mock.bad_from = SIZE;
	mock.bad_to = 2 * SIZE;
	mock.hold_stream = true;
	ask(&r, 1);
	is(cuFileReadAsync(t.fh, t.g, &size, &off, &buf_off, &n, s).err, 0,
	   "a read is put into a stream");
	ask(&q, 1);
	is(cuFileReadAsync(t.fh, t.g, &size, &bad, &buf_off, &m, s).err, 0,
	   "and one that will fail");
	ask(&none, 1);
	is(cuFileReadAsync(t.fh, NULL, &size, &off, &buf_off, &m, s).err, 5022,
	   "one is not taken");
	check(untouched(&r) && untouched(&q), "nothing has come of them yet");
	is(cuFileRead(t.fh, t.data, 100, 0, 0), 100, "another read");
	check(untouched(&none), "what asked for nothing is nobody's");
	mock.hold_stream = false;
	mock_settle();
	is(n, SIZE, "the first one has ended");
	check(r.result == SIZE && r.path == PLN_PATH_BOUNCE &&
	      r.error == EREMOTEIO, "and said how");
	is(m, -1, "the second one has failed");
	check(q.result == -1 && q.error == EIO && strstr(q.reason, "EIO"),
	      "each says its own: %s", q.reason);
	end();
	cuFileDriverClose();
	mock_reset();
}

/* @n reads of a batch, the fourth of which fails; results are @size apart */
static void batch(char *at, size_t size, unsigned int n)
{
	struct timespec limit = { .tv_sec = 20 };
	CUfileBatchHandle_t b;
	CUfileIOEvents_t e[N];
	CUfileIOParams_t p[N];
	unsigned int i, got = N, right = 0;

	for (i = 0; i < N; i++)
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = t.fh, .opcode = CUFILE_READ,
			.u.batch = { t.g, i == 3 ? SIZE : 0, 0, 4096 * (i + 1) },
		};
	cuFileBatchIOSetUp(&b, N);
	is(pln_file_next_result((struct pln_file_result *)at, n), 0,
	   "results of a batch are asked for");
	is(cuFileBatchIOSubmit(b, N, p, 0).err, 0, "a batch is started");
	is(cuFileBatchIOGetStatus(b, N, &got, e, &limit).err, 0, "and waited for");
	is(got, N, "all have ended");
	cuFileBatchIODestroy(b);
	for (i = 0; i < n; i++) {
		const struct pln_file_result *r = (void *)(at + i * size);

		right += r->size == size && (mock.media_errno && i == 3 ?
			 r->result == -1 && r->error == EIO :
			 r->result == 4096 * (i + 1) &&
			 r->bytes[r->path] == 4096 * (i + 1));
	}
	is(right, n, "each has its own");
}

static void test_batches(void)
{
	struct pln_file_result r[N + 1];
	CUfileIOParams_t p[32], wrong;
	struct pln_file_result gone[32];
	CUfileBatchHandle_t b;
	unsigned int i, done = 0, cancelled = 0;
	struct larger l[N];

	begin(NULL);
	memset(r, 0x5a, sizeof(r));
	r[0].size = sizeof(r[0]);
	batch((char *)r, sizeof(r[0]), N - 1);
	check(untouched(&r[N - 1]), "what was not asked for is not told");
	memset(l, 0xff, sizeof(l));
	l[0].r.size = sizeof(l[0]);
	batch((char *)l, sizeof(l[0]), N);
	check(!l[N - 1].more, "larger ones");
	end();

	begin("{\"peerlane\":{\"max_io_threads\":2,\"prefer_iouring\":false}}");
	mock.p2p_errno = EREMOTEIO;
	mock.media_errno = EIO;
	mock.bad_from = SIZE;
	mock.bad_to = 2 * SIZE;
	memset(r, 0x5a, sizeof(r));
	r[0].size = sizeof(r[0]);
	batch((char *)r, sizeof(r[0]), N);
	check(untouched(&r[N]), "and what there is not");

	wrong = (CUfileIOParams_t){ .mode = CUFILE_BATCH, .fh = (void *)1 };
	cuFileBatchIOSetUp(&b, 32);
	ask(r, 1);
	check(cuFileBatchIOSubmit(b, 1, &wrong, 0).err, "a mistake");
	check(untouched(r), "of which nothing comes");
	for (i = 0; i < 32; i++)
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = t.fh, .opcode = CUFILE_READ,
			.u.batch = { t.g, 0, 0, 4096 },
		};
	ask(gone, 32);
	mock.hold_io = true;
	is(cuFileBatchIOSubmit(b, 32, p, 0).err, 0, "thirty-two slow ones");
	for (i = 0; i < 200000 && !mock.in_io; i++)
		usleep(100);
	is(cuFileBatchIOCancel(b).err, 0, "are cancelled");
	mock.hold_io = false;
	cuFileBatchIODestroy(b);
	for (i = 0; i < 32; i++) {
		done += gone[i].result == 4096 && gone[i].path == PLN_PATH_BOUNCE;
		cancelled += !gone[i].result && !gone[i].path &&
			     strstr(gone[i].reason, "cancelled");
	}
	check(done && cancelled && done + cancelled == 32,
	      "those that had begun (%u) and the rest (%u)", done, cancelled);
	end();
	cuFileDriverClose();
	mock_reset();
}

/* Two threads on one handle: what one reads well the other does not */
static void *well(void *arg)
{
	struct pln_file_result r = { .size = sizeof(r) };
	unsigned int *right = arg;

	for (int i = 0; i < 200; i++) {
		pln_file_next_result(&r, 1);
		if (cuFileRead(t.fh, t.data, 100, 0, 0) == 100)
			*right += r.result == 100 && !r.error &&
				  r.path == PLN_PATH_POSIX && !r.reason[0];
	}
	return NULL;
}

static void test_threads(void)
{
	struct pln_file_result r = { .size = sizeof(r) };
	unsigned int right = 0, wrong = 0;
	pthread_t thread;

	begin(NULL);
	check(!pthread_create(&thread, NULL, well, &right), "a thread");
	for (int i = 0; i < 200; i++) {
		pln_file_next_result(&r, 1);
		if (cuFileRead(t.fh, t.g, 5 * SIZE, 0, 0) < 0)
			wrong += r.result == -CU_FILE_CUDA_POINTER_RANGE_ERROR && r.reason[0] && !r.path;
	}
	pthread_join(thread, NULL);
	is(right, 200, "all of one thread go well");
	is(wrong, 200, "and none of the other");
	end();
}

void test_results(void)
{
	test_calls();
	test_end();
	test_failures();
	test_streams();
	test_batches();
	test_threads();
}

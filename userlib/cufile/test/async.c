// SPDX-License-Identifier: MIT
/* Transfers in the order of streams; settings, limits and statistics by call. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#define SIZE	KIB(64)

static CUstream stream_of(uintptr_t n)
{
	return (CUstream)n;
}

void test_async(void)
{
	char *data = malloc(4 * SIZE), *g, *host = malloc(SIZE);
	CUstream s = stream_of(16), fixed = stream_of(32);
	off_t off = 0, buf_off = 0, past = -4096;
	size_t size = 4 * SIZE;
	CUfileHandle_t fh, wo;
	ssize_t r, r2;
	int fd, fd_wo;

	fresh(NULL);
	noise(data, 4 * SIZE);
	fd = make(path, 0, data, 4 * SIZE);
	fd_wo = open(path, O_WRONLY);
	fh = reg(fd);
	wo = reg(fd_wo);
	g = gpu(4 * SIZE);
	is(cuFileStreamRegister(fixed, 16).err, 5022, "a flag that is none");
	is(cuFileStreamRegister(fixed, 7).err, 0, "a stream is registered");
	is(cuFileStreamRegister(fixed, 0).err, 5022, "twice is an error");
	is(cuFileStreamRegister(NULL, 0).err, 0, "the default stream can be");
	is(cuFileStreamDeregister(NULL).err, 0, "and need not stay so");
	is(cuFileStreamDeregister(s).err, 5022, "one that is not");

	is(cuFileReadAsync(fh, NULL, &size, &off, &buf_off, &r, s).err, 5022,
	   "no memory");
	is(cuFileReadAsync(fh, g, NULL, &off, &buf_off, &r, s).err, 5022,
	   "no size");
	is(cuFileReadAsync(fh, g, &size, NULL, &buf_off, &r, s).err, 5022,
	   "no offset");
	is(cuFileReadAsync(fh, g, &size, &off, NULL, &r, s).err, 5022,
	   "no offset in memory");
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, NULL, s).err, 5022,
	   "no place for the result");
	is(cuFileReadAsync((void *)1, g, &size, &off, &buf_off, &r, s).err,
	   5027, "no such file");
	r = -9;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, (CUstream)-1).err,
	   5011, "a stream that takes nothing");

	r = -9;
	for (mock.capture = 1; mock.capture <= 2; mock.capture++) {
		is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err,
		   CU_FILE_ASYNC_NOT_SUPPORTED,
		   "a stream that is captured takes nothing");
	}
	mock.capture = 0;
	mock_settle();
	is(r, -9, "and nothing comes of it");

	/* what counts is what is there when the transfer begins */
	mock.hold_stream = true;
	r = r2 = -9;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read is put into a stream");
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r2, fixed).err, 0,
	   "and one into a stream with fixed arguments");
	is(r, 0, "no result yet");
	size = SIZE;
	off = 2 * SIZE;
	buf_off = SIZE;
	mock.hold_stream = false;
	mock_settle();
	is(r, SIZE, "the size is that of when it began");
	is(r2, 4 * SIZE, "the fixed one that of the call");
	check(!memcmp(mem(g), data, 4 * SIZE), "which ran last, all of it");
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "again, alone");
	mock_settle();
	check(!memcmp(mem(g) + SIZE, data + 2 * SIZE, SIZE),
	      "offsets are those of when it began");
	is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read, 6 * SIZE,
	   "all by p2p");

	/* staged: copies do not wait for the program's streams */
	mock.p2p_errno = EREMOTEIO;
	off = 0;
	buf_off = 0;
	size = 1001;
	noise(mem(g), SIZE);
	is(cuFileWriteAsync(fh, g, &size, &off, &buf_off, &r, NULL).err, 0,
	   "a write in the default stream");
	mock_settle();
	is(r, 1001, "an odd size");
	check(pread(fd, host, 1001, 0) == 1001 && !memcmp(host, mem(g), 1001),
	      "the file has it");
	mock.no_streams = true;
	size = 999;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "no new stream of our own is to be had");
	mock_settle();
	is(r, 999, "the one of the lane serves");
	mock.no_streams = false;
	size = SIZE;
	is(cuFileReadAsync(fh, host, &size, &off, &buf_off, &r, s).err, 0,
	   "into host memory");
	mock_settle();
	is(r, SIZE, "too");
	is(cuFileReadAsync(fh, g, &size, &past, &buf_off, &r, s).err, 0,
	   "a negative offset is found when it begins");
	mock_settle();
	is(r, -5022, "and is the result");
	is(cuFileReadAsync(wo, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a file to write only, too");
	mock_settle();
	is(r, -1, "is an error of the system");
	mock.hold_stream = true;
	cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s);
	cuFileHandleDeregister(fh);
	mock.hold_stream = false;
	mock_settle();
	is(r, -5027, "the handle was given up before it began");
	is(cuFileStreamDeregister(fixed).err, 0, "a stream is given up");

	/* the program destroys a stream, and gets its handle again */
	is(cuFileStreamRegister(fixed, 7).err, 0, "a stream is registered");
	mock.stream_turn++;
	fh = reg(fd);
	size = SIZE;
	mock.hold_stream = true;
	cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, fixed);
	size = 4096;
	mock.hold_stream = false;
	mock_settle();
	is(r, 4096, "another stream has nothing fixed");
	is(cuFileStreamRegister(fixed, 0).err, 0, "and can be registered");
	is(cuFileStreamRegister(fixed, 0).err, 5022, "once");
	is(cuFileStreamDeregister(fixed).err, 0, "and given up");
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(wo);
	close(fd);
	close(fd_wo);
	gpu_free(g);
	free(data);
	free(host);
}

static void *close_it(void *arg)
{
	*(int *)arg = cuFileDriverClose().err;
	return arg;
}

/* How much file IO is under way when the library has closed */
static void *close_under_io(void *arg)
{
	cuFileDriverClose();
	*(int *)arg = mock.in_io;
	return arg;
}

void test_async_close(void)
{
	struct timespec limit;
	pthread_t closer;
	int closed = -1;
	char *data = calloc(1, SIZE), *g;
	off_t off = 0, buf_off = 0;
	CUstream s = stream_of(16);
	size_t size = SIZE;
	CUfileHandle_t fh;
	ssize_t r = -9;
	int fd;

	fresh(NULL);
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	cuFileStreamRegister(s, 0);
	is(cuFileRead(fh, g, 100, 1, 0), 100, "a staged read pins memory");
	mock.hold_stream = true;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in a stream");
	pthread_create(&closer, NULL, close_it, &closed);
	while (!mock.in_settle)
		usleep(100);
	/* the sweep waits in CUDA for the function of the stream */
	mock.hold_stream = false;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 20;
	if (!check(!pthread_timedjoin_np(closer, NULL, &limit),
		   "neither waits for the other"))
		_exit(1);
	is(closed, 0, "it is closed");
	mock_settle();
	is(r, -5001, "the read's result says so");
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 5001,
	   "a closed library takes none");
	is(cuFileStreamDeregister(s).err, 5001, "and has no streams");
	is(cuFileDriverOpen().err, 0, "open again");
	is(cuFileStreamRegister(s, 0).err, 0, "streams ended with the close");
	fh = reg(fd);
	mock.hold_io = true;
	cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s);
	while (!mock.in_io)
		usleep(100);
	pthread_create(&closer, NULL, close_under_io, &closed);
	while (cuFileUseCount())
		usleep(100);
	usleep(50000);		/* who does not wait is seen */
	mock.hold_io = false;
	pthread_join(closer, NULL);
	is(closed, 0, "closed while one is under way: it is waited for");
	mock_settle();
	is(r, SIZE, "and ends well");
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
}

/* Takes all @n events; how many entries failed in CUDA. */
static unsigned int cuda_errors(CUfileBatchHandle_t b, unsigned int n)
{
	struct timespec limit = { .tv_sec = 20 };
	CUfileIOEvents_t e[4];
	unsigned int i, bad = 0;

	if (!check(!cuFileBatchIOGetStatus(b, n, &n, e, &limit).err && n == 4,
		   "all entries end"))
		_exit(1);
	for (i = 0; i < n; i++)
		bad += (ssize_t)e[i].ret == -5011;
	return bad;
}

/*
 * Copies without streams of our own wait for the program's: not while those wait
 * for threads and buffers that the copies have.
 */
void test_async_scarce(void)
{
	char *data = malloc(SIZE), *g;
	off_t off = 0, buf_off = 0;
	CUstream s = stream_of(16);
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[4];
	size_t size = 1001;
	CUfileHandle_t fh;
	ssize_t r = -9;
	unsigned int i;
	int fd;

	fresh("{\"peerlane\":{\"max_io_threads\":2}}");
	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	mock.no_streams = true;
	is(cuFileRead(fh, g, 1001, 1, 0), 1001, "staged without a stream");
	cuFileBatchIOSetUp(&b, 4);
	for (i = 0; i < 4; i++)
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh,
			.u.batch = { .devPtr_base = g, .size = 99 + i }
		};
	mock.hold_stream = true;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in a stream");
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 0, "a batch is started");
	is(cuda_errors(b, 4), 4, "and does not wait for the stream");
	mock.hold_stream = false;
	mock_settle();
	is(r, -5011, "nor does the read, for itself");
	mock.no_streams = false;
	is(cuFileRead(fh, g, 1001, 1, 0), 1001, "later there is a stream");
	check(!memcmp(mem(g), data + 1, 1001), "and the data is right");
	is(cuFileBatchIOSubmit(b, 4, p, 0).err, 0, "a batch once more");
	is(cuda_errors(b, 4), 0, "goes well");
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

struct a_read {
	CUfileHandle_t fh;
	char *g;
	ssize_t result;
};

static void *read_1001(void *arg)
{
	struct a_read *a = arg;

	a->result = cuFileRead(a->fh, a->g, 1001, 1, 0);
	return NULL;
}

/* A context that is gone, or in error, calls nothing: its orders hold up no copy. */
void test_async_lost(void)
{
	char *data = malloc(SIZE), *g;
	off_t off = 0, buf_off = 0;
	CUstream s = stream_of(16);
	size_t size = 1001;
	CUfileHandle_t fh;
	struct a_read a;
	ssize_t r = -9;
	pthread_t asks;
	int fd, tries;

	fresh(NULL);
	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	a = (struct a_read){ .fh = fh, .g = g };
	mock.no_streams = true;
	mock.lose_calls = true;
	mock.other_ctx = 1;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in a stream of another context");
	is(cuFileRead(fh, g, 1001, 1, 0), -5011,
	   "a copy without a stream would wait for it");
	mock.other_ctx = 2;
	is(cuFileRead(fh, g, 1001, 1, 0), 1001, "not when the context is gone");
	check(!memcmp(mem(g), data + 1, 1001), "and the data is right");
	is(r, 0, "the read has no result");
	mock_lost();
	is(r, -5011, "it has when it is called after all, and counts again");
	is(cuFileRead(fh, g, 1001, 1, 0), 1001, "until it has ended");

	/* its work has failed, and it says its number all the same */
	r = -9;
	mock.other_ctx = 1;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in a stream of another context");
	is(cuFileRead(fh, g, 1001, 1, 0), -5011, "which may call it");
	mock.other_ctx = 3;
	is(cuFileRead(fh, g, 1001, 1, 0), 1001, "not when it is in error");
	is(r, 0, "the read has no result");
	mock_lost();

	/* that it has no answer says nothing about its work */
	r = -9;
	mock.other_ctx = 1;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in a stream of another context");
	mock.other_ctx = 5;
	is(cuFileRead(fh, g, 1001, 1, 0), -5011, "which may call it, though it fails otherwise");
	mock_lost();
	is(r, -5011, "and does");

	/* who waits for an answer of CUDA holds up no order */
	mock.other_ctx = 1;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in a stream of another context");
	mock.hold_info = true;
	pthread_create(&asks, NULL, read_1001, &a);
	for (tries = 0; tries < 30000 && !mock.in_info; tries++)
		usleep(1000);
	check(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r,
			      stream_of(-1)).err,
	      "one for a bad stream comes while CUDA is asked");
	check(mock.in_info, "and does not wait for the answer");
	mock.hold_info = false;
	pthread_join(asks, NULL);
	is(a.result, -5011, "nor does it harm who asks");
	mock_lost();
	mock.other_ctx = 2;

	/* nothing is known of the context */
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read in a stream that does not tell");
	is(cuFileRead(fh, g, 1001, 1, 0), -5011, "which may still call it");
	mock_lost();
	is(cuFileRead(fh, g, 1001, 1, 0), 1001, "and has");

	/* what is lost goes with the library */
	mock.other_ctx = 1;
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a read waits in the other context");
	mock.other_ctx = 2;
	r = -9;
	is(cuFileDriverClose().err, 0, "the library is closed without it");
	mock_lost();
	is(r, -9, "nothing is left that could be called");
	is(cuFileDriverOpen().err, 0, "and opened");
	mock.no_streams = false;
	mock.lose_calls = false;
	mock.other_ctx = 0;
	close(fd);
	gpu_free(g);
	free(data);
}

struct an_order {
	CUfileHandle_t fh;
	char *g;
	off_t off;
	size_t size;
	ssize_t result;
	CUfileOpError err;
	_Atomic bool returned;
};

static void *order_it(void *arg)
{
	struct an_order *o = arg;

	o->err = cuFileReadAsync(o->fh, o->g, &o->size, &o->off, &o->off, &o->result,
				 stream_of(16)).err;
	o->returned = true;
	return NULL;
}

static void *write_1001(void *arg)
{
	struct a_read *a = arg;

	a->result = cuFileWrite(a->fh, a->g, 1001, 1, 0);
	return NULL;
}

/*
 * A copy without a stream of its own waits for the program's work.  Who puts a transfer
 * into a stream meanwhile does not wait for that.
 */
void test_async_beside(void)
{
	enum { EVENTS, NO_EVENTS, NOT_RECORDED, NOT_PINNED, LACKS };
	char *data = malloc(SIZE), *g, *copied;
	pthread_t copies, orders;
	struct an_order o;
	struct a_read a;
	int fd, turn;

	noise(data, SIZE);
	for (turn = 0; turn < 2 * LACKS; turn++) {
		fresh(NULL);
		fd = make(path, 0, data, SIZE);
		g = gpu(SIZE);
		copied = gpu(SIZE);
		memcpy(mem(copied), data + 1, 1001);
		o = (struct an_order){ .fh = reg(fd), .g = g, .size = SIZE };
		a = (struct a_read){ .fh = o.fh, .g = copied };
		mock.no_streams = true;
		mock.no_events = turn / 2 == NO_EVENTS;
		mock.no_record = turn / 2 == NOT_RECORDED;
		mock.no_pinning = turn / 2 == NOT_PINNED;
		mock.hold_default = true;
		pthread_create(&copies, NULL, turn % 2 ? write_1001 : read_1001, &a);
		AWAIT(mock.in_default == 1);
		pthread_create(&orders, NULL, order_it, &o);
		AWAIT(o.returned);
		pthread_join(orders, NULL);
		if (turn / 2 == EVENTS) {
			is(o.err, 0, "a read in a stream, while another's copy waits");
			mock_settle();
			is(o.result, SIZE, "it does not wait for that");
			check(!memcmp(mem(g), data, SIZE), "and has the right data");
		} else {
			is(o.err, CU_FILE_NOMEM_ERROR,
			   "which would wait for it if it were taken");
		}
		is(mock.in_default, 1, "the copy still waits");
		mock.hold_default = false;
		pthread_join(copies, NULL);
		is(a.result, 1001, "and comes to an end");
		check(!memcmp(mem(copied), data + 1, 1001) &&
		      pread(fd, mem(g), 1001, 1) == 1001 && !memcmp(mem(g), data + 1, 1001),
		      "with the right data");
		o = (struct an_order){ .fh = o.fh, .g = g, .size = SIZE };
		order_it(&o);
		is(o.err, 0, "the next read in the stream");
		mock_settle();
		is(o.result, SIZE, "goes well");
		cuFileHandleDeregister(o.fh);
		close(fd);
		gpu_free(g);
		gpu_free(copied);
	}
	free(data);
}

/* A stream does not wait for all entries of batches. */
void test_async_first(void)
{
	char *data = calloc(1, SIZE), *g;
	off_t off = 0, buf_off = 0;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p[8];
	CUfileIOEvents_t e[8];
	size_t size = SIZE;
	CUfileHandle_t fh;
	ssize_t r = -9;
	unsigned int i, n = 8;
	int fd;

	fresh("{\"peerlane\":{\"max_io_threads\":1,\"prefer_iouring\":false}}");
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	g = gpu(SIZE);
	cuFileBatchIOSetUp(&b, 8);
	for (i = 0; i < 8; i++)
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh,
			.u.batch = { .devPtr_base = g, .size = 4096 }
		};
	mock.slow_ms = 300;
	is(cuFileBatchIOSubmit(b, 8, p, 0).err, 0, "eight slow entries");
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, stream_of(16)).err,
	   0, "and a read in a stream");
	mock_settle();
	is(r, SIZE, "which ends");
	is(cuFileBatchIOGetStatus(b, 0, &n, e, NULL).err, 0, "events by then");
	check(n < 8, "it was done before the last of them (%u)", n);
	cuFileBatchIODestroy(b);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

void test_settings_calls(void)
{
	size_t kb[8], n[8], min = 0, max = 0, size;
	const size_t set_kb[] = { 64, 256 }, set_n[] = { 4, 2 }, zero[] = { 0, 1 };
	CUfileP2PFlags_t f = (CUfileP2PFlags_t)7;
	CUfileDrvProps_t p;

	fresh("{\"properties\":{\"gpu_bounce_buffer_slab_config\":"
	      "{\"slab_size_kb\":[8],\"slab_count\":[3]}}}");
	is(cuFileGetParameterMinMaxValue(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					 &min, &max).err, 0, "a range");
	check(min == 1 && max == 256, "of the entries of a batch");
	is(cuFileGetParameterMinMaxValue(99, &min, &max).err, 5022, "of none");
	is(cuFileGetParameterMinMaxValue(1, NULL, &max).err, 5022, "no place");
	is(cuFileGetParameterPosixPoolSlabArray(kb, n, 3).err, 0, "slabs");
	check(kb[1] == 1024 && n[1] == 64, "as they are by default");
	is(cuFileGetParameterPosixPoolSlabArray(kb, n, 2).err, 5022,
	   "fewer than there are");
	is(cuFileGetParameterPosixPoolSlabArray(NULL, n, 3).err, 5022, "nowhere");
	is(cuFileGetParameterGpuBounceBufferSlabArray(kb, n, 1).err, 0,
	   "those of the GPU");
	check(kb[0] == 8 && n[0] == 3, "as the file has them");
	is(cuFileSetParameterPosixPoolSlabArray(set_kb, set_n, 2).err, 5026,
	   "not while open");
	cuFileDriverClose();
	is(cuFileSetParameterPosixPoolSlabArray(set_kb, set_n, 0).err, 5022,
	   "no slabs");
	is(cuFileSetParameterPosixPoolSlabArray(set_kb, set_n, 9).err, 5022,
	   "too many");
	is(cuFileSetParameterPosixPoolSlabArray(zero, set_n, 2).err, 5022,
	   "a size of 0");
	is(cuFileSetParameterGpuBounceBufferSlabArray(set_kb, set_n, 2).err, 0,
	   "those of the GPU are set");
	is(cuFileGetParameterGpuBounceBufferSlabArray(kb, n, 2).err, 0,
	   "and read back");
	check(kb[1] == 256 && n[1] == 2, "as set, before the file");
	kb[0] = 4;
	kb[1] = 1024;
	kb[2] = 16384;
	n[0] = 128;
	n[1] = n[2] = 64;
	is(cuFileSetParameterPosixPoolSlabArray(kb, n, 3).err, 0,
	   "those of the host are set");

	is(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &f).err, 0, "flags");
	is(f, 0, "none is set");
	is(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, NULL).err, 5022,
	   "nowhere to put them");
	is(cuFileDriverGetP2PFlags(CU_FILE_MAX_TARGET_TYPES, &f).err, 5022,
	   "of no storage");
	is(cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED,
				   CU_FILE_P2P_FLAG_NVFS).err, 5022,
	   "a flag that cannot be set");
	is(cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED,
				   CU_FILE_P2P_FLAG_PCI_P2PDMA).err, 0, "set");
	cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &f);
	is(f, 1, "and told back");
	cuFileDriverGetP2PFlags(CU_FILE_LUSTRE_SUPPORTED, &f);
	is(f, 0, "of that storage alone");
	is(cuFileExportPCIeTopology(NULL).err, 5022, "the topology to nowhere");
	is(cuFileExportPCIeTopology("").err, 5022, "to a file without a name");
	is(cuFileUseCount(), 0, "and nothing of this opens the library");

	is(cuFileGetBARSizeInKB(0, NULL).err, 5022, "BAR1 to nowhere");
	is(cuFileGetBARSizeInKB(-1, &size).err, 5022, "of no GPU");
	is(cuFileGetBARSizeInKB(0, &size).err, 5029,
	   "of a GPU that is not on this machine's bus");
	is(cuFileUseCount(), 1, "it opens the library");
	cuFileDriverGetProperties(&p);
	is(p.max_batch_io_size, 128, "properties tell of batches");
	cuFileDriverClose();
	cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &f);
	is(f, 0, "the last close forgets the flags");
}

/* @n entries like @p, and their ends */
static void batch_of(CUfileBatchHandle_t b, const CUfileIOParams_t *p,
		     unsigned int n)
{
	CUfileIOParams_t all[8];
	CUfileIOEvents_t e[8];
	unsigned int i;

	for (i = 0; i < n; i++)
		all[i] = *p;
	cuFileBatchIOSubmit(b, n, all, 0);
	cuFileBatchIOGetStatus(b, n, &n, e, NULL);
}

void test_counts(void)
{
	char *data = calloc(1, 4 * SIZE), *g;
	CUfileStatsLevel3_t s3;
	CUfileStatsLevel2_t s2;
	CUfileStatsLevel1_t s1;
	CUfileBatchHandle_t b;
	CUfileIOParams_t p;
	CUfileIOEvents_t e;
	CUfileHandle_t fh;
	unsigned int n;
	int fd, level;

	fresh("{\"profile\":{\"cufile_stats\":1}}");
	is(cuFileGetStatsLevel(NULL).err, 5022, "the level to nowhere");
	is(cuFileGetStatsLevel(&level).err, 0, "the level");
	is(level, 1, "of the file");
	is(cuFileSetStatsLevel(4).err, 5022, "no such level");
	is(cuFileSetStatsLevel(-1).err, 5022, "no such level either");
	is(cuFileGetStatsL1(&s1).err, 0, "level 1 is read");
	is(cuFileGetStatsL2(&s2).err, 5022, "level 2 is not");
	is(cuFileSetStatsLevel(3).err, 0, "level 3 from now on");
	is(cuFileStatsReset().err, 0, "from the beginning");
	is(cuFileGetStatsL3(NULL).err, 5022, "to nowhere");

	fd = make(path, 0, data, 4 * SIZE);
	fh = reg(fd);
	g = gpu(4 * SIZE);
	cuFileBufRegister(g, 4 * SIZE, 0);
	cuFileRead(fh, g, SIZE, 0, 0);
	cuFileRead(fh, g, SIZE + 1, 0, 0);
	cuFileRead(fh, g, 1000, 0, 0);
	cuFileWrite(fh, g, 4096, 0, 0);
	cuFileRead(fh, g, SIZE, -1, 0);
	mock.media_errno = EIO;
	mock.bad_to = 4 * SIZE;
	cuFileRead(fh, g, 4096, 0, 0);
	mock.bad_to = 0;
	cuFileBatchIOSetUp(&b, 2);
	p = (CUfileIOParams_t){ .mode = CUFILE_BATCH, .fh = fh,
				.u.batch = { .devPtr_base = g, .size = 8192 } };
	cuFileBatchIOSubmit(b, 1, &p, 0);
	n = 1;
	cuFileBatchIOGetStatus(b, 1, &n, &e, NULL);
	cuFileBatchIOSubmit(b, 3, &p, 0);
	is(cuFileGetStatsL3(&s3).err, 0, "level 3");
	s1 = s3.detailed.basic;
	is((long long)s1.read_ops.ok, 4, "reads");
	is((long long)s1.read_ops.err, 1, "and one that failed");
	is((long long)s1.write_ops.ok, 1, "a write");
	is((long long)s1.read_bytes, 2 * SIZE + 1 + 1000 + 8192, "bytes read");
	is((long long)s1.write_bytes, 4096, "bytes written");
	is((long long)s1.hdl_register_ops.ok, 1, "a file");
	is((long long)s1.buf_register_ops.ok, 1, "a buffer");
	is((long long)s1.batch_submit_ops.ok, 1, "a batch");
	is((long long)s1.batch_submit_ops.err, 1, "and one refused");
	is((long long)s1.batch_complete_ops.ok, 1, "and its end");
	is((long long)s1.batch_read_bytes, 8192, "and its bytes");
	check(s1.read_bw_bytes_per_sec && s1.read_ops_per_sec,
	      "rates are told");
	is((long long)s3.detailed.read_size_kb_hist[0], 1, "one below 4 KiB");
	is((long long)s3.detailed.read_size_kb_hist[2], 1, "one of 8 KiB");
	is((long long)s3.detailed.read_size_kb_hist[5], 2, "two of 64 KiB");
	is((long long)s3.detailed.write_size_kb_hist[1], 1, "a write of 4 KiB");
	is(s3.num_gpus, 1, "one GPU");
	is(s3.per_gpu_stats[0].uuid[15], 'u', "by its name");
	is((long long)s3.per_gpu_stats[0].n_total_reads, 4, "its reads");
	is((long long)s3.per_gpu_stats[0].n_p2p_reads, 4, "by p2p, in part");
	is((long long)s3.per_gpu_stats[0].n_posix_reads, 2, "staged in part");
	is((long long)s3.per_gpu_stats[0].n_unaligned_reads, 2, "unaligned");
	is((long long)s3.per_gpu_stats[0].n_reads_err, 1, "failed");
	is((long long)s3.per_gpu_stats[0].n_mmap_ok, 1, "its buffer");
	is((long long)s3.per_gpu_stats[0].reg_bytes, 4 * SIZE, "of that size");

	is(cuFileStatsStop().err, 0, "no more is counted");
	cuFileRead(fh, g, SIZE, 0, 0);
	is(cuFileGetStatsL1(&s1).err, 0, "what was stays readable");
	is((long long)s1.read_ops.ok, 4, "and as it was");
	is(cuFileStatsStart().err, 0, "it is counted again");
	cuFileRead(fh, g, SIZE, 0, 0);
	cuFileGetStatsL1(&s1);
	is((long long)s1.read_ops.ok, 5, "from there on");
	cuFileStatsReset();
	cuFileGetStatsL1(&s1);
	is((long long)s1.read_ops.ok, 0, "and from nothing");

	/* 300 bytes within a block, entries by threads, and cancelled ones */
	cuFileRead(fh, g, 300, 100, 0);
	cuFileGetStatsL3(&s3);
	is((long long)s3.per_gpu_stats[0].n_unaligned_reads, 1,
	   "within a block is unaligned, too");
	is((long long)s3.per_gpu_stats[0].n_p2p_reads, 0, "and all staged");
	p.u.batch.size = 300;
	for (n = 0; n < 4; n++)
		batch_of(b, &p, 1);
	cuFileGetStatsL1(&s1);
	is((long long)s1.batch_posix_enqueued_ops.ok, 4, "threads have got four");
	is((long long)s1.batch_posix_processed_ops.ok, 4, "and done them");
	is((long long)s1.batch_p2p_submit_ops.ok, 0, "and the ring none");
	p.u.batch.size = 8192;
	batch_of(b, &p, 1);
	cuFileGetStatsL1(&s1);
	is((long long)s1.batch_p2p_submit_ops.ok, 1, "then one");
	is((long long)s1.batch_posix_enqueued_ops.ok, 4, "and threads no other");

	/* what is not counted takes no time */
	cuFileSetStatsLevel(0);
	mock.later = 100000;
	cuFileSetStatsLevel(3);
	cuFileGetStatsL1(&s1);
	check(s1.read_ops.ok == 6 && s1.read_ops_per_sec,
	      "level 0 stops the clock: %llu reads a second",
	      (unsigned long long)s1.read_ops_per_sec);
	cuFileRead(fh, g, 300, 100, 0);
	cuFileGetStatsL1(&s1);
	is((long long)s1.read_ops.ok, 7, "and it goes on after it");
	cuFileStatsStop();
	cuFileSetStatsLevel(0);
	cuFileSetStatsLevel(3);
	cuFileRead(fh, g, 300, 100, 0);
	cuFileGetStatsL1(&s1);
	is((long long)s1.read_ops.ok, 7, "unless it was stopped");

	/* four at a time */
	cuFileStatsStart();
	cuFileStatsReset();
	cuFileBatchIODestroy(b);
	cuFileBatchIOSetUp(&b, 8);
	mock.slow_ms = 200;
	p.u.batch.size = 300;
	batch_of(b, &p, 8);
	mock.slow_ms = 0;
	cuFileGetStatsL3(&s3);
	check(s3.per_gpu_stats[0].read_utilization <= 100 &&
	      s3.per_gpu_stats[0].read_utilization > 10,
	      "no more than all of the time: %llu percent",
	      (unsigned long long)s3.per_gpu_stats[0].read_utilization);
	is(cuFileSetStatsLevel(0).err, 0, "level 0");
	is(cuFileStatsStart().err, 5022, "cannot be started");
	is(cuFileGetStatsL1(&s1).err, 5022, "nor read");
	cuFileBatchIODestroy(b);
	cuFileDriverClose();
	is(cuFileStatsStart().err, 5001, "start, closed");
	is(cuFileStatsStop().err, 5001, "stop, closed");
	is(cuFileStatsReset().err, 5001, "reset, closed");
	is(cuFileGetStatsL1(&s1).err, 5001, "read, closed");
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
}

/* What goes p2p in one piece has no thread while it is under way. */
void test_async_ring(void)
{
	char *data = malloc(2 * SIZE), *got = malloc(SIZE), *g, *h;
	CUstream s = stream_of(16);
	off_t off = SIZE, buf_off = 0;
	struct pln_file_result said = { .size = sizeof(said) };
	size_t size = SIZE, short_of = SIZE;
	CUfileHandle_t fh, ro;
	int fd, fd_ro;
	uint64_t calls;
	ssize_t r, r2;

	fresh("{\"peerlane\":{\"prefer_iouring\":false}}");
	noise(data, 2 * SIZE);
	fd = make(path, 0, data, 2 * SIZE);
	fd_ro = open(path, O_RDONLY);
	fh = reg(fd);
	g = gpu(2 * SIZE);
	cuFileRead(fh, g, SIZE, 0, 0);
	calls = mock.p2p_calls;
	cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s);
	mock_settle();
	is((long long)(mock.p2p_calls - calls), 1, "without the ring a thread reads");
	fresh(NULL);
	fh = reg(fd);
	ro = reg(fd_ro);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "p2p is found to work");
	calls = mock.p2p_calls;
	memset(mem(g), 0, SIZE);
	r = -9;
	pln_file_next_result(&said, 1);
	is(cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0, "a read in a stream");
	mock_settle();
	is(r, SIZE, "has all its bytes");
	check(!memcmp(mem(g), data + SIZE, SIZE), "the right ones");
	is((long long)said.bytes[PLN_PATH_P2P], SIZE, "by p2p, as its result says");
	off = 0;
	is(cuFileWriteAsync(fh, g, &size, &off, &buf_off, &r, s).err, 0, "a write");
	mock_settle();
	check(r == SIZE && pread(fd, got, SIZE, 0) == SIZE && !memcmp(got, data + SIZE, SIZE),
	      "is in the file");
	is((long long)(mock.p2p_calls - calls), 0, "and no thread has made a call for them");
	is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read, 2 * SIZE, "all is counted");
	is(cuFileWriteAsync(ro, g, &size, &off, &buf_off, &r, s).err, 0,
	   "a write to what is open to read");
	mock_settle();
	is(r, -1, "is an error");

	/* what the ring does not do, a thread does: in the order of the stream */
	short_of = 1000;
	off = 4096;
	h = gpu(SIZE);
	is(cuFileBufRegister(h, 4096, 0).err, 0, "a buffer is registered");
	cuFileReadAsync(fh, g, &short_of, &off, &buf_off, &r, s);
	cuFileReadAsync(fh, h, &size, &off, &buf_off, &r2, s);
	mock_settle();
	is(r, 1000, "a part of a page");
	is(r2, -CU_FILE_INVALID_MAPPING_RANGE, "more than was registered");
	cuFileBufDeregister(h);

	/* the mapping is gone, and another one does: the kernel says so to the ring */
	off = 0;
	calls = mock.p2p_calls;
	memset(mem(g), 0, SIZE);
	mock_revoke();
	cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, s);
	mock_settle();
	is(r, SIZE, "what failed in the ring is done again");
	check(mock.p2p_calls > calls && !memcmp(mem(g), data + SIZE, SIZE), "by a thread");
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(ro);
	close(fd);
	close(fd_ro);
	gpu_free(g);
	gpu_free(h);
	free(data);
	free(got);
}

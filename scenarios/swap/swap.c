// SPDX-License-Identifier: MIT
/*
 * The state of an optimizer, larger than the GPU's memory, streams through it and
 * back to its file, once in each step of a training:
 *
 *	swap make FILE		as it is at first
 *	swap run FILE LABEL	some steps
 *	swap look FILE LABEL	has each number become what it must be?
 *
 * A piece is read, updated and written in the order of one stream; three of them, each
 * with its buffer, are under way at once.
 */
#include <semaphore.h>

#include <peerlane/cuda_ext.h>

#include "guest.h"

#define PIECE	MIB(4)
#define PIECES	13u			/* 52 MiB */
#define BUFFERS	3u
#define STEPS	3u
#define NUMBERS	(PIECE / sizeof(uint32_t))

int cuDeviceTotalMem_v2(size_t *bytes, int dev);
int cuStreamCreate(CUstream *stream, unsigned int flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamWaitEvent(CUstream stream, void *event, unsigned int flags);
int cuEventCreate(void **event, unsigned int flags);
int cuEventRecord(void *event, CUstream stream);
int cuLaunchHostFunc(CUstream stream, void (*call)(void *arg), void *arg);

/* One transfer, as long as it is in its stream */
struct transfer {
	size_t size;
	off_t at, in_buffer;
	ssize_t result;
};

static struct buffer {
	gpu_ptr gpu;
	CUstream stream;
	struct transfer in, out;
} buffer[BUFFERS];

static void *written[PIECES];		/* events */
static uint32_t numbers[NUMBERS], wanted[NUMBERS];
static CUfileHandle_t fh;
static sem_t gate;
static uint64_t bytes_read, bytes_written;

static void must(int r, const char *what)
{
	if (!r)
		return;
	ok(false, "%s: error %d", what, r);
	exit(1);
}

/* Piece @n, counted through all steps, into its buffer, when its file has it */
static void put_read(unsigned int n)
{
	struct buffer *b = &buffer[n % BUFFERS];

	if (n >= PIECES)
		must(cuStreamWaitEvent(b->stream, written[n % PIECES], 0), "cuStreamWaitEvent");
	b->in = (struct transfer){ .size = PIECE, .at = (off_t)(n % PIECES * PIECE) };
	must(cuFileReadAsync(fh, addr(b->gpu), &b->in.size, &b->in.at, &b->in.in_buffer,
			     &b->in.result, b->stream).err, "cuFileReadAsync");
}

static void put_write(unsigned int n)
{
	struct buffer *b = &buffer[n % BUFFERS];

	b->out = (struct transfer){ .size = PIECE, .at = (off_t)(n % PIECES * PIECE) };
	must(cuFileWriteAsync(fh, addr(b->gpu), &b->out.size, &b->out.at,
			      &b->out.in_buffer, &b->out.result, b->stream).err,
	     "cuFileWriteAsync");
	must(cuEventRecord(written[n % PIECES], b->stream), "cuEventRecord");
}

/* What was put into the buffer's stream has ended. */
static void ended(struct buffer *b, bool wrote, bool did_read)
{
	must(cuStreamSynchronize(b->stream), "cuStreamSynchronize");
	if (wrote)
		must(b->out.result != (ssize_t)PIECE, "a write");
	if (did_read)
		must(b->in.result != (ssize_t)PIECE, "a read");
	bytes_written += wrote * PIECE;
	bytes_read += did_read * PIECE;
}

static void hold(void *arg)
{
	sem_wait(&gate);
	(void)arg;
}

static int run(const char *file, const char *label)
{
	struct json_object *result = json_object_new_object();
	const unsigned int last = STEPS * PIECES;
	unsigned int n, ahead = 0;
	size_t memory = 0, held;
	gpu_ptr gradient;
	int fd;

	gpu_open();
	must(cuDeviceTotalMem_v2(&memory, 0), "cuDeviceTotalMem");
	fd = must_open(file, O_RDWR | O_DIRECT);
	must(cuFileDriverOpen().err, "cuFileDriverOpen");
	fh = must_reg(fd, file);
	gradient = gpu_alloc(PIECE);
	held = PIECE;
	noise(numbers, PIECE, PIECES);
	must(cuMemcpyHtoD_v2(gradient, numbers, PIECE), "cuMemcpyHtoD");
	for (n = 0; n < BUFFERS; n++) {
		buffer[n].gpu = gpu_alloc(PIECE);
		held += PIECE;
		must(cuFileBufRegister(addr(buffer[n].gpu), PIECE, 0).err, "cuFileBufRegister");
		/* not ordered with the update of another piece */
		must(cuStreamCreate(&buffer[n].stream, 1), "cuStreamCreate");
	}
	for (n = 0; n < PIECES; n++)
		must(cuEventCreate(&written[n], 2), "cuEventCreate");
	/* the calls do not wait for what they ask */
	sem_init(&gate, 0, 0);
	for (n = 0; n < BUFFERS; n++) {
		must(cuLaunchHostFunc(buffer[n].stream, hold, NULL), "cuLaunchHostFunc");
		put_read(n);
	}
	for (n = 0; n < BUFFERS; n++)
		ahead += !buffer[n].in.result;
	for (n = 0; n < BUFFERS; n++)
		sem_post(&gate);
	for (n = 0; n < last; n++) {
		struct buffer *b = &buffer[n % BUFFERS];

		ended(b, n >= BUFFERS, true);
		must(plnMemAdd(b->gpu, gradient, PIECE, PLN_DTYPE_INT32), "plnMemAdd");
		put_write(n);
		if (n + BUFFERS < last)
			put_read(n + BUFFERS);
	}
	for (n = last; n < last + BUFFERS; n++)
		ended(&buffer[n % BUFFERS], true, false);
	note("%s: %s", label, stats().reason);
	must(fsync(fd), "fsync");
	json_set(result, "state", PIECES * PIECE);
	json_set(result, "steps", STEPS);
	json_set(result, "gpu_memory", memory);
	json_set(result, "held", held);
	json_set(result, "read", bytes_read);
	json_set(result, "written", bytes_written);
	json_set(result, "buffers", BUFFERS);
	json_set(result, "ahead", ahead);
	tell_fact(label, result);
	ok(ahead == BUFFERS, "%s: %u transfers waited in their streams", label, ahead);
	for (n = 0; n < BUFFERS; n++)
		cuFileBufDeregister(addr(buffer[n].gpu));
	cuFileHandleDeregister(fh);
	cuFileDriverClose();
	return finish();
}

/* The program's own arithmetic; @label: compares, else writes */
static int by_processor(const char *file, const char *label)
{
	int fd = must_open(file, label ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC);
	unsigned int n, right = 0;

	for (n = 0; n < PIECES; n++) {
		noise(wanted, PIECE, n);
		if (!label) {
			if (pwrite(fd, wanted, PIECE, (off_t)(n * PIECE)) != (ssize_t)PIECE)
				die("pwrite");
			continue;
		}
		noise(numbers, PIECE, PIECES);
		for (size_t i = 0; i < NUMBERS; i++)
			wanted[i] += STEPS * numbers[i];
		right += pread(fd, numbers, PIECE, (off_t)(n * PIECE)) == (ssize_t)PIECE &&
			 !memcmp(numbers, wanted, PIECE);
	}
	if (label) {
		struct json_object *result = json_object_new_object();
		char key[64];

		json_set(result, "pieces", PIECES);
		json_set(result, "right", right);
		snprintf(key, sizeof(key), "%s_file", label);
		tell_fact(key, result);
	}
	ok(label ? right == PIECES : !fsync(fd), "%s: %u pieces",
	   label ? "each number is what it must be" : "the state is made",
	   label ? right : PIECES);
	return finish();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "make"))
		return by_processor(argv[2], NULL);
	if (argc == 4 && !strcmp(argv[1], "run"))
		return run(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "look"))
		return by_processor(argv[2], argv[3]);
	return 2;
}

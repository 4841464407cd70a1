// SPDX-License-Identifier: MIT
/*
 * peerlane io load: threads that read and write a file call by call, and how long
 * the calls took.
 *
 * The part of the file is cut into blocks, and each worker has a share of them, so
 * that nobody reads what another one writes meanwhile.  A thread is one worker, or
 * begins the calls of several together.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cufile.h>

#include "hist.h"
#include "io.h"
#include "tool.h"
#include "transfer.h"

#define PAGE	4096u

struct load;

struct worker {
	struct load *l;
	uint64_t first, blocks;		/* its share */
	uint64_t random;		/* state of its numbers */
	uint64_t at;			/* of its part of the GPU buffer */
	char *host;
	void *stream;
	struct {			/* of the stream: it may write there when we
					 * no longer wait for it */
		size_t n;
		off_t file, mem;
		ssize_t done;
		struct pln_file_result result;
	} call;
	const char *why;		/* what cuFile says of the latest call, or "" */
	uint64_t bytes[2];		/* by direction: of writes is the second */
	struct call {			/* the one that is under way */
		uint64_t off;
		size_t n;
		bool write;
		ssize_t result;
		uint64_t took;
	} now;
	struct hist *hist[2];
};

struct crew {
	struct load *l;
	pthread_t thread;
	struct worker *w;		/* the first of l->depth */
	struct worker **group;		/* those whose calls are begun together */
	CUfileBatchHandle_t batch;	/* an entry for each share */
	CUfileIOParams_t *entry;
	CUfileIOEvents_t *event;
};

struct load {
	struct options *o;
	struct io_file f;
	uint64_t base, size;		/* GPU buffer; bytes of the file */
	uint64_t block, most, step;	/* the least and the most of a call, and between two */
	uint64_t sizes, round;		/* how many there are, and their bytes together */
	pthread_barrier_t ready;
	_Atomic bool stop;
	pthread_mutex_t lock;
	int status;			/* under the lock: of the first failure */
	char error[1024];
	uint64_t threads, depth, workers;	/* depth: workers of a thread */
	struct worker *w;
	struct crew *crew;
};

/* The first failure is what is told; all stop. */
static void __attribute__((format(printf, 3, 4)))
failed(struct load *l, int status, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&l->lock);
	if (!l->status) {
		l->status = status;
		va_start(ap, fmt);
		vsnprintf(l->error, sizeof(l->error), fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&l->lock);
	l->stop = true;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the ways ---- */

static ssize_t by_cufile(struct worker *w, bool write, uint64_t off, size_t n)
{
	struct load *l = w->l;

	pln_file_next_result(&w->call.result, 1);
	w->why = w->call.result.reason;
	return write ? cuFileWrite(l->f.fh, (void *)l->base, n, (off_t)off,
				   (off_t)w->at)
		     : cuFileRead(l->f.fh, (void *)l->base, n, (off_t)off,
				  (off_t)w->at);
}

/* Gives it to libcufile; 0, or what the call has come to */
static ssize_t stream_begin(struct worker *w, bool write, uint64_t off, size_t n)
{
	struct load *l = w->l;
	CUfileError_t e;

	w->call.n = n;
	w->call.file = (off_t)off;
	w->call.mem = (off_t)w->at;
	w->call.done = 0;
	pln_file_next_result(&w->call.result, 1);
	e = write ? cuFileWriteAsync(l->f.fh, (void *)l->base, &w->call.n,
				     &w->call.file, &w->call.mem,
				     &w->call.done, w->stream)
		  : cuFileReadAsync(l->f.fh, (void *)l->base, &w->call.n,
				    &w->call.file, &w->call.mem,
				    &w->call.done, w->stream);
	return -(ssize_t)e.err;
}

static ssize_t stream_end(struct worker *w)
{
	if (!gpu_stream_wait(w->stream))
		return -CU_FILE_CUDA_DRIVER_ERROR;
	w->why = w->call.result.reason;
	if (w->call.done == -1)
		errno = w->call.result.error;
	return w->call.done;
}

static ssize_t by_stream(struct worker *w, bool write, uint64_t off, size_t n)
{
	ssize_t r = stream_begin(w, write, off, n);

	return r ? r : stream_end(w);
}

static ssize_t by_cpu(struct worker *w, bool write, uint64_t off, size_t n)
{
	size_t done = 0;
	ssize_t r;

	while (done < n) {
		r = write ? pwrite(w->l->f.fd, w->host + done, n - done,
				   (off_t)(off + done))
			  : pread(w->l->f.fd, w->host + done, n - done,
				  (off_t)(off + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (!r)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

static ssize_t by_copy(struct worker *w, bool write, uint64_t off, size_t n)
{
	uint64_t ptr = w->l->base + w->at;
	ssize_t r;

	if (write)
		return gpu_get(w->host, ptr, n) ? by_cpu(w, true, off, n) :
						  -CU_FILE_CUDA_DRIVER_ERROR;
	r = by_cpu(w, false, off, n);
	if (r > 0 && !gpu_put(ptr, w->host, (size_t)r))
		return -CU_FILE_CUDA_DRIVER_ERROR;
	return r;
}

static ssize_t by_async(struct worker *w, bool write, uint64_t off, size_t n)
{
	uint64_t ptr = w->l->base + w->at;
	ssize_t r;

	if (write)
		return gpu_get_by(w->stream, w->host, ptr, n) ?
		       by_cpu(w, true, off, n) : -CU_FILE_CUDA_DRIVER_ERROR;
	r = by_cpu(w, false, off, n);
	if (r > 0 && !gpu_put_by(w->stream, ptr, w->host, (size_t)r))
		return -CU_FILE_CUDA_DRIVER_ERROR;
	return r;
}

/*
 * The next two do a call of each of the first @n in the group.  Of a call that has failed
 * the result is the errno, or the code, below 0; one takes until it is known to have ended.
 */
static bool by_batch(struct crew *c, unsigned int n)
{
	struct load *l = c->l;
	unsigned int i, got, done;
	uint64_t start, took;
	CUfileError_t e;

	for (i = 0; i < n; i++) {
		struct worker *w = c->group[i];

		c->entry[i] = (CUfileIOParams_t) {
			.mode = CUFILE_BATCH,
			.u.batch = {
				.devPtr_base = (void *)l->base,
				.file_offset = (off_t)w->now.off,
				.devPtr_offset = (off_t)w->at,
				.size = w->now.n,
			},
			.fh = l->f.fh,
			.opcode = w->now.write ? CUFILE_WRITE : CUFILE_READ,
			.cookie = w,
		};
	}
	start = now_ns();
	e = cuFileBatchIOSubmit(c->batch, n, c->entry, 0);
	for (done = 0; !e.err && done < n; done += got) {
		got = n - done;
		e = cuFileBatchIOGetStatus(c->batch, 1, &got, c->event, NULL);
		took = now_ns() - start;
		for (i = 0; !e.err && i < got; i++) {
			struct worker *w = c->event[i].cookie;

			w->now.took = took;
			w->now.result = (ssize_t)c->event[i].ret;
		}
	}
	if (e.err)
		failed(l, EXIT_IO, "a batch of %u failed: %s (%d)", n,
		       cufileop_status_error(e.err), e.err);
	return !e.err;
}

static bool by_streams(struct crew *c, unsigned int n)
{
	uint64_t start = now_ns();
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct worker *w = c->group[i];

		w->now.result = stream_begin(w, w->now.write, w->now.off,
					     w->now.n);
	}
	for (i = 0; i < n; i++) {
		struct worker *w = c->group[i];

		if (!w->now.result)
			w->now.result = stream_end(w);
		if (w->now.result == -1)
			w->now.result = -errno;
		w->now.took = now_ns() - start;
	}
	return true;
}

static const struct way {
	ssize_t (*move)(struct worker *w, bool write, uint64_t off, size_t n);
	bool gpu;
	bool cufile;		/* it says which path it took; else: */
	enum pln_path path;
	bool host;		/* memory of the host is needed */
	const char *reason;
	bool stream;		/* so is a stream, of each share */
	/* a thread begins a call of each of its shares, and waits for all of them */
	bool (*together)(struct crew *c, unsigned int n);
} ways[IO_WAYS] = {
	[BY_CUFILE] = { by_cufile, true, true },
	[BY_CPU] = { by_cpu, false, false, PLN_PATH_POSIX, true,
		     "--transfer cpu: no GPU is used" },
	[BY_COPY] = { by_copy, true, false, PLN_PATH_BOUNCE, true,
		      "--transfer requests a copy through host memory" },
	[BY_ASYNC] = { by_async, true, false, PLN_PATH_BOUNCE, true,
		       "--transfer requests a copy through page-locked host "
		       "memory",
		       .stream = true },
	[BY_STREAM] = { by_stream, true, true, .stream = true },
	[BY_BATCH] = { NULL, true, true, .together = by_batch },
	[BY_STREAMS] = { NULL, true, true, .stream = true,
			 .together = by_streams },
};

/* ---- a thread ---- */

/* Is the data in memory that the processor does not use? */
static bool on_gpu(const struct options *o)
{
	return ways[o->way].gpu && o->memory < IN_PINNED;
}

/* As splitmix64 has them */
static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* What is written at @off; of each place and seed another. */
static bool fill(struct worker *w, uint64_t off, size_t n)
{
	const size_t whole = (n + 7) / 8 * 8;
	bool gpu = on_gpu(w->l->o);
	uint64_t *data = gpu ? malloc(whole) : (uint64_t *)(void *)w->host;
	bool good;

	if (!data) {
		failed(w->l, EXIT_IO, "out of memory");
		return false;
	}
	pattern(data, whole, off / 8 * 8, w->l->o->seed + off % 8);
	good = !gpu || gpu_put(w->l->base + w->at, data, n);
	if (!good)
		failed(w->l, EXIT_NO_GPU, "GPU memory could not be filled");
	if (gpu)
		free(data);
	return good;
}

/* Is what the GPU has what the file has?  That is read again, by the CPU. */
static bool verified(struct worker *w, uint64_t off, size_t n)
{
	struct load *l = w->l;
	uint32_t have, want;
	const char *by;
	uint64_t got;

	if (!on_gpu(l->o))
		have = crc32c_of(0, w->host, n);
	else if (!gpu_crc32c(l->base + w->at, n, &have, &by)) {
		failed(l, EXIT_NO_GPU, "the CRC could not be computed");
		return false;
	}
	if (!file_crc(l->f.name, off, n, &want, &got)) {
		failed(l, EXIT_IO, "the file could not be read");
		return false;
	}
	if (got == n && have == want)
		return true;
	failed(l, EXIT_MISMATCH, "at %llu of %s: CRC32C of %s memory is "
	       "0x%08x, of %llu bytes of the file 0x%08x",
	       (unsigned long long)off, l->f.name, on_gpu(l->o) ?
	       "GPU" : "host", have, (unsigned long long)got, want);
	return false;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Where a block begins, and how long it is; that behind the last one is empty */
static uint64_t place(const struct load *l, uint64_t block, uint64_t *n)
{
	uint64_t k = block % l->sizes;
	uint64_t off = block / l->sizes * l->round + k * l->block +
		       (k ? k * (k - 1) / 2 * l->step : 0);

	off = smaller(off, l->size);
	*n = smaller(l->block + k * l->step, l->size - off);
	return off;
}

/*
 * Of the multiples of --align, in the file, at which a call of @n bytes may begin in the
 * share: the first, from the start of the part on, and their number.
 */
static uint64_t places(const struct worker *w, uint64_t n, uint64_t *first)
{
	const struct options *o = w->l->o;
	uint64_t none, lo = place(w->l, w->first, &none) + o->offset;
	uint64_t hi = place(w->l, w->first + w->blocks, &none) + o->offset;

	lo += (o->align - lo % o->align) % o->align;
	*first = lo - o->offset;
	return lo > hi || n > hi - lo ? 0 : (hi - n - lo) / o->align + 1;
}

/* Of its blocks */
static uint64_t longest(const struct worker *w)
{
	uint64_t i, n, most = 0;

	for (i = 0; i < w->blocks && i < w->l->sizes; i++) {
		place(w->l, w->first + i, &n);
		if (n > most)
			most = n;
	}
	return most;
}

/* The next call of a share, and what is to be written */
static bool plan(struct worker *w, uint64_t index)
{
	struct load *l = w->l;
	const struct options *o = l->o;
	uint64_t block = w->first + (o->random ? next_random(&w->random) %
				     w->blocks : index % w->blocks);
	uint64_t n, off = place(l, block, &n), count;

	if (o->align) {
		count = places(w, n, &off);
		off += next_random(&w->random) % count * o->align;
	}
	w->now.write = o->mix < 0 ? o->writes :
		       next_random(&w->random) % 100 >= (uint64_t)o->mix;
	w->now.n = (size_t)n;
	w->now.off = o->offset + off;
	w->why = "";
	return !w->now.write || !o->verify || fill(w, w->now.off, w->now.n);
}

/* What came of it */
static bool settle(struct worker *w)
{
	const struct call *c = &w->now;
	struct load *l = w->l;
	char words[256];

	if (c->result < 0) {
		result_words(c->result, words, sizeof(words));
		failed(l, c->result == -CU_FILE_IO_NOT_SUPPORTED ?
		       EXIT_REFUSED : EXIT_IO, "%s at %llu of %s failed: %s%s%s",
		       c->write ? "write" : "read", (unsigned long long)c->off,
		       l->f.name, words, w->why[0] ? ": " : "", w->why);
		return false;
	}
	w->bytes[c->write] += (uint64_t)c->result;
	hist_add(w->hist[c->write], c->took);
	if ((size_t)c->result != c->n) {
		failed(l, EXIT_IO, "%s at %llu of %s: only %zd of %zu bytes",
		       c->write ? "write" : "read", (unsigned long long)c->off,
		       l->f.name, c->result, c->n);
		return false;
	}
	return !l->o->verify || verified(w, c->off, c->n);
}

static bool one_call(struct worker *w, uint64_t index)
{
	struct call *c = &w->now;
	uint64_t start;

	if (!plan(w, index))
		return false;
	start = now_ns();
	c->result = ways[w->l->o->way].move(w, c->write, c->off, c->n);
	c->took = now_ns() - start;
	return settle(w);
}

/* One call of each share, together */
static bool one_group(struct crew *c, uint64_t index)
{
	struct load *l = c->l;
	const struct options *o = l->o;
	unsigned int n = 0, i;

	for (i = 0; i < l->depth; i++) {
		struct worker *w = &c->w[i];

		if (!o->seconds && index >= w->blocks * o->loops)
			continue;
		if (!plan(w, index))
			return false;
		c->group[n++] = w;
	}
	if (!ways[o->way].together(c, n))
		return false;
	for (i = 0; i < n; i++) {
		struct worker *w = c->group[i];

		/* as a call has it */
		if (w->now.result < 0 && -w->now.result < CUFILEOP_BASE_ERR) {
			errno = (int)-w->now.result;
			w->now.result = -1;
		}
		if (!settle(w))
			return false;
	}
	return true;
}

/* A stream for each share, where the way needs one */
static bool streams(struct crew *c)
{
	uint64_t i;

	for (i = 0; ways[c->l->o->way].stream && i < c->l->depth; i++)
		if (!gpu_stream(&c->w[i].stream))
			return false;
	return true;
}

static void *work(void *arg)
{
	struct crew *c = arg;
	struct worker *w = c->w;
	struct load *l = c->l;
	const struct options *o = l->o;
	uint64_t i, calls = w->blocks * o->loops, end, none;

	if (ways[o->way].gpu && !gpu_here())
		failed(l, EXIT_NO_GPU, "a thread cannot use the GPU");
	else if (!streams(c))
		failed(l, EXIT_NO_GPU, "there is no stream");
	else if (o->writes || o->mix >= 0)
		for (i = 0; i < l->depth; i++)
			fill(&w[i], o->offset + place(l, w[i].first, &none),
			     (size_t)l->most);
	pthread_barrier_wait(&l->ready);
	/* once more: the clock is started in between */
	pthread_barrier_wait(&l->ready);
	end = now_ns() + o->seconds * 1000000000u;
	for (i = 0; !l->stop; i++)
		if ((o->seconds ? now_ns() >= end : i == calls) ||
		    !(ways[o->way].together ? one_group(c, i) : one_call(w, i)))
			break;
	return NULL;
}

/* ---- all of it ---- */

static struct json_object *microseconds(const struct hist *h)
{
	static const struct { const char *name; unsigned int thousandths; } rank[] = {
		{ "p50", 500 }, { "p95", 950 }, { "p99", 990 }, { "max", 1000 },
	};
	struct json_object *us = json_object_new_object();
	unsigned int i;
	char text[32];

	for (i = 0; i < sizeof(rank) / sizeof(rank[0]); i++) {
		uint64_t ns = rank[i].thousandths == 1000 ? h->max :
			      hist_rank(h, rank[i].thousandths);

		snprintf(text, sizeof(text), "%.3f", (double)ns / 1e3);
		json_object_object_add(us, rank[i].name, ns == HIST_UNTOLD ?
			NULL : json_object_new_double_s((double)ns / 1e3, text));
	}
	return us;
}

/* [microseconds, calls]: calls that took no longer, but longer than the one before */
static struct json_object *buckets(const struct hist *h)
{
	struct json_object *list = json_object_new_array(), *pair;
	unsigned int i;
	char text[32];

	for (i = 0; i < HIST_BUCKETS; i++) {
		double us = (double)hist_upper(i) / 1e3;

		if (!h->bucket[i])
			continue;
		snprintf(text, sizeof(text), "%.3f", us);
		pair = json_object_new_array();
		json_object_array_add(pair, json_object_new_double_s(us, text));
		json_object_array_add(pair,
				      json_object_new_uint64(h->bucket[i]));
		json_object_array_add(list, pair);
	}
	return list;
}

static struct json_object *rate(double n, double seconds)
{
	char text[32];

	n = seconds > 0 ? n / seconds : 0;
	snprintf(text, sizeof(text), "%.1f", n);
	return json_object_new_double_s(n, text);
}

static void put(struct json_object *o, const char *key, struct json_object *v)
{
	json_object_object_add(o, key, v);
}

static void say_flow(struct load *l, bool write, double wall, double cpu)
{
	struct pln_file_stats st = { .size = sizeof(st) };
	const struct options *o = l->o;
	const struct way *way = &ways[o->way];
	enum flow flow = write ? WRITES : READS;
	struct json_object *t = json_object_new_object();
	struct hist *all = calloc(1, sizeof(*all));
	uint64_t bytes = 0, i;
	char address[32];
	const char *path;

	for (i = 0; i < l->workers; i++) {
		bytes += l->w[i].bytes[write];
		if (all)
			hist_merge(all, l->w[i].hist[write]);
	}
	if (way->cufile) {
		pln_file_stats(l->f.fh, &st);
	} else {
		st.path[way->path].bytes_read = write ? 0 : bytes;
		st.path[way->path].bytes_written = write ? bytes : 0;
		snprintf(st.reason, sizeof(st.reason), "%s", way->reason);
	}
	path = flow_path(&st, flow);
	put(t, "what", json_object_new_string(write ? "write" : "read"));
	put(t, "file", json_object_new_string(l->f.name));
	if (way->gpu)
		put(t, "gpu", json_object_new_int(o->gpu));
	if (way->gpu && gpu_address(o->gpu, address, sizeof(address)))
		put(t, "gpu_address", json_object_new_string(address));
	if (o->near)
		put(t, "gpu_reason", json_object_new_string(o->gpu_reason));
	if (way->gpu)
		put(t, "memory", json_object_new_string(io_memory_name[o->memory]));
	put(t, "emulated", json_object_new_boolean(gpu_emulated()));
	put(t, "path", json_object_new_string(path));
	put(t, "bytes", json_object_new_uint64(bytes));
	put(t, "reason", json_object_new_string(strcmp(path, "p2p") ?
						st.reason : ""));
	put(t, "seconds", json_seconds(wall));
	put(t, "cpu_seconds", json_seconds(cpu));
	put(t, "bytes_by_path", flow_by_path(&st, flow));
	put(t, "bytes_per_second", rate((double)bytes, wall));
	if (all) {
		put(t, "calls", json_object_new_uint64(all->n));
		put(t, "calls_per_second", rate((double)all->n, wall));
		put(t, "microseconds", microseconds(all));
		if (o->json)
			put(t, "histogram", buckets(all));
	}
	free(all);
	io_say(o, t);
}

/* The part of the file, and each worker's share */
static int share(struct load *l)
{
	const struct options *o = l->o;
	uint64_t blocks, i, n, none;

	l->size = o->size;
	if (!o->have_size) {
		if (l->f.size <= o->offset)
			return io_give_up(o, EXIT_IO, "%s has %llu bytes: none "
					  "from %llu on; give --size N to make "
					  "it longer", l->f.name,
					  (unsigned long long)l->f.size,
					  (unsigned long long)o->offset);
		l->size = l->f.size - o->offset;
	}
	if ((!o->writes || o->mix >= 0) && (o->offset > l->f.size ||
					    l->size > l->f.size - o->offset))
		return io_give_up(o, EXIT_IO, "%s has %llu bytes: not %llu to "
				  "read from %llu on", l->f.name,
				  (unsigned long long)l->f.size,
				  (unsigned long long)l->size,
				  (unsigned long long)o->offset);
	if (o->offset > INT64_MAX || l->size > INT64_MAX - o->offset)
		return io_give_up(o, EXIT_IO, "no file is so long");
	l->block = o->chunk ? o->chunk : 1 << 20;
	l->step = o->chunk_step;
	l->sizes = l->step ? (o->chunk_most - l->block) / l->step + 1 : 1;
	l->most = l->block + (l->sizes - 1) * l->step;
	if (l->sizes > 1 && l->most > (UINT64_MAX >> 2) / IO_SIZES)
		return io_give_up(o, EXIT_NO_GPU, "no GPU has so much memory");
	l->round = l->sizes > 1 ? (l->block + l->most) * l->sizes / 2 : l->block;
	blocks = l->size / l->round * l->sizes;
	while (place(l, blocks, &n) < l->size)
		blocks++;
	if (blocks < l->workers)
		return io_give_up(o, EXIT_IO, "%llu bytes are %llu calls of "
				  "%s%llu, too few for %llu at a time: give a "
				  "smaller --chunk", (unsigned long long)l->size,
				  (unsigned long long)blocks,
				  l->sizes > 1 ? "up to " : "",
				  (unsigned long long)l->most,
				  (unsigned long long)l->workers);
	for (i = 0; i < l->workers; i++) {
		struct worker *w = &l->w[i];

		w->l = l;
		w->first = blocks / l->workers * i +
			   (i < blocks % l->workers ? i : blocks % l->workers);
		w->blocks = blocks / l->workers + (i < blocks % l->workers);
		n = longest(w);
		if (o->align && !places(w, n, &none))
			return io_give_up(o, EXIT_IO, "a share of the file has "
					  "no place for a call of %llu bytes at a "
					  "multiple of %llu: give a smaller "
					  "--chunk or --align",
					  (unsigned long long)n,
					  (unsigned long long)o->align);
	}
	return EXIT_OK;
}

/* Memory of the GPU, of the host, and histograms, for each worker */
static int buffers(struct load *l)
{
	struct options *o = l->o;
	uint64_t part = (l->most + PAGE - 1) / PAGE * PAGE, all, i;
	int r = EXIT_OK;

	if (l->most > INT64_MAX / 2 ||
	    __builtin_mul_overflow(part, l->workers, &all) ||
	    __builtin_add_overflow(all, o->gpu_offset, &all))
		return io_give_up(o, EXIT_NO_GPU, "no GPU has so much memory");
	if (ways[o->way].gpu)
		r = io_start(o, all, &l->base);
	for (i = 0; i < l->workers && !r; i++) {
		struct worker *w = &l->w[i];

		w->call.result.size = sizeof(w->call.result);
		w->at = o->gpu_offset + part * i;
		w->random = (o->seed << 16) + i;
		w->hist[0] = calloc(1, sizeof(*w->hist[0]));
		w->hist[1] = calloc(1, sizeof(*w->hist[1]));
		if (ways[o->way].gpu && !on_gpu(o))
			w->host = (char *)(uintptr_t)l->base + w->at;
		if (!w->hist[0] || !w->hist[1] || (ways[o->way].host &&
		    posix_memalign((void **)&w->host, PAGE, part)))
			r = io_give_up(o, EXIT_IO, "out of memory");
		else if (o->way == BY_ASYNC && !gpu_pin(w->host, part))
			r = io_give_up(o, EXIT_NO_GPU, "memory of the host could not be page-locked");
	}
	return r;
}

/* Of each thread */
static int crews(struct load *l)
{
	const struct options *o = l->o;
	CUfileError_t e;
	uint64_t i;

	for (i = 0; i < l->threads; i++) {
		struct crew *c = &l->crew[i];

		c->l = l;
		c->w = &l->w[i * l->depth];
		c->group = calloc(l->depth, sizeof(*c->group));
		c->entry = calloc(l->depth, sizeof(*c->entry));
		c->event = calloc(l->depth, sizeof(*c->event));
		if (!c->group || !c->entry || !c->event)
			return io_give_up(o, EXIT_IO, "out of memory");
		if (o->way != BY_BATCH)
			continue;
		e = cuFileBatchIOSetUp(&c->batch, (unsigned int)l->depth);
		if (e.err)
			return io_give_up(o, EXIT_IO, "no batch of %llu entries: %s (%d); io_batchsize of cufile.json is the most",
					  (unsigned long long)l->depth,
					  cufileop_status_error(e.err), e.err);
	}
	return EXIT_OK;
}

/* Tells that all is ready, and waits until all jobs are, or have ended */
static void beside_others(const struct options *o)
{
	char c;

	ssize_t r;

	close(o->ready);
	do {
		r = read(o->go, &c, 1);
	} while (r < 0 && errno == EINTR);
	if (r != 1)
		_exit(EXIT_IO);		/* who started the jobs has ended */
}

static int run_threads(struct load *l)
{
	const struct options *o = l->o;
	const uint64_t threads = l->threads;
	double wall, cpu;
	uint64_t i;
	int r;

	pthread_barrier_init(&l->ready, NULL, (unsigned int)threads + 1);
	for (i = 0; i < threads; i++) {
		r = pthread_create(&l->crew[i].thread, NULL, work,
				   &l->crew[i]);
		if (r)	/* those that are there wait, and end with the program */
			return io_give_up(o, EXIT_IO, "only %llu of %llu "
					  "threads could be started: %s",
					  (unsigned long long)i,
					  (unsigned long long)threads,
					  strerror(r));
	}
	pthread_barrier_wait(&l->ready);
	if (o->is_job)
		beside_others(o);
	wall = now_wall();
	cpu = now_cpu();
	pthread_barrier_wait(&l->ready);
	for (i = 0; i < threads; i++)
		pthread_join(l->crew[i].thread, NULL);
	if (!l->status && o->sync && fdatasync(l->f.fd))
		failed(l, EXIT_IO, "%s: fdatasync: %s", l->f.name,
		       strerror(errno));
	wall = now_wall() - wall;
	cpu = now_cpu() - cpu;
	if (!o->writes || o->mix >= 0)
		say_flow(l, false, wall, cpu);
	if (o->writes || o->mix >= 0)
		say_flow(l, true, wall, cpu);
	if (!o->json && gpu_emulated())
		printf("emulated: times and rates say nothing about hardware\n");
	return l->status ? io_give_up(o, l->status, "%s", l->error) :
			   io_finish(o, EXIT_OK, NULL);
}

int load_run(struct options *o)
{
	struct load l = { .o = o, .lock = PTHREAD_MUTEX_INITIALIZER };
	bool writes = o->writes || o->mix >= 0;
	int flags = writes ? O_RDWR : O_RDONLY, r;
	uint64_t i;

	if (o->memory != IN_DEVICE &&
	    !(o->memory == IN_VMM ? ways[o->way].gpu : ways[o->way].cufile))
		return io_give_up(o, EXIT_USAGE, "--memory %s does not go with this --transfer",
				  io_memory_name[o->memory]);
	if (o->batch && !ways[o->way].together)
		return io_give_up(o, EXIT_USAGE, "--batch is for --transfer batch and streams");
	if (o->align && !o->random)
		return io_give_up(o, EXIT_USAGE, "--align and --unaligned are for --rw randread and randwrite");
	l.threads = ways[o->way].together && !o->batch ? 1 : o->threads;
	l.depth = !ways[o->way].together ? 1 : o->batch ? o->batch : o->threads;
	l.workers = l.threads * l.depth;
	l.w = calloc(l.workers, sizeof(*l.w));
	l.crew = calloc(l.threads, sizeof(*l.crew));
	if (!l.w || !l.crew)
		return io_give_up(o, EXIT_IO, "out of memory");
	r = io_open(o, &l.f, o->in, flags, writes);
	if (!r)
		r = share(&l);
	if (!r)
		r = buffers(&l);
	/* What is not there yet is made when all else is known to work */
	if (!r && l.f.fd < 0)
		r = io_open(o, &l.f, o->in, flags | O_CREAT, false);
	if (!r && ways[o->way].cufile)
		r = io_register(o, &l.f);
	if (!r)
		r = crews(&l);
	r = r ? r : run_threads(&l);
	/* nothing of it is under way any more when this is back */
	for (i = 0; i < l.threads; i++)
		if (l.crew[i].batch)
			cuFileBatchIODestroy(l.crew[i].batch);
	return r;
}

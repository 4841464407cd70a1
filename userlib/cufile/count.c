// SPDX-License-Identifier: MIT
/*
 * cuFile's statistics, levels 1 to 3: counters of all threads, read without
 * stopping them.
 */
#include <string.h>
#include <time.h>

#include "io.h"

#define counts	(&stats_page->counters)

static _Atomic int level;
static _Atomic bool level_set;		/* by call: goes before the file's */
static _Atomic bool paused;		/* by level 0 */
static __thread bool in_vector;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t count_now(void)
{
	return counts->since && level ? now() : 0;
}

static bool on(void)
{
	return counts->since && level;
}

static void start(void)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(&counts->since, &none, now());
}

/* Was it counting? */
static bool stop(void)
{
	uint64_t since = atomic_exchange(&counts->since, 0);

	if (since)
		counts->counted_ns += now() - since;
	return since;
}

static void forget(void)
{
	_Atomic uint64_t *p = (_Atomic uint64_t *)counts;
	bool was_on = counts->since;
	size_t i;

	_Static_assert(sizeof(*counts) % sizeof(*p) == 0, "all fields are counters");
	for (i = 0; i < sizeof(*counts) / sizeof(*p); i++)
		p[i] = 0;
	if (was_on)
		start();
}

/* With the driver's lock held. */
void count_open(void)
{
	stats_publish();
	if (!level_set)
		level = (int)config.size[CUFILE_PARAM_PROFILE_STATS];
	stats_page->level = level;
	counts->since = 0;
	paused = false;
	forget();
	if (level)
		start();
}

/* ---- counting ---- */

void count_op(enum op op, bool ok)
{
	if (on())
		(*(ok ? &counts->ok[op] : &counts->err[op]))++;
}

static unsigned int bin_of(size_t size)
{
	unsigned int i;

	for (i = 0; i < STATS_BINS - 1 && size >= KIB(4) << i; i++)
		continue;
	return i;
}

void count_io(const struct io *io, size_t size, uint64_t off, ssize_t result,
	      uint64_t began)
{
	struct flow *f = &counts->flow[io->write];
	struct gpu_flow *g;
	uint64_t ns;

	if (!began || !on())
		return;
	ns = now() - began;
	if (in_vector && config.stats_1_19) {
		/* there, a piece is neither a read nor a write */
	} else if (result < 0) {
		f->err++;
	} else {
		f->ok++;
		f->bytes += (uint64_t)result;
		f->ns += ns;
	}
	if (level >= 2 && result >= 0)
		f->bin[bin_of(size)]++;
	if (level < 3 || io->mem.kind == MEM_HOST || io->mem.gpu < 0 ||
	    io->mem.gpu >= STATS_GPUS)
		return;
	g = &counts->gpu_flow[io->mem.gpu][io->write];
	if (result < 0) {
		g->err++;
		return;
	}
	g->ok++;
	g->bytes += (uint64_t)result;
	g->ns += ns;
	if (io->bytes[PLN_PATH_P2P] || io->bytes[PLN_PATH_KERNEL])
		g->p2p++;
	if (io->bytes[PLN_PATH_BOUNCE] || io->bytes[PLN_PATH_CACHE])
		g->staged++;
	if (off % io->f->off_align || size % io->f->off_align)
		g->unaligned++;
}

uint64_t count_vector_begin(void)
{
	in_vector = true;
	return count_now();
}

void count_vector_end(bool write, ssize_t result, uint64_t began)
{
	in_vector = false;
	if (!began || !on())
		return;
	if (result < 0) {
		counts->vector[write].err++;
		return;
	}
	counts->vector[write].ok++;
	counts->vector[write].bytes += (uint64_t)result;
	counts->vector[write].ns += now() - began;
}

void count_buf(int gpu, size_t length, bool ok)
{
	if (!on() || level < 3 || gpu < 0 || gpu >= STATS_GPUS)
		return;
	if (ok) {
		counts->buf[gpu].ok++;
		counts->buf[gpu].bytes += length;
	} else {
		counts->buf[gpu].err++;
	}
}

void count_buf_free(int gpu)
{
	if (on() && level >= 3 && gpu >= 0 && gpu < STATS_GPUS)
		counts->buf[gpu].freed++;
}

void count_batch_submit(uint64_t began, size_t read, size_t written)
{
	if (!began || !on())
		return;
	counts->submits++;
	counts->submit_ns += now() - began;
	counts->last_batch[0] = read;
	counts->last_batch[1] = written;
}

void count_batch_done(uint64_t began, size_t bytes, bool write)
{
	if (!began || !on())
		return;
	counts->ends++;
	counts->end_ns += now() - began;
	counts->batch_bytes[write] += bytes;
}

/* ---- reading ---- */

static CUfileOpCounter_t op_of(enum op op)
{
	return (CUfileOpCounter_t){ .ok = counts->ok[op], .err = counts->err[op] };
}

/* For each second of @ns. */
static uint64_t rate(uint64_t what, uint64_t ns)
{
	return ns ? (uint64_t)((double)what * 1e9 / (double)ns) : 0;
}

static uint64_t average_us(uint64_t ns, uint64_t of)
{
	return of ? ns / of / 1000 : 0;
}

static uint64_t counted(void)
{
	uint64_t since = counts->since;

	return counts->counted_ns + (since ? now() - since : 0);
}

static void level1(CUfileStatsLevel1_t *s, uint64_t ns)
{
	const struct flow *r = &counts->flow[0], *w = &counts->flow[1];

	memset(s, 0, sizeof(*s));
	s->read_ops = (CUfileOpCounter_t){ r->ok, r->err };
	s->write_ops = (CUfileOpCounter_t){ w->ok, w->err };
	s->hdl_register_ops = op_of(OP_FILE_REGISTER);
	s->hdl_deregister_ops = op_of(OP_FILE_DEREGISTER);
	s->buf_register_ops = op_of(OP_BUF_REGISTER);
	s->buf_deregister_ops = op_of(OP_BUF_DEREGISTER);
	s->read_bytes = r->bytes;
	s->write_bytes = w->bytes;
	s->read_bw_bytes_per_sec = rate(r->bytes, ns);
	s->write_bw_bytes_per_sec = rate(w->bytes, ns);
	s->read_lat_avg_us = average_us(r->ns, r->ok);
	s->write_lat_avg_us = average_us(w->ns, w->ok);
	s->read_ops_per_sec = rate(r->ok, ns);
	s->write_ops_per_sec = rate(w->ok, ns);
	s->read_lat_sum_us = r->ns / 1000;
	s->write_lat_sum_us = w->ns / 1000;
	s->batch_submit_ops = op_of(OP_BATCH_SUBMIT);
	s->batch_complete_ops = op_of(OP_BATCH_COMPLETE);
	s->batch_setup_ops = op_of(OP_BATCH_SETUP);
	s->batch_cancel_ops = op_of(OP_BATCH_CANCEL);
	s->batch_destroy_ops = op_of(OP_BATCH_DESTROY);
	s->batch_enqueued_ops = op_of(OP_BATCH_ENQUEUED);
	s->batch_posix_enqueued_ops = op_of(OP_BATCH_POSIX_ENQUEUED);
	s->batch_processed_ops = op_of(OP_BATCH_PROCESSED);
	s->batch_posix_processed_ops = op_of(OP_BATCH_POSIX_PROCESSED);
	s->batch_p2p_submit_ops = op_of(OP_BATCH_RING);
	s->batch_iouring_submit_ops = op_of(OP_BATCH_RING);
	s->batch_total_submit_ops = op_of(OP_BATCH_ENQUEUED);
	s->batch_read_bytes = counts->batch_bytes[0];
	s->batch_write_bytes = counts->batch_bytes[1];
	s->batch_read_bw_bytes = rate(counts->batch_bytes[0], ns);
	s->batch_write_bw_bytes = rate(counts->batch_bytes[1], ns);
	s->batch_submit_lat_avg_us = average_us(counts->submit_ns, counts->submits);
	s->batch_completion_lat_avg_us = average_us(counts->end_ns, counts->ends);
	s->batch_submit_ops_per_sec = rate(counts->submits, ns);
	s->batch_complete_ops_per_sec = rate(counts->ends, ns);
	s->batch_submit_lat_sum_us = counts->submit_ns / 1000;
	s->batch_completion_lat_sum_us = counts->end_ns / 1000;
	s->last_batch_read_bytes = counts->last_batch[0];
	s->last_batch_write_bytes = counts->last_batch[1];
}

static void sizes(uint64_t *reads, uint64_t *writes)
{
	unsigned int i;

	for (i = 0; i < STATS_BINS; i++) {
		reads[i] = counts->flow[0].bin[i];
		writes[i] = counts->flow[1].bin[i];
	}
}

/* Transfers at the same time take more than all of it together. */
static uint64_t percent(uint64_t part, uint64_t whole)
{
	return part >= whole ? whole ? 100 : 0 : part * 100 / whole;
}

static void gpu_stats(CUfilePerGpuStats_t *s, unsigned int gpu, uint64_t ns)
{
	const struct gpu_flow *r = &counts->gpu_flow[gpu][0];
	const struct gpu_flow *w = &counts->gpu_flow[gpu][1];
	CUdevice dev;
	CUuuid id;

	if (cu.DeviceGetUuid && !cu.DeviceGet(&dev, (int)gpu) &&
	    !cu.DeviceGetUuid(&id, dev))
		memcpy(s->uuid, &id, sizeof(s->uuid));
	s->read_bytes = r->bytes;
	s->read_bw_bytes_per_sec = rate(r->bytes, ns);
	s->read_utilization = percent(r->ns, ns);
	s->read_duration_us = r->ns / 1000;
	s->n_total_reads = r->ok;
	s->n_p2p_reads = r->p2p;
	s->n_posix_reads = r->staged;
	s->n_unaligned_reads = r->unaligned;
	s->n_reads_err = r->err;
	s->writes_bytes = w->bytes;
	s->write_bw_bytes_per_sec = rate(w->bytes, ns);
	s->write_utilization = percent(w->ns, ns);
	s->write_duration_us = w->ns / 1000;
	s->n_total_writes = w->ok;
	s->n_p2p_writes = w->p2p;
	s->n_posix_writes = w->staged;
	s->n_unaligned_writes = w->unaligned;
	s->n_writes_err = w->err;
	s->n_mmap = counts->buf[gpu].ok + counts->buf[gpu].err;
	s->n_mmap_ok = counts->buf[gpu].ok;
	s->n_mmap_err = counts->buf[gpu].err;
	s->n_mmap_free = counts->buf[gpu].freed;
	s->reg_bytes = counts->buf[gpu].bytes;
}

static void all_gpus(uint32_t *n, CUfilePerGpuStats_t *s, uint64_t ns)
{
	int gpus = 0;
	unsigned int i;

	if (!cu.DeviceGetCount || cu.DeviceGetCount(&gpus))
		gpus = 0;
	*n = (uint32_t)(gpus > STATS_GPUS ? STATS_GPUS : gpus);
	for (i = 0; i < *n; i++)
		gpu_stats(&s[i], i, ns);
}

/*
 * The structures of 1.19: level 1 has twelve members more, so all of levels 2 and 3
 * is elsewhere.  Which ones a program has, only who starts it can know.
 */
struct level1_1_19 {
	CUfileStatsLevel1_t before;
	CUfileOpCounter_t ops[2];
	uint64_t bytes[2], bytes_per_sec[2], lat_avg_us[2], ops_per_sec[2],
		 lat_sum_us[2];		/* each: readv, writev */
};

struct level2_1_19 {
	struct level1_1_19 basic;
	uint64_t read_size_kb_hist[STATS_BINS], write_size_kb_hist[STATS_BINS];
};

struct level3_1_19 {
	struct level2_1_19 detailed;
	uint32_t num_gpus;
	CUfilePerGpuStats_t per_gpu_stats[STATS_GPUS];
};

static void level1_1_19(struct level1_1_19 *s, uint64_t ns)
{
	unsigned int i;

	level1(&s->before, ns);
	for (i = 0; i < 2; i++) {
		s->ops[i].ok = counts->vector[i].ok;
		s->ops[i].err = counts->vector[i].err;
		s->bytes[i] = counts->vector[i].bytes;
		s->bytes_per_sec[i] = rate(s->bytes[i], ns);
		s->lat_avg_us[i] = average_us(counts->vector[i].ns, s->ops[i].ok);
		s->ops_per_sec[i] = rate(s->ops[i].ok, ns);
		s->lat_sum_us[i] = counts->vector[i].ns / 1000;
	}
}

/* ---- calls ---- */

EXPORT CUfileError_t cuFileSetStatsLevel(int to)
{
	if (to < 0 || to > 3)
		return result(CU_FILE_INVALID_VALUE);
	stats_page->level = level = to;
	level_set = true;
	if (!to) {
		if (stop())
			paused = true;
	} else if (atomic_exchange(&paused, false)) {
		start();
	}
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t cuFileGetStatsLevel(int *to)
{
	if (!to)
		return result(CU_FILE_INVALID_VALUE);
	*to = level;
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t cuFileStatsStart(void)
{
	CUfileOpError r = CU_FILE_SUCCESS;

	if (!driver_begin())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	if (level)
		start();
	else
		r = CU_FILE_INVALID_VALUE;
	driver_end();
	return result(r);
}

EXPORT CUfileError_t cuFileStatsStop(void)
{
	if (!driver_begin())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	paused = false;
	stop();
	driver_end();
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t cuFileStatsReset(void)
{
	if (!driver_begin())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	forget();
	driver_end();
	return result(CU_FILE_SUCCESS);
}

static CUfileOpError readable(const void *stats, int least)
{
	if (!driver_begin())
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	if (stats && level >= least)
		return CU_FILE_SUCCESS;
	driver_end();
	return CU_FILE_INVALID_VALUE;
}

EXPORT CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
{
	CUfileOpError r = readable(stats, 1);

	if (r)
		return result(r);
	if (config.stats_1_19)
		level1_1_19((struct level1_1_19 *)stats, counted());
	else
		level1(stats, counted());
	driver_end();
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats)
{
	CUfileOpError r = readable(stats, 2);

	struct level2_1_19 *newer = (struct level2_1_19 *)stats;

	if (r)
		return result(r);
	if (config.stats_1_19) {
		level1_1_19(&newer->basic, counted());
		sizes(newer->read_size_kb_hist, newer->write_size_kb_hist);
	} else {
		level1(&stats->basic, counted());
		sizes(stats->read_size_kb_hist, stats->write_size_kb_hist);
	}
	driver_end();
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats)
{
	CUfileOpError r = readable(stats, 3);
	struct level3_1_19 *newer = (struct level3_1_19 *)stats;
	uint64_t ns = counted();

	if (r)
		return result(r);
	if (config.stats_1_19) {
		memset(newer, 0, sizeof(*newer));
		level1_1_19(&newer->detailed.basic, ns);
		sizes(newer->detailed.read_size_kb_hist,
		      newer->detailed.write_size_kb_hist);
		all_gpus(&newer->num_gpus, newer->per_gpu_stats, ns);
	} else {
		memset(stats, 0, sizeof(*stats));
		level1(&stats->detailed.basic, ns);
		sizes(stats->detailed.read_size_kb_hist,
		      stats->detailed.write_size_kb_hist);
		all_gpus(&stats->num_gpus, stats->per_gpu_stats, ns);
	}
	driver_end();
	return result(CU_FILE_SUCCESS);
}

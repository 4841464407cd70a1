// SPDX-License-Identifier: MIT
/*
 * What is counted, as JSON: for pln_file_stats_json(), and for peerlane stats, which has
 * the page of another process.  Not by json-c, which libcufile does not need.
 */
#include <stdbool.h>

#include "page_json.h"

const char *const path_names[PLN_PATH_COUNT] = {
	"none", "p2p", "kernel", "coherent", "bounce", "posix", "cache"
};
const char *const flow_names[2] = { "read", "write" };
static const char *const vector_names[2] = { "readv", "writev" };
static const char *const op_names[OPS] = {
	[OP_FILE_REGISTER] = "file_register",
	[OP_FILE_DEREGISTER] = "file_deregister",
	[OP_BUF_REGISTER] = "buffer_register",
	[OP_BUF_DEREGISTER] = "buffer_deregister",
	[OP_BATCH_SUBMIT] = "batch_submit",
	[OP_BATCH_COMPLETE] = "batch_complete",
	[OP_BATCH_SETUP] = "batch_setup",
	[OP_BATCH_CANCEL] = "batch_cancel",
	[OP_BATCH_DESTROY] = "batch_destroy",
	[OP_BATCH_ENQUEUED] = "batch_enqueued",
	[OP_BATCH_PROCESSED] = "batch_processed",
	[OP_BATCH_RING] = "batch_ring",
	[OP_BATCH_POSIX_ENQUEUED] = "batch_thread_enqueued",
	[OP_BATCH_POSIX_PROCESSED] = "batch_thread_processed",
};

/* An object that is being written; @comma: it has something */
struct object {
	FILE *f;
	bool comma;
};

void json_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "\"%s\": \"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		if ((unsigned char)*text < 0x20)
			fprintf(f, "\\u%04x", (unsigned int)*text);
		else
			putc(*text, f);
	}
	putc('"', f);
}

void make_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static FILE *next(struct object *o)
{
	if (o->comma)
		fputs(", ", o->f);
	o->comma = true;
	return o->f;
}

static void put(struct object *o, const char *key, uint64_t v)
{
	fprintf(next(o), "\"%s\": %llu", key, (unsigned long long)v);
}

static struct object begin(struct object *o, const char *key)
{
	fprintf(next(o), "\"%s\": {", key);
	return (struct object){ .f = o->f };
}

static void end(struct object *o)
{
	putc('}', o->f);
}

static void put_tally(struct object *o, const struct tally *t, const struct told *told)
{
	uint32_t last = t->last_path;	/* others may write it meanwhile */
	struct object paths, path;
	unsigned int i;

	json_text(next(o), "last_path", last < PLN_PATH_COUNT ? path_names[last] : "unknown");
	paths = begin(o, "paths");
	for (i = 1; i < PLN_PATH_COUNT; i++) {
		if (!t->reads[i] && !t->writes[i])
			continue;
		path = begin(&paths, path_names[i]);
		put(&path, "reads", t->reads[i]);
		put(&path, "bytes_read", t->bytes_read[i]);
		put(&path, "writes", t->writes[i]);
		put(&path, "bytes_written", t->bytes_written[i]);
		end(&path);
	}
	end(&paths);
	put(o, "errors", t->errors);
	put(o, "fallbacks", t->fallbacks);
	fprintf(next(o), "\"last_errno\": %d, \"last_error\": %d", told->last_errno,
		told->last_error);
	json_text(next(o), "reason", told->reason);
}

static void put_gauges(struct object *o, const struct gauges *g)
{
	struct object sub = begin(o, "windows");

	put(&sub, "mapped", g->windows);
	put(&sub, "bytes", g->window_bytes);
	put(&sub, "hits", g->window_hits);
	put(&sub, "maps", g->window_maps);
	put(&sub, "evictions", g->window_evictions);
	put(&sub, "nospace", g->window_nospace);
	end(&sub);
	put(o, "lanes", g->lanes);
	sub = begin(o, "page_cache");
	put(&sub, "windows", g->cache_windows);
	put(&sub, "bytes", g->cache_bytes);
	put(&sub, "leases", g->leases);
	put(&sub, "leases_broken", g->leases_broken);
	end(&sub);
}

static void put_transfers(struct object *calls, const char *name, uint64_t ok,
			  uint64_t failed, uint64_t bytes, uint64_t ns)
{
	struct object one = begin(calls, name);

	put(&one, "ok", ok);
	put(&one, "failed", failed);
	put(&one, "bytes", bytes);
	put(&one, "microseconds", ns / 1000);
	end(&one);
}

static void put_calls(struct object *o, const struct counters *c)
{
	struct object calls = begin(o, "calls"), one;
	unsigned int i;

	for (i = 0; i < 2; i++)
		put_transfers(&calls, flow_names[i], c->flow[i].ok, c->flow[i].err,
			      c->flow[i].bytes, c->flow[i].ns);
	for (i = 0; i < 2; i++)
		put_transfers(&calls, vector_names[i], c->vector[i].ok, c->vector[i].err,
			      c->vector[i].bytes, c->vector[i].ns);
	one = begin(&calls, "batches");
	put(&one, "bytes_read", c->batch_bytes[0]);
	put(&one, "bytes_written", c->batch_bytes[1]);
	put(&one, "submits", c->submits);
	put(&one, "submit_microseconds", c->submit_ns / 1000);
	put(&one, "ends", c->ends);
	put(&one, "end_microseconds", c->end_ns / 1000);
	end(&one);
	for (i = 0; i < OPS; i++) {
		if (!c->ok[i] && !c->err[i])
			continue;
		one = begin(&calls, op_names[i]);
		put(&one, "ok", c->ok[i]);
		put(&one, "failed", c->err[i]);
		end(&one);
	}
	end(&calls);
}

/* Calls by size, named by what all of them are below */
static void put_sizes(struct object *o, const struct counters *c)
{
	struct object sizes = begin(o, "sizes"), one;
	unsigned int i, bin;
	char name[32];

	for (i = 0; i < 2; i++) {
		one = begin(&sizes, flow_names[i]);
		for (bin = 0; bin < STATS_BINS; bin++) {
			snprintf(name, sizeof(name), "%llu", 4096ull << bin);
			if (c->flow[i].bin[bin])
				put(&one, bin < STATS_BINS - 1 ? name : "more",
				    c->flow[i].bin[bin]);
		}
		end(&one);
	}
	end(&sizes);
}

static void put_gpus(struct object *o, const struct counters *c)
{
	struct object gpus = begin(o, "gpus"), gpu, one;
	unsigned int i, k;
	char name[16];

	for (i = 0; i < STATS_GPUS; i++) {
		const struct gpu_flow *f = c->gpu_flow[i];

		if (!f[0].ok && !f[0].err && !f[1].ok && !f[1].err &&
		    !c->buf[i].ok && !c->buf[i].err)
			continue;
		snprintf(name, sizeof(name), "%u", i);
		gpu = begin(&gpus, name);
		for (k = 0; k < 2; k++) {
			one = begin(&gpu, flow_names[k]);
			put(&one, "ok", f[k].ok);
			put(&one, "failed", f[k].err);
			put(&one, "bytes", f[k].bytes);
			put(&one, "microseconds", f[k].ns / 1000);
			put(&one, "p2p", f[k].p2p);
			put(&one, "staged", f[k].staged);
			put(&one, "unaligned", f[k].unaligned);
			end(&one);
		}
		one = begin(&gpu, "buffers");
		put(&one, "ok", c->buf[i].ok);
		put(&one, "failed", c->buf[i].err);
		put(&one, "freed", c->buf[i].freed);
		put(&one, "bytes", c->buf[i].bytes);
		end(&one);
		end(&gpu);
	}
	end(&gpus);
}

void json_stats(FILE *f, const struct tally *t, const struct told *told,
		const struct stats_page *page)
{
	struct object o = { .f = f };

	putc('{', f);
	if (page)
		fprintf(next(&o), "\"level\": %d", page->level);
	put_tally(&o, t, told);
	if (page) {
		put_gauges(&o, &page->gauges);
		if (page->level >= 1)
			put_calls(&o, &page->counters);
		if (page->level >= 2)
			put_sizes(&o, &page->counters);
		if (page->level >= 3)
			put_gpus(&o, &page->counters);
	}
	putc('}', f);
}

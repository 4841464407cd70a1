// SPDX-License-Identifier: MIT
/*
 * peerlane doctor PATH GPU: the answer.  The findings of a question are of
 * severity error exactly where they keep data from going straight, so that the
 * answer follows from them.  The path is followed in steps, from the file to
 * the GPU's driver; the reason is that of the first step that says no.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define MAX_STEPS	(DOC_MAX_BLOCKS + 64)

struct step {
	const char *name;
	const char *ok;		/* ok, no, far, ?, - */
	int gpu;		/* it is about this one alone, or -1: all */
	const char *reason;	/* of a "no", or NULL: what it says */
	char says[1024];
};

struct steps {
	struct step step[MAX_STEPS];
	int n;
};

static void step(struct steps *s, const char *name, const char *ok, int gpu,
		 const struct finding *why, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

static void step(struct steps *s, const char *name, const char *ok, int gpu,
		 const struct finding *why, const char *fmt, ...)
{
	struct step *new = &s->step[s->n];
	va_list ap;

	if (s->n == MAX_STEPS)
		return;
	s->n++;
	new->name = name;
	new->ok = ok;
	new->gpu = gpu;
	new->reason = why ? why->what : NULL;
	va_start(ap, fmt);
	vsnprintf(new->says, sizeof(new->says), fmt, ap);
	va_end(ap);
}

/* The first one of the sections that stops that GPU; NULL at the list's end */
static const struct finding *stop_among(const struct doctor *d, int gpu,
					const char *const *sections)
{
	const struct finding *f = NULL;

	for (; *sections && !f; sections++)
		f = doc_stop(d, gpu, *sections, NULL);
	return f;
}

/* The first error about that place */
static const struct finding *error_at(const struct doctor *d, const char *place)
{
	int i;

	for (i = 0; i < d->n_findings; i++)
		if (d->findings[i]->severity == SEV_ERROR &&
		    doc_names(d->findings[i], place))
			return d->findings[i];
	return NULL;
}

/* An error about the file that no block device below it has */
static const struct finding *file_error(const struct doctor *d)
{
	const struct mount *m = d->mount;
	const struct finding *f;
	int i, k;

	for (i = 0; i < d->n_findings; i++) {
		f = d->findings[i];
		if (f->severity != SEV_ERROR ||
		    strcmp(f->section->name, "filesystem"))
			continue;
		for (k = 0; k < m->n_blocks; k++)
			if (f->n_where && !strcmp(f->where[0], m->block[k].name))
				break;
		if (k == m->n_blocks)
			return f;
	}
	return NULL;
}

static void file_steps(const struct doctor *d, struct steps *s)
{
	const struct mount *m = d->mount;
	const struct finding *why = file_error(d);
	const struct topo_block *b;
	int i;

	if (d->dio_known && d->dio_offset)
		step(s, "file", why ? "no" : "ok", -1, why,
		     "%s on %s, direct IO in units of %u bytes, memory aligned "
		     "to %u", d->path, m->type, d->dio_offset, d->dio_memory);
	else
		step(s, "file", why ? "no" : "ok", -1, why, "%s on %s", d->path,
		     m->type);
	if (m->point[0])
		step(s, "mount", "ok", -1, NULL, "%s from %s", m->point,
		     m->source);
	for (i = 0; i < m->n_blocks; i++) {
		b = &m->block[i];
		why = error_at(d, b->name);
		step(s, b->address[0] ? "drive" : "block", why ? "no" :
		     b->address[0] ? "ok" : "-", -1, why, "%s (%s%s%s)%s%s",
		     b->name, b->kind, b->detail[0] ? ", " : "", b->detail,
		     b->address[0] ? " at " : "", b->address);
	}
}

/* The finding of that id about that place */
static const struct finding *said(const struct doctor *d, const char *id,
				  const char *place)
{
	int i;

	for (i = 0; i < d->n_findings; i++)
		if (!strcmp(d->findings[i]->rule->id, id) &&
		    doc_names(d->findings[i], place))
			return d->findings[i];
	return NULL;
}

struct gpu_answer {
	int gpu;
	const char *path, *verdict;
};

static const char *verdict_ok(enum pln_verdict v)
{
	return v == PLN_VERDICT_STAGED ? "no" : v == PLN_VERDICT_DIRECT ? "ok" :
	       v == PLN_VERDICT_UNKNOWN ? "?" : "far";
}

static void gpu_steps(struct doctor *d, struct gpu_answer *a, struct steps *s)
{
	static const char *const sections[] = { "acs", "host-bridge", NULL };
	struct pln_topo_pair pair = { .size = sizeof(pair) }, far = pair;
	const struct topo_node *g = doc_gpu_at(d, a->gpu), *n, *card;
	const struct finding *why;
	enum pln_verdict v, w;
	bool wrong, known;
	int drive;

	v = doc_pair(d, a->gpu, &drive, &pair);
	why = v == PLN_VERDICT_STAGED ? stop_among(d, a->gpu, sections) :
	      v == PLN_VERDICT_DIRECT ? said(d, "acs-qemu-switch", g->address) :
	      NULL;
	if (drive >= 0) {
		n = doc_drive_at(d, drive);
		step(s, "pci", why ? "no" : verdict_ok(v), a->gpu, why,
		     "%s (%s) to %s (%s): %s, %s", doc_name(d, n), n->address,
		     doc_label(d, g), g->address, pln_verdict_name(v),
		     pair.reason);
	}
	w = doc_rdma_pair(d, a->gpu, &card, &far);
	known = drive >= 0 || card;
	if (card)
		step(s, "pci", verdict_ok(w), a->gpu, w == PLN_VERDICT_STAGED ?
		     doc_stop(d, a->gpu, "nvme", NULL) : NULL,
		     "%s (%s) to %s (%s): %s, %s", doc_name(d, card),
		     card->address, doc_label(d, g), g->address,
		     pln_verdict_name(w), far.reason);
	wrong = why && v == PLN_VERDICT_DIRECT;
	/* it is as good as the worst of its drives */
	if (card && (drive < 0 || doc_rank(w) > doc_rank(v)))
		v = w;
	if (wrong)
		a->path = "fails";
	else if (doc_stop(d, a->gpu, NULL, NULL) ||
		 (known && v == PLN_VERDICT_STAGED))
		a->path = "bounce";
	else if (!known || v == PLN_VERDICT_UNKNOWN ||
		 d->p2pdma == UNKNOWN ||
		 said(d, "gpu-geforce", g->address))
		a->path = "unknown";
	else
		a->path = d->p2pdma == YES ? "p2p" : "nvidia-fs";
	a->verdict = known ? pln_verdict_name(v) : "none";
	if (!strcmp(a->path, "unknown"))
		d->undecided = true;
}

static void driver_step(const struct doctor *d, struct steps *s, int gpu)
{
	static const char *const sections[] = { "gpu", "bar1", "driver", NULL };
	const struct topo_node *g = gpu < 0 ? NULL : doc_gpu_at(d, gpu);
	const struct finding *why = stop_among(d, gpu, sections);
	bool one = d->gpu >= 0 || doc_gpus(d) < 2;

	step(s, "driver", why ? "no" : "ok", gpu, why, "%s%s%s",
	     one ? "" : doc_label(d, g), one ? "" : ": ",
	     g && g->driver[0] ? g->driver : "none");
}

static void machine_steps(const struct doctor *d, struct steps *s)
{
	static const char *const kernel[] = { "environment", "kernel", NULL };
	const struct finding *why = stop_among(d, -1, kernel);
	const struct topo_node *g;
	int i;

	step(s, "kernel", d->p2pdma == UNKNOWN ? "?" :
	     d->p2pdma == YES && !why ? "ok" : "no", -1, why,
	     "Linux %s, P2PDMA %s", d->release,
	     d->p2pdma_is_old ? "for kernel users only" :
	     d->p2pdma == YES ? "on" : d->p2pdma == NO ? "off" : "not known");
	for_each_gpu(d, g, i)
		driver_step(d, s, i);
	if (!doc_gpus(d))
		driver_step(d, s, -1);
}

/* What the module peerlane would do, for memory that cannot be mapped */
static void module_step(struct doctor *d, struct steps *s)
{
	const struct mount *m = d->mount;
	const struct finding *why = file_error(d);
	const struct topo_block *md = doc_passing_md(d, m);
	long long own_pages;
	char drive[64];
	int i;

	if (doc_has(d, "/dev", "peerlane") != YES)
		return;
	own_pages = doc_number(d, "/sys/module/peerlane/parameters/"
			       "own_pages_mib");
	for (i = 0; i < m->n_blocks && !why; i++)
		why = error_at(d, m->block[i].name);
	if (why)
		step(s, "module", "-", -1, NULL, "/dev/peerlane would refuse it: "
		     "%s", why->what);
	else if (strcmp(m->type, "ext4") && strcmp(m->type, "xfs") &&
		 strcmp(m->type, "block"))
		step(s, "module", "-", -1, NULL, "/dev/peerlane would refuse "
		     "it: it supports ext4 and xfs");
	else if (md && doc_merges(d, drive, sizeof(drive)))
		step(s, "module", "-", -1, NULL, "/dev/peerlane would refuse it: "
		     "it is on %s, and the queue of %s merges requests",
		     md->name, drive);
	else
		step(s, "module", "ok", -1, NULL, "/dev/peerlane supports it, "
		     "for GPU memory that cannot be mapped%s", own_pages > 0 ?
		     ", and makes struct pages of BAR1 where there are none" :
		     own_pages ? "" : ", where BAR1 has struct pages");
}

/* The GPU with the best path; of these the first; NULL without GPUs */
static const struct gpu_answer *best(const struct gpu_answer *gpus, int n)
{
	static const char *const order[] = { "p2p", "nvidia-fs", "unknown",
					     "bounce", "fails" };
	size_t i;
	int k;

	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (k = 0; k < n; k++)
			if (!strcmp(gpus[k].path, order[i]))
				return &gpus[k];
	return NULL;
}

/* Why it is not direct into that GPU */
static const char *reason_of(const struct doctor *d, const struct steps *s,
			     int gpu)
{
	const struct finding *any = doc_stop(d, gpu, NULL, NULL);
	int i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->step[i].ok, "no") &&
		    (s->step[i].gpu < 0 || s->step[i].gpu == gpu))
			return s->step[i].reason ? s->step[i].reason :
						   s->step[i].says;
	return any ? any->what : "";
}

static void put(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static struct json_object *json_gpus(const struct doctor *d,
				     const struct gpu_answer *gpus, int n)
{
	struct json_object *list = json_object_new_array(), *o;
	int i;

	for (i = 0; i < n; i++) {
		const struct topo_node *g = doc_gpu_at(d, gpus[i].gpu);

		o = json_object_new_object();
		put(o, "gpu", doc_label(d, g));
		put(o, "address", g->address);
		put(o, "path", gpus[i].path);
		put(o, "verdict", gpus[i].verdict);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_steps(const struct steps *s)
{
	struct json_object *list = json_object_new_array(), *o;
	int i;

	for (i = 0; i < s->n; i++) {
		o = json_object_new_object();
		put(o, "step", s->step[i].name);
		put(o, "ok", s->step[i].ok);
		put(o, "says", s->step[i].says);
		json_object_array_add(list, o);
	}
	return list;
}

void doc_answer(struct doctor *d)
{
	struct steps *s = doc_need(calloc(1, sizeof(*s)));
	struct gpu_answer *gpus = doc_need(calloc((size_t)doc_gpus(d) + 1,
						  sizeof(*gpus)));
	const struct gpu_answer *gpu;
	const char *path, *reason = "";
	char says[2048], target[64];
	int i, n = 0;

	file_steps(d, s);
	for (i = 0; i < doc_gpus(d); i++) {
		if (d->gpu >= 0 && d->gpu != i)
			continue;
		gpus[n].gpu = i;
		gpu_steps(d, &gpus[n++], s);
	}
	machine_steps(d, s);
	module_step(d, s);
	gpu = best(gpus, n);
	path = gpu ? gpu->path : "bounce";
	if (!strcmp(path, "bounce") || !strcmp(path, "fails"))
		reason = reason_of(d, s, gpu ? gpu->gpu : -1);
	if (d->gpu >= 0)
		snprintf(target, sizeof(target), "%s (%s)",
			 doc_label(d, doc_gpu_at(d, d->gpu)),
			 doc_gpu_at(d, d->gpu)->address);
	else
		strcpy(target, "the best GPU");
	if (!strcmp(path, "bounce"))
		snprintf(says, sizeof(says), "%s into %s: no, it is staged in "
			 "host memory: %s", d->path, target, reason);
	else if (!strcmp(path, "fails"))
		snprintf(says, sizeof(says), "%s into %s: no, it fails or gives "
			 "wrong data: %s", d->path, target, reason);
	else if (!strcmp(path, "unknown"))
		snprintf(says, sizeof(says), "%s into %s: not known from here", d->path, target);
	else
		snprintf(says, sizeof(says), "%s into %s: yes, %s%s%s", d->path,
			 target, strcmp(path, "p2p") ?
			 "by nvidia-fs, with NVIDIA's cuFile" :
			 doc_has_driver(doc_gpu_at(d, gpu->gpu), "nvidia") ?
			 "straight, with NVIDIA's cuFile (with Peerlane's it "
			 "is staged on NVIDIA GPUs; PEERLANE_NVIDIA_UVM=1 "
			 "enables memory of cuMemCreate(), untested)" :
			 "straight",
			 strcmp(gpu->verdict, "root-complex") ? "" :
			 ", but through the root complex",
			 d->count[SEV_WARNING] ? "; see below" : "");
	d->answer = json_object_new_object();
	put(d->answer, "file", d->path);
	put(d->answer, "path", path);
	put(d->answer, "reason", reason);
	put(d->answer, "says", says);
	json_object_object_add(d->answer, "gpus", json_gpus(d, gpus, n));
	json_object_object_add(d->answer, "steps", json_steps(s));
	free(gpus);
	free(s);
}

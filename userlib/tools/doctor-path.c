// SPDX-License-Identifier: MIT
/*
 * peerlane doctor PATH GPU: the answer.  The findings of a question are of
 * severity error exactly where they keep data from going straight, so that the
 * answer follows from them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

static void step(struct json_object *steps, const char *name, const char *ok,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void step(struct json_object *steps, const char *name, const char *ok,
		 const char *fmt, ...)
{
	struct json_object *o = json_object_new_object();
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_object_add(o, "step", json_object_new_string(name));
	json_object_object_add(o, "ok", json_object_new_string(ok));
	json_object_object_add(o, "says", json_object_new_string(text));
	json_object_array_add(steps, o);
}

static const char *field(struct json_object *o, const char *key)
{
	return json_object_get_string(json_object_object_get(o, key));
}

/* The first error in a section, or the first of all. */
static struct json_object *first_error(struct doctor *d, const char *section)
{
	size_t i, n = json_object_array_length(d->findings);

	for (i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(d->findings,
								  i);

		if (!strcmp(field(o, "severity"), "error") &&
		    (!section || !strcmp(field(o, "section"), section)))
			return o;
	}
	return NULL;
}

static bool said_error(struct doctor *d, const char *id)
{
	size_t i, n = json_object_array_length(d->findings);

	for (i = 0; i < n; i++)
		if (!strcmp(field(json_object_array_get_idx(d->findings, i),
				  "id"), id))
			return true;
	return false;
}

static const char *good(struct doctor *d, const char *section)
{
	return first_error(d, section) ? "no" : "ok";
}

static void file_steps(struct doctor *d, struct json_object *steps)
{
	const struct mount *m = d->mount;
	const struct block *b;
	int i;

	if (d->dio_known && d->dio_offset)
		step(steps, "file", good(d, "filesystem"),
		     "%s on %s, direct IO in units of %u bytes, memory aligned "
		     "to %u", d->path, m->type, d->dio_offset, d->dio_memory);
	else
		step(steps, "file", good(d, "filesystem"), "%s on %s", d->path,
		     m->type);
	if (m->point[0])
		step(steps, "mount", "ok", "%s from %s", m->point, m->source);
	for (i = 0; i < m->n_blocks; i++) {
		b = &m->block[i];
		step(steps, b->bdf[0] ? "drive" : "block",
		     b->bdf[0] ? good(d, "nvme") : "-", "%s (%s%s%s)%s%s",
		     b->name, b->kind, b->detail[0] ? ", " : "", b->detail,
		     b->bdf[0] ? " at " : "", b->bdf);
	}
}

static void gpu_answer(struct doctor *d, int i, struct json_object *steps,
		       struct json_object *gpus)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	const struct topo_node *g = doc_gpu_at(d, i);
	struct json_object *o = json_object_new_object();
	enum pln_verdict v;
	const char *path;
	int drive;

	v = doc_pair(d, i, &drive, &pair);
	if (drive >= 0)
		step(steps, "pci", v == PLN_VERDICT_DIRECT ? "ok" :
		     v == PLN_VERDICT_STAGED ? "no" :
		     v == PLN_VERDICT_UNKNOWN ? "?" : "far",
		     "%s to %s %s: %s, %s", doc_drive_at(d, drive)->address,
		     doc_label(d, g), g->address, pln_verdict_name(v),
		     pair.reason);
	if (said_error(d, "acs-qemu-switch") && v == PLN_VERDICT_DIRECT)
		path = "fails";
	else if (first_error(d, NULL) ||
		 (drive >= 0 && v == PLN_VERDICT_STAGED))
		path = "bounce";
	else if (drive < 0 || v == PLN_VERDICT_UNKNOWN || d->p2pdma == UNKNOWN)
		path = "unknown";
	else
		path = d->p2pdma == YES ? "p2p" : "nvidia-fs";
	if (!strcmp(path, "unknown"))
		d->undecided = true;
	json_object_object_add(o, "gpu",
			       json_object_new_string(doc_label(d, g)));
	json_object_object_add(o, "address",
			       json_object_new_string(g->address));
	json_object_object_add(o, "path", json_object_new_string(path));
	json_object_object_add(o, "verdict",
			       json_object_new_string(drive < 0 ? "none" :
						      pln_verdict_name(v)));
	json_object_array_add(gpus, o);
}

/* The GPU with the best path; of these the first; NULL without GPUs */
static struct json_object *best(struct json_object *gpus)
{
	static const char *const order[] = { "p2p", "nvidia-fs", "unknown",
					     "bounce", "fails" };
	size_t i, k, n = json_object_array_length(gpus);
	struct json_object *o;

	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		for (k = 0; k < n; k++) {
			o = json_object_array_get_idx(gpus, k);
			if (!strcmp(field(o, "path"), order[i]))
				return o;
		}
	}
	return NULL;
}

void doc_answer(struct doctor *d)
{
	struct json_object *steps = json_object_new_array();
	struct json_object *gpus = json_object_new_array();
	struct json_object *why, *gpu;
	const char *path, *reason = "";
	char says[1024], target[64];
	int i;

	file_steps(d, steps);
	for (i = 0; i < doc_gpus(d); i++)
		if (d->gpu < 0 || d->gpu == i)
			gpu_answer(d, i, steps, gpus);
	step(steps, "kernel", d->p2pdma == YES && !first_error(d, "kernel") ?
	     "ok" : d->p2pdma == UNKNOWN ? "?" : "no", "Linux %s, P2PDMA %s",
	     d->release, d->p2pdma == YES ? "on" : d->p2pdma == NO ? "off" :
	     "not known");
	step(steps, "driver", first_error(d, "gpu") ||
	     first_error(d, "driver") ? "no" : "ok", "%s", d->gpu >= 0 ? doc_gpu_at(d, d->gpu)->driver :
	     doc_gpus(d) ? doc_gpu_at(d, 0)->driver : "none");
	gpu = best(gpus);
	path = gpu ? field(gpu, "path") : "bounce";
	if (d->gpu >= 0)
		snprintf(target, sizeof(target), "%s (%s)",
			 doc_label(d, doc_gpu_at(d, d->gpu)),
			 doc_gpu_at(d, d->gpu)->address);
	else
		strcpy(target, "the best GPU");
	why = first_error(d, NULL);
	if (why)
		reason = field(why, "what");
	if (!strcmp(path, "bounce"))
		snprintf(says, sizeof(says), "%s into %s: no, it is staged in "
			 "host memory: %s", d->path, target, reason);
	else if (!strcmp(path, "fails"))
		snprintf(says, sizeof(says), "%s into %s: no, it fails or gives "
			 "wrong data: %s", d->path, target, reason);
	else if (!strcmp(path, "unknown"))
		snprintf(says, sizeof(says), "%s into %s: it cannot be said "
			 "from here", d->path, target);
	else
		snprintf(says, sizeof(says), "%s into %s: yes, %s%s%s", d->path,
			 target, !strcmp(path, "p2p") ? "straight" :
			 "by nvidia-fs, with NVIDIA's cuFile",
			 strcmp(field(gpu, "verdict"), "root-complex") ? "" :
			 ", but through the root complex",
			 d->count[SEV_WARNING] ? "; see below" : "");
	d->answer = json_object_new_object();
	json_object_object_add(d->answer, "file",
			       json_object_new_string(d->path));
	json_object_object_add(d->answer, "path",
			       json_object_new_string(path));
	json_object_object_add(d->answer, "reason",
			       json_object_new_string(reason));
	json_object_object_add(d->answer, "says",
			       json_object_new_string(says));
	json_object_object_add(d->answer, "gpus", gpus);
	json_object_object_add(d->answer, "steps", steps);
}

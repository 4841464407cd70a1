// SPDX-License-Identifier: MIT
/* peerlane doctor: what it prints. */
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "tool.h"

const char *doc_severity(enum severity s)
{
	static const char *const names[] = { "info", "warning", "error" };

	return names[s];
}

const char *doc_verdict(const struct doctor *d)
{
	return d->count[SEV_ERROR] ? "broken" :
	       d->count[SEV_WARNING] || d->undecided ? "degraded" : "healthy";
}

static const char *get(struct json_object *o, const char *key)
{
	const char *s = json_object_get_string(json_object_object_get(o, key));

	return s ? s : "";
}

/* A number; none is known of too few calls */
static const char *number(struct json_object *o, const char *key)
{
	const char *s = get(o, key);

	return *s ? s : "-";
}

/* "  label  text", folded at blanks, later lines below the text. */
static void paragraph(const char *label, const char *text)
{
	fold(printf("  %-5s ", label), 8, text);
}

/* What the device at an address is called, or NULL */
static const char *name_at(const struct doctor *d, const char *place)
{
	const struct topo *t = d->t;
	int i;

	for (i = 0; i < t->nodes; i++)
		if (!strcmp(t->node[i].address, place))
			return doc_name(d, &t->node[i]);
	return NULL;
}

static void print_where(const struct doctor *d, const struct finding *f)
{
	char text[4096];
	const char *last = NULL;
	size_t at = 0;
	int i;

	for (i = 0; i < f->n_where && at < sizeof(text); i++) {
		const char *name = name_at(d, f->where[i]);
		const char *next = i + 1 < f->n_where ?
				   name_at(d, f->where[i + 1]) : NULL;
		bool same = name && last && !strcmp(name, last);
		bool goes_on = name && next && !strcmp(name, next);

		/* ports of a kind have one name: "downstream port (A, B)" */
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%s%s%s%s%s", i ? ", " : "",
				       name && !same ? name : "",
				       name && !same ? " (" : "",
				       f->where[i], name && !goes_on ? ")" : "");
		last = name;
	}
	if (i)
		paragraph("where", text);
}

static void print_of_severity(const struct doctor *d, enum severity s)
{
	const struct finding *f;
	int i;

	for (i = 0; i < d->n_findings; i++) {
		f = d->findings[i];
		if (f->severity != s)
			continue;
		printf("\n%s: %s\n", doc_severity(s), f->rule->id);
		paragraph("what", f->what);
		print_where(d, f);
		paragraph("why", f->rule->why);
		paragraph("cure", doc_cure_of(f));
		paragraph("cost", doc_cost_of(f));
	}
}

static void print_missing(struct doctor *d)
{
	size_t i, n = json_object_array_length(d->missing);

	if (!n)
		return;
	printf("\nnot known:\n");
	for (i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(d->missing,
								  i);
		struct json_object *where = json_object_object_get(o, "where");
		size_t more = json_object_array_length(where) - 1;

		printf("  %s (%s: %s", get(o, "fact"),
		       json_object_get_string(
			       json_object_array_get_idx(where, 0)),
		       get(o, "error"));
		if (more)
			printf(", and %zu more", more);
		printf("): %s\n", get(o, "cure"));
	}
}

static void print_trial(struct doctor *d)
{
	struct json_object *t, *us, *v;

	if (!json_object_object_get_ex(d->answer, "trial", &t))
		return;
	if (json_object_object_get_ex(t, "error", &v) && v) {
		printf("  %-12s %-4s %s\n", "trial", "no",
		       json_object_get_string(v));
		return;
	}
	us = json_object_object_get(t, "microseconds");
	printf("  %-12s %-4s GPU at %s: 4 KiB reads by %s, microseconds: p50 %s, p99 %s, max %s; %s in a second%s\n",
	       "trial", "ok", get(t, "gpu_address"), get(t, "path"), number(us, "p50"),
	       number(us, "p99"), number(us, "max"), number(t, "calls"),
	       json_object_get_boolean(json_object_object_get(t, "emulated")) ?
	       " (emulated: says nothing about hardware)" : "");
}

static void print_answer(struct doctor *d)
{
	struct json_object *steps = json_object_object_get(d->answer, "steps");
	size_t i, n = json_object_array_length(steps);

	printf("%s\n", get(d->answer, "says"));
	for (i = 0; i < n; i++) {
		struct json_object *s = json_object_array_get_idx(steps, i);

		printf("  %-12s %-4s %s\n", get(s, "step"), get(s, "ok"),
		       get(s, "says"));
	}
	print_trial(d);
	putchar('\n');
}

static const char *plural(unsigned int n)
{
	return n == 1 ? "" : "s";
}

void doc_print(struct doctor *d, bool verbose)
{
	unsigned int *c = d->count;
	size_t missing = json_object_array_length(d->missing);

	if (d->answer)
		print_answer(d);
	printf("%s: %u error%s, %u warning%s, %u remark%s%s",
	       doc_verdict(d), c[SEV_ERROR], plural(c[SEV_ERROR]),
	       c[SEV_WARNING], plural(c[SEV_WARNING]), c[SEV_INFO],
	       plural(c[SEV_INFO]),
	       c[SEV_INFO] && !verbose ? " (-v shows them)" : "");
	if (missing)
		printf("; %zu fact%s not known", missing,
		       plural((unsigned int)missing));
	putchar('\n');
	print_of_severity(d, SEV_ERROR);
	print_of_severity(d, SEV_WARNING);
	if (verbose) {
		print_of_severity(d, SEV_INFO);
		json_object_object_foreach(d->sections, name, notes) {
			printf("\n%s\n", name);
			json_object_object_foreach(notes, key, value)
				printf("  %-24s %s\n", key,
				       json_object_get_string(value));
		}
	}
	print_missing(d);
}

static void add(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, text ? json_object_new_string(text) :
					      NULL);
}

static struct json_object *json_finding(const struct doctor *d,
					const struct finding *f)
{
	struct json_object *o = json_object_new_object();
	struct json_object *where = json_object_new_array();
	struct json_object *names = json_object_new_array();
	const char *name;
	int i;

	add(o, "id", f->rule->id);
	add(o, "section", f->section->name);
	add(o, "severity", doc_severity(f->severity));
	add(o, "what", f->what);
	add(o, "why", f->rule->why);
	add(o, "cure", doc_cure_of(f));
	add(o, "cost", doc_cost_of(f));
	for (i = 0; i < f->n_where; i++) {
		name = name_at(d, f->where[i]);
		json_object_array_add(where,
				      json_object_new_string(f->where[i]));
		json_object_array_add(names, name ?
				      json_object_new_string(name) : NULL);
	}
	json_object_object_add(o, "where", where);
	json_object_object_add(o, "names", names);
	return o;
}

void doc_print_json(struct doctor *d)
{
	struct json_object *o = json_object_new_object();
	struct json_object *findings = json_object_new_array();
	int i;

	for (i = 0; i < d->n_findings; i++)
		json_object_array_add(findings,
				      json_finding(d, d->findings[i]));
	add(o, "verdict", doc_verdict(d));
	if (d->answer)
		json_object_object_add(o, "answer", json_object_get(d->answer));
	json_object_object_add(o, "findings", findings);
	json_object_object_add(o, "missing", json_object_get(d->missing));
	json_object_object_add(o, "sections", json_object_get(d->sections));
	print_json(o);
}

void doc_list(const struct section *const *s, bool json)
{
	struct json_object *all = json_object_new_array(), *o;
	size_t i;

	for (; *s; s++) {
		if (!json)
			printf("%s: %s\n", (*s)->name, (*s)->title);
		for (i = 0; i < (*s)->n_rules; i++) {
			const struct rule *r = &(*s)->rules[i];

			if (!json) {
				printf("  %-26s %-8s %s\n", r->id,
				       doc_severity(r->severity), r->what);
				continue;
			}
			o = json_object_new_object();
			add(o, "id", r->id);
			add(o, "section", (*s)->name);
			add(o, "severity", doc_severity(r->severity));
			add(o, "what", r->what);
			add(o, "why", r->why);
			add(o, "cure", r->cure);
			add(o, "cost", r->cost);
			json_object_array_add(all, o);
		}
	}
	if (json)
		print_json(all);
	else
		json_object_put(all);
}

bool doc_explain(const struct section *const *s, const char *id)
{
	size_t i;

	for (; *s; s++) {
		for (i = 0; i < (*s)->n_rules; i++) {
			const struct rule *r = &(*s)->rules[i];

			if (strcmp(r->id, id))
				continue;
			printf("%s (%s, %s)\n", r->id, (*s)->name,
			       doc_severity(r->severity));
			paragraph("what", r->what);
			paragraph("why", r->why);
			paragraph("cure", r->cure);
			paragraph("cost", r->cost);
			return true;
		}
	}
	return false;
}

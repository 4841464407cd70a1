// SPDX-License-Identifier: MIT
/*
 * peerlane doctor for monitoring: metrics for Prometheus's node_exporter (its
 * textfile collector), and the line that plugins of Nagios and Icinga print.
 */
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "tool.h"

static const char *const verdicts[] = { "healthy", "degraded", "broken" };

static unsigned int unknown_facts(const struct doctor *d)
{
	return (unsigned int)json_object_array_length(d->missing);
}

static const char *answer(const struct doctor *d, const char *key)
{
	return json_object_get_string(json_object_object_get(d->answer, key));
}

/* ---- Prometheus ---- */

static void head(FILE *f, const char *metric, const char *help)
{
	fprintf(f, "# HELP peerlane_doctor_%s %s\n"
		"# TYPE peerlane_doctor_%s gauge\n", metric, help, metric);
}

static bool same(const struct finding *a, const struct finding *b)
{
	return a->rule == b->rule && a->severity == b->severity;
}

/* Places of all findings like that of number @i; 0: an earlier one has told them */
static int places(const struct doctor *d, int i)
{
	int j, n = 0;

	for (j = 0; j < d->n_findings; j++) {
		if (!same(d->findings[i], d->findings[j]))
			continue;
		if (j < i)
			return 0;
		n += d->findings[j]->n_where ? d->findings[j]->n_where : 1;
	}
	return n;
}

static void put_metrics(FILE *f, const void *arg)
{
	const struct doctor *d = arg;
	const char *c;
	size_t v;
	int i, n;

	head(f, "verdict", "The verdict: 1 for the current one.");
	for (v = 0; v < sizeof(verdicts) / sizeof(*verdicts); v++)
		fprintf(f, "peerlane_doctor_verdict{verdict=\"%s\"} %d\n", verdicts[v],
			!strcmp(verdicts[v], doc_verdict(d)));
	head(f, "findings", "Findings of that severity.");
	for (i = SEV_INFO; i <= SEV_ERROR; i++)
		fprintf(f, "peerlane_doctor_findings{severity=\"%s\"} %u\n",
			doc_severity((enum severity)i), d->count[i]);
	head(f, "finding", "Devices or places that have this finding, at least 1.");
	for (i = 0; i < d->n_findings; i++) {
		const struct finding *x = d->findings[i];

		n = places(d, i);
		if (n)
			fprintf(f, "peerlane_doctor_finding{id=\"%s\",section=\"%s\",severity=\"%s\"} %d\n",
				x->rule->id, x->section->name,
				doc_severity(x->severity), n);
	}
	head(f, "unknown_facts", "Facts that could not be read.");
	fprintf(f, "peerlane_doctor_unknown_facts %u\n", unknown_facts(d));
	if (!d->answer)
		return;
	head(f, "path", "The path of a transfer between this file and a GPU, 1.");
	fputs("peerlane_doctor_path{file=\"", f);
	for (c = d->path; *c; c++) {
		if (*c == '\n') {
			fputs("\\n", f);
			continue;
		}
		if (*c == '"' || *c == '\\')
			fputc('\\', f);
		fputc(*c, f);
	}
	fprintf(f, "\",path=\"%s\"} 1\n", answer(d, "path"));
}

int doc_write_metrics(const struct doctor *d, const char *file)
{
	return replace_file(file, put_metrics, d);
}

/* ---- Nagios ---- */

/* A '|' begins the figures, and a line ends the status. */
static void plain(const char *text)
{
	for (; *text; text++)
		putchar(*text == '|' || (unsigned char)*text < ' ' ? ' ' : *text);
}

void doc_print_nagios(const struct doctor *d)
{
	static const char *const states[] = { "OK", "WARNING", "CRITICAL" };
	const char *verdict = doc_verdict(d);
	const char *sep = ": ";
	size_t v = 0;
	int i;

	while (strcmp(verdicts[v], verdict))
		v++;
	printf("PEERLANE %s - %s", states[v], verdict);
	if (d->answer) {
		printf("%s%s: ", sep, answer(d, "path"));
		plain(answer(d, "says"));
		sep = "; ";
	}
	for (i = 0; i < d->n_findings; i++) {
		if (d->findings[i]->severity == SEV_INFO || !places(d, i))
			continue;
		printf("%s%s", sep, d->findings[i]->rule->id);
		sep = ", ";
	}
	printf(" | errors=%u;;0 warnings=%u;0 unknown_facts=%u\n", d->count[SEV_ERROR],
	       d->count[SEV_WARNING], unknown_facts(d));
}

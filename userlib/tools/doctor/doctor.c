// SPDX-License-Identifier: MIT
/*
 * peerlane doctor: what stands between files and GPU memory on this machine,
 * and what to do about it.  Reads only, and opens no device; but for --try.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "peerlane/peerlane.h"
#include "tool.h"

static const char usage[] =
"usage: peerlane doctor [OPTION...] [PATH [GPU]]\n"
"\n"
"Reports the causes that prevent direct transfers between drives and GPU memory,\n"
"or between NICs and GPU memory, on this machine: the problem, its effect, the\n"
"command that cures it, and the cost of the cure.  With a PATH: whether a read of\n"
"that file goes directly into the memory of the GPU, and the reason if not.\n";

static const char after[] =
"Exit status: 0 healthy, 1 degraded, 2 broken; peerlane(1) has the others.  It\n"
"only reads, except with --try.  As root it can read more; facts that it could\n"
"not read are listed.\n";

enum {
	GPU = 1, VERBOSE, TRY, TIMEOUT, JSON, NAGIOS, PROMETHEUS, FROM, RECORD, LIST, EXPLAIN
};

static const struct opt options[] = {
	{ GPU, "gpu", "GPU", .words = "0",
	  .help = "only this GPU: its number in PCI order, its name in "
	  "peerlane-topo(1), or its PCI address",
	  .more = "The number in PCI order can differ from CUDA's." },
	{ VERBOSE, "verbose", .letter = 'v',
	  .help = "also print remarks, and all facts, by section" },
	{ TRY, "try",
	  .help = "also open the RDMA devices and GPUs, and register a little "
	  "memory, to see whether it works; with a PATH, read that for a second",
	  .more = "It opens each RDMA device and registers 64 KiB of host "
	  "memory, an invalid dma-buf descriptor (to see the error), and 64 "
	  "KiB of each GPU as a dma-buf, by its pointer and staged. This "
	  "needs libibverbs and libcuda, creates a CUDA context on each GPU "
	  "for a moment, and runs in a process of its own, which is killed when "
	  "it exceeds --timeout. Without --try doctor judges by the names of drivers, and "
	  "reports that. With a PATH it does something else: for a second it reads 4 KiB at random places of that "
	  "file into the memory of the GPU (the nearest one by default), and prints the path "
	  "and the time of a read. It writes nothing, and its results are not in the record." },
	{ TIMEOUT, "timeout", "S",
	  .help = "limit of --try in seconds, 1 to 3600 (30)" },
	{ JSON, "json", .help = "print one JSON object",
	  .more = "Its shape is docs/reference/doctor.schema.json of the source." },
	{ NAGIOS, "nagios",
	  .help = "print one line, as a plugin of Nagios or Icinga",
	  .more = "The status is 0 for OK, 1 for WARNING, 2 for CRITICAL, and 3, UNKNOWN, where it would "
	  "be more; then the line is the error. The figures are the numbers of errors, of warnings and of facts that "
	  "could not be read." },
	{ PROMETHEUS, "prometheus", "FILE",
	  .help = "also write metrics of Prometheus into FILE",
	  .more = "It is for the textfile collector of node_exporter(1), and replaced as a whole." },
	{ FROM, "from", "RECORD",
	  .help = "judge a peerlane-record(5) instead of this machine",
	  .more = "The results of --try on that machine are part of the record. "
	  "PATH is then an absolute path on that machine." },
	{ RECORD, "record", "FILE",
	  .help = "also write what was read into a record, to judge it "
	  "elsewhere",
	  .more = "Serial numbers, UUIDs and addresses of NICs are left out." },
	{ LIST, "list",
	  .help = "list all findings; with --json, with all their texts" },
	{ EXPLAIN, "explain", "ID", .help = "all texts of the finding ID" },
	{ 0 }
};

const struct command doctor_command = {
	.name = "doctor", .operands = "FILE",
	.what = "what prevents direct transfers, and how to cure it",
	.usage = usage, .options = options, .after = after,
};

/* In the order in which one cures them; look() functions use earlier ones. */
static const struct section *const sections[] = {
	&doc_environment, &doc_kernel, &doc_gpu, &doc_bar1, &doc_driver,
	&doc_iommu, &doc_acs, &doc_errors, &doc_host_bridge, &doc_nvme,
	&doc_filesystem, &doc_rdma, &doc_limits, &doc_containers, NULL
};

/* ---- findings ---- */

void *doc_need(void *p)
{
	if (p)
		return p;
	complain("out of memory");
	exit(EXIT_IO);
}

static char *text_of(const char *fmt, va_list ap)
{
	char *text;

	return doc_need(vasprintf(&text, fmt, ap) < 0 ? NULL : text);
}

static void add_text(struct json_object *o, const char *key, const char *fmt,
		     va_list ap)
{
	char *text = text_of(fmt, ap);

	json_object_object_add(o, key, json_object_new_string(text));
	free(text);
}

struct finding *doc_say(struct doctor *d, const struct rule *r,
			enum severity severity, const char *what, ...)
{
	struct finding *f;
	va_list ap;
	char *text;
	int i;

	if (severity > r->severity)
		severity = r->severity;
	va_start(ap, what);
	text = text_of(what, ap);
	va_end(ap);
	for (i = 0; i < d->n_findings; i++) {
		f = d->findings[i];
		if (f->rule == r && f->severity == severity &&
		    !strcmp(f->what, text)) {
			free(text);
			return f;
		}
	}
	d->findings = doc_need(realloc(d->findings, ((size_t)d->n_findings + 1) *
				   sizeof(*d->findings)));
	f = doc_need(calloc(1, sizeof(*f)));
	*f = (struct finding){ .rule = r, .section = d->now,
			       .severity = severity, .what = text,
			       .stops = severity == SEV_ERROR };
	d->findings[d->n_findings++] = f;
	d->count[severity]++;
	return f;
}

bool doc_names(const struct finding *f, const char *place)
{
	int i;

	for (i = 0; i < f->n_where; i++)
		if (!strcmp(f->where[i], place))
			return true;
	return false;
}

void doc_where(struct finding *f, const char *place)
{
	if (doc_names(f, place))
		return;
	f->where = doc_need(realloc(f->where, ((size_t)f->n_where + 1) *
				sizeof(*f->where)));
	f->where[f->n_where++] = doc_need(strdup(place));
}

void doc_cure(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	free(f->cure);
	va_start(ap, fmt);
	f->cure = text_of(fmt, ap);
	va_end(ap);
}

void doc_cost(struct finding *f, const char *cost)
{
	free(f->cost);
	f->cost = doc_need(strdup(cost));
}

static void free_finding(struct finding *f)
{
	int i;

	for (i = 0; i < f->n_where; i++)
		free(f->where[i]);
	free(f->where);
	free(f->what);
	free(f->cure);
	free(f->cost);
	free(f);
}

/* Does it name that GPU, or none? */
static bool concerns(const struct doctor *d, const struct finding *f, int gpu)
{
	bool others = false;
	int i;

	for (i = 0; gpu >= 0 && i < doc_gpus(d); i++) {
		if (!doc_names(f, doc_gpu_at(d, i)->address))
			continue;
		if (i == gpu)
			return true;
		others = true;
	}
	return !others;
}

const struct finding *doc_stop(const struct doctor *d, int gpu,
			       const char *section, const struct section *but)
{
	const struct finding *f;
	int i;

	for (i = 0; i < d->n_findings; i++) {
		f = d->findings[i];
		if (f->stops && f->section != but &&
		    (!section || !strcmp(f->section->name, section)) &&
		    concerns(d, f, gpu))
			return f;
	}
	return NULL;
}

/* Where no error stops some GPU of the question, all errors name others: they
 * are warnings. */
static void weigh_findings(struct doctor *d)
{
	const struct topo_node *g;
	bool clean = false;
	int i;

	for_each_gpu(d, g, i)
		clean = clean || !doc_stop(d, i, NULL, NULL);
	for (i = 0; clean && i < d->n_findings; i++) {
		if (d->findings[i]->severity != SEV_ERROR)
			continue;
		d->findings[i]->severity = SEV_WARNING;
		d->count[SEV_ERROR]--;
		d->count[SEV_WARNING]++;
	}
}

const char *doc_cure_of(const struct finding *f)
{
	return f->cure ? f->cure : f->rule->cure;
}

const char *doc_cost_of(const struct finding *f)
{
	return f->cost ? f->cost : f->rule->cost;
}

static bool is_address(const char *s)
{
	return strlen(s) >= 12 && strchr(s, ':') && strchr(s, '.') &&
	       strspn(s, "0123456789abcdef:.") == strlen(s);
}

/* Puts the first place of the finding where its cure has BDF or NAME. */
static void fill_cure(struct finding *f)
{
	const char *cure = doc_cure_of(f), *word, *at;
	size_t size, n = 0;
	char *text;
	FILE *out;

	if (!f->n_where)
		return;
	word = is_address(f->where[0]) ? "BDF" : "NAME";
	if (!strstr(cure, word))
		return;
	out = doc_need(open_memstream(&text, &size));
	for (; (at = strstr(cure, word)); cure = at + strlen(word), n++)
		fprintf(out, "%.*s%s", (int)(at - cure), cure, f->where[0]);
	fputs(cure, out);
	if (f->n_where > 1)
		fprintf(out, "; the same for the other%s",
			f->n_where > 2 ? "s" : "");
	fclose(out);
	free(f->cure);
	f->cure = doc_need(text);
}

/* Errors first; of one severity in the order of the sections */
static void order_findings(struct doctor *d)
{
	struct finding **old = d->findings;
	int s, i, n = 0;

	if (!d->n_findings)
		return;
	d->findings = doc_need(calloc((size_t)d->n_findings, sizeof(*old)));
	for (s = SEV_ERROR; s >= SEV_INFO; s--)
		for (i = 0; i < d->n_findings; i++)
			if ((int)old[i]->severity == s)
				d->findings[n++] = old[i];
	free(old);
	for (i = 0; i < n; i++)
		fill_cure(d->findings[i]);
}

void doc_note(struct doctor *d, const char *key, const char *fmt, ...)
{
	struct json_object *o = json_object_object_get(d->sections,
						       d->now->name);
	va_list ap;

	va_start(ap, fmt);
	add_text(o, key, fmt, ap);
	va_end(ap);
}

void doc_missing(struct doctor *d, const char *fact, const char *path, int err)
{
	struct json_object *o, *where;
	size_t i, n = json_object_array_length(d->missing);
	const char *cure;

	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(d->missing, i);
		if (strcmp(json_object_get_string(
			   json_object_object_get(o, "fact")), fact))
			continue;
		json_object_array_add(json_object_object_get(o, "where"),
				      json_object_new_string(path));
		return;
	}
	switch (err) {
	case -EACCES:
	case -EPERM:
		cure = "run peerlane doctor as root";
		break;
	case -ENODATA:
		cure = !strncmp(path, "/peerlane/trial", 15) ?
		       "peerlane doctor --try on that machine tries it" :
		       "the record does not hold it: record the machine again";
		break;
	case -ENOKEY:
		cure = "run peerlane doctor as root, or with kernel.kptr_restrict=1 "
		       "or 0";
		break;
	default:
		cure = "make this path readable here; in a container mount "
		       "it from the host";
	}
	o = json_object_new_object();
	where = json_object_new_array();
	json_object_array_add(where, json_object_new_string(path));
	json_object_object_add(o, "fact", json_object_new_string(fact));
	json_object_object_add(o, "error",
			       json_object_new_string(pln_errname(err)));
	json_object_object_add(o, "cure", json_object_new_string(cure));
	json_object_object_add(o, "where", where);
	json_object_array_add(d->missing, o);
}

/* ---- the run ---- */

static void examine(struct doctor *d)
{
	const struct section *const *s;
	size_t i;

	for (s = sections; *s; s++) {
		json_object_object_add(d->sections, (*s)->name,
				       json_object_new_object());
		d->now = *s;
		if ((*s)->look)
			(*s)->look(d);
	}
	for (s = sections; *s; s++) {
		if (d->path && !(*s)->of_a_file)
			continue;
		d->now = *s;
		for (i = 0; i < (*s)->n_rules; i++)
			(*s)->rules[i].check(d, &(*s)->rules[i]);
	}
	weigh_findings(d);
	order_findings(d);
	if (d->path)
		doc_answer(d);
}

static int status_of(const struct doctor *d)
{
	const char *verdict = doc_verdict(d);

	return !strcmp(verdict, "broken") ? EXIT_BROKEN :
	       !strcmp(verdict, "degraded") ? EXIT_DEGRADED : EXIT_OK;
}

static int wrong(const char *fmt, const char *arg)
{
	complain(fmt, arg);
	say_usage(&doctor_command);
	return EXIT_USAGE;
}

/* What the command line asks, besides what is in struct doctor. */
struct question {
	const char *from, *record, *metrics, *gpu, *timeout, *explain;
	bool json, nagios, verbose, list;
};

static int run(struct doctor *d, const struct question *q)
{
	int r;

	r = facts_for(q->from, &d->f);
	if (r)
		return r;
	r = topo_build(&d->t, d->f);
	if (r) {
		complain("the PCI devices cannot be read: %s", strerror(-r));
		return EXIT_NO_INPUT;
	}
	if (q->gpu) {
		d->gpu = doc_find_gpu(d, q->gpu);
		if (d->gpu < 0)
			return EXIT_USAGE;
	}
	if (d->trying && !d->path && !doc_try(d))
		return EXIT_USAGE;
	doc_read_mounts(d);
	if (d->path) {
		r = doc_find_mount(d);
		if (r)
			return r == -EINVAL ? EXIT_USAGE : EXIT_NO_INPUT;
	}
	examine(d);
	if (d->trying && d->path && !doc_try_file(d))
		return EXIT_USAGE;
	if (q->record) {
		r = facts_save(d->f, q->record);
		if (r) {
			complain("%s cannot be written: %s", q->record,
				 strerror(-r));
			return EXIT_NO_OUTPUT;
		}
	}
	if (q->json)
		doc_print_json(d);
	else if (q->nagios)
		doc_print_nagios(d);
	else
		doc_print(d, q->verbose);
	fflush(stdout);
	if (q->metrics) {
		r = doc_write_metrics(d, q->metrics);
		if (r)
			return r;
	}
	return status_of(d);
}

static bool parse_timeout(const char *text, int *seconds)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 1 || n > 3600)
		return false;
	*seconds = (int)n;
	return true;
}

/* EXIT_OK, or complains */
static int parse(struct doctor *d, struct question *q, int argc, char **argv)
{
	int c;

	while ((c = next_option(&doctor_command, argc, argv, NULL)) != -1) {
		switch (c) {
		case GPU:
			q->gpu = optarg;
			break;
		case JSON:
			q->json = true;
			break;
		case NAGIOS:
			q->nagios = true;
			/* the first line of the output is all that it shows */
			dup2(STDOUT_FILENO, STDERR_FILENO);
			break;
		case PROMETHEUS:
			q->metrics = optarg;
			break;
		case TRY:
			d->trying = true;
			break;
		case TIMEOUT:
			q->timeout = optarg;
			break;
		case FROM:
			q->from = optarg;
			break;
		case RECORD:
			q->record = optarg;
			break;
		case LIST:
			q->list = true;
			break;
		case EXPLAIN:
			q->explain = optarg;
			break;
		case VERBOSE:
			q->verbose = true;
			break;
		default:
			say_usage(&doctor_command);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		d->path = argv[optind++];
	if (optind < argc && q->gpu)
		return wrong("two GPUs are given: --gpu %s and another one", q->gpu);
	if (optind < argc)
		q->gpu = argv[optind++];
	if (optind < argc)
		return wrong("doctor takes a path and a GPU, not \"%s\" too",
			     argv[optind]);
	if (q->json && q->nagios)
		return wrong("%s and --nagios are two outputs: choose one", "--json");
	if ((q->list || q->explain) && (d->path || q->gpu || q->from || q->record ||
					q->metrics || q->nagios || d->trying))
		return wrong("%s takes no path, GPU, record, output or --try",
			     q->list ? "--list" : "--explain");
	if (q->timeout && !d->trying)
		return wrong("--timeout %s needs --try", q->timeout);
	if (q->timeout && !parse_timeout(q->timeout, &d->timeout))
		return wrong("--timeout takes 1 to 3600 seconds, not \"%s\"",
			     q->timeout);
	if (d->trying && q->from)
		return wrong("--try tests this machine, not the record %s",
			     q->from);
	if (q->record && q->from)
		return wrong("--record %s records this machine, not "
			     "another record", q->record);
	return EXIT_OK;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor d = { .gpu = -1, .timeout = DOC_TRY_SECONDS };
	struct question q = { 0 };
	int i, status;

	status = parse(&d, &q, argc, argv);
	if (!status && q.list) {
		doc_list(sections, q.json);
		return EXIT_OK;
	}
	if (!status && q.explain)
		return doc_explain(sections, q.explain) ? EXIT_OK :
			wrong("no finding is called \"%s\" (--list has all)",
			      q.explain);
	if (!status) {
		d.missing = json_object_new_array();
		d.sections = json_object_new_object();
		status = run(&d, &q);
		for (i = 0; i < d.n_findings; i++)
			free_finding(d.findings[i]);
		free(d.findings);
		json_object_put(d.missing);
		json_object_put(d.sections);
		json_object_put(d.answer);
		free(d.mounts);
		topo_free(d.t);
		facts_close(d.f);
	}
	return q.nagios && status > EXIT_BROKEN ? EXIT_NAGIOS_UNKNOWN : status;
}

// SPDX-License-Identifier: MIT
/*
 * What libpeerlane sees of the PCI Express tree: cuFileExportPCIeTopology() writes it
 * as JSON, and fabric.c asks for a pair.  libpeerlane is loaded for these alone, so that
 * this library loads where the other is not.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/facts.h"
#include "../core/load.h"
#include "internal.h"
#include "page_json.h"
#include "peerlane/topo.h"

#define LIBRARY	"libpeerlane.so.0"

static struct {
	__typeof__(&pln_topo_open) open;
	__typeof__(&pln_topo_close) close;
	__typeof__(&pln_topo_count) count;
	__typeof__(&pln_topo_info) info;
	__typeof__(&pln_topo_between) between;
	__typeof__(&pln_topo_p2pdma) p2pdma;
	__typeof__(&pln_relation_name) relation;
	__typeof__(&pln_verdict_name) verdict;
} pln;

static bool find_all(void)
{
	static const struct load_function all[] = {
		{ &pln.open, "pln_topo_open", NULL, true },
		{ &pln.close, "pln_topo_close", NULL, true },
		{ &pln.count, "pln_topo_count", NULL, true },
		{ &pln.info, "pln_topo_info", NULL, true },
		{ &pln.between, "pln_topo_between", NULL, true },
		{ &pln.p2pdma, "pln_topo_p2pdma", NULL, true },
		{ &pln.relation, "pln_relation_name", NULL, true },
		{ &pln.verdict, "pln_verdict_name", NULL, true },
	};
	char why[256];
	int r = load_library(LIBRARY, RTLD_NOW | RTLD_LOCAL, all,
			     LOAD_COUNT(all), why, sizeof(why));

	if (r)
		log_line(LOG_ERROR, "no topology: %s", why);
	return !r;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void topology_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* It stays loaded. */
static bool load(void)
{
	static bool loaded;
	bool there;

	pthread_mutex_lock(&lock);
	loaded = loaded || find_all();
	there = loaded;
	pthread_mutex_unlock(&lock);
	return there;
}

/* The device of a PCI address, or -ENODEV */
static int find_device(const struct pln_topo *topo, const char *address)
{
	struct pln_topo_device d = { .size = sizeof(d) };
	unsigned int i;

	for (i = 0; !pln.info(topo, i, &d); i++)
		if (!strcmp(d.address, address))
			return (int)i;
	return -ENODEV;
}

int topology_p2pdma(const char *address, const char *gpu, char *why, size_t size)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	struct pln_topo *topo;
	int r, a, b;

	if (!load()) {
		snprintf(why, size, "not known without " LIBRARY);
		return 0;
	}
	r = pln.open(&topo, NULL);
	if (r) {
		snprintf(why, size, "not known: PCI devices cannot be read: %s",
			 strerror(-r));
		return facts_ran_out(r) ? r : 0;
	}
	a = find_device(topo, address);
	b = find_device(topo, gpu);
	r = a < 0 || b < 0 ? -ENODEV :
	    pln.p2pdma(topo, (unsigned int)a, (unsigned int)b, &pair);
	pln.close(topo);
	if (facts_ran_out(r))
		return r;
	if (r)
		snprintf(why, size, "not known: one is none of the PCI devices that "
			 LIBRARY " knows");
	else
		snprintf(why, size, "%s: %s", pair.verdict == PLN_VERDICT_UNKNOWN ?
			 "not known" : "refused", pair.reason);
	return !r && (pair.verdict == PLN_VERDICT_DIRECT ||
		      pair.verdict == PLN_VERDICT_ROOT_COMPLEX);
}

static void put_device(FILE *f, const struct pln_topo_device *d)
{
	static const char *const kinds[] = { "", "gpu", "nic", "nvme" };

	json_text(f, "label", d->label);
	fprintf(f, ", \"kind\": \"%s\", ",
		d->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[d->kind] : "");
	json_text(f, "pci_address", d->address);
	fputs(", ", f);
	json_text(f, "name", d->name);
	if (d->numa_node < 0)
		fputs(", \"numa_node\": null", f);
	else
		fprintf(f, ", \"numa_node\": %d", d->numa_node);
}

/* Each device, then each GPU with each of the others */
static int put_all(FILE *f, const struct pln_topo *topo)
{
	struct pln_topo_device a = { .size = sizeof(a) }, b = { .size = sizeof(b) };
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	unsigned int i, j, n;
	const char *comma = "";
	int r = pln.count(topo);

	if (r < 0)
		return r;
	n = (unsigned int)r;
	fputs("{\"devices\": [", f);
	for (i = 0; i < n; i++) {
		r = pln.info(topo, i, &a);
		if (r)
			return r;
		fprintf(f, "%s\n\t{", i ? "," : "");
		put_device(f, &a);
		putc('}', f);
	}
	fputs("],\n\"pairs\": [", f);
	for (i = 0; i < n; i++) {
		r = pln.info(topo, i, &a);
		if (r)
			return r;
		if (a.kind != PLN_TOPO_GPU)
			continue;
		for (j = 0; j < n; j++) {
			if (j == i)
				continue;
			r = pln.info(topo, j, &b);
			if (!r)
				r = pln.between(topo, i, j, &pair);
			if (r)
				return r;
			fprintf(f, "%s\n\t{", comma);
			comma = ",";
			json_text(f, "gpu", a.label);
			fputs(", ", f);
			json_text(f, "device", b.label);
			fprintf(f, ", \"relation\": \"%s\", \"distance\": %u, \"verdict\": \"%s\", ",
				pln.relation(pair.relation), pair.distance,
				pln.verdict(pair.verdict));
			json_text(f, "reason", pair.reason);
			putc('}', f);
		}
	}
	fputs("]}\n", f);
	return 0;
}

/* The text, to be freed; @text is NULL if memory is out */
static CUfileOpError describe(char **text, size_t *len)
{
	struct pln_topo *topo;
	FILE *f;
	int r;

	if (!load())
		return CU_FILE_INTERNAL_ERROR;
	r = pln.open(&topo, NULL);
	if (r) {
		log_line(LOG_ERROR, "no topology: %s", strerror(-r));
		return r == -ENOMEM ? CU_FILE_NOMEM_ERROR : CU_FILE_INTERNAL_ERROR;
	}
	f = open_memstream(text, len);
	r = f ? put_all(f, topo) : -ENOMEM;
	if (f && fclose(f))
		r = -ENOMEM;
	pln.close(topo);
	if (!r)
		return CU_FILE_SUCCESS;
	if (f)
		free(*text);
	return r == -ENOMEM ? CU_FILE_NOMEM_ERROR : CU_FILE_INTERNAL_ERROR;
}

EXPORT CUfileError_t cuFileExportPCIeTopology(const char *filename)
{
	NOT_CANCELLED;
	CUfileOpError r;
	char *text;
	size_t len;
	FILE *f;

	if (!filename || !*filename)
		return result(CU_FILE_INVALID_VALUE);
	/* The file is touched when there is something to write */
	r = describe(&text, &len);
	if (r)
		return result(r);
	f = fopen(filename, "we");
	if (!f) {
		log_line(LOG_ERROR, "%s: %s", filename, strerror(errno));
		r = CU_FILE_INVALID_VALUE;
	} else {
		bool wrote = fwrite(text, 1, len, f) == len;

		if (fclose(f) || !wrote) {
			log_line(LOG_ERROR, "%s: %s", filename, strerror(errno));
			r = CU_FILE_IO_ERROR;
		}
	}
	free(text);
	return result(r);
}

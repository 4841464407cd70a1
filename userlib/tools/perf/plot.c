// SPDX-License-Identifier: MIT
/*
 * peerlane perf: the plot, as a script for gnuplot that holds its data.
 *
 * Three rows, latency, bandwidth and message rate, and a column for each
 * operation.  It has numbers and fixed words only, nothing that a peer sent.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perf.h"
#include "tool.h"

static const char *const rows[] = { "latency", "bandwidth", "rate" };
static const char *const units[] = { "microseconds", "MB/s", "messages/s" };

static void data(FILE *f, const struct perf_report *r, unsigned int row,
		 unsigned int op, unsigned int mem)
{
	enum perf_test test = row ? PERF_STREAM : PERF_LATENCY;
	unsigned int i;

	fprintf(f, "$%s_%s_%s << END\n", rows[row], perf_op_name[op],
		perf_mem_name[mem]);
	for (i = 0; i < r->n; i++) {
		const struct perf_measure *m = &r->measure[i];
		uint64_t high = m->stat.p99 != PERF_UNTOLD ? m->stat.p99 :
				m->stat.max;

		if (m->test != test || m->op != op || m->mem != mem)
			continue;
		if (!row)
			fprintf(f, "%llu %.3f %.3f %.3f\n",
				(unsigned long long)m->size,
				(double)m->stat.p50 / 1e3,
				(double)m->stat.min / 1e3, (double)high / 1e3);
		else
			fprintf(f, "%llu %.6g\n", (unsigned long long)m->size,
				(double)m->messages / m->seconds *
				(row == 1 ? (double)m->size / 1e6 : 1));
	}
	fprintf(f, "END\n");
}

static bool wanted(const struct perf_report *r, unsigned int row,
		   unsigned int op)
{
	return r->o->tests & 1u << (row ? PERF_STREAM : PERF_LATENCY) &&
	       r->o->ops & 1u << op;
}

static void chart(FILE *f, const struct perf_report *r, unsigned int row,
		  unsigned int op)
{
	static const char *const colours[] = { "#1b7837", "#c51b7d", "#777777" };
	const char *comma = "";
	unsigned int mem;

	fprintf(f, "set title \"%s\"\nset ylabel \"%s\"\nplot ",
		perf_op_name[op], units[row]);
	for (mem = 0; mem < PERF_MEMS; mem++) {
		if (r->skip[mem])
			continue;
		fprintf(f, "%s$%s_%s_%s using 1:2%s with %s lc rgb \"%s\" "
			"pt %u title \"%s\"", comma, rows[row],
			perf_op_name[op], perf_mem_name[mem],
			row ? "" : ":3:4", row ? "linespoints" : "yerrorlines",
			colours[mem], 5 + 2 * mem, perf_mem_name[mem]);
		comma = ", \\\n     ";
	}
	fprintf(f, "\n");
}

bool perf_write_gnuplot(const struct perf_report *r, const char *file)
{
	unsigned int row, op, mem, n_rows = 0, n_ops = 0;
	FILE *f = fopen(file, "we");
	bool bad;

	if (!f) {
		complain("%s cannot be written: %s", file, strerror(errno));
		return false;
	}
	for (row = 0; row < 3; row++)
		n_rows += !!(r->o->tests & 1u << (row ? PERF_STREAM :
						  PERF_LATENCY));
	for (op = 0; op < PERF_OPS; op++)
		n_ops += !!(r->o->ops & 1u << op);
	fprintf(f, "# SPDX-License-Identifier: MIT\n"
		"# A picture in SVG: gnuplot THIS-FILE >FILE.svg\n"
		"set terminal svg size %u,%u background \"white\"\n"
		"set logscale x 2\nset format x \"%%.0b%%B\"\n"
		"set logscale y\nset format y \"%%g\"\n"
		"set xlabel \"bytes of a message\"\nset grid\n"
		"set key below horizontal\n", 160 + 360 * n_ops, 80 + 300 * n_rows);
	for (row = 0; row < 3; row++)
		for (op = 0; op < PERF_OPS; op++)
			for (mem = 0; mem < PERF_MEMS; mem++)
				if (wanted(r, row, op) && !r->skip[mem])
					data(f, r, row, op, mem);
	fprintf(f, "set multiplot layout %u,%u title \"peerlane perf: latency "
		"(median, least and p99), bandwidth, message rate%s\"\n",
		n_rows, n_ops, r->end->emulated || r->peer->emulated ?
		"\\n"
		"emulated: says nothing about hardware" : "");
	for (row = 0; row < 3; row++)
		for (op = 0; op < PERF_OPS; op++)
			if (wanted(r, row, op))
				chart(f, r, row, op);
	fprintf(f, "unset multiplot\n");
	bad = ferror(f);
	if (fclose(f) || bad) {
		complain("%s cannot be written: %s", file, strerror(errno));
		return false;
	}
	return true;
}

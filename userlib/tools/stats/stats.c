// SPDX-License-Identifier: MIT
/* peerlane stats: what the emulated GPUs counted, from debugfs; options of all of it. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procs.h"
#include "tool.h"

#define DEBUGFS	"/sys/kernel/debug/peerlane_gpu"

static const char usage[] =
"usage: peerlane stats [--json] [--root DIR]\n"
"       peerlane stats --fabric [--json] [--from RECORD]\n"
"       peerlane stats PID [OPTION...]\n"
"       peerlane stats --all [OPTION...]\n"
"\n"
"With PID or --all: prints the counters of libcufile in that process, or in all.\n"
"Otherwise prints the counters of each emulated GPU: DMA of other devices into its memory\n"
"by direction and by device, the bytes that its engines copied from and to host\n"
"memory, and the memory of its driver.  Needs root and debugfs.\n";

enum { JSON = 1, ROOT, FABRIC, FROM, ALL, WATCH, COUNT, PROMETHEUS };

#define PROCESSES "PID, --all"

static const struct opt options[] = {
	{ JSON, "json", .help = "print one JSON object",
	  .more = "{\"gpus\":{\"0000:01:00.0\":{\"counters\":{...},...}}}, or "
	  "with --fabric {\"ports\":[{\"address\":...,\"port\":...,"
	  "\"counters\":{...}},...]}, or of processes {\"processes\":[{\"pid\":...,"
	  "\"paths\":{...},...},...]}, one line for each look." },
	{ ROOT, "root", "DIR", .help = "read DIR instead of " DEBUGFS },
	{ FABRIC, "fabric",
	  .help = "print the byte counters of each peerlane-switch port instead",
	  .more = "For each port: bytes sent to peers, to and from host "
	  "memory, to peers through the root complex, down to devices, and "
	  "refused. They are in the config spaces of the ports; reading "
	  "them needs root, but no debugfs." },
	{ FROM, "from", "RECORD",
	  .help = "with --fabric: the counters in a peerlane-record(5)" },
	{ ALL, "all", .letter = 'a',
	  .help = "all processes that use Peerlane's libcufile",
	  .more = "Only root sees those of other users. Processes in containers are included." },
	{ WATCH, "watch", "S", .only = PROCESSES,
	  .help = "repeat every S seconds, with bytes per second",
	  .more = "With a PID, until that process ends." },
	{ COUNT, "count", "N", .only = PROCESSES,
	  .help = "with --watch: repeat N times" },
	{ PROMETHEUS, "prometheus", "FILE", .only = PROCESSES,
	  .help = "write FILE in the text format of Prometheus, and print nothing",
	  .more = "A regular file is replaced by rename(2) each time, as the textfile collector needs it." },
	{ 0 }
};

const struct command stats_command = {
	.name = "stats",
	.what = "counters of processes, of emulated GPUs and PCIe switches",
	.usage = usage, .options = options,
};

/* "name value" or "name a value b value": numbers into an object. */
static struct json_object *numbers(const char *path)
{
	struct json_object *o = json_object_new_object(), *sub;
	char line[256], *name, *word, *save, *rest;
	FILE *f = fopen(path, "re");

	if (!f) {
		json_object_put(o);
		return NULL;
	}
	while (fgets(line, sizeof(line), f)) {
		name = strtok_r(line, " \n", &save);
		if (!name)
			continue;
		rest = strtok_r(NULL, " \n", &save);
		if (!rest)
			continue;
		word = strtok_r(NULL, " \n", &save);
		if (!word) {
			char *end;
			unsigned long long v = strtoull(rest, &end, 10);

			json_object_object_add(o, name, *end ?
				json_object_new_string(rest) :
				json_object_new_uint64(v));
			continue;
		}
		sub = json_object_new_object();
		while (rest && word) {
			json_object_object_add(sub, rest,
				json_object_new_uint64(strtoull(word, NULL,
								10)));
			rest = strtok_r(NULL, " \n", &save);
			word = rest ? strtok_r(NULL, " \n", &save) : NULL;
		}
		json_object_object_add(o, name, sub);
	}
	fclose(f);
	return o;
}

static void print(struct json_object *gpus)
{
	json_object_object_foreach(gpus, bdf, gpu) {
		printf("GPU %s\n", bdf);
		json_object_object_foreach(gpu, part, values) {
			printf("  %s\n", part);
			json_object_object_foreach(values, name, v)
				printf("    %-22s %s\n", name,
				       json_object_to_json_string(v));
		}
	}
}

int cmd_stats(int argc, char **argv)
{
	static const char *const parts[] = { "counters", "initiators",
					     "memory" };
	struct json_object *gpus, *all;
	struct procs_options procs = { .pid = 0 };
	const char *root = NULL, *from = NULL;
	bool json = false, fabric = false, all_processes = false;
	struct dirent *d;
	uint64_t pid = 0;
	uint32_t seen = 0;
	unsigned int i;
	DIR *dir;
	int c;

	while ((c = next_option(&stats_command, argc, argv, &seen)) != -1) {
		switch (c) {
		case JSON:
			json = true;
			break;
		case ROOT:
			root = optarg;
			break;
		case FABRIC:
			fabric = true;
			break;
		case FROM:
			from = optarg;
			break;
		case ALL:
			all_processes = true;
			break;
		case WATCH:
			if (!number_of("--watch", optarg, 1, 86400, &procs.watch))
				return EXIT_USAGE;
			break;
		case COUNT:
			if (!number_of("--count", optarg, 1, UINT64_MAX,
				       &procs.looks))
				return EXIT_USAGE;
			break;
		case PROMETHEUS:
			procs.prometheus = optarg;
			break;
		default:
			say_usage(&stats_command);
			return EXIT_USAGE;
		}
	}
	if (optind < argc && !number_of("stats PID", argv[optind], 1, INT_MAX,
					&pid))
		return EXIT_USAGE;
	if (optind + 1 < argc) {
		complain("stats takes no \"%s\"", argv[optind + 1]);
		return EXIT_USAGE;
	}
	if (all_processes || pid) {
		if ((all_processes && pid) || fabric || root || from) {
			complain("of PID, --all, --root, --fabric only one");
			return EXIT_USAGE;
		}
		if (procs.looks && !procs.watch) {
			complain("--count needs --watch");
			return EXIT_USAGE;
		}
		procs.pid = (pid_t)pid;
		procs.json = json;
		return procs_stats(&procs);
	}
	if (!options_are_for(&stats_command, seen, "the devices"))
		return EXIT_USAGE;
	if (fabric ? root != NULL : from != NULL) {
		complain("%s", fabric ? "--root does not work with --fabric" :
			 "--from needs --fabric");
		return EXIT_USAGE;
	}
	if (fabric)
		return fabric_stats(json, from);
	if (!root)
		root = DEBUGFS;
	dir = opendir(root);
	if (!dir) {
		complain("%s: %s.  It is there when the driver peerlane_gpu is "
			 "loaded, debugfs is mounted and you are root", root,
			 strerror(errno));
		return EXIT_NO_GPU;
	}
	gpus = json_object_new_object();
	while ((d = readdir(dir))) {
		struct json_object *gpu;

		if (d->d_name[0] == '.')
			continue;
		gpu = json_object_new_object();
		for (i = 0; i < 3; i++) {
			char path[PATH_MAX];
			struct json_object *o;

			if (snprintf(path, sizeof(path), "%s/%s/%s", root,
				     d->d_name, parts[i]) >= (int)sizeof(path))
				continue;
			o = numbers(path);
			if (o)
				json_object_object_add(gpu, parts[i], o);
		}
		json_object_object_add(gpus, d->d_name, gpu);
	}
	closedir(dir);
	if (json) {
		all = json_object_new_object();
		json_object_object_add(all, "gpus", gpus);
		print_json(all);
	} else {
		print(gpus);
		json_object_put(gpus);
	}
	return EXIT_OK;
}

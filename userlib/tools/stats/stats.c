// SPDX-License-Identifier: MIT
/* peerlane stats: what the emulated GPUs counted, from debugfs and sysfs. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define DEBUGFS	"/sys/kernel/debug/peerlane_gpu"

static const char usage[] =
"usage: peerlane stats [--json] [--root DIR]\n"
"       peerlane stats --fabric [--json] [--from RECORD]\n"
"\n"
"Prints the counters of each emulated GPU: DMA of other devices into its memory\n"
"by direction and by device, what its engines copied from and to host memory,\n"
"and what its driver holds.  Needs root and debugfs.\n";

enum { JSON = 1, ROOT, FABRIC, FROM };

static const struct opt options[] = {
	{ JSON, "json", .help = "print one JSON object",
	  .more = "{\"gpus\":{\"0000:01:00.0\":{\"counters\":{...},...}}}, or "
	  "with --fabric {\"ports\":[{\"address\":...,\"port\":...,"
	  "\"counters\":{...}},...]}." },
	{ ROOT, "root", "DIR", .help = "read DIR instead of " DEBUGFS },
	{ FABRIC, "fabric",
	  .help = "print the byte counters of each peerlane-switch port instead",
	  .more = "For each port: bytes sent to peers, to and from host "
	  "memory, to peers through the root complex, down to devices, and "
	  "refused. They are in the config spaces of the ports; reading "
	  "them needs root, but no debugfs." },
	{ FROM, "from", "RECORD",
	  .help = "with --fabric: the counters in a peerlane-record(5)" },
	{ 0 }
};

const struct command stats_command = {
	.name = "stats",
	.what = "counters of the emulated GPUs and PCIe switches",
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
	const char *root = NULL, *from = NULL;
	bool json = false, fabric = false;
	struct dirent *d;
	unsigned int i;
	DIR *dir;
	int c;

	while ((c = next_option(&stats_command, argc, argv, NULL)) != -1) {
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
		default:
			say_usage(&stats_command);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		complain("stats takes no \"%s\"", argv[optind]);
		return EXIT_USAGE;
	}
	if (fabric ? root != NULL : from != NULL) {
		complain("%s", fabric ? "--root is not for --fabric" :
			 "--from is for --fabric");
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

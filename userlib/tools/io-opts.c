// SPDX-License-Identifier: MIT
/* peerlane io: options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "tool.h"

const char *const io_what_name[4] = { "read", "write", "copy", "crc" };

static const char usage[] =
"usage: peerlane io read  --file F [OPTION...]   file -> GPU memory\n"
"       peerlane io write --file F --size N ...  GPU memory -> file\n"
"       peerlane io copy  --in A --out B ...     file -> GPU memory -> file\n"
"       peerlane io crc   --file F [OPTION...]   CRC32C of a file, no GPU\n"
"\n"
"  --file F, --in F     the file or block device\n"
"  --out F, --to F      copy: the target; a regular file is made anew\n"
"  --gpu N|near         which GPU (0); near: the one nearest to the file\n"
"  --size N             bytes; K, M, G after the number (the whole file)\n"
"  --offset N           from here in the file (0)\n"
"  --to-offset N        copy: from here in the target (0)\n"
"  --gpu-offset N       from here in the GPU buffer (0)\n"
"  --chunk N            bytes for each call (all in one)\n"
"  --loops N            do it N times over (1)\n"
"  --registered         register the GPU buffer (default)\n"
"  --unregistered       do not\n"
"  --direct             open the file with O_DIRECT; the p2p path needs not\n"
"  --pattern-fill SEED  write: fill the GPU buffer with a pattern first\n"
"  --crc                CRC32C of what is in GPU memory, by the GPU if it can\n"
"  --verify             compare it with the CRC32C of the file\n"
"  --sync               write, copy: fdatasync the file at the end, timed\n"
"  --strict             fail rather than take another path than p2p\n"
"  --json               one JSON object instead of text\n";

enum {
	OPT_IN = 256, OPT_OUT, OPT_GPU, OPT_SIZE, OPT_OFFSET, OPT_TO_OFFSET,
	OPT_GPU_OFFSET, OPT_CHUNK, OPT_LOOPS, OPT_REG, OPT_UNREG, OPT_DIRECT,
	OPT_FILL, OPT_CRC, OPT_VERIFY, OPT_SYNC, OPT_STRICT, OPT_JSON,
};

static const struct option long_options[] = {
	{ "file", required_argument, NULL, OPT_IN },
	{ "in", required_argument, NULL, OPT_IN },
	{ "out", required_argument, NULL, OPT_OUT },
	{ "to", required_argument, NULL, OPT_OUT },
	{ "gpu", required_argument, NULL, OPT_GPU },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "to-offset", required_argument, NULL, OPT_TO_OFFSET },
	{ "gpu-offset", required_argument, NULL, OPT_GPU_OFFSET },
	{ "chunk", required_argument, NULL, OPT_CHUNK },
	{ "loops", required_argument, NULL, OPT_LOOPS },
	{ "registered", no_argument, NULL, OPT_REG },
	{ "unregistered", no_argument, NULL, OPT_UNREG },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "pattern-fill", required_argument, NULL, OPT_FILL },
	{ "crc", no_argument, NULL, OPT_CRC },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "sync", no_argument, NULL, OPT_SYNC },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool number(const char *option, const char *text, uint64_t min,
		   uint64_t *out)
{
	if (parse_size(text, out) && *out >= min)
		return true;
	complain("%s needs a number of at least %llu, like 4096, 64K or 1M; "
		 "\"%s\" is none", option, (unsigned long long)min, text);
	return false;
}

static bool parse(int argc, char **argv, struct options *o)
{
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		bool ok = true;

		switch (c) {
		case OPT_IN: o->in = optarg; break;
		case OPT_OUT: o->out = optarg; break;
		case OPT_GPU:
			o->near = !strcmp(optarg, "near");
			if (o->near)
				break;
			ok = parse_size(optarg, &n) && n < 1024;
			if (!ok)
				complain("--gpu needs a number below 1024, or "
					 "near; \"%s\" is neither", optarg);
			o->gpu = ok ? (int)n : 0;
			break;
		case OPT_SIZE:
			ok = number("--size", optarg, 1, &o->size);
			o->have_size = true;
			break;
		case OPT_OFFSET:
			ok = number("--offset", optarg, 0, &o->offset);
			break;
		case OPT_TO_OFFSET:
			ok = number("--to-offset", optarg, 0, &o->to_offset);
			break;
		case OPT_GPU_OFFSET:
			ok = number("--gpu-offset", optarg, 0, &o->gpu_offset);
			break;
		case OPT_CHUNK:
			ok = number("--chunk", optarg, 1, &o->chunk);
			break;
		case OPT_LOOPS:
			ok = number("--loops", optarg, 1, &o->loops);
			break;
		case OPT_REG: o->unregistered = false; break;
		case OPT_UNREG: o->unregistered = true; break;
		case OPT_DIRECT: o->direct = true; break;
		case OPT_FILL:
			ok = number("--pattern-fill", optarg, 0, &o->seed);
			o->fill = true;
			break;
		case OPT_CRC: o->crc = true; break;
		case OPT_VERIFY: o->verify = true; break;
		case OPT_SYNC: o->sync = true; break;
		case OPT_STRICT: o->strict = true; break;
		case OPT_JSON: o->json = true; break;
		case 'h':
			fputs(usage, stdout);
			exit(EXIT_OK);
		default:
			return false;
		}
		if (!ok)
			return false;
	}
	if (optind < argc) {
		complain("what is \"%s\"?  Options begin with --",
			 argv[optind]);
		return false;
	}
	if (!o->in) {
		complain("which file?  Say --file F%s", o->what == COPY ?
			 " (or --in F)" : "");
		return false;
	}
	if (o->what == COPY && !o->out) {
		complain("where to?  Say --out F");
		return false;
	}
	if (o->what != COPY && (o->out || o->to_offset)) {
		complain("--out and --to-offset are for copy");
		return false;
	}
	if (o->what == WRITE && !o->have_size) {
		complain("how much?  Say --size N");
		return false;
	}
	if (o->fill && o->what != WRITE) {
		complain("--pattern-fill is for write");
		return false;
	}
	return true;
}

int cmd_io(int argc, char **argv)
{
	struct options o = { .loops = 1 };
	unsigned int i;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	for (i = 0; argc > 1 && i < 4; i++)
		if (!strcmp(argv[1], io_what_name[i]))
			break;
	if (argc < 2 || i == 4) {
		if (argc > 1)
			complain("io does not know \"%s\"", argv[1]);
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	o.what = (enum io_what)i;
	if (!parse(argc - 1, argv + 1, &o)) {
		fprintf(stderr, "peerlane io --help tells more\n");
		return EXIT_USAGE;
	}
	return io_run(&o);
}

// SPDX-License-Identifier: MIT
/* peerlane io: options. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "io.h"
#include "tool.h"

const char *const io_what_name[IO_WHATS] = {
	"read", "write", "copy", "crc", "load",
};

static const char usage[] =
"usage: peerlane io read  --file F [OPTION...]            file -> GPU memory\n"
"       peerlane io write --file F --size N [OPTION...]   GPU memory -> file\n"
"       peerlane io copy  --in A --out B [OPTION...]      file -> GPU -> file\n"
"       peerlane io crc   --file F [OPTION...]            CRC32C of a file\n"
"       peerlane io [load] --file F [OPTION...]           many calls, and their times\n"
"\n"
"Without a word, load runs. Its option letters are those of gdsio.\n";

enum {
	OPT_IN = 1, OPT_OUT, OPT_GPU, OPT_SIZE, OPT_OFFSET, OPT_TO_OFFSET,
	OPT_GPU_OFFSET, OPT_CHUNK, OPT_LOOPS, OPT_REG, OPT_UNREG, OPT_DIRECT,
	OPT_FILL, OPT_CRC, OPT_VERIFY, OPT_SYNC, OPT_STRICT, OPT_JSON,
	OPT_RW, OPT_THREADS, OPT_SECONDS, OPT_WAY, OPT_SEED, OPT_MIX,
};

#define MOVES "read, write, copy"
#define GPU_ONLY MOVES ", load"

static const struct opt options[] = {
	{ OPT_IN, "file", "FILE", .alias = "in",
	  .letter = 'f', .help = "the file or block device; of copy, the source" },
	{ OPT_SIZE, "size", "N",
	  .letter = 's', .help = "bytes to move (the whole file); write needs it" },
	{ OPT_OFFSET, "offset", "N", .letter = 'o', .help = "where to start in the file (0)" },
	{ OPT_JSON, "json", .help = "print one JSON object" },
	{ OPT_OUT, "out", "FILE", .alias = "to", .only = "copy",
	  .help = "the target; a regular file is created, or emptied",
	  .more = "With --to-offset it is not emptied." },
	{ OPT_TO_OFFSET, "to-offset", "N", .only = "copy",
	  .help = "where to start in the target (0)" },
	{ OPT_CRC, "crc", .only = MOVES,
	  .help = "print the CRC32C of the data in GPU memory",
	  .more = "The GPU computes it if its driver can." },
	{ OPT_GPU, "gpu", "N|near", .words = "0 near", .only = GPU_ONLY,
	  .letter = 'd', .help = "the number of the GPU (0), or the one nearest to the file",
	  .more = "near takes the GPU nearest to the drive of the file (of "
	  "copy, of the source) and prints why; pln_topo_nearest(3) has the "
	  "rules." },
	{ OPT_GPU_OFFSET, "gpu-offset", "N", .only = GPU_ONLY,
	  .help = "where to start in the GPU buffer (0)" },
	{ OPT_CHUNK, "chunk", "N", .only = GPU_ONLY,
	  .letter = 'i', .help = "bytes of each call (everything in one call; load: 1M)" },
	{ OPT_LOOPS, "loops", "N", .only = GPU_ONLY,
	  .help = "how often to repeat each transfer (1); load: the calls of each block",
	  .more = "The byte count is the total of all loops." },
	{ OPT_REG, "registered", .only = GPU_ONLY,
	  .help = "register the GPU buffer (default)" },
	{ OPT_UNREG, "unregistered", .only = GPU_ONLY,
	  .help = "do not register the GPU buffer" },
	{ OPT_DIRECT, "direct", .only = GPU_ONLY,
	  .help = "open the files with O_DIRECT",
	  .more = "Not needed for p2p. With bounce it bypasses the page "
	  "cache." },
	{ OPT_VERIFY, "verify", .only = GPU_ONLY,
	  .letter = 'V', .help = "compare the CRC32C of the data in GPU memory with the file's",
	  .more = "The GPU computes it if its driver can, and the CPU reads the file again, bypassing the page cache. "
	  "load compares after each call; the rate includes that time, the time of the call does not." },
	{ OPT_STRICT, "strict", .only = GPU_ONLY,
	  .help = "fail instead of using another path than p2p" },
	{ OPT_FILL, "pattern-fill", "SEED", .only = "write",
	  .help = "fill the GPU buffer with a pattern first" },
	{ OPT_SYNC, "sync", .only = "write, copy, load",
	  .help = "call fdatasync(2) after writing; included in the time" },
	{ OPT_RW, "rw", "KIND", .words = "read write randread randwrite", .only = "load",
	  .letter = 'I', .help = "read (default), write, randread or randwrite; or 0 to 3 for these",
	  .more = "The first two take the blocks in order, the others at random. "
	  "Each thread has its own share of the blocks. Writing does not make a file shorter." },
	{ OPT_MIX, "mix", "PERCENT", .only = "load",
	  .help = "this percentage of the calls reads, the others write, at random" },
	{ OPT_THREADS, "threads", "N", .only = "load", .letter = 'w',
	  .help = "threads, 1 to 1024 (1)" },
	{ OPT_WAY, "transfer", "WAY", .words = "cufile cpu copy async stream batch streams", .only = "load",
	  .letter = 'x', .help = "cufile (default), cpu, copy, async, stream, batch or streams; or 0 to 3 and 5 to 7 for these; 4 is as 2",
	  .more = "cufile calls libcufile, which chooses the path. cpu moves data between the file and host "
	  "memory, without a GPU. copy does the same, and the GPU driver copies between host and GPU "
	  "memory: 2 of gdsio with --direct, 4 of gdsio without. async is copy with page-locked host "
	  "memory; the GPU copies in a stream of each thread, which waits for it. stream calls libcufile in "
	  "a stream of each thread, which waits for it. batch has one thread, which submits one call of "
	  "each of the --threads shares as a batch and waits for all of them. streams has one thread, too, which submits "
	  "the call of each share in a stream of its own and then waits for all of them." },
	{ OPT_SECONDS, "seconds", "N", .only = "load", .letter = 'T',
	  .help = "run for N seconds, and ignore --loops" },
	{ OPT_SEED, "seed", "N", .only = "load", .letter = 'k',
	  .help = "seed of the random numbers and of the data (0)",
	  .more = "The same seed gives the same calls. With --verify the data differs for each place." },
	{ 0 }
};

const struct command io_command = {
	.name = "io", .parts = "read write copy crc load",
	.what = "move data between files and GPU memory; print the path taken",
	.usage = usage, .options = options,
	.after = "Numbers may end in K, M, G or T (powers of 1024).\n",
};

/* One of @words, or of the numbers that gdsio has for them */
static bool word_of(const char *option, const char *text, const char *const *words,
		    const char *const *numbers, unsigned int n, unsigned int *out)
{
	for (*out = 0; *out < n; ++*out)
		if (!strcmp(text, words[*out]) || !strcmp(text, numbers[*out]))
			return true;
	complain("%s does not know \"%s\"; peerlane io --help lists the words",
		 option, text);
	return false;
}

static bool take_rw(const char *text, struct options *o)
{
	static const char *const words[] = { "read", "write", "randread",
					     "randwrite" };
	static const char *const numbers[] = { "0", "1", "2", "3" };
	unsigned int i;

	if (!word_of("--rw", text, words, numbers, 4, &i))
		return false;
	o->writes = i & 1;
	o->random = i & 2;
	return true;
}

static bool take_way(const char *text, struct options *o)
{
	static const char *const words[] = { "cufile", "cpu", "copy", "async",
					     "stream", "batch", "streams" };
	static const char *const numbers[] = { "0", "1", "2", "3", "5", "6",
					       "7" };
	unsigned int i;

	/* whether the page cache has part in a copy is for --direct to say */
	if (!strcmp(text, "4"))
		text = "2";
	if (!word_of("--transfer", text, words, numbers, IO_WAYS, &i))
		return false;
	o->way = (enum io_way)i;
	return true;
}

static bool parse(int argc, char **argv, struct options *o)
{
	uint32_t seen = 0;
	uint64_t n;
	int c;

	while ((c = next_option(&io_command, argc, argv, &seen)) != -1) {
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
			ok = number_of("--size", optarg, 1, UINT64_MAX, &o->size);
			o->have_size = true;
			break;
		case OPT_OFFSET:
			ok = number_of("--offset", optarg, 0, UINT64_MAX, &o->offset);
			break;
		case OPT_TO_OFFSET:
			ok = number_of("--to-offset", optarg, 0, UINT64_MAX, &o->to_offset);
			break;
		case OPT_GPU_OFFSET:
			ok = number_of("--gpu-offset", optarg, 0, UINT64_MAX, &o->gpu_offset);
			break;
		case OPT_CHUNK:
			ok = number_of("--chunk", optarg, 1, UINT64_MAX, &o->chunk);
			break;
		case OPT_LOOPS:
			ok = number_of("--loops", optarg, 1, UINT64_MAX, &o->loops);
			break;
		case OPT_REG: o->unregistered = false; break;
		case OPT_UNREG: o->unregistered = true; break;
		case OPT_DIRECT: o->direct = true; break;
		case OPT_FILL:
			ok = number_of("--pattern-fill", optarg, 0, UINT64_MAX, &o->seed);
			o->fill = true;
			break;
		case OPT_CRC: o->crc = true; break;
		case OPT_VERIFY: o->verify = true; break;
		case OPT_SYNC: o->sync = true; break;
		case OPT_STRICT: o->strict = true; break;
		case OPT_JSON: o->json = true; break;
		case OPT_RW: ok = take_rw(optarg, o); break;
		case OPT_WAY: ok = take_way(optarg, o); break;
		case OPT_MIX:
			ok = number_of("--mix", optarg, 0, 100, &n);
			o->mix = (int)n;
			break;
		case OPT_THREADS:
			ok = number_of("--threads", optarg, 1, 1024, &o->threads);
			break;
		case OPT_SECONDS:
			ok = number_of("--seconds", optarg, 1, 1000000, &o->seconds);
			break;
		case OPT_SEED:
			ok = number_of("--seed", optarg, 0, UINT64_MAX, &o->seed);
			break;
		default:
			return false;
		}
		if (!ok)
			return false;
	}
	if (optind < argc) {
		complain("io %s takes no \"%s\"; options begin with --",
			 io_what_name[o->what], argv[optind]);
		return false;
	}
	if (!o->in) {
		complain("which file?  Give --file F");
		return false;
	}
	if (o->what == COPY && !o->out) {
		complain("where to?  Give --out F");
		return false;
	}
	if (o->what == WRITE && !o->have_size) {
		complain("how much?  Give --size N");
		return false;
	}
	return options_are_for(&io_command, seen, io_what_name[o->what]);
}

int cmd_io(int argc, char **argv)
{
	struct options o = { .loops = 1, .threads = 1, .mix = -1 };
	bool word = argc > 1 && argv[1][0] != '-';
	unsigned int i;

	for (i = word ? 0 : LOAD; word && i < IO_WHATS &&
	     strcmp(argv[1], io_what_name[i]); i++)
		;
	if (argc < 2 || i == IO_WHATS) {
		complain(argc > 1 ? "io does not know \"%s\"" :
			 "io needs a word, read, write, copy, crc or load, or "
			 "options of the last", argv[1]);
		say_usage(&io_command);
		return EXIT_USAGE;
	}
	o.what = (enum io_what)i;
	if (!parse(argc - word, argv + word, &o)) {
		say_usage(&io_command);
		return EXIT_USAGE;
	}
	return io_run(&o);
}

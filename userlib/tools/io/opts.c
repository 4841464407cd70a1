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
const char *const io_memory_name[IO_MEMORIES] = {
	"device", "vmm", "pinned", "malloc", "mmap",
};

static const char usage[] =
"usage: peerlane io read  --file F [OPTION...]            file -> GPU memory\n"
"       peerlane io write --file F --size N [OPTION...]   GPU memory -> file\n"
"       peerlane io copy  --in A --out B [OPTION...]      file -> GPU -> file\n"
"       peerlane io crc   --file F [OPTION...]            CRC32C of a file\n"
"       peerlane io [load] --file F [OPTION...]           many calls, and their times\n"
"       peerlane io [load] JOBS.gdsio [OPTION...]         several loads at once\n"
"\n"
"load is the default. Its option letters and job files are those of gdsio.\n";

enum {
	OPT_IN = 1, OPT_OUT, OPT_GPU, OPT_SIZE, OPT_OFFSET, OPT_TO_OFFSET,
	OPT_GPU_OFFSET, OPT_CHUNK, OPT_LOOPS, OPT_REG, OPT_UNREG, OPT_DIRECT,
	OPT_FILL, OPT_CRC, OPT_VERIFY, OPT_SYNC, OPT_STRICT, OPT_JSON,
	OPT_RW, OPT_THREADS, OPT_SECONDS, OPT_WAY, OPT_SEED, OPT_MIX, OPT_MEMORY,
	OPT_BATCH, OPT_ALIGN, OPT_UNALIGNED,
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
	{ OPT_CHUNK, "chunk", "N|MIN:MAX:STEP", .only = GPU_ONLY,
	  .letter = 'i', .help = "bytes of each call (everything in one call; load: 1M); of load also sizes from MIN to MAX",
	  .more = "Then the calls of each share have MIN bytes, MIN + STEP, and so on up to MAX, and MIN again; "
	  "with a random --rw each takes one of these blocks. Their times are in one histogram." },
	{ OPT_LOOPS, "loops", "N", .only = GPU_ONLY,
	  .help = "how often to repeat each transfer (1); load: the calls of each block",
	  .more = "The byte count is the total of all loops." },
	{ OPT_REG, "registered", .only = GPU_ONLY,
	  .help = "register the GPU buffer (default)" },
	{ OPT_UNREG, "unregistered", .only = GPU_ONLY,
	  .letter = 'b', .help = "do not register the GPU buffer" },
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
	{ OPT_ALIGN, "align", "N", .only = "load", .letter = 'a',
	  .help = "random calls begin at any multiple of N bytes in the file (at a block)",
	  .more = "Within the thread's share: calls overlap, and some bytes are in none. For randread and randwrite." },
	{ OPT_UNALIGNED, "unaligned", .only = "load", .letter = 'U',
	  .help = "random calls begin at any byte: --align 1" },
	{ OPT_MIX, "mix", "PERCENT", .only = "load",
	  .help = "this percentage of the calls reads, the others write, at random" },
	{ OPT_THREADS, "threads", "N", .only = "load", .letter = 'w',
	  .help = "threads, 1 to 1024 (1)" },
	{ OPT_WAY, "transfer", "WAY", .words = "cufile cpu copy async stream batch streams", .only = "load",
	  .letter = 'x', .help = "cufile (default), cpu, copy, async, stream, batch or streams; or 0 to 3 and 5 to 7 for these; 4 has the same meaning as 2",
	  .more = "cufile calls libcufile, which chooses the path. cpu moves data between the file and host "
	  "memory, without a GPU. copy does the same, and the GPU driver copies between host and GPU "
	  "memory: 2 of gdsio with --direct, 4 of gdsio without. async is copy with page-locked host "
	  "memory; the GPU copies in a stream of each thread, which waits for it. stream calls libcufile in "
	  "a stream of each thread, which waits for it. batch has one thread, which submits one call of "
	  "each of the --threads shares as a batch and waits for all of them. streams has one thread, too, which submits "
	  "the call of each share in a stream of its own and then waits for all of them. With --batch there are several such threads." },
	{ OPT_BATCH, "batch", "N", .only = "load", .letter = 'B',
	  .help = "calls that each thread submits together, 1 to 1024; for batch and streams",
	  .more = "Then --threads is the number of threads, and each has so many shares of the blocks." },
	{ OPT_MEMORY, "memory", "KIND", .words = "device vmm pinned malloc mmap", .only = "load", .letter = 'm',
	  .help = "device (default), vmm, pinned, malloc or mmap; or 0 to 4 for these",
	  .more = "device is memory of cuMemAlloc(), vmm of cuMemCreate(). The others are the host's: pinned of "
	  "cuMemAllocHost(), malloc and mmap of the C library; libcufile moves their data by posix. "
	  "They are for --transfer cufile, stream, batch and streams." },
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

static bool take_memory(const char *text, struct options *o)
{
	static const char *const numbers[] = { "0", "1", "2", "3", "4" };
	unsigned int i;

	if (!word_of("--memory", text, io_memory_name, numbers, IO_MEMORIES, &i))
		return false;
	o->memory = (enum io_memory)i;
	return true;
}

/* A number, or three of them */
static bool take_chunk(const char *text, struct options *o)
{
	char min[24], max[24], step[24], more;

	o->chunk_most = o->chunk_step = 0;
	if (!strchr(text, ':'))
		return number_of("--chunk", text, 1, UINT64_MAX, &o->chunk);
	if (sscanf(text, "%23[^:]:%23[^:]:%23[^:]%c", min, max, step, &more) == 3 &&
	    parse_size(min, &o->chunk) && parse_size(max, &o->chunk_most) &&
	    parse_size(step, &o->chunk_step) && o->chunk && o->chunk_step &&
	    o->chunk_most >= o->chunk &&
	    (o->chunk_most - o->chunk) / o->chunk_step < IO_SIZES)
		return true;
	complain("--chunk needs a number, or MIN:MAX:STEP of at most %u sizes, not \"%s\"",
		 IO_SIZES, text);
	return false;
}

static bool take(int id, const char *text, struct options *o)
{
	bool ok = true;
	uint64_t n;

	switch (id) {
	case OPT_IN: o->in = text; break;
	case OPT_OUT: o->out = text; break;
	case OPT_GPU:
		o->near = !strcmp(text, "near");
		if (o->near)
			break;
		ok = parse_size(text, &n) && n < 1024;
		if (!ok)
			complain("--gpu needs a number below 1024, or "
				 "near; \"%s\" is neither", text);
		o->gpu = ok ? (int)n : 0;
		break;
	case OPT_SIZE:
		ok = number_of("--size", text, 1, UINT64_MAX, &o->size);
		o->have_size = true;
		break;
	case OPT_OFFSET:
		ok = number_of("--offset", text, 0, UINT64_MAX, &o->offset);
		break;
	case OPT_TO_OFFSET:
		ok = number_of("--to-offset", text, 0, UINT64_MAX, &o->to_offset);
		break;
	case OPT_GPU_OFFSET:
		ok = number_of("--gpu-offset", text, 0, UINT64_MAX, &o->gpu_offset);
		break;
	case OPT_CHUNK: ok = take_chunk(text, o); break;
	case OPT_LOOPS:
		ok = number_of("--loops", text, 1, UINT64_MAX, &o->loops);
		break;
	case OPT_REG: o->unregistered = false; break;
	case OPT_UNREG: o->unregistered = true; break;
	case OPT_DIRECT: o->direct = true; break;
	case OPT_FILL:
		ok = number_of("--pattern-fill", text, 0, UINT64_MAX, &o->seed);
		o->fill = true;
		break;
	case OPT_CRC: o->crc = true; break;
	case OPT_VERIFY: o->verify = true; break;
	case OPT_SYNC: o->sync = true; break;
	case OPT_STRICT: o->strict = true; break;
	case OPT_JSON: o->json = true; break;
	case OPT_RW: ok = take_rw(text, o); break;
	case OPT_WAY: ok = take_way(text, o); break;
	case OPT_MIX:
		ok = number_of("--mix", text, 0, 100, &n);
		o->mix = (int)n;
		break;
	case OPT_THREADS:
		ok = number_of("--threads", text, 1, 1024, &o->threads);
		break;
	case OPT_BATCH:
		ok = number_of("--batch", text, 1, 1024, &o->batch);
		break;
	case OPT_MEMORY: ok = take_memory(text, o); break;
	case OPT_ALIGN:
		ok = number_of("--align", text, 1, UINT64_MAX, &o->align);
		break;
	case OPT_UNALIGNED: o->align = 1; break;
	case OPT_SECONDS:
		ok = number_of("--seconds", text, 1, 1000000, &o->seconds);
		break;
	case OPT_SEED:
		ok = number_of("--seed", text, 0, UINT64_MAX, &o->seed);
		break;
	default:
		return false;
	}
	return ok;
}

bool io_option(struct options *o, const char *name, const char *text)
{
	const struct opt *opt = options;

	while (strcmp(opt->name, name))
		opt++;
	return take(opt->id, text, o);
}

static bool parse(int argc, char **argv, struct options *o, const char **jobs)
{
	uint32_t seen = 0;
	int c;

	while ((c = next_option(&io_command, argc, argv, &seen)) != -1)
		if (!take(c, optarg, o))
			return false;
	if (o->what == LOAD && optind + 1 == argc && !o->in) {
		*jobs = argv[optind];
		return options_are_for(&io_command, seen, io_what_name[o->what]);
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
	if (o->what != LOAD && o->chunk_step) {
		complain("--chunk MIN:MAX:STEP is for load, not for %s",
			 io_what_name[o->what]);
		return false;
	}
	if (o->what == WRITE && !o->have_size) {
		complain("how much?  Give --size N");
		return false;
	}
	return options_are_for(&io_command, seen, io_what_name[o->what]);
}

static bool is_job_file(const char *name)
{
	size_t n = strlen(name);

	return n > 6 && !strcmp(name + n - 6, ".gdsio");
}

int cmd_io(int argc, char **argv)
{
	struct options o = { .loops = 1, .threads = 1, .mix = -1 };
	bool word = argc > 1 && argv[1][0] != '-' && !is_job_file(argv[1]);
	const char *jobs = NULL;
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
	if (!parse(argc - word, argv + word, &o, &jobs)) {
		say_usage(&io_command);
		return EXIT_USAGE;
	}
	return jobs ? jobs_run(&o, jobs) : io_run(&o);
}

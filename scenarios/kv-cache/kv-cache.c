// SPDX-License-Identifier: MIT
/*
 * A cache of blocks, such as a language model's keys and values, in GPU memory with
 * a budget; what was not used for longest is on the drive:
 *
 *	kv-cache FILE LABEL
 *
 * Blocks have 4 KiB to 2 MiB.  Each access computes the CRC of the block by the
 * GPU's engine.  The same seed in each run, so all runs do the same.
 */
#include "guest.h"

#define KEYS	120
#define ACCESSES 400
#define BUDGET	MIB(12)

static struct block {
	size_t size;
	off_t at;			/* in the file */
	uint32_t crc;
	bool made, stored;
	gpu_ptr gpu;			/* 0: it is not there */
	unsigned int used;		/* when it was */
} block[KEYS];

static size_t in_use, peak;
static uint64_t bytes_read, bytes_written;
static unsigned int hits, misses, right;
static struct json_object *requests, *sizes;	/* numbers of blocks in order; of each block */
static CUfileHandle_t fh;
static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void must_move(ssize_t r, size_t size, const char *what)
{
	if (r == (ssize_t)size)
		return;
	ok(false, "%s of %zu bytes: %zd, errno %d", what, size, r, errno);
	exit(1);
}

/* What was used longest ago goes to the drive, once: blocks do not change. */
static void evict(void)
{
	struct block *b, *old = NULL;

	for (b = block; b < block + KEYS; b++)
		if (b->gpu && (!old || b->used < old->used))
			old = b;
	if (!old) {
		ok(false, "there is nothing to give up");
		exit(1);
	}
	if (!old->stored) {
		must_move(cuFileWrite(fh, addr(old->gpu), old->size, old->at, 0),
			  old->size, "a write");
		bytes_written += old->size;
		old->stored = true;
	}
	cuMemFree_v2(old->gpu);
	old->gpu = 0;
	in_use -= old->size;
}

/* Computed, in life by the model */
static void compute(struct block *b)
{
	static uint64_t data[MIB(2) / 8];

	for (size_t i = 0; i < b->size / 8; i++)
		data[i] = any();
	b->crc = crc32c(0, data, b->size);
	b->made = true;
	if (cuMemcpyHtoD_v2(b->gpu, data, b->size))
		die("cuMemcpyHtoD");
}

static void use(struct block *b, unsigned int when)
{
	json_object_array_add(requests, json_object_new_int((int)(b - block)));
	if (b->gpu) {
		hits++;
	} else {
		while (in_use + b->size > BUDGET)
			evict();
		/* GPU pages of its own: they are what can be mapped for a drive */
		b->gpu = gpu_alloc((b->size + KIB(64) - 1) & ~(KIB(64) - 1));
		in_use += b->size;
		peak = in_use > peak ? in_use : peak;
		if (b->made) {
			misses++;
			must_move(cuFileRead(fh, addr(b->gpu), b->size, b->at, 0),
				  b->size, "a read");
			bytes_read += b->size;
		} else {
			compute(b);
		}
	}
	b->used = when;
	right += gpu_crc(b->gpu, b->size) == b->crc;
}

int main(int argc, char **argv)
{
	struct json_object *result = json_object_new_object();
	unsigned int i, computed = 0;
	double first, began, ratio;
	off_t end = 0;
	int fd;

	if (argc != 3)
		return 2;
	gpu_open();
	requests = json_object_new_array();
	sizes = json_object_new_array();
	/* as many small ones as large ones */
	for (i = 0; i < KEYS; i++) {
		size_t least = KIB(4) << any() % 9;

		block[i].size = least + any() % (least / KIB(4) + 1) * KIB(4);
		json_object_array_add(sizes, json_object_new_int64((int64_t)block[i].size));
		block[i].at = end;
		end += (off_t)block[i].size;
	}
	fd = must_open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	fh = must_reg(fd, argv[1]);
	/* some are asked for more often than others */
	for (i = 1; i <= ACCESSES; i++) {
		unsigned int a = any() % KEYS, b = any() % KEYS;
		struct block *k = &block[a < b ? a : b];

		computed += !k->made;
		use(k, i);
	}
	/* what is left goes to the drive, and the library is opened anew */
	while (in_use)
		evict();
	cuFileHandleDeregister(fh);
	cuFileDriverClose();
	close(fd);
	began = seconds();
	fd = must_open(argv[1], O_RDONLY | O_DIRECT);
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	fh = must_reg(fd, argv[1]);
	for (i = 0; !block[i].stored; i++)
		continue;
	use(&block[i], ACCESSES + 1);
	first = seconds() - began;
	ratio = (double)hits / (hits + misses);
	note("%s: %u hits, %u misses: a hit ratio of %.3f; %s", argv[2], hits, misses, ratio,
	     stats().reason);
	json_object_object_add(result, "requests", requests);
	json_object_object_add(result, "sizes", sizes);
	json_set(result, "accesses", ACCESSES + 1);
	json_set(result, "right", right);
	json_set(result, "hits", hits);
	json_set(result, "misses", misses);
	json_set(result, "computed", computed);
	json_set(result, "hit_ratio", ratio);
	json_set(result, "read", bytes_read);
	json_set(result, "written", bytes_written);
	json_set(result, "peak", peak);
	json_set(result, "budget", BUDGET);
	json_set(result, "first_block_ms", first * 1e3);
	tell_fact(argv[2], result);
	ok(right == ACCESSES + 1, "%s: all blocks are right: %u of %u", argv[2], right,
	   ACCESSES + 1);
	cuFileHandleDeregister(fh);
	cuFileDriverClose();
	return finish();
}

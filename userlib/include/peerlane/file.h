/* SPDX-License-Identifier: MIT */
/*
 * Extensions of Peerlane's libcufile.so.0: the path of each transfer, and the
 * reason if it is not the best one.  Exported in version node PEERLANE_0.1; look
 * the functions up with dlsym() in programs that must also run on NVIDIA's
 * library.
 */
#ifndef PEERLANE_FILE_H
#define PEERLANE_FILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Paths.  COHERENT has no implementation yet. */
enum pln_path {
	PLN_PATH_NONE = 0,	/* nothing moved */
	PLN_PATH_P2P = 1,	/* device to GPU memory, host memory untouched */
	PLN_PATH_KERNEL = 2,	/* the same through Peerlane's kernel module */
	PLN_PATH_COHERENT = 3,	/* software transport, coherent window */
	PLN_PATH_BOUNCE = 4,	/* staged through pinned host memory */
	PLN_PATH_POSIX = 5,	/* the program's own host memory */
	PLN_PATH_CACHE = 6,	/* the GPU's engine reads the page cache itself */
	PLN_PATH_COUNT = 7
};

#define PLN_PATH_SLOTS	8
#define PLN_FILE_REASON_MAX	512

/**
 * struct pln_path_count - traffic of one path
 * @reads: read requests in which this path moved bytes
 * @writes: write requests likewise
 * @bytes_read: from file to memory
 * @bytes_written: from memory to file
 *
 * A request whose unaligned ends were staged counts on both paths.
 */
struct pln_path_count {
	uint64_t reads;
	uint64_t writes;
	uint64_t bytes_read;
	uint64_t bytes_written;
};

/**
 * struct pln_file_stats - the paths of the bytes of one handle, or of all
 * @size: in: sizeof(struct pln_file_stats)
 * @last_path: enum pln_path that moved most bytes of the latest transfer
 * @last_errno: errno behind @reason, 0 when there is none
 * @last_error: 0, or the result of the latest transfer that failed
 * @path: by enum pln_path
 * @errors: transfers that failed
 * @fallbacks: transfers of GPU memory of which some bytes did not go p2p
 * @windows: BAR1 windows mapped now (totals only, like all below)
 * @window_bytes: bytes of BAR1 that they take
 * @window_hits: pieces of a transfer that found a window mapped
 * @window_maps: windows mapped so far
 * @window_evictions: windows unmapped to map others
 * @window_nospace: mappings refused because BAR1 was full
 * @lanes: staging lanes made (two pinned buffers each)
 * @cache_windows: current registrations of the page cache
 * @cache_bytes: their bytes, which the kernel cannot reclaim
 * @leases: files under a read lease of this process now
 * @leases_broken: leases released because a process opened the file for writing
 * @reserved: 0
 * @reason: why the latest transfer that was not all p2p took another path,
 *	or why the latest one failed or ended early; empty if none of this
 *	has happened
 */
struct pln_file_stats {
	uint32_t size;
	uint32_t last_path;
	int32_t last_errno;
	int32_t last_error;
	struct pln_path_count path[PLN_PATH_SLOTS];
	uint64_t errors;
	uint64_t fallbacks;
	uint64_t windows;
	uint64_t window_bytes;
	uint64_t window_hits;
	uint64_t window_maps;
	uint64_t window_evictions;
	uint64_t window_nospace;
	uint64_t lanes;
	uint64_t cache_windows;
	uint64_t cache_bytes;
	uint64_t leases;
	uint64_t leases_broken;
	uint64_t reserved[3];
	char reason[PLN_FILE_REASON_MAX];
};

/**
 * pln_file_stats - get the path that the bytes of a file took, and the reason
 * @fh: a CUfileHandle_t, or NULL for the totals of this process
 * @stats: in: its size; out: the rest
 *
 * A program that must also run with NVIDIA's library, which does not have this
 * function, looks it up with dlsym(3).
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: @stats is NULL, or its size is less than that of version 0.1.
 * -EBADF: @fh is no registered handle.
 * -ECHILD: the library was open when this process was forked.
 *
 * Example:
 *
 *	struct pln_file_stats s = { .size = sizeof(s) };
 *
 *	if (!pln_file_stats(fh, &s))
 *		printf("%s: %s\n", pln_path_name(s.last_path), s.reason);
 *
 * Since 0.1.
 *
 * See also: pln_file_stats_json(), pln_file_next_result(), pln_path_name(), libcufile-peerlane(7), peerlane-io(1)
 */
int pln_file_stats(void *fh, struct pln_file_stats *stats);

/**
 * pln_file_stats_json - get all that is counted, as JSON
 * @fh: a CUfileHandle_t, or NULL for the totals of this process
 * @text: out: one JSON object, with a final 0; NULL if @size is 0
 * @size: in: bytes of @text
 *
 * The object of a handle has what pln_file_stats() gives: last_path, paths (by name, those
 * that have moved bytes), errors, fallbacks, last_errno, last_error, reason. That of the
 * totals is the object of this process in the output of "peerlane stats --json": also
 * windows, lanes and page_cache; level, that of cuFile's statistics; calls from level 1 on,
 * sizes from level 2 on, gpus from level 3 on. In reason a character that is not printable
 * ASCII is a question mark. Later versions may add keys.
 *
 * A program that must also run with NVIDIA's library, which does not have this
 * function, looks it up with dlsym(3).
 *
 * Return: the length of the whole object without the final 0, or a negative errno. If the
 * length is not less than @size, @text has only its beginning.
 *
 * -EINVAL: @text is NULL, and @size is not 0.
 * -EBADF: @fh is no registered handle.
 * -ECHILD: the library was open when this process was forked.
 * -ENOMEM: no memory.
 *
 * Example:
 *
 *	char text[16384];
 *	int n = pln_file_stats_json(NULL, text, sizeof(text));
 *
 *	if (n >= 0 && n < (int)sizeof(text))
 *		puts(text);
 *
 * Since 0.1.
 *
 * See also: pln_file_stats(), pln_path_name(), libcufile-peerlane(7), peerlane(1)
 */
int pln_file_stats_json(void *fh, char *text, size_t size);

/**
 * struct pln_file_result - the result of one transfer
 * @size: in: sizeof(struct pln_file_result)
 * @path: enum pln_path that moved most bytes
 * @error: errno where @result is -1; else the errno behind @reason, or 0
 * @zero: 0
 * @result: bytes, or what cuFileRead() returns for a failure: -1, or a cuFile
 *	code made negative
 * @bytes: by enum pln_path; their sum exceeds @result if a part was moved
 *	again, or if moved bytes do not count because of an error
 * @reserved: 0
 * @reason: why it was not all p2p, or failed, or ended early; else empty
 */
struct pln_file_result {
	uint32_t size;
	uint32_t path;
	int32_t error;
	uint32_t zero;
	int64_t result;
	uint64_t bytes[PLN_PATH_SLOTS];
	uint64_t reserved[4];
	char reason[PLN_FILE_REASON_MAX];
};

/**
 * pln_file_next_result - get the result of the next transfer
 * @results: in: the size of the first one; out, when the transfer has ended: all
 *	of them; an array, or NULL: no more
 * @count: of @results; 1 unless a batch comes next
 *
 * Sets where the next call of this thread stores the results of its transfers:
 * cuFileRead(), cuFileWrite(), cuFileReadv(), cuFileWritev(), cuFileReadAsync(),
 * cuFileWriteAsync() or cuFileBatchIOSubmit(). It applies to that call only, whether
 * the call succeeds or not. The caller sets @size of the first result to sizeof(struct
 * pln_file_result).
 *
 * The first four have filled *@results when they return, also with an error. A transfer
 * in the order of a stream fills it when its count of bytes is set, and *@results must
 * stay valid until then. It is not filled if CUDA never starts the transfer: if its
 * context was destroyed before, or earlier work in that context has failed.
 * Transfer number i of a batch fills @results[i] before cuFileBatchIOGetStatus()
 * returns its event, or cuFileBatchIODestroy() returns; a cancelled one has moved
 * nothing. The results of entries beyond @count are lost. A call that starts nothing,
 * such as an invalid batch, fills nothing.
 *
 * A program that must also run with NVIDIA's library, which does not have this
 * function, looks it up with dlsym(3).
 *
 * Return: 0, or a negative errno; then nothing has changed.
 *
 * -EINVAL: @count is 0 and @results is not NULL, or the other way round, or the size
 *   is less than that of version 0.1.
 *
 * Example:
 *
 *	struct pln_file_result r = { .size = sizeof(r) };
 *
 *	pln_file_next_result(&r, 1);
 *	if (cuFileRead(fh, gpu, size, 0, 0) >= 0)
 *		printf("%s: %s\n", pln_path_name(r.path), r.reason);
 *
 * Since 0.1.
 *
 * See also: pln_file_stats(), pln_path_name(), libcufile-peerlane(7)
 */
int pln_file_next_result(struct pln_file_result *results, unsigned int count);

/**
 * pln_path_name - the name of a path
 * @path: enum pln_path
 *
 * Return: none, p2p, kernel, coherent, bounce, posix or cache, a text of the library;
 * "unknown" for any other number. coherent is not used yet.
 *
 * Since 0.1.
 *
 * See also: pln_file_stats(), pln_file_next_result()
 */
const char *pln_path_name(unsigned int path);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_FILE_H */

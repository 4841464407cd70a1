/* SPDX-License-Identifier: MIT */
/* The unit test of libcufile on a mock of the CUDA driver: what its files share. */
#ifndef PLN_TEST_UNIT_H
#define PLN_TEST_UNIT_H

#define PEERLANE_CUFILE_WITHOUT_CUDA_H
#include "../cufile.h"
#include "mock.h"
#include <peerlane/file.h>

#define KIB(x) ((size_t)(x) << 10)
#define MIB(x) ((size_t)(x) << 20)

extern unsigned int checks, failed;
/* In a folder whose file system has O_DIRECT */
extern char path[256], other[256], config[256], logfile[256];

bool check(bool good, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void is(long long got, long long want, const char *what);

struct pln_file_stats stats_of(CUfileHandle_t fh);
/* All settings back, library closed and opened anew with @json. */
void fresh(const char *json);
/* With the cache path, which is off by default */
void fresh_cache(const char *json);
/* Closes the library.  So many slabs of  from now on; 0: as by default */
void set_slabs(size_t kb, size_t count);
/* A directory for what a cgroup says, which this process is in; to be ended by no_group() */
void group(void);
void group_says(const char *file, const char *text);
void no_group(void);
/* A file of these bytes, opened to read and write with @flags. */
int make(const char *name, int flags, const void *data, size_t n);
CUfileHandle_t reg(int fd);
int reg_error(int fd);
/* The number of the @which-th descriptor of the library's that leads to the file, or -1 */
int number_of(int program, unsigned int which);
/* A read of 8192 bytes into this memory is staged, and has these words in its reason. */
struct refusal {
	CUfileHandle_t fh;
	char *g;
	int gpu;		/* its number */
	const char *words;
};
/* One after another, in each order: the reason is always that of the latest. */
void each_after_each(const struct refusal *r, unsigned int n);
void *gpu(size_t n);
void gpu_free(void *p);
/* Where the mock keeps this GPU memory */
char *mem(void *p);
uint64_t rnd(void);
void noise(void *p, size_t n);
/* Is what is under way where it should be?  It will be: a minute is too long. */
#define AWAIT(what) do { \
	int turn_; \
	for (turn_ = 0; turn_ < 600000 && !(what); turn_++) \
		usleep(100); \
	if (!check(what, "so far: %s", #what)) { \
		printf("1..%u\n", checks); \
		_exit(1); \
	} \
} while (0)

/* What this thread starts from now on may not make this system call: it fails with @err. */
void forbid(unsigned int nr, int err);

/* The file stays in the page cache, until it may_cool() */
void warm_file(const char *name, size_t n);
void may_cool(void);
/* Since fresh() */
bool log_has(const char *words);
/* How often a line has them */
unsigned int log_count(const char *words);
/* And of another file */
unsigned int lines_with(const char *name, const char *words);
unsigned int open_fds(void);
/* Threads.  One that was joined may still be counted for a moment. */
unsigned int tasks(void);
/* Has this process a lock on the file @path? */
bool is_locked(void);
/* The number of the descriptor's mount, or -1 */
int mount_id(int fd);
/* From now on the process has mounts of its own: it must have one thread. */
bool own_mounts(void);

/* result.c */
void test_results(void);

/* stats_json.c */
void test_stats_json(void);

/* forks.c */
void test_forks(void);

/* windows.c */
void test_beside_freed(void);
void test_next_gpu(void);
void test_small_limit(void);
void test_seams(void);
void test_many_windows(void);
void test_freed_windows(void);
void test_registered_windows(void);
void test_map_apart(void);
void test_no_id(void);
void test_no_dmabuf(void);

/* module.c */
void test_module(void);
void test_module_refused(void);
void test_module_request(void);
void test_module_opened(void);
void test_module_quota(void);
void test_module_no_pages(void);
void test_module_after_late(void);
void test_module_beside(void);
void test_module_ring(void);
void test_module_taken(void);
void test_module_reopened(void);

/* nvidia.c */
void test_nvidia(void);
void test_nvidia_refused(void);
void test_nvidia_reasons(void);
void test_nvidia_again(void);
void test_nvidia_off(void);
void test_nvidia_registered(void);
void test_nvidia_ranges(void);
void test_nvidia_scarce(void);
void test_nvidia_fork(void);

/* scratch.c */
void test_scratch(void);
void test_scratch_together(void);
void test_scratch_none(void);
void test_scratch_write(void);

/* costs.c */
void test_costs(void);
void test_kernel_words_once(void);

/* cache.c */
void test_cache(void);
void test_cache_page(void);
void test_cache_many(void);
void test_cache_mincore(void);
void test_cache_lease(void);
void test_cache_number(void);
void test_cache_writers(void);
void test_cache_budget(void);
void test_cache_scan(void);
void test_cache_displaced(void);
void test_cache_refused(void);
void test_cache_pending(void);
void test_cache_again(void);
void test_cache_context(void);
void test_cache_fork(void);
void test_cache_start(void);
void test_cache_signal_lost(void);
void test_cache_fork_early(void);
void test_cache_memfd(void);
void test_cache_foreign(void);
void test_cache_cgroup(void);
void test_cache_memory(void);
void test_cache_shorter(void);
void test_cache_small(void);
void test_cache_stands(void);

void test_cache_sure(void);
void test_cache_broken(void);
void test_cache_asks(void);
void test_cache_crowd(void);
void test_cache_early(void);
void test_cache_after_p2p(void);
void test_cache_beside(void);
void test_cache_registering(void);

/* lanes.c */
void test_one_chunk(void);
void test_marks(void);
void test_warmed(void);
void test_helpers(void);
void test_write_turns(void);
void test_most_helpers(void);
void test_share(void);
void test_lost_copies(void);
void test_lost_before_write(void);
void test_no_record(void);
void test_cold(void);
void test_other_slabs(void);
void test_slab_classes(void);
void test_slab_turns(void);
void test_slab_memory(void);
void test_slab_failure(void);
void test_two_contexts(void);
void test_lane_context(void);
void test_turns(void);

/* choice.c */
/* The reason of a refused read, when the kernel has said @before, and @now with it */
const char *refused(int fd, const char *before, const char *now);
void test_unknown_keys(void);
void test_environment(void);
void test_environment_compat(void);
void test_unaligned_key(void);
void test_large_blocks(void);
void test_log_dir(void);
void test_log_wrong(void);
void test_denylist(void);
void test_no_compat(void);
void test_stock_file(void);
void test_no_effect(void);
void test_default_file(void);
void test_told(void);
void test_told_strict(void);
void test_kernel_words(void);
void test_half_probe(void);
void test_direct_collision(void);
void test_p2p_collision(void);
void test_strict_collision(void);
void test_real_collisions(void);
void test_told_later(void);
void test_words_of_two(void);
void test_refused_before(void);
void test_refused_looked_at(void);
void test_each_reason(void);
void test_same_reason(void);

/* places.c */
void test_mounts(void);
void test_drives(void);
void test_layers(void);

/* opened.c */
void test_number_told(void);
void test_number_other(void);
void test_number_steps(void);
void test_number_astray(void);
void test_number_twice(void);
void test_number_passed(void);
void test_number_anew(void);
void test_number_kept(void);
void test_open_flags(void);
void test_low_numbers(void);
void test_low_numbers_first(void);
void test_low_numbers_threads(void);
void test_no_again(void);
void test_blocks(void);

/* verdicts.c */
void test_first_errno(void);
void test_refused_pair(void);
void test_refused_beside(void);
void test_refused_pieces(void);
void test_refused_halves(void);
void test_refused_mapping(void);
void test_refused_memory(void);
void test_out_of_files(void);

/* batch.c */
void test_batch(void);
void test_batch_errors(void);
void test_batch_cancel(void);
void test_batch_threads(void);
void test_batch_wakes(void);
void test_batch_close(void);
void test_batch_ring(void);
void test_batch_no_ring(void);
void test_closes_all(void);
void test_ring_errors(void);
void test_ring_ends(void);
void test_ring_waits(void);
void test_ring_leased(void);
void test_ring_again(void);
void test_most_threads(void);

/* async.c */
void test_async(void);
void test_async_ring(void);
void test_async_close(void);
void test_async_scarce(void);
void test_async_beside(void);
void test_async_first(void);
void test_async_lost(void);
void test_settings_calls(void);
void test_counts(void);

/* files.c */
void test_odd_write(void);
void test_host_direct(void);
void test_short_write(void);
void test_append_later(void);
void test_number_again(void);
void test_number_taken(void);
void test_number_blind(void);
void test_number_read(void);
void test_number_moved(void);
void test_number_unshared(void);
void test_cancel(void);
void test_half_there(void);
void test_grows(void);
void test_strict_end(void);
void test_huge(void);
void test_vectors(void);
void test_vector_counts(void);

#endif

// SPDX-License-Identifier: MIT
/* differ.c on the mock of the CUDA driver, which has faults at will. */
#include <errno.h>

#include "differ.h"

const struct setting settings[] = {
	{ "p2p", NULL, .path = PLN_PATH_P2P, .bar1 = -1 },
	{ "p2p, with faults", NULL, .faults = true, .path = PLN_PATH_P2P,
	  .bar1 = -1 },
	{ "p2p, windows of 64 KiB", "{\"peerlane\":{\"window_size_kb\":64}}",
	  .faults = true, .path = PLN_PATH_P2P, .bar1 = -1 },
	{ "p2p, room for two windows", "{\"peerlane\":{\"window_size_kb\":64}}",
	  .path = PLN_PATH_P2P, .bar1 = (int64_t)KIB(128) },
	{ "p2p, pieces of 64 KiB",
	  "{\"properties\":{\"max_direct_io_size_kb\":64}}", .faults = true,
	  .path = PLN_PATH_P2P, .bar1 = -1 },
	{ "strict", "{\"peerlane\":{\"strict\":true}}", .strict = true,
	  .path = PLN_PATH_P2P, .bar1 = -1 },
	{ "no compat mode", "{\"properties\":{\"allow_compat_mode\":false}}",
	  .path = PLN_PATH_P2P, .bar1 = -1 },
	{ "p2p fails for a while", NULL, .path = PLN_PATH_P2P, .bar1 = -1,
	  .p2p_errno = EFAULT, .p2p_after = 20, .p2p_count = 50 },
	{ "p2p refused", NULL, .path = PLN_PATH_BOUNCE, .bar1 = -1,
	  .p2p_errno = EREMOTEIO, .p2p_count = -1 },
	{ "no BAR1", NULL, .path = PLN_PATH_BOUNCE },
	{ "bounce", "{\"properties\":{\"force_compat_mode\":true}}",
	  .faults = true, .path = PLN_PATH_BOUNCE, .bar1 = -1 },
	{ "bounce, always O_DIRECT", "{\"properties\":{\"force_odirect_mode\":true,"
	  "\"force_compat_mode\":true}}", .faults = true,
	  .path = PLN_PATH_BOUNCE, .bar1 = -1 },
	{ "bounce, a single small slab", "{\"properties\":{"
	  "\"force_compat_mode\":true,\"posix_pool_slab_size_kb\":[64],"
	  "\"posix_pool_slab_count\":[1]}}", .path = PLN_PATH_BOUNCE,
	  .bar1 = -1 },
	{ "bounce, eight lanes", "{\"peerlane\":{\"min_io_threshold_size_kb\":4,"
	  "\"max_io_threads\":8,\"max_request_parallelism\":8},\"properties\":{"
	  "\"force_compat_mode\":true}}", .faults = true,
	  .path = PLN_PATH_BOUNCE, .bar1 = -1 },
	{ "the page cache", "{\"properties\":{\"force_compat_mode\":true}}",
	  .cache = true, .path = PLN_PATH_CACHE, .bar1 = -1 },
};
const unsigned int nsettings = sizeof(settings) / sizeof(settings[0]);

void machine_start(void)
{
}

void machine_thread(void)
{
}

unsigned char *machine_side(void *gpu, size_t n)
{
	(void)n;
	return (unsigned char *)mem(gpu);
}

void machine_side_end(unsigned char *side)
{
	(void)side;
}

void machine_pull(void *gpu, unsigned char *side, size_t n)
{
	(void)gpu;
	(void)side;
	(void)n;
}

void machine_push(void *gpu, unsigned char *side, size_t n)
{
	(void)gpu;
	(void)side;
	(void)n;
}

/* A stream of the mock is any number. */
CUstream machine_stream(uint64_t any)
{
	return (CUstream)(uintptr_t)(16 + (any << 5 & 0xffffe0));
}

void machine_set(const struct setting *s)
{
	mock.bar1_size = s->bar1;
	mock.p2p_errno = s->p2p_errno;
	mock.p2p_after = s->p2p_after;
	mock.p2p_count = s->p2p_count;
}

void machine_fault(struct world *w, struct fault *f)
{
	static const int refusals[] = { EREMOTEIO, EINVAL, EFAULT, ENOMEM, EAGAIN };

	switch (below(w, 9)) {
	case 0:
		f->kind = SOFT;
		mock.short_io = PAGE << below(w, 5);
		break;
	case 1:
		f->kind = SOFT;
		mock.interrupt = 2 + (int)below(w, 5);
		break;
	case 2:
		f->kind = SOFT;
		mock.bar1_size = (int64_t)below(w, 5) << 16;
		break;
	case 3:
		f->kind = SOFT;
		mock.p2p_errno = refusals[below(w, 5)];
		mock.p2p_after = (int)below(w, 3);
		mock.p2p_count = 1 + (int)below(w, 3);
		/* what was refused before is tried again */
		mock.later += 1000;
		break;
	case 4:
	case 5:
	case 6:
		f->kind = MEDIA;
		f->err = (int)(one_of(w, 2) ? EIO : one_of(w, 2) ? ENOSPC : ENODATA);
		f->lo = (off_t)(below(w, FILE_MAX / PAGE) * PAGE);
		f->hi = f->lo + (off_t)((1 + below(w, 16)) * PAGE);
		mock.media_errno = f->err;
		mock.bad_from = (uint64_t)f->lo;
		mock.bad_to = (uint64_t)f->hi;
		break;
	case 7:
		f->kind = HOST;
		f->err = EIO;
		mock.host_errno = EIO;
		break;
	default:
		f->kind = COPY;
		mock.copy_error = 700;
		mock.copy_after = (int)below(w, 5);
	}
}

void machine_no_fault(void)
{
	mock.short_io = 0;
	mock.interrupt = 0;
	mock.bar1_size = -1;
	mock.p2p_errno = 0;
	mock.p2p_count = -1;
	mock.media_errno = 0;
	mock.host_errno = 0;
	mock.copy_error = 0;
}

void machine_short_calls(void)
{
	mock.short_io = KIB(16);
	mock.interrupt = 9;
}

void machine_later(void)
{
	mock.later += 1000;
}

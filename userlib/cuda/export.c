// SPDX-License-Identifier: MIT
/*
 * cuGetExportTable(): undocumented tables of functions, of which there is none.
 *
 * NVIDIA's CUDA runtime, static and shared, asks for several when it starts, and
 * from CUDA 11.2 on for a proof that only a key in NVIDIA's binaries can give.
 * This driver is not NVIDIA's and does not say that it is, so such a runtime
 * cannot work.  Programs that look at no error would go on with what they never
 * got; where there is a GPU, they end here instead, with the reason.  By "peerlane run" they are led to
 * our own runtime, which asks for none of this: cudart/lead.c.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../core/exit_status.h"
#include "internal.h"

/* What every runtime asks for: its own interface first, then the proof */
static const unsigned char runtimes[][16] = {
	{ 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9,
	  0x39, 0x12, 0xfd, 0x9d, 0xf9 },
	{ 0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba,
	  0x12, 0x3c, 0x66, 0xe1, 0xf2 },
};

/*
 * Another thread may have a stream locked for ever, and the reason must be said; so
 * standard output alone is written out, and after that.
 */
static void end_here(void)
{
	static const char text[] = "peerlane: libcuda: this program calls NVIDIA's CUDA runtime, which works on NVIDIA's driver alone; the program ends here.  Start it by \"peerlane run\", which leads it to Peerlane's runtime, or, if it was, see which part of it that cannot reach: libcudart-peerlane(7)\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	if (!ftrylockfile(stdout))
		fflush_unlocked(stdout);
	_exit(EXIT_CANNOT_RUN);
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	CUresult err = CUDA_ERROR_NOT_FOUND;

	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		if (memcmp(id->bytes, runtimes[i], sizeof(runtimes[i])))
			continue;
		/* Without a GPU the program may well go on */
		err = atomic_load(&drv.ready) ? CUDA_SUCCESS : cuInit(0);
		if (!err)
			end_here();
	}
	*table = NULL;
	return err;
}

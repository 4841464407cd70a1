/* SPDX-License-Identifier: MIT */
/* cufile-batch FILE: four reads in one cuFile batch, the path of each and the reason for it */
#define _GNU_SOURCE
#include <cuda.h>
#include <cufile.h>
#include <err.h>
#include <fcntl.h>
#include <peerlane/file.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRIES	4
#define PIECE	65536

static void must(CUfileError_t e, const char *call)
{
	if (e.err)
		errx(1, "%s: %s", call, CUFILE_ERRSTR(e.err));
}

int main(int argc, char **argv)
{
	static struct pln_file_result result[ENTRIES] = { { .size = sizeof(*result) } };
	CUfileDescr_t file = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileIOParams_t entry[ENTRIES] = { 0 };
	CUfileIOEvents_t event[ENTRIES];
	unsigned int i, n, done = 0, bad = 0;
	CUfileBatchHandle_t batch;
	CUfileHandle_t handle;
	CUcontext context;
	CUdevice gpu;
	CUdeviceptr memory;

	if (argc != 2)
		errx(2, "usage: cufile-batch FILE");
	file.handle.fd = open(argv[1], O_RDONLY | O_DIRECT);
	if (file.handle.fd < 0)
		err(1, "%s", argv[1]);
	if (cuInit(0) || cuDeviceGet(&gpu, 0) || cuDevicePrimaryCtxRetain(&context, gpu) ||
	    cuCtxSetCurrent(context) || cuMemAlloc(&memory, ENTRIES * PIECE))
		errx(1, "no GPU, or no memory of it");
	must(cuFileHandleRegister(&handle, &file), "cuFileHandleRegister");
	must(cuFileBatchIOSetUp(&batch, ENTRIES), "cuFileBatchIOSetUp");

	for (i = 0; i < ENTRIES; i++) {
		entry[i].mode = CUFILE_BATCH;
		entry[i].opcode = CUFILE_READ;
		entry[i].fh = handle;
		entry[i].cookie = &result[i];
		entry[i].u.batch.devPtr_base = (void *)memory;
		entry[i].u.batch.devPtr_offset = i * PIECE;
		entry[i].u.batch.file_offset = i * PIECE;
		entry[i].u.batch.size = PIECE;
	}
	/* in the middle of a block of the drive: this one is staged */
	entry[ENTRIES - 1].u.batch.file_offset += 100;

	if (pln_file_next_result(result, ENTRIES))
		errx(1, "pln_file_next_result");
	must(cuFileBatchIOSubmit(batch, ENTRIES, entry, 0), "cuFileBatchIOSubmit");
	while (done < ENTRIES) {
		n = ENTRIES - done;
		must(cuFileBatchIOGetStatus(batch, 1, &n, event + done, NULL),
		     "cuFileBatchIOGetStatus");
		done += n;
	}
	for (i = 0; i < ENTRIES; i++) {
		bad += event[i].status != CUFILE_COMPLETE;
		printf("%u: %lld bytes, path %s%s%s\n", i, (long long)result[i].result,
		       pln_path_name(result[i].path), *result[i].reason ? ": " : "",
		       result[i].reason);
	}
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(handle);
	cuMemFree(memory);
	return bad ? 1 : 0;
}

// SPDX-License-Identifier: MIT
/*
 * mpi-gpu host|gpu [BYTES]...: ping-pong between two ranks and an all-reduce over all
 * of them, in host memory or in GPU memory whose addresses MPI takes for those of
 * ordinary memory; or ping-pong alone, with messages of these sizes.  Rank 0 prints
 * one line of JSON; the exit status is 0 when every byte was right.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <mpi.h>

#include "../lib/jsonc.h"

#define ROUNDS		10
#define BUFFER		(1u << 20)
#define REDUCED		(BUFFER / sizeof(int64_t))

static const char *const usual[] = { "8", "4096", "65536", "1048576" };

static int rank;
static bool on_gpu;

static void die(const char *what, int error)
{
	fprintf(stderr, "mpi-gpu: rank %d: %s: error %d\n", rank, what, error);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static void cu(const char *what, CUresult error)
{
	if (error != CUDA_SUCCESS)
		die(what, error);
}

static void use_gpu(void)
{
	CUdevice dev;
	CUcontext ctx;

	cu("cuInit", cuInit(0));
	cu("cuDeviceGet", cuDeviceGet(&dev, 0));
	cu("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, dev));
	cu("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
}

static void *allocate(void)
{
	CUdeviceptr ptr;
	void *p;

	if (on_gpu) {
		cu("cuMemAlloc", cuMemAlloc(&ptr, BUFFER));
		return (void *)(uintptr_t)ptr;
	}
	p = aligned_alloc(4096, BUFFER);
	if (!p)
		die("aligned_alloc", 0);
	return p;
}

/* The program itself touches GPU memory by the GPU's engine only. */
static void store(void *to, const void *from, size_t n)
{
	if (on_gpu)
		cu("cuMemcpyHtoD", cuMemcpyHtoD((CUdeviceptr)(uintptr_t)to, from, n));
	else
		memcpy(to, from, n);
}

static void load(void *to, const void *from, size_t n)
{
	if (on_gpu)
		cu("cuMemcpyDtoH", cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, n));
	else
		memcpy(to, from, n);
}

static void pattern(uint8_t *p, int size, int from, int round)
{
	for (int i = 0; i < size; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + from * 101 + round * 31 + 1);
}

/* Both send a pattern of their own each time; returns the wrong messages. */
static int ping_pong(void *out, void *in, int size)
{
	static uint8_t want[BUFFER], got[BUFFER];
	int wrong = 0;

	for (int round = 0; round < ROUNDS; round++) {
		pattern(want, size, rank, round);
		store(out, want, size);
		memset(got, 0, size);
		store(in, got, size);
		if (rank == 0)
			MPI_Send(out, size, MPI_BYTE, 1, round, MPI_COMM_WORLD);
		MPI_Recv(in, size, MPI_BYTE, !rank, round, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(out, size, MPI_BYTE, 0, round, MPI_COMM_WORLD);
		pattern(want, size, !rank, round);
		load(got, in, size);
		wrong += !!memcmp(want, got, size);
	}
	return wrong;
}

static int64_t term(int from, size_t i)
{
	return (int64_t)(i * (from + 1)) - 1000 * from;
}

/* Returns the wrong elements. */
static int all_reduce(void *out, void *in, int ranks)
{
	static int64_t values[REDUCED];
	int wrong = 0;

	for (size_t i = 0; i < REDUCED; i++)
		values[i] = term(rank, i);
	store(out, values, BUFFER);
	MPI_Allreduce(out, in, REDUCED, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	load(values, in, BUFFER);
	for (size_t i = 0; i < REDUCED; i++) {
		int64_t sum = 0;

		for (int from = 0; from < ranks; from++)
			sum += term(from, i);
		wrong += values[i] != sum;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	int ranks, wrong[2] = { 0, 0 }, sum[2];
	const char *const *sizes = argc > 2 ? (const char *const *)argv + 2 : usual;
	int n = argc > 2 ? argc - 2 : (int)(sizeof(usual) / sizeof(usual[0]));
	uint64_t bytes = 0;
	void *out, *in;

	if (argc < 2 || (strcmp(argv[1], "host") && strcmp(argv[1], "gpu"))) {
		fprintf(stderr, "usage: mpirun ... mpi-gpu host|gpu [BYTES]...\n");
		return 2;
	}
	on_gpu = !strcmp(argv[1], "gpu");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		die("this program is for two ranks", ranks);
	if (on_gpu)
		use_gpu();
	out = allocate();
	in = allocate();

	for (int i = 0; i < n; i++) {
		int size = atoi(sizes[i]);

		if (size < 1 || size > (int)BUFFER)
			die("the size of a message", size);
		wrong[0] += ping_pong(out, in, size);
		bytes += (uint64_t)size * ROUNDS;
	}
	if (sizes == usual)
		wrong[1] = all_reduce(out, in, ranks);
	MPI_Reduce(wrong, sum, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		struct json_object *o = json_object_new_object();

		json_set(o, "memory", argv[1]);
		json_set(o, "ranks", ranks);
		json_set(o, "bytes_each_way", bytes);
		json_set(o, "reduced_bytes", sizes == usual ? BUFFER : 0);
		json_set(o, "wrong_messages", sum[0]);
		json_set(o, "wrong_sums", sum[1]);
		print_json(o);
	}
	MPI_Finalize();
	return wrong[0] || wrong[1];
}

/* SPDX-License-Identifier: MIT
 *
 * One rank of NCCL: nccl RANK RANKS FILE.  Rank 0 writes the communicator's id to FILE, the others read it.  Says how
 * far it comes.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* say WHAT: the result of a call, by NVIDIA's text for it */
static int say(const char *what, ncclResult_t result)
{
	printf("%s: %d %s\n", what, result, ncclGetErrorString(result));
	if (result != ncclSuccess)
		printf("%s: last error: %s\n", what, ncclGetLastError(NULL));
	fflush(stdout);
	return result != ncclSuccess;
}

int main(int argc, char **argv)
{
	enum { N = 1024 };
	float values[N];
	int rank, ranks, version;
	ncclUniqueId id;
	ncclComm_t comm;
	cudaError_t error;
	void *memory;

	FILE *file;

	if (argc != 4) {
		fputs("usage: nccl RANK RANKS FILE\n", stderr);
		return 64;
	}
	rank = atoi(argv[1]);
	ranks = atoi(argv[2]);
	if (!rank && say("id", ncclGetUniqueId(&id)))
		return 1;
	file = fopen(argv[3], rank ? "r" : "w");
	if (!file)
		return 1;
	for (size_t i = 0; i < sizeof(id); i++) {
		unsigned int byte = ((unsigned char *)&id)[i];

		if (rank && fscanf(file, "%2x", &byte) != 1)
			return 1;
		if (!rank)
			fprintf(file, "%02x", byte);
		((unsigned char *)&id)[i] = (unsigned char)byte;
	}
	if (fclose(file))
		return 1;
	if (ncclGetVersion(&version) == ncclSuccess)
		printf("version: %d\n", version);
	fflush(stdout);
	if (say("init", ncclCommInitRank(&comm, ranks, id, rank)))
		return 1;
	if (ncclCommCount(comm, &ranks) != ncclSuccess || ncclCommUserRank(comm, &rank) != ncclSuccess)
		return 1;
	printf("rank: %d of %d\n", rank, ranks);
	for (int i = 0; i < N; i++)
		values[i] = (float)(i + rank);
	error = cudaMalloc(&memory, sizeof(values));
	if (!error)
		error = cudaMemcpy(memory, values, sizeof(values), cudaMemcpyHostToDevice);
	printf("memory: %d\n", error);
	if (!say("all-reduce", ncclAllReduce(memory, memory, N, ncclFloat, ncclSum, comm, NULL)))
		printf("synchronize: %d\n", cudaStreamSynchronize(NULL));
	say("abort", ncclCommAbort(comm));
	return 0;
}

// SPDX-License-Identifier: MIT
/*
 * Questions on order, asked while work is under way: what is waited for, and what
 * is there afterwards.
 */
#include "conform.h"

#define TIMES	8		/* so many copies are long enough to ask meanwhile */

static CUdeviceptr src;
static unsigned char *host;
static size_t size;

/* A long copy in @stream, to memory that has zeros */
static void pend(CUstream stream)
{
	CALL(cuCtxSynchronize);
	memset(host, 0, size);
	for (int i = 0; i < TIMES; i++)
		CALL(cuMemcpyDtoHAsync_v2, host, src, size, stream);
}

static void say_copied(void)
{
	SAY("what was copied is there", host[0] == 0x33 && host[size - 1] == 0x33);
}

static void joins(CUstream s1, CUstream s2, CUstream last)
{
	CUevent e, e2;

	CALL(cuEventCreate, &e, 0);
	CALL(cuEventCreate, &e2, 0);
	pend(s1);
	ASK("record", cuEventRecord, e, s1);
	ASK("wait", cuStreamWaitEvent, s2, e, 0);
	ASK("query who waits", cuStreamQuery, s2);
	ASK("record behind it", cuEventRecord, e2, s2);
	ASK("query that", cuEventQuery, e2);
	ASK("wait for that", cuStreamWaitEvent, last, e2, 0);
	ASK("query the last", cuStreamQuery, last);
	ASK("synchronize the last", cuStreamSynchronize, last);
	say_copied();
	ASK("query the first event", cuEventQuery, e);
	CALL(cuEventDestroy_v2, e);
	CALL(cuEventDestroy_v2, e2);
}

void ask_pending(void)
{
	CUstream s1, s2, nb[4];
	size_t avail, total;
	CUevent e, before;
	float ms;
	void *p;

	CALL(cuMemGetInfo_v2, &avail, &total);
	size = total < 1024 * MiB ? 65536 : 256 * MiB;	/* of a fake, and of a GPU */
	ASK("memory", cuMemAlloc_v2, &src, size);
	ASK("host memory", cuMemAllocHost_v2, &p, size);
	host = p;
	CALL(cuMemsetD8_v2, src, 0x33, size);
	CALL(cuStreamCreate, &s1, 0);
	CALL(cuStreamCreate, &s2, 0);
	for (int i = 0; i < 4; i++)
		CALL(cuStreamCreate, &nb[i], CU_STREAM_NON_BLOCKING);
	CALL(cuEventCreate, &e, 0);
	CALL(cuEventCreate, &before, 0);

	/* Of streams that share no queue here, conform_order.c asks the same */
	joins(s1, s2, nb[0]);
	joins(nb[0], nb[3], s1);

	pend(NULL);
	ASK("behind the default stream", cuEventRecord, e, s1);
	ASK("query", cuEventQuery, e);
	ASK("query another stream", cuStreamQuery, nb[0]);
	ASK("synchronize", cuEventSynchronize, e);
	say_copied();

	CALL(cuEventRecord, before, s1);
	pend(s1);
	ASK("the default stream is behind others", cuStreamQuery, NULL);
	ASK("another stream is not", cuStreamQuery, s2);
	ASK("behind it", cuEventRecord, e, s1);
	ASK("no time yet", cuEventElapsedTime, &ms, before, e);
	ASK("synchronize the default stream", cuStreamSynchronize, NULL);
	say_copied();
	ASK("a time now", cuEventElapsedTime, &ms, before, e);
}

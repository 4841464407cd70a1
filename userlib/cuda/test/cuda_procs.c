// SPDX-License-Identifier: MIT
/*
 * GPU memory and events between processes, and between GPUs, in a guest.
 *
 *	cuda_procs GPUS
 *
 * The other process is this program again, with its part's name as argument
 * and a socket as descriptor 3.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_procs.h"
#include "peerlane/cuda_ext.h"

static const char *self;

/* What one process tells the other */
struct words {
	CUipcMemHandle mem;
	CUipcEventHandle event;
	CUipcEventHandle answer;
	size_t size;
};

struct part begin(const char *name)
{
	struct part p = { -1, -1 };
	int pair[2];

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		CHECK(!"socketpair");
		return p;
	}
	p.pid = fork();
	if (!p.pid) {
		if (dup2(pair[1], SOCK) == SOCK)
			execl(self, self, name, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	p.sock = pair[0];
	return p;
}

int end(struct part *p)
{
	int status = -1;

	close(p->sock);
	waitpid(p->pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool say(int sock, const void *data, size_t n)
{
	return send(sock, data, n, MSG_NOSIGNAL) == (ssize_t)n;
}

bool hear(int sock, void *data, size_t n)
{
	return recv(sock, data, n, 0) == (ssize_t)n;
}

size_t free_memory(void)
{
	size_t n = 0, total;

	OK(cuMemGetInfo_v2(&n, &total));
	return n;
}

bool free_again(size_t want)
{
	struct timespec nap = { 0, 10000000 };

	for (int i = 0; i < 500; i++) {
		if (free_memory() == want)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static CUdevice device;			/* that this process works on */

void start(void)
{
	CUcontext ctx;

	OK(cuInit(0));
	OK(cuCtxCreate_v2(&ctx, 0, device));
}

/* ---- memory ---- */

static int part_memory(void)
{
	unsigned char edge[2];
	struct words w;
	CUdeviceptr p, q;
	size_t size;
	char go;

	start();
	while (!failed && hear(SOCK, &w, sizeof(w))) {
		if (cuIpcOpenMemHandle_v2(&p, w.mem, 1))
			return 1;	/* one test is about that */
		OK(cuMemGetAddressRange_v2(&q, &size, p + 1));
		CHECK(q == p && size == w.size);
		OK(cuMemcpyDtoH_v2(&edge[0], p, 1));
		OK(cuMemcpyDtoH_v2(&edge[1], p + w.size - 1, 1));
		CHECK(edge[0] == 0x31 && edge[1] == 0x32);
		/* It ends where it ends, though its block goes on */
		IS(cuMemcpyDtoH_v2(edge, p + w.size - 1, 2),
		   CUDA_ERROR_INVALID_VALUE);
		IS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
		OK(cuMemsetD8_v2(p, 0x44, w.size));
		CHECK(say(SOCK, "d", 1) && hear(SOCK, &go, 1));
		OK(cuMemcpyDtoH_v2(&edge[0], p + 5, 1));
		CHECK(edge[0] == (go == 'g' ? 0x55 : 0x44));
		OK(cuIpcCloseMemHandle(p));
		IS(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
		CHECK(say(SOCK, "c", 1));
	}
	return failed;
}

/* The same with a context on the other GPU alone */
static int part_far(void)
{
	device = 1;
	return part_memory();
}

static void memory(const char *where)
{
	static const size_t sizes[] = { 4 * MiB, 100000, 700 };
	struct part part = begin(where);
	size_t before = free_memory();
	CUipcMemHandle again;
	struct words w;
	CUdeviceptr p;
	unsigned char b;
	char go;

	memset(&w, 0, sizeof(w));
	for (int i = 0; i < 3; i++) {
		w.size = sizes[i];
		OK(cuMemAlloc_v2(&p, w.size));
		OK(cuMemsetD8_v2(p, 0x31, 1));
		OK(cuMemsetD8_v2(p + w.size - 1, 0x32, 1));
		OK(cuIpcGetMemHandle(&w.mem, p));
		OK(cuIpcGetMemHandle(&again, p));
		CHECK(!memcmp(&again, &w.mem, sizeof(again)));
		CHECK(say(part.sock, &w, sizeof(w)));
		CHECK(hear(part.sock, &go, 1));
		OK(cuMemcpyDtoH_v2(&b, p + w.size / 2, 1));
		CHECK(b == 0x44);
		OK(cuMemsetD8_v2(p + 5, 0x55, 1));
		CHECK(say(part.sock, "g", 1) && hear(part.sock, &go, 1));
		OK(cuMemFree_v2(p));
	}
	CHECK(end(&part) == 0);
	CHECK(free_again(before));
}

/* Freed here while it is open there: it stays whole until that closes it */
static void freed_while_open(void)
{
	struct part part = begin("memory");
	size_t before = free_memory();
	struct words w;
	CUdeviceptr p, q;
	char go;

	memset(&w, 0, sizeof(w));
	w.size = 8 * MiB;
	OK(cuMemAlloc_v2(&p, w.size));
	OK(cuMemsetD8_v2(p, 0x31, 1));
	OK(cuMemsetD8_v2(p + w.size - 1, 0x32, 1));
	OK(cuIpcGetMemHandle(&w.mem, p));
	CHECK(say(part.sock, &w, sizeof(w)) && hear(part.sock, &go, 1));
	OK(cuMemFree_v2(p));
	CHECK(free_memory() == before - w.size);
	OK(cuMemAlloc_v2(&q, w.size));
	OK(cuMemsetD8_v2(q, 0x99, w.size));
	CHECK(say(part.sock, "-", 1) && hear(part.sock, &go, 1));
	OK(cuMemFree_v2(q));
	CHECK(free_again(before));
	/* The handle is of nothing now */
	CHECK(say(part.sock, &w, sizeof(w)));
	CHECK(!hear(part.sock, &go, 1));
	CHECK(end(&part) == 1);
	CHECK(free_again(before));
}

static void killed_while_open(void)
{
	struct part part = begin("memory");
	size_t before = free_memory();
	struct words w;
	CUdeviceptr p;
	unsigned char b;
	char go;

	memset(&w, 0, sizeof(w));
	w.size = 4 * MiB;
	OK(cuMemAlloc_v2(&p, w.size));
	OK(cuMemsetD8_v2(p, 0x31, 1));
	OK(cuMemsetD8_v2(p + w.size - 1, 0x32, 1));
	OK(cuIpcGetMemHandle(&w.mem, p));
	CHECK(say(part.sock, &w, sizeof(w)) && hear(part.sock, &go, 1));
	kill(part.pid, SIGKILL);
	CHECK(end(&part) == -SIGKILL);
	OK(cuMemcpyDtoH_v2(&b, p + 9, 1));
	CHECK(b == 0x44);
	OK(cuMemFree_v2(p));
	CHECK(free_again(before));
}

/* The maker ends first: the memory is the other's until it closes it */
static int part_maker(void)
{
	struct words w;
	CUdeviceptr p;
	char go;

	start();
	memset(&w, 0, sizeof(w));
	w.size = 4 * MiB;
	OK(cuMemAlloc_v2(&p, w.size));
	OK(cuMemsetD8_v2(p, 0x66, w.size));
	OK(cuIpcGetMemHandle(&w.mem, p));
	CHECK(say(SOCK, &w, sizeof(w)));
	CHECK(hear(SOCK, &go, 1));
	_exit(failed);		/* nothing is freed by hand */
}

static void maker_ends(void)
{
	size_t before = free_memory();
	struct part part = begin("maker");
	struct words w;
	CUdeviceptr p, q;
	unsigned char b = 0;

	CHECK(hear(part.sock, &w, sizeof(w)));
	OK(cuIpcOpenMemHandle_v2(&p, w.mem, 1));
	CHECK(say(part.sock, "g", 1));
	CHECK(end(&part) == 0);
	OK(cuMemcpyDtoH_v2(&b, p + w.size - 1, 1));
	CHECK(b == 0x66);
	IS(cuIpcOpenMemHandle_v2(&q, w.mem, 1), CUDA_ERROR_INVALID_HANDLE);
	OK(cuIpcCloseMemHandle(p));
	CHECK(free_again(before));
}

/* Another user may not take it */
static int part_stranger(void)
{
	struct words w;
	CUdeviceptr p;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	start();
	CHECK(hear(SOCK, &w, sizeof(w)));
	IS(cuIpcOpenMemHandle_v2(&p, w.mem, 1), CUDA_ERROR_NOT_PERMITTED);
	return failed;
}

static void stranger(void)
{
	struct part part = begin("stranger");
	struct words w;
	CUdeviceptr p;

	memset(&w, 0, sizeof(w));
	OK(cuMemAlloc_v2(&p, MiB));
	OK(cuIpcGetMemHandle(&w.mem, p));
	CHECK(say(part.sock, &w, sizeof(w)));
	CHECK(end(&part) == 0);
	OK(cuMemFree_v2(p));
}

/* ---- events ---- */

/*
 * Copies what the first process writes, when its event says so, and says by an
 * event of its own when the copy is there.
 */
static int part_events(void)
{
	CUdeviceptr p;
	CUevent e, answer;
	CUstream s;
	struct words w, mine;

	start();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&answer, CU_EVENT_DISABLE_TIMING |
			 CU_EVENT_INTERPROCESS));
	memset(&mine, 0, sizeof(mine));
	OK(cuIpcGetEventHandle(&mine.answer, answer));
	CHECK(hear(SOCK, &w, sizeof(w)));
	OK(cuIpcOpenMemHandle_v2(&p, w.mem, 1));
	OK(cuIpcOpenEventHandle(&e, w.event));
	IS(cuIpcGetEventHandle(&mine.event, e), CUDA_ERROR_INVALID_HANDLE);
	for (int i = 0; i < 20 && !failed; i++) {
		char go;

		CHECK(hear(SOCK, &go, 1));
		OK(cuStreamWaitEvent(s, e, 0));
		OK(cuMemcpyDtoDAsync_v2(p + w.size / 2, p, w.size / 2, s));
		OK(cuEventRecord(answer, s));
		CHECK(say(SOCK, &mine, sizeof(mine)));
	}
	OK(cuStreamSynchronize(s));
	OK(cuEventSynchronize(e));
	OK(cuEventDestroy_v2(e));
	OK(cuEventDestroy_v2(answer));
	IS(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
	OK(cuIpcCloseMemHandle(p));
	return failed;
}

static void events(void)
{
	struct part part = begin("events");
	struct words w, theirs;
	CUdeviceptr p, q;
	CUevent e, answer = NULL;
	CUstream s;
	uint64_t diff;

	memset(&w, 0, sizeof(w));
	w.size = 8 * MiB;
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, w.size));
	OK(cuMemAlloc_v2(&q, w.size / 2));
	OK(cuIpcGetMemHandle(&w.mem, p));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	OK(cuEventQuery(e));
	OK(cuIpcGetEventHandle(&w.event, e));
	CHECK(say(part.sock, &w, sizeof(w)));
	for (int i = 0; i < 20 && !failed; i++) {
		/* Some work, so that a wait that does not wait is seen */
		for (int k = 0; k < 6; k++)
			OK(cuMemsetD8Async(p, (unsigned char)(100 + k),
					   w.size / 2, s));
		OK(cuMemsetD8Async(p, (unsigned char)i, w.size / 2, s));
		OK(cuEventRecord(e, s));
		CHECK(say(part.sock, "g", 1));
		CHECK(hear(part.sock, &theirs, sizeof(theirs)));
		if (!answer)
			OK(cuIpcOpenEventHandle(&answer, theirs.answer));
		OK(cuMemsetD8_v2(q, (unsigned char)i, w.size / 2));
		if (i % 2) {
			OK(cuEventSynchronize(answer));
		} else {
			/* On our own engine queue instead */
			OK(cuStreamWaitEvent(s, answer, 0));
			OK(cuStreamSynchronize(s));
		}
		OK(plnMemCompare(q, p + w.size / 2, w.size / 2, &diff));
		CHECK(diff == PLN_COMPARE_SAME);
	}
	CHECK(end(&part) == 0);
	OK(cuEventDestroy_v2(answer));
	OK(cuEventDestroy_v2(e));
	OK(cuStreamDestroy_v2(s));
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(q));
}

/* ---- two GPUs ---- */

/* A counter of a device, as the driver reads it */
static unsigned long long counter(CUdevice dev, const char *name)
{
	unsigned long long value = 0, v;
	char bus[32], path[128], word[64];
	FILE *f;

	OK(cuDeviceGetPCIBusId(bus, sizeof(bus), dev));
	snprintf(path, sizeof(path),
		 "/sys/kernel/debug/peerlane_gpu/%s/counters", bus);
	f = fopen(path, "r");
	CHECK(f);
	while (f && fscanf(f, "%63s %llu", word, &v) == 2)
		if (!strcmp(word, name))
			value = v;
	if (f)
		fclose(f);
	return value;
}

static void peers(void)
{
	size_t n = 20 * MiB + 7;
	unsigned char *in = malloc(n), *out = malloc(n);
	CUcontext first, second;
	CUdeviceptr a, b;
	unsigned long long host, peer;
	CUstream s;
	int can = 0;

	for (size_t i = 0; i < n; i++)
		in[i] = (unsigned char)(i * 2654435761u >> 13);
	OK(cuCtxGetCurrent(&first));
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can == 1);
	OK(cuMemAlloc_v2(&a, n));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuMemAlloc_v2(&b, n));
	OK(cuCtxPopCurrent_v2(NULL));
	IS(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxEnablePeerAccess(second, 0));
	IS(cuCtxEnablePeerAccess(second, 0),
	   CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuMemcpyHtoD_v2(a, in, n));
	host = counter(0, "engine-host-write");
	peer = counter(1, "coherent-dma-write");
	OK(cuMemcpyPeerAsync(b, second, a, first, n, s));
	OK(cuStreamSynchronize(s));
	CHECK(counter(1, "coherent-dma-write") - peer == n);
	host = counter(0, "engine-host-write") - host;
	CHECK(host < n / 100);		/* completion records */
	OK(cuMemcpyDtoH_v2(out, b, n));
	CHECK(!memcmp(in, out, n));
	OK(cuMemsetD8_v2(b + 3, 0x11, n - 3));
	OK(cuMemcpyDtoD_v2(a + 1, b + 3, n - 3));
	OK(cuMemcpyDtoH_v2(out, a, n));
	CHECK(out[0] == in[0] && out[1] == 0x11 && out[n - 3] == 0x11 &&
	      out[n - 2] == in[n - 2]);
	/* The same bytes by way of host memory */
	OK(cuCtxDisablePeerAccess(second));
	host = counter(0, "engine-host-write");
	peer = counter(1, "coherent-dma-write");
	OK(cuMemcpyPeer(b, second, a, first, n));
	CHECK(counter(1, "coherent-dma-write") == peer);
	CHECK(counter(0, "engine-host-write") - host >= n);
	memset(in, 0, n);
	OK(cuMemcpyDtoH_v2(in, b, n));
	CHECK(!memcmp(in, out, n));
	OK(cuMemFree_v2(a));
	OK(cuStreamDestroy_v2(s));
	OK(cuCtxDestroy_v2(second));
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*fn)(void);
	} parts[] = {
		{ "memory", part_memory }, { "far", part_far },
		{ "maker", part_maker },
		{ "stranger", part_stranger }, { "events", part_events },
		{ "by-hand", part_by_hand }, { "pool", part_pool },
	};

	alarm(100);
	self = argv[0];
	for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(argv[1], parts[i].name))
			return parts[i].fn();
	if (argc != 2) {
		fprintf(stderr, "usage: cuda_procs GPUS\n");
		return 2;
	}
	TEST("start", start());
	if (ktap_bad)
		return ktap_end();
	TEST("memory of another process", memory("memory"));
	TEST("freed while another process has it", freed_while_open());
	TEST("killed with it open", killed_while_open());
	TEST("the process that made it ends first", maker_ends());
	TEST("another user is refused", stranger());
	TEST("events keep two processes in order", events());
	TEST("memory made by hand goes over as a descriptor", by_hand());
	TEST("memory of a pool goes over by its pointer", pool());
	if (atoi(argv[1]) > 1) {
		TEST("memory of another process and GPU", memory("far"));
		TEST("peer access", peers());
	} else {
		const char *why = "one GPU in this machine";
		int count = 0;

		/* The topology says so; the library is not believed in what it can do */
		OK(cuDeviceGetCount(&count));
		if (count > 1)
			why = "no window of a GPU that the others reach";
		ktap_skip("memory of another process and GPU",
			  why);
		ktap_skip("peer access", why);
	}
	return ktap_end();
}

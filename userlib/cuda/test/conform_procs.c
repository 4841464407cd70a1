// SPDX-License-Identifier: MIT
/*
 * Questions on two processes, on one GPU and on two: memory and events of one in
 * the other, and what is left when one of them ends.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conform.h"

#define BYTES	4096ul

/* What both see; the other process runs one step after the other, when told to */
static struct {
	CUipcMemHandle mem, inside, small, theirs;
	CUipcEventHandle event;
	CUmemPoolPtrExportData pointer;
	int dev;			/* of the other process */
} *both;

static int sock;
static CUdeviceptr a, small, q, q2, own;
static CUstream s, apart;
static CUevent e, e2;
static CUcontext aside;		/* of the other process, on the other GPU */
static CUmemoryPool pool;

static void steps(int n);

static bool pass_fd(int *fd, bool out)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c;
	char byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &c, .msg_controllen = sizeof(c),
	};

	memset(&c, 0, sizeof(c));
	if (out) {
		c.h.cmsg_level = SOL_SOCKET;
		c.h.cmsg_type = SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.h), fd, sizeof(int));
		return sendmsg(sock, &m, MSG_NOSIGNAL) == 1;
	}
	if (recvmsg(sock, &m, 0) != 1 || c.h.cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(fd, CMSG_DATA(&c.h), sizeof(int));
	return true;
}

/* The other process: a number is a step, whose end it reports */
static void other_process(void)
{
	unsigned char n;

	if (CALL(cuInit, 0) ||
	    CALL(cuCtxCreate_v2, &aside, CU_CTX_SCHED_YIELD, 1 - both->dev) ||
	    CALL(cuCtxCreate_v2, &ctx, CU_CTX_SCHED_YIELD, both->dev)) {
		printf("the other process has no context\n");
		exit(2);
	}
	CALL(cuMemAlloc_v2, &own, 4 * MiB);
	CALL(cuStreamCreate, &s, 0);
	CALL(cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING);
	while (read(sock, &n, 1) == 1) {
		steps(n);
		if (write(sock, &n, 1) != 1)
			break;
	}
	exit(0);
}

/* How the other process ended */
static void gone(void)
{
	int status = 0;

	if (wait(&status) > 0 && WIFSIGNALED(status))
		printf("the other process was killed by signal %d\n", WTERMSIG(status));
	else
		printf("the other process is gone\n");
	exit(2);
}

/* With a descriptor that the step takes, or -1 */
static void tell_fd(unsigned char n, int fd)
{
	if (send(sock, &n, 1, MSG_NOSIGNAL) != 1 || (fd >= 0 && !pass_fd(&fd, true)) || read(sock, &n, 1) != 1)
		gone();
}

static void tell(unsigned char n)
{
	tell_fd(n, -1);
}

/* Two processes, the second one with a context on device @dev */
static void begin_two(int dev)
{
	int ends[2];
	pid_t pid;

	both = mmap(NULL, sizeof(*both), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (both == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
		printf("no other process\n");
		exit(2);
	}
	both->dev = dev;
	/* Where only a tracer may take a descriptor of another process */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pid = fork();
	sock = ends[!!pid];
	close(ends[!pid]);
	if (!pid) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		alarm(60);
		other_process();
	}
	if (pid < 0 || CALL(cuInit, 0) ||
	    CALL(cuCtxCreate_v2, &ctx, CU_CTX_SCHED_YIELD, 0)) {
		printf("no context\n");
		exit(2);
	}
	CALL(cuStreamCreate, &s, 0);
}

static bool has(CUdeviceptr p, unsigned char value)
{
	unsigned char got[BYTES];

	memset(got, 0xee, sizeof(got));
	if (CALL(cuMemcpyDtoH_v2, got, p, BYTES))
		return false;
	for (size_t i = 0; i < BYTES; i++)
		if (got[i] != value)
			return false;
	return true;
}

static void fill(CUdeviceptr p, unsigned char value)
{
	ASK("fill", cuMemsetD8_v2, p, value, BYTES);
	ASK("synchronize", cuCtxSynchronize);
}

/* ---- memory ---- */

enum {
	OPEN, AGAIN, ASIDE, CLOSE, AFTER_FREE, FREED, INSIDE, NEW,
	EVENT_OPEN, EVENT_HELD, EVENT_DONE, EVENT_GONE,
	POOL, POOL_END, BY_HAND, LEND, END,
};

static CUresult w_close(void)
{
	return CALL(cuIpcCloseMemHandle, q);
}

static void open_first(void)
{
	CUdeviceptr base = 0;
	CUipcMemHandle mh;
	CUcontext c = NULL;
	size_t size = 0;
	int v = 77;

	ASK("open, flags 0", cuIpcOpenMemHandle_v2, &q, both->mem, 0);
	ASK("open", cuIpcOpenMemHandle_v2, &q, both->mem, 1);
	ASK("type", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q);
	SAY("type", v);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q);
	SAY("the device of who made it", v == 0);
	SAY("the device of who opened it", v == both->dev);
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT, q);
	SAY("context: none, this one, aside, other", !c ? 0 : c == ctx ? 1 : c == aside ? 2 : 3);
	ASK("range", cuMemGetAddressRange_v2, &base, &size, q + 100);
	SAY("starts there", base == q);
	SAY("size", size);
	ASK("mapped", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_MAPPED, q);
	SAY("mapped", v);
	ASK("old IPC", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, q);
	SAY("old IPC", v);
	ASK("access", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, q);
	SAY("access", v);
	ASK("GPUDirect RDMA", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, q);
	SAY("GPUDirect RDMA", v);
	v = 1;
	ASK("synchronous operations", cuPointerSetAttribute, &v, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q);
	ASK("handle of what is opened", cuIpcGetMemHandle, &mh, q);
	v = -1;
	ASK("dma-buf of what is opened", cuMemGetHandleForAddressRange, &v, q, 2 * MiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (v >= 0)
		close(v);
	ASK("free what is opened", cuMemFree_v2, q);
	SAY("their bytes", has(q, 0x11));
	ASK("copy to own memory", cuMemcpyDtoD_v2, own, q, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	SAY("copied", has(own, 0x11));
	fill(q, 0x12);
	ASK("copy to it", cuMemcpyDtoD_v2, q + BYTES, own, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	ASK("access to the context aside", cuCtxEnablePeerAccess, aside, 0);
	ASK("no more", cuCtxDisablePeerAccess, aside);
	fill(q, 0x13);
}

static void open_again(void)
{
	CUdeviceptr p = 0, base = 0;
	size_t size = 0;

	ASK("open again", cuIpcOpenMemHandle_v2, &q2, both->mem, 1);
	SAY("the same pointer", q2 == q);
	ASK("open the handle of the middle", cuIpcOpenMemHandle_v2, &p, both->inside, 1);
	SAY("it is the start", p == q);
	SAY("it is the middle", p == q + 2 * MiB);
	ASK("close it", cuIpcCloseMemHandle, p);
	ASK("open what is small", cuIpcOpenMemHandle_v2, &p, both->small, 1);
	ASK("range", cuMemGetAddressRange_v2, &base, &size, p);
	SAY("starts there", base == p);
	SAY("size", size);
	SAY("its bytes", has(p, 0x21));
	ASK("close in the middle", cuIpcCloseMemHandle, p + 100);
	ASK("close it", cuIpcCloseMemHandle, p);
}

static void open_aside(void)
{
	CUdeviceptr p = 0;
	CUcontext c = NULL;

	CALL(cuCtxSetCurrent, aside);
	ASK("open in the context aside", cuIpcOpenMemHandle_v2, &p, both->mem, 1);
	SAY("the same pointer", p == q);
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	SAY("context: none, the first, aside, other", !c ? 0 : c == ctx ? 1 : c == aside ? 2 : 3);
	fill(p, 0x14);
	SAY("their bytes", has(p, 0x14));
	CALL(cuCtxSetCurrent, ctx);
	SAY("in the first context", has(q, 0x14));
	ASK("close what the other one opened", cuIpcCloseMemHandle, p);
	CALL(cuCtxSetCurrent, aside);
	ASK("close it again", cuIpcCloseMemHandle, p);
	CALL(cuCtxSetCurrent, ctx);
	SAY("their bytes", has(q, 0x14));
}

static void close_all(void)
{
	unsigned char byte;

	ASK("close", cuIpcCloseMemHandle, q);
	SAY("their bytes", has(q, 0x14));
	ASK("close", cuIpcCloseMemHandle, q);
	ASK("close", cuIpcCloseMemHandle, q);
	ASK("close", cuIpcCloseMemHandle, q);
	ASK("copy of what is closed", cuMemcpyDtoH_v2, &byte, q, 1);
	ASK("open", cuIpcOpenMemHandle_v2, &q, both->mem, 1);
	CALL(cuMemcpyDtoDAsync_v2, own, q, BYTES, s);
	meanwhile("close while a stream is held", w_close, s);
	ASK("open", cuIpcOpenMemHandle_v2, &q, both->mem, 1);
}

static void own_handle(void)
{
	ASK("alloc in the other process", cuMemAlloc_v2, &q2, 4 * MiB);
	fill(q2, 0x31);
	ASK("handle", cuIpcGetMemHandle, &both->theirs, q2);
}

/* ---- events ---- */

static void event_open(void)
{
	CUipcEventHandle eh;
	float ms = 0;

	ASK("open", cuIpcOpenEventHandle, &e, both->event);
	ASK("open again", cuIpcOpenEventHandle, &e2, both->event);
	SAY("the same", e == e2);
	ASK("query, never recorded", cuEventQuery, e);
	ASK("handle of what is opened", cuIpcGetEventHandle, &eh, e);
	ASK("time", cuEventElapsedTime, &ms, e, e);
	CALL(cuCtxSetCurrent, aside);
	ASK("query in the context aside", cuEventQuery, e);
	CALL(cuCtxSetCurrent, ctx);
	ASK("destroy one", cuEventDestroy_v2, e2);
}

static void event_held(void)
{
	ASK("query in the other process", cuEventQuery, e);
	ASK("its stream waits", cuStreamWaitEvent, apart, e, 0);
	ASK("query it", cuStreamQuery, apart);
	ASK("copy behind it", cuMemcpyDtoDAsync_v2, own, q, BYTES, apart);
	ASK("another stream", cuStreamQuery, s);
	ASK("fill in the default stream", cuMemsetD8_v2, own + MiB, 1, BYTES);
	ASK("synchronize that", cuStreamSynchronize, NULL);
}

static void event_done(void)
{
	ASK("synchronize the event", cuEventSynchronize, e);
	ASK("synchronize the stream", cuStreamSynchronize, apart);
	SAY("copied", has(own, 0x15));
	ASK("record it in the other process", cuEventRecord, e, s);
	ASK("synchronize", cuEventSynchronize, e);
}

static void event_gone(void)
{
	ASK("query what the other one destroyed", cuEventQuery, e);
	ASK("wait for it", cuStreamWaitEvent, s, e, 0);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("open what is destroyed", cuIpcOpenEventHandle, &e2, both->event);
	ASK("destroy it, too", cuEventDestroy_v2, e);
}

/* ---- pools and memory by hand ---- */

#define ACCESS(what, dev) do {						\
	CUmemLocation where_ = { CU_MEM_LOCATION_TYPE_DEVICE, dev };	\
	CUmemAccess_flags flags_ = 77;					\
	ASK(what, cuMemPoolGetAccess, &flags_, pool, &where_);		\
	SAY(what, flags_);						\
} while (0)

static void import_pool(void)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, both->dev }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr p = 0;
	CUcontext c = NULL;
	int fd = -1, v = 77;

	SAY("a descriptor came", pass_fd(&fd, false));
	ASK("import", cuMemPoolImportFromShareableHandle, &pool, (void *)(intptr_t)fd, 1, 0);
	close(fd);
	ACCESS("access of the first", 0);
	ACCESS("access of the second", 1);
	ASK("set access", cuMemPoolSetAccess, pool, &desc, 1);
	ACCESS("access of the second", 1);
	ASK("import a pointer", cuMemPoolImportPointer, &q2, pool, &both->pointer);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q2);
	SAY("ordinal", v);
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT, q2);
	SAY("context: none, this one, aside, other", !c ? 0 : c == ctx ? 1 : c == aside ? 2 : 3);
	SAY("their bytes", has(q2, 0x41));
	fill(q2, 0x42);
	ASK("copy to own memory", cuMemcpyDtoD_v2, own, q2, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	SAY("copied", has(own, 0x42));
	ASK("alloc of the imported pool", cuMemAllocFromPoolAsync, &p, BYTES, pool, s);
	ASK("trim the imported pool", cuMemPoolTrimTo, pool, 0);
	ASK("import the pointer again", cuMemPoolImportPointer, &p, pool, &both->pointer);
	SAY("the same", p == q2);
	if (p != q2)
		ASK("free the second one", cuMemFree_v2, p);
}

static void import_end(void)
{
	int type = 77;

	ASK("free in a stream", cuMemFreeAsync, q2, s);
	ASK("synchronize", cuStreamSynchronize, s);
	/* It was imported twice */
	ASK("is it there", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q2);
	ASK("free in a stream, again", cuMemFreeAsync, q2, s);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("is it there", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q2);
	ASK("destroy the imported pool", cuMemPoolDestroy, pool);
}

static void import_memory(void)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, both->dev }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle h = 0;
	CUmemAllocationProp got = { 0 };
	unsigned long long flags = 77;
	CUdeviceptr p = 0;
	int fd = -1, v = 77;

	SAY("a descriptor came", pass_fd(&fd, false));
	ASK("import", cuMemImportFromShareableHandle, &h, (void *)(intptr_t)fd, 1);
	close(fd);
	ASK("properties", cuMemGetAllocationPropertiesFromHandle, &got, h);
	SAY("device", got.location.id);
	SAY("handle types", got.requestedHandleTypes);
	ASK("reserve", cuMemAddressReserve, &p, 2 * MiB, 0, 0, 0);
	ASK("map", cuMemMap, p, 2 * MiB, 0, h, 0);
	ASK("release", cuMemRelease, h);
	ASK("set access", cuMemSetAccess, p, 2 * MiB, &desc, 1);
	ASK("get access", cuMemGetAccess, &flags, &desc.location, p);
	SAY("get access", flags);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", v);
	SAY("their bytes", has(p, 0x51));
	fill(p, 0x52);
	ASK("unmap", cuMemUnmap, p, 2 * MiB);
	ASK("free the address", cuMemAddressFree, p, 2 * MiB);
}

static void steps(int n)
{
	switch (n) {
	case OPEN:
		open_first();
		break;
	case AGAIN:
		open_again();
		break;
	case ASIDE:
		open_aside();
		break;
	case CLOSE:
		close_all();
		break;
	case AFTER_FREE:
		ASK("copy of what the other one freed", cuMemcpyDtoD_v2, own, q, BYTES);
		ASK("synchronize", cuCtxSynchronize);
		ASK("close it", cuIpcCloseMemHandle, q);
		break;
	case FREED:
		ASK("open what is freed", cuIpcOpenMemHandle_v2, &q, both->mem, 1);
		break;
	case NEW:
		ASK("open", cuIpcOpenMemHandle_v2, &q, both->mem, 1);
		break;
	case EVENT_OPEN:
		event_open();
		break;
	case EVENT_HELD:
		event_held();
		break;
	case EVENT_DONE:
		event_done();
		break;
	case EVENT_GONE:
		event_gone();
		break;
	case POOL:
		import_pool();
		break;
	case POOL_END:
		import_end();
		break;
	case BY_HAND:
		import_memory();
		break;
	case LEND:
		own_handle();
		break;
	}
}

static void memory(int dev)
{
	CUipcMemHandle mh;
	CUdeviceptr p = 0;

	begin_two(dev);
	ASK("alloc", cuMemAlloc_v2, &a, 4 * MiB);
	ASK("alloc, small", cuMemAlloc_v2, &small, BYTES);
	fill(a, 0x11);
	fill(small, 0x21);
	ASK("handle", cuIpcGetMemHandle, &both->mem, a);
	ASK("handle again", cuIpcGetMemHandle, &mh, a);
	SAY("the same", !memcmp(&mh, &both->mem, sizeof(mh)));
	ASK("handle of the middle", cuIpcGetMemHandle, &both->inside, a + 2 * MiB);
	ASK("handle of what is small", cuIpcGetMemHandle, &both->small, small);
	tell(OPEN);
	SAY("written there", has(a, 0x13));
	SAY("copied there", has(a + BYTES, 0x11));
	tell(AGAIN);
	tell(ASIDE);
	SAY("written there", has(a, 0x14));
	tell(CLOSE);
	SAY("still here", has(a, 0x14));
	ASK("free what the other one has open", cuMemFree_v2, a);
	tell(AFTER_FREE);
	tell(FREED);
	/* The owner ends */
	tell(LEND);
	ASK("open", cuIpcOpenMemHandle_v2, &p, both->theirs, 1);
	SAY("its bytes", has(p, 0x31));
	close(sock);
	wait(NULL);
	ASK("copy of memory of a process that ended", cuMemcpyDtoD_v2, small, p, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	ASK("close it", cuIpcCloseMemHandle, p);
	ASK("open it again", cuIpcOpenMemHandle_v2, &p, both->theirs, 1);
	ASK("synchronize", cuCtxSynchronize);
}

void ask_procs_one(void)
{
	memory(0);
}

void ask_procs_two(void)
{
	memory(1);
}

static void events(int dev)
{
	begin_two(dev);
	ASK("alloc", cuMemAlloc_v2, &a, 4 * MiB);
	ASK("handle", cuIpcGetMemHandle, &both->mem, a);
	ASK("event", cuEventCreate, &e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	ASK("handle", cuIpcGetEventHandle, &both->event, e);
	tell(NEW);
	tell(EVENT_OPEN);
	shut(s);
	ASK("fill behind a function", cuMemsetD8Async, a, 0x15, BYTES, s);
	ASK("record", cuEventRecord, e, s);
	ASK("query here", cuEventQuery, e);
	tell(EVENT_HELD);
	open_gate();
	tell(EVENT_DONE);
	ASK("query here, recorded there", cuEventQuery, e);
	ASK("destroy", cuEventDestroy_v2, e);
	tell(EVENT_GONE);
}

void ask_procs_events_one(void)
{
	events(0);
}

void ask_procs_events_two(void)
{
	events(1);
}

static void shared(int dev)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle h = 0;
	CUdeviceptr p = 0;
	int fd = -1;

	begin_two(dev);
	ASK("pool", cuMemPoolCreate, &pool, &props);
	ASK("alloc", cuMemAllocFromPoolAsync, &a, BYTES, pool, s);
	ASK("fill", cuMemsetD8Async, a, 0x41, BYTES, s);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("export the pool", cuMemPoolExportToShareableHandle, &fd, pool, 1, 0);
	ASK("export the pointer", cuMemPoolExportPointer, &both->pointer, a);
	tell_fd(POOL, fd);
	close(fd);
	SAY("written there", has(a, 0x42));
	ASK("free here first", cuMemFreeAsync, a, s);
	ASK("synchronize", cuStreamSynchronize, s);
	tell(POOL_END);
	ASK("destroy the pool", cuMemPoolDestroy, pool);

	ASK("create", cuMemCreate, &h, 2 * MiB, &prop, 0);
	ASK("reserve", cuMemAddressReserve, &p, 2 * MiB, 0, 0, 0);
	ASK("map", cuMemMap, p, 2 * MiB, 0, h, 0);
	ASK("set access", cuMemSetAccess, p, 2 * MiB, &desc, 1);
	fill(p, 0x51);
	fd = -1;
	ASK("export", cuMemExportToShareableHandle, &fd, h, 1, 0);
	tell_fd(BY_HAND, fd);
	close(fd);
	SAY("written there", has(p, 0x52));
	ASK("synchronize", cuCtxSynchronize);
}

void ask_procs_shared_one(void)
{
	shared(0);
}

void ask_procs_shared_two(void)
{
	shared(1);
}

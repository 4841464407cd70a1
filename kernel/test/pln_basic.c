// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: the calls of /dev/peerlane-gpuN do what the header says, and
 * refuse what it does not allow: one check for each rule.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "pln_test.h"

static void test_query(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);

	check(q.abi_version == PLN_GPU_ABI_VERSION, "ABI version");
	check(q.vram_size && q.vram_free <= q.vram_size, "VRAM size");
	check(q.bar1_size && q.bar1_free == q.bar1_size, "BAR1 is free");
	check(q.page_size == UNIT, "page size");
	check(q.num_queues >= 1 && q.num_queues <= 16, "queues");
	check(q.features & PLN_GPU_FEAT_DMABUF, "dma-buf feature");
	check(q.features & PLN_GPU_FEAT_DEVPTR, "device pointer feature");
	check(!(q.features & PLN_GPU_FEAT_COHERENT) == !q.coherent_size,
	      "coherent size fits the feature");

	q = (struct pln_gpu_query){ .flags = 1 };
	check_errno(ioctl(fd, PLN_GPU_IOC_QUERY, &q), EINVAL, "query: flags");
	q = (struct pln_gpu_query){ .reserved = { 0, 0, 1 } };
	check_errno(ioctl(fd, PLN_GPU_IOC_QUERY, &q), EINVAL,
		    "query: reserved");
	check_errno(ioctl(fd, PLN_GPU_IOC_QUERY, NULL), EFAULT,
		    "query: address");
	check_errno(ioctl(fd, _IO(PLN_GPU_IOC_MAGIC, 99), NULL), ENOTTY,
		    "unknown call");
}

static void test_alloc(int fd)
{
	struct pln_gpu_alloc a, b;
	struct pln_gpu_query q0 = gpu_query(fd), q;
	uint64_t result;

	a = gpu_alloc(fd, 1);
	check(a.size == UNIT && a.handle, "size is rounded up and told");
	q = gpu_query(fd);
	check(q.vram_free == q0.vram_free - UNIT, "free VRAM shrinks");
	check(!gpu_free(fd, a.handle), "free");
	q = gpu_query(fd);
	check(q.vram_free == q0.vram_free, "free VRAM grows");
	check_errno(gpu_free(fd, a.handle), ENOENT, "free: twice");
	check_errno(gpu_free(fd, 0), ENOENT, "free: handle 0");

	b = (struct pln_gpu_alloc){ .size = 0 };
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), EINVAL, "alloc: size 0");
	b = (struct pln_gpu_alloc){ .size = 1, .flags = 1 };
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), EINVAL, "alloc: flags");
	b = (struct pln_gpu_alloc){ .size = 1, .reserved = 1 };
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), EINVAL,
		    "alloc: reserved");
	b = (struct pln_gpu_alloc){ .size = q.vram_size + 1 };
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), ENOMEM,
		    "alloc: more than there is");
	b = (struct pln_gpu_alloc){ .size = ~0ull };
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), ENOMEM,
		    "alloc: size that wraps");
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, NULL), EFAULT,
		    "alloc: address");
	struct pln_gpu_free f = { .handle = 1, .reserved = 1 };

	check_errno(ioctl(fd, PLN_GPU_IOC_FREE, &f), EINVAL, "free: reserved");

	/* What one has written, the next must not see */
	a = gpu_alloc(fd, 4 * MIB);
	struct pln_gpu_op op = op_fill(a.handle, 0, 4 * MIB, 8,
				       0xdeadbeefdeadbeefull);

	check(!gpu_run(fd, &op, 1, NULL), "fill");
	gpu_free(fd, a.handle);
	a = gpu_alloc(fd, 4 * MIB);
	b = gpu_alloc(fd, 4 * MIB);
	op = op_fill(b.handle, 0, 4 * MIB, 8, 0);
	gpu_run(fd, &op, 1, NULL);
	op = op_two(PLN_GPU_OP_COMPARE, a.handle, 0, b.handle, 0, 4 * MIB, 0);
	check(!gpu_run(fd, &op, 1, &result) && result == PLN_GPU_COMPARE_EQUAL,
	      "new memory is zeroed");
	gpu_free(fd, a.handle);
	gpu_free(fd, b.handle);

	a = gpu_alloc(fd, q.vram_free);
	b = (struct pln_gpu_alloc){ .size = 1 };
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), ENOMEM,
		    "alloc: VRAM is full");
	gpu_free(fd, a.handle);
}

static void test_ops(int fd)
{
	static const char nine[] = "123456789";
	struct pln_gpu_alloc a = gpu_alloc(fd, 8 * MIB);
	struct pln_gpu_alloc b = gpu_alloc(fd, 8 * MIB);
	struct pln_gpu_op op, ops[PLN_GPU_MAX_OPS];
	size_t len = 3 * MIB + 12345, i;
	char *in = malloc(len + 1), *out = malloc(len + 1);
	int32_t ints[4] = { 1, -2, INT32_MAX, 0 }, iout[4];
	float floats[4] = { 1.5f, -2.25f, 1e30f, 0 }, fout[4];
	uint64_t result;

	need(in && out, "memory");
	pattern(in, len + 1, 1);

	op = op_to_gpu(a.handle, 777, nine, 9);
	check(!gpu_run(fd, &op, 1, NULL), "copy 9 bytes in");
	op = op_crc(a.handle, 777, 9);
	check(!gpu_run(fd, &op, 1, &result) && result == 0xe3069283,
	      "CRC-32C of \"123456789\"");
	op = op_crc(a.handle, 777, 4);
	gpu_run(fd, &op, 1, &result);
	op = op_crc(a.handle, 781, 5);
	op.imm = result;
	check(!gpu_run(fd, &op, 1, &result) && result == 0xe3069283,
	      "CRC-32C in two parts");

	/* One job, odd addresses and sizes, in order on its queue */
	ops[0] = op_to_gpu(a.handle, 5, in + 1, len);
	ops[1] = op_two(PLN_GPU_OP_COPY, b.handle, 3, a.handle, 5, len, 0);
	ops[2] = op_from_gpu(out, b.handle, 3, len);
	ops[3] = op_two(PLN_GPU_OP_COMPARE, b.handle, 3, a.handle, 5, len, 0);
	ops[4] = op_crc(b.handle, 3, len);
	check(!gpu_run(fd, ops, 5, &result), "job of five operations");
	check(!memcmp(in + 1, out, len), "data came back");
	check(result == crc32c(0, in + 1, len), "CRC-32C of it");

	op = op_fill(b.handle, 1000003, 1, 1, 0);
	ops[0] = op_fill(a.handle, 1000005, 1, 1, 1);
	ops[1] = op;
	ops[2] = op_two(PLN_GPU_OP_COMPARE, b.handle, 3, a.handle, 5, len, 0);
	check(!gpu_run(fd, ops, 3, &result) && result == 1000000,
	      "compare finds the first difference");

	ops[0] = op_to_gpu(a.handle, 0, ints, sizeof(ints));
	ops[1] = op_two(PLN_GPU_OP_ADD, a.handle, 0, a.handle, 0, sizeof(ints),
			PLN_GPU_ADD_INT32);
	ops[2] = op_from_gpu(iout, a.handle, 0, sizeof(ints));
	check(!gpu_run(fd, ops, 3, NULL) && iout[0] == 2 && iout[1] == -4 &&
	      iout[2] == -2 && !iout[3], "add int32, wraps");
	ops[0] = op_to_gpu(a.handle, 0, floats, sizeof(floats));
	ops[1].arg = PLN_GPU_ADD_FLOAT32;
	ops[2] = op_from_gpu(fout, a.handle, 0, sizeof(floats));
	check(!gpu_run(fd, ops, 3, NULL) && fout[0] == 3.0f &&
	      fout[1] == -4.5f && fout[2] == 2e30f && fout[3] == 0,
	      "add float32");

	for (i = 0; i < 4; i++) {
		uint32_t width = 1u << i;
		uint64_t value = 0x1122334455667788ull;

		if (width < 8)
			value &= (1ull << (8 * width)) - 1;
		ops[0] = op_fill(a.handle, 64, 64, width, value);
		ops[1] = op_from_gpu(out, a.handle, 64, 64);
		check(!gpu_run(fd, ops, 2, NULL) && !memcmp(out, &value, width) &&
		      !memcmp(out, out + width, 64 - width),
		      "fill, width %u", width);
	}

	for (i = 0; i < PLN_GPU_MAX_OPS; i++)
		ops[i] = op_fill(a.handle, i * 8, 8, 8, i);
	check(!gpu_run(fd, ops, PLN_GPU_MAX_OPS, NULL), "job of 256 operations");
	op = (struct pln_gpu_op){ .opcode = PLN_GPU_OP_NOP };
	check(!gpu_run(fd, &op, 1, NULL), "no operation");

	free(in);
	free(out);
	gpu_free(fd, a.handle);
	gpu_free(fd, b.handle);
}

/* Memory in many pieces: more descriptors than the ring has */
static void test_scattered(int fd)
{
	size_t len = 16 * MIB, i;
	struct pln_gpu_alloc a = gpu_alloc(fd, len);
	struct pln_gpu_op ops[2];
	uint64_t result;
	char *in, *out;

	in = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	out = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(in != MAP_FAILED && out != MAP_FAILED, "memory");
	madvise(in, len, MADV_NOHUGEPAGE);
	madvise(out, len, MADV_NOHUGEPAGE);
	/* Touched in an order that scatters physical pages */
	for (i = 0; i < len / 4096; i++)
		in[i * 2654435761u % (len / 4096) * 4096] = 1;
	pattern(in, len, 2);
	ops[0] = op_to_gpu(a.handle, 0, in, len);
	ops[1] = op_crc(a.handle, 0, len);
	check(!gpu_run(fd, ops, 2, &result) && result == crc32c(0, in, len),
	      "16 MiB of scattered pages in");
	ops[0] = op_from_gpu(out, a.handle, 0, len);
	check(!gpu_run(fd, ops, 1, NULL) && !memcmp(in, out, len),
	      "and out again");
	munmap(in, len);
	munmap(out, len);
	gpu_free(fd, a.handle);
}

#define BAD_OP(what, want, ...)						\
	do {								\
		op = good;						\
		__VA_ARGS__;						\
		check_errno(gpu_submit(fd, &op, 1, 0, &job), want,	\
			    "operation: " what);			\
	} while (0)

static void test_bad_ops(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	struct pln_gpu_op good, op, ops[2];
	struct pln_gpu_wait w;
	struct pln_gpu_submit s;
	uint64_t job, result;
	struct pln_gpu_wait *ro;
	char *page, buf[64] = { 0 };

	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(page != MAP_FAILED, "memory");

	good = op_fill(a.handle, 0, 64, 8, 1);
	BAD_OP("reserved", EINVAL, op.reserved = 1);
	BAD_OP("unknown flag", EINVAL, op.flags = 4);
	BAD_OP("unknown opcode", EINVAL, op.opcode = 6);
	BAD_OP("fill with a user address", EINVAL,
	       op.flags = PLN_GPU_OP_F_DST_USER);
	BAD_OP("fill width 3", EINVAL, op.arg = 3);
	BAD_OP("fill width 16", EINVAL, op.arg = 16);
	BAD_OP("fill value over its width", EINVAL, op.arg = 1; op.imm = 256);
	BAD_OP("fill length no multiple", EINVAL, op.len = 63);
	BAD_OP("fill not aligned", EINVAL, op.dst = 4);
	BAD_OP("fill with a source", EINVAL, op.src = 1);
	BAD_OP("fill with a source handle", EINVAL, op.src_handle = a.handle);
	BAD_OP("length 0", EINVAL, op.len = 0);
	BAD_OP("past the end", EINVAL, op.dst = UNIT - 56);
	BAD_OP("range that wraps", EINVAL, op.dst = ~0ull - 7);
	BAD_OP("no such handle", EINVAL, op.dst_handle = 0x7fffffff);
	BAD_OP("handle 0", EINVAL, op.dst_handle = 0);

	good = op_crc(a.handle, 0, 64);
	BAD_OP("CRC with a destination", EINVAL, op.dst = 1);
	BAD_OP("CRC with arg", EINVAL, op.arg = 1);
	BAD_OP("CRC start over 32 bits", EINVAL, op.imm = 1ull << 32);

	good = op_two(PLN_GPU_OP_COPY, a.handle, 0, a.handle, 4096, 64, 0);
	BAD_OP("copy with imm", EINVAL, op.imm = 1);
	BAD_OP("copy with arg", EINVAL, op.arg = 1);
	BAD_OP("copy past the end of the source", EINVAL, op.src = UNIT);

	good = op_two(PLN_GPU_OP_ADD, a.handle, 0, a.handle, 4096, 64,
		      PLN_GPU_ADD_INT32);
	BAD_OP("add of type 0", EINVAL, op.arg = 0);
	BAD_OP("add of type 3", EINVAL, op.arg = 3);
	BAD_OP("add not aligned", EINVAL, op.src = 4098);
	BAD_OP("add length no multiple", EINVAL, op.len = 6);

	good = op_to_gpu(a.handle, 0, buf, sizeof(buf));
	BAD_OP("user address on both sides", EINVAL,
	       op.flags |= PLN_GPU_OP_F_DST_USER; op.dst_handle = 0);
	BAD_OP("user source with a handle", EINVAL, op.src_handle = a.handle);
	BAD_OP("user address that is not mapped", EFAULT, op.src = 4096);
	BAD_OP("user address of the kernel", EFAULT,
	       op.src = 0xffff888000000000ull);
	BAD_OP("user range that wraps", EFAULT, op.src = ~0ull - 10);
	good = op_from_gpu(page, a.handle, 0, 64);
	BAD_OP("user memory that is read-only", EFAULT, (void)0);

	good = (struct pln_gpu_op){ .opcode = PLN_GPU_OP_NOP };
	BAD_OP("no operation, but length", EINVAL, op.len = 1);

	/* A bad operation behind a good one: neither is done */
	ops[0] = op_fill(a.handle, 0, 64, 8, ~0ull);
	ops[1] = op_fill(a.handle, 0, 0, 8, 0);
	check_errno(gpu_submit(fd, ops, 2, 0, &job), EINVAL,
		    "job with a bad operation");
	op = op_from_gpu(buf, a.handle, 0, 64);
	check(!gpu_run(fd, &op, 1, &result) && !buf[0],
	      "nothing of it was done");

	s = (struct pln_gpu_submit){ .ops = (uintptr_t)&op };
	check_errno(ioctl(fd, PLN_GPU_IOC_SUBMIT, &s), EINVAL,
		    "submit: no operations");
	s.nr_ops = PLN_GPU_MAX_OPS + 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_SUBMIT, &s), EINVAL,
		    "submit: 257 operations");
	s.nr_ops = 1;
	s.queue = 16;
	check_errno(ioctl(fd, PLN_GPU_IOC_SUBMIT, &s), EINVAL,
		    "submit: no such queue");
	s.queue = 0;
	s.flags = 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_SUBMIT, &s), EINVAL,
		    "submit: flags");
	s.flags = 0;
	s.reserved = 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_SUBMIT, &s), EINVAL,
		    "submit: reserved");
	s.reserved = 0;
	s.ops = 8;
	check_errno(ioctl(fd, PLN_GPU_IOC_SUBMIT, &s), EFAULT,
		    "submit: address of the operations");

	check_errno(gpu_wait(fd, 0, 0, &w), ENOENT, "wait: job 0");
	check_errno(gpu_wait(fd, ~0ull, 0, &w), ENOENT, "wait: no such job");
	op = op_fill(a.handle, 0, 64, 8, 1);
	need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
	check_errno(gpu_wait(fd, job, SECONDS(601), &w), EINVAL,
		    "wait: over 600 s");
	w = (struct pln_gpu_wait){ .job = job, .flags = 2 };
	check_errno(ioctl(fd, PLN_GPU_IOC_WAIT, &w), EINVAL, "wait: flags");
	w = (struct pln_gpu_wait){ .job = job, .reserved = 1 };
	check_errno(ioctl(fd, PLN_GPU_IOC_WAIT, &w), EINVAL, "wait: reserved");
	ro = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(ro != MAP_FAILED, "mmap");
	*ro = (struct pln_gpu_wait){ .job = job, .timeout_ns = SECONDS(60) };
	need(!mprotect(ro, 4096, PROT_READ), "mprotect");
	check_errno(ioctl(fd, PLN_GPU_IOC_WAIT, ro), EFAULT,
		    "wait: the result cannot be told");
	munmap(ro, 4096);
	check(!gpu_wait(fd, job, SECONDS(600), &w) && !w.status, "wait");
	check_errno(gpu_wait(fd, job, 0, &w), ENOENT, "wait: again");

	gpu_free(fd, a.handle);
	munmap(page, 4096);
}

static atomic_bool interrupted;

/* Sends SIGUSR1 to the thread until it was interrupted */
static void *interrupter(void *arg)
{
	pthread_t *target = arg;

	while (!atomic_load(&interrupted)) {
		usleep(1000);
		pthread_kill(*target, SIGUSR1);
	}
	return NULL;
}

static void on_usr1(int sig)
{
	(void)sig;
}

/*
 * A wait ends early by a signal, and the job stays.  A job that ended before
 * the signal came proves nothing, and is repeated.
 */
static void test_interrupted(int fd)
{
	struct sigaction sa = { .sa_handler = on_usr1 };
	struct pln_gpu_query q = gpu_query(fd);
	uint64_t len = q.vram_free / 4 & ~(uint64_t)(UNIT - 1);
	pthread_t self = pthread_self(), other;
	struct pln_gpu_alloc a = gpu_alloc(fd, len);
	struct pln_gpu_op ops[32];
	struct pln_gpu_wait w;
	int i, ret, err = 0, round;
	sigset_t usr1;
	uint64_t job;

	for (i = 0; i < 32; i++)
		ops[i] = op_crc(a.handle, 0, len);
	sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	need(!pthread_create(&other, NULL, interrupter, &self), "thread");
	for (round = 0; round < 50; round++) {
		need(!gpu_submit(fd, ops, 32, 0, &job), "submit");
		ret = gpu_wait(fd, job, 0, &w);
		if (ret && errno == ETIMEDOUT)
			ret = gpu_wait(fd, job, 1000000, &w);
		if (ret && errno == ETIMEDOUT) {
			pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
			ret = gpu_wait(fd, job, SECONDS(60), &w);
			err = errno;
			pthread_sigmask(SIG_BLOCK, &usr1, NULL);
			if (ret)
				break;
		}
		need(!ret && !w.status, "a job that ended early");
	}
	check(round < 50, "wait: not yet, nor after 1 ms");
	errno = err;
	check_errno(ret, EINTR, "wait: a signal");
	/* Not by pthread_cancel(), which needs a library that the guest has not */
	atomic_store(&interrupted, true);
	pthread_join(other, NULL);
	signal(SIGUSR1, SIG_IGN);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	check(!gpu_wait(fd, job, SECONDS(60), &w) && !w.status,
	      "the job stayed and ended well");
	gpu_free(fd, a.handle);
}

/* The GPU tells when jobs ended, by the clock that it shows */
static void test_time(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	struct pln_gpu_op op = op_fill(a.handle, 0, MIB, 8, 1);
	struct pln_gpu_wait w[2];
	uint64_t before, after, job;

	check(gpu_query(fd).features & PLN_GPU_FEAT_TIME, "time feature");
	before = gpu_query(fd).time_ns;
	for (int i = 0; i < 2; i++) {
		need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
		w[i] = (struct pln_gpu_wait){
			.job = job, .timeout_ns = SECONDS(60),
			.flags = PLN_GPU_WAIT_F_TIME,
		};
		need(!ioctl(fd, PLN_GPU_IOC_WAIT, &w[i]) && !w[i].status,
		     "wait");
	}
	after = gpu_query(fd).time_ns;
	check(before < w[0].time_ns && w[0].time_ns < w[1].time_ns &&
	      w[1].time_ns < after, "jobs end when the GPU's clock says");
	if (after <= w[1].time_ns || before >= w[0].time_ns)
		printf("# %llu %llu %llu %llu\n", (unsigned long long)before,
		       (unsigned long long)w[0].time_ns,
		       (unsigned long long)w[1].time_ns,
		       (unsigned long long)after);
	/* Who does not ask gets back what it gave */
	need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
	check(!gpu_wait(fd, job, SECONDS(60), &w[0]) &&
	      w[0].timeout_ns == SECONDS(60), "no time for who wants none");
	gpu_free(fd, a.handle);
}

static void test_coherent(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * MIB), b;
	struct pln_gpu_query q = gpu_query(fd);
	size_t len = 4 * MIB;
	struct pln_gpu_op op, ops[2];
	uint64_t result;
	char *p, *in;
	int other;

	if (!(q.features & PLN_GPU_FEAT_COHERENT)) {
		p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, a.mmap_offset);
		check(p == MAP_FAILED && errno == ENODEV,
		      "no coherent window: the CPU gets no mapping");
		p = mmap(NULL, len, PROT_NONE, MAP_SHARED, fd, a.mmap_offset);
		check(p != MAP_FAILED, "but the memory gets an address");
		check_errno(mprotect(p, len, PROT_READ), EACCES,
			    "which stays out of the CPU's reach");
		op = op_to_gpu(a.handle, 0, p, 4096);
		check_errno(gpu_submit(fd, &op, 1, 0, &result), EFAULT,
			    "also as user memory of a copy");
		munmap(p, len);
		gpu_free(fd, a.handle);
		return;
	}

	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 a.mmap_offset);
	need(p != MAP_FAILED, "mmap of GPU memory");
	in = malloc(len);
	need(in, "memory");
	pattern(in, len, 3);
	memcpy(p, in, len);
	op = op_crc(a.handle, 0, len);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, len),
	      "the engine sees what the CPU wrote");
	pattern(in, len, 4);
	op = op_to_gpu(a.handle, 0, in, len);
	check(!gpu_run(fd, &op, 1, NULL) && !memcmp(p, in, len),
	      "the CPU sees what the engine wrote");

	/* The GPU's memory as user memory of a copy: also through fork */
	if (!fork())
		_exit(memcmp(p, in, len) != 0);
	int status;

	wait(&status);
	check(WIFEXITED(status) && !WEXITSTATUS(status),
	      "a child sees the mapping");

	check(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, a.mmap_offset) ==
	      MAP_FAILED && errno == EINVAL, "mmap: private");
	check(mmap(NULL, len + 4096, PROT_READ, MAP_SHARED, fd,
		   a.mmap_offset) == MAP_FAILED && errno == EINVAL,
	      "mmap: past the end of the allocation");
	other = gpu_open();
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, other, a.mmap_offset) ==
	      MAP_FAILED && errno == EINVAL, "mmap: memory of another file");
	close(other);

	b = gpu_alloc(fd, UNIT);
	ops[0] = op_two(PLN_GPU_OP_COPY, b.handle, 0, a.handle, 0, UNIT, 0);
	check(!gpu_run(fd, ops, 1, NULL), "copy inside");
	gpu_free(fd, b.handle);

	check(!madvise(p, len, MADV_DONTNEED) && !memcmp(p, in, len),
	      "pages dropped come back");
	check(!raises_sigbus(p), "the mapping is alive");
	check(!gpu_free(fd, a.handle), "free while mapped");
	check(raises_sigbus(p), "SIGBUS behind the mapping");
	b = gpu_alloc(fd, len);
	check(raises_sigbus(p), "SIGBUS also when the memory is used again");
	gpu_free(fd, b.handle);
	munmap(p, len);
	free(in);
}

/* Each open has its own handles */
static void test_ownership(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	struct pln_gpu_op op = op_fill(a.handle, 0, 8, 8, 1);
	int other = gpu_open();
	struct pln_gpu_wait w;
	uint64_t job;

	check_errno(gpu_free(other, a.handle), ENOENT,
		    "free: handle of another file");
	check_errno(gpu_submit(other, &op, 1, 0, &job), EINVAL,
		    "submit: handle of another file");
	need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
	check_errno(gpu_wait(other, job, 0, &w), ENOENT,
		    "wait: job of another file");
	gpu_wait(fd, job, SECONDS(10), &w);
	close(other);
	gpu_free(fd, a.handle);
}

int main(void)
{
	int fd = gpu_open();
	uint64_t free0 = gpu_query(fd).vram_free;
	int i;

	test_query(fd);
	test_alloc(fd);
	test_ops(fd);
	test_scattered(fd);
	test_bad_ops(fd);
	test_ownership(fd);
	test_interrupted(fd);
	test_time(fd);
	test_coherent(fd);
	close(fd);

	/* Jobs that close() has left behind may take a moment */
	fd = gpu_open();
	for (i = 0; i < 500 && gpu_query(fd).vram_free != free0; i++)
		usleep(10000);
	check(gpu_query(fd).vram_free == free0, "all memory is free again");
	close(fd);
	return test_end();
}

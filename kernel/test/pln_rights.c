// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: what an ordinary user must not be able to do to others.  The device
 * node is open to everybody.
 */
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "pln_late.h"
#include "pln_ring.h"

#define NOBODY	65534

static void be_nobody(void)
{
	need(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	     !setresuid(NOBODY, NOBODY, NOBODY), "nobody");
}

/* Lets go of the path of a dma-buf at any moment */
static void *closer(void *arg)
{
	int fd = *(int *)arg;

	sched_yield();
	close(fd);
	return NULL;
}

/*
 * A dma-buf whose file is gone and whose path is not: with the path alone the
 * driver's export lives on.  The next file that is opened gets the memory of the
 * one that has gone.  Its mappings are none of the driver's business.
 */
static void test_path(int fd)
{
	const char *victim = "/tmp/victim";
	int file = open(victim, O_RDWR | O_CREAT | O_CLOEXEC, 0600), i, bad = 0;
	cpu_set_t one, all;
	char *private;

	need(file >= 0 && !ftruncate(file, 4096), "a file");
	private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	need(private != MAP_FAILED, "mmap of a file");
	*private = 1;
	need(!sched_getaffinity(0, sizeof(all), &all), "affinity");
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	for (i = 0; i < 200; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
		int buf = gpu_export(fd, a.handle, 0, UNIT), path, again;
		pthread_t thread;
		char name[32];

		need(buf >= 0, "export");
		/* A file's memory is reused on the processor that let it go */
		sched_setaffinity(0, sizeof(one), i % 2 ? &all : &one);
		snprintf(name, sizeof(name), "/proc/self/fd/%d", buf);
		path = open(name, O_PATH | O_CLOEXEC);
		need(path >= 0, "open the path of a dma-buf");
		close(buf);
		again = open(victim, O_RDWR | O_CLOEXEC);
		need(again >= 0, "open the file again");
		/* In odd rounds the path goes while the memory does */
		if (i % 2)
			need(!pthread_create(&thread, NULL, closer, &path),
			     "a thread");
		need(!gpu_free(fd, a.handle), "free");
		if (i % 2)
			pthread_join(thread, NULL);
		else
			close(path);
		close(again);
		bad += *private != 1;
		*private = 1;
	}
	sched_setaffinity(0, sizeof(all), &all);
	check(!bad, "what another file has mapped stays (%d of %d rounds took it away)",
	      bad, i);
	munmap(private, 4096);
	close(file);
	unlink(victim);
}

/* Pages that the process has pinned, as the kernel counts them */
static bool nothing_pinned(void)
{
	return !shell("grep -q '^VmPin:[[:space:]]*0 kB$' /proc/%d/status",
		      getpid());
}

/* RLIMIT_MEMLOCK is for what jobs pin, too */
static void test_memlock(int fd)
{
	struct rlimit old, limit;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = aligned_alloc(4096, 2 * MIB);
	struct pln_gpu_op op = op_to_gpu(a.handle, 0, p, MIB);
	uint64_t job[8];
	struct pln_gpu_wait w;
	unsigned int i, bad = 0;

	need(p && !getrlimit(RLIMIT_MEMLOCK, &old), "limit");
	memset(p, 1, 2 * MIB);
	limit = (struct rlimit){ MIB, old.rlim_max };
	need(!setrlimit(RLIMIT_MEMLOCK, &limit), "set the limit");
	for (i = 0; i < 8; i++)
		bad += gpu_submit(fd, &op, 1, 0, &job[i]) != 0;
	for (i = 0; i < 8; i++)
		bad += gpu_wait(fd, job[i], SECONDS(30), &w) || w.status;
	check(!bad, "jobs of RLIMIT_MEMLOCK each wait for one another");
	check(nothing_pinned(), "and nothing is pinned when they have ended");
	op.src += 8;
	check_errno(gpu_submit(fd, &op, 1, 0, &job[0]), ENOMEM,
		    "a page over RLIMIT_MEMLOCK");
	op.src -= 8;
	limit.rlim_cur = 0;
	need(!setrlimit(RLIMIT_MEMLOCK, &limit), "set the limit");
	check_errno(gpu_submit(fd, &op, 1, 0, &job[0]), ENOMEM,
		    "RLIMIT_MEMLOCK of 0");
	need(!setrlimit(RLIMIT_MEMLOCK, &old), "restore the limit");
	gpu_free(fd, a.handle);
	free(p);
}

static int export_flags(int fd, uint32_t handle, uint64_t offset, uint64_t size,
			uint32_t flags)
{
	struct pln_gpu_export e = {
		.handle = handle, .flags = flags, .offset = offset, .size = size,
	};

	return ioctl(fd, PLN_GPU_IOC_EXPORT, &e) ? -1 : e.fd;
}

static void send_fd(int sock, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	need(sendmsg(sock, &msg, 0) == 1, "send a descriptor");
}

static int receive_fd(int sock)
{
	char space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	int fd;

	need(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg),
	     "receive a descriptor");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The other process, of another user, has nothing but the descriptors it is sent */
static int receiver(int sock)
{
	int gpu, range, whole, meant;
	struct pln_gpu_import i;

	need(!setresuid(NOBODY - 1, NOBODY - 1, NOBODY - 1), "another user");
	range = receive_fd(sock);
	whole = receive_fd(sock);
	meant = receive_fd(sock);
	gpu = open("/dev/peerlane-gpu0", O_RDWR | O_CLOEXEC);
	need(gpu >= 0, "open the GPU");
	i = (struct pln_gpu_import){ .fd = range };
	if (!ioctl(gpu, PLN_GPU_IOC_IMPORT, &i) || errno != EACCES)
		return 2;
	i = (struct pln_gpu_import){ .fd = whole };
	if (!ioctl(gpu, PLN_GPU_IOC_IMPORT, &i) || errno != EACCES)
		return 3;
	i = (struct pln_gpu_import){ .fd = meant };
	return ioctl(gpu, PLN_GPU_IOC_IMPORT, &i) ? 4 : 0;
}

/* A dma-buf of a range is no key to the allocation */
static void test_range(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int range = gpu_export(fd, a.handle, UNIT, UNIT), sock[2], status;
	int whole = gpu_export(fd, a.handle, 0, MIB);
	int meant = export_flags(fd, a.handle, 0, MIB,
				 O_CLOEXEC | PLN_GPU_EXPORT_F_IMPORT);
	pid_t pid;

	need(range >= 0 && whole >= 0 && meant >= 0, "exports");
	check(fcntl(meant, F_GETFD) & FD_CLOEXEC, "for import: O_CLOEXEC");
	check_errno(export_flags(fd, a.handle, 0, UNIT, PLN_GPU_EXPORT_F_IMPORT),
		    EINVAL, "export for import: not all of the memory");
	check_errno(export_flags(fd, a.handle, UNIT, MIB - UNIT,
				 PLN_GPU_EXPORT_F_IMPORT),
		    EINVAL, "export for import: not from its start");
	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock),
	     "sockets");
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(receiver(sock[1]));
	send_fd(sock[0], range);
	send_fd(sock[0], whole);
	send_fd(sock[0], meant);
	need(waitpid(pid, &status, 0) == pid, "wait");
	check(WIFEXITED(status) && WEXITSTATUS(status) != 2,
	      "another process cannot import a range");
	check(WIFEXITED(status) && WEXITSTATUS(status) != 3,
	      "nor what was not exported for that");
	check(WIFEXITED(status) && !WEXITSTATUS(status),
	      "what was exported for import it can (%d)", status);
	close(range);
	close(whole);
	close(meant);
	close(sock[0]);
	close(sock[1]);
	gpu_free(fd, a.handle);
}

#define CALLS	8
#define STUCK	(CALLS + 2)

/* Calls that wait for memory, until @sock says that it comes */
static void stuck_calls(int sock)
{
	static const unsigned long calls[CALLS] = {
		PLN_GPU_IOC_QUERY, PLN_GPU_IOC_ALLOC, PLN_GPU_IOC_FREE,
		PLN_GPU_IOC_EXPORT, PLN_GPU_IOC_EXPORT_PARTS,
		PLN_GPU_IOC_IMPORT, PLN_GPU_IOC_SUBMIT, PLN_GPU_IOC_WAIT,
	};
	int fd = gpu_open(), uffd, i;
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	struct pln_gpu_op op = op_from_gpu(NULL, a.handle, 0, 64);
	struct pln_gpu_submit submit[STUCK - CALLS] = {
		{ .nr_ops = 1 }, { .ops = (uintptr_t)&op, .nr_ops = 1 },
	};
	char *page = late_memory(STUCK * 4096), go;
	struct late_call c[STUCK];

	uffd = late_begin(page, STUCK * 4096, UFFDIO_REGISTER_MODE_MISSING);
	/* The argument of each call, the operations of a job, and its data */
	submit[0].ops = (uintptr_t)page + CALLS * 4096;
	op.dst = (uintptr_t)page + (CALLS + 1) * 4096;
	for (i = 0; i < STUCK; i++) {
		c[i] = (struct late_call){ .fd = fd, .nr = PLN_GPU_IOC_SUBMIT };
		if (i < CALLS) {
			c[i].nr = calls[i];
			c[i].arg = page + i * 4096;
		} else {
			c[i].arg = &submit[i - CALLS];
		}
		late_call_start(&c[i]);
	}
	late_await(uffd, STUCK);
	need(write(sock, "", 1) == 1 && read(sock, &go, 1) == 1, "go on");
	late_end(uffd, page, STUCK * 4096);
	for (i = 0; i < STUCK; i++)
		pthread_join(c[i].thread, NULL);
	close(fd);
	munmap(page, STUCK * 4096);
}

/*
 * Memory that another program has to bring, and does not: whatever call of an ordinary
 * user waits for it, the driver can be unbound.
 */
static void test_stuck(void)
{
	int fd = gpu_open(), sock[2];
	struct pln_gpu_query q = gpu_query(fd);
	pid_t pid;
	char go;

	close(fd);
	need(!shell("echo 1 >/proc/sys/vm/unprivileged_userfaultfd"),
	     "userfaultfd for everybody");
	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), "sockets");
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		close(sock[0]);
		be_nobody();
		stuck_calls(sock[1]);
		_exit(0);
	}
	close(sock[1]);
	need(read(sock[0], &go, 1) == 1, "calls that wait");
	check(driver_does(&q, "unbind"),
	      "the driver is unbound while %d calls of nobody wait for their memory", STUCK);
	need(write(sock[0], "", 1) == 1, "the memory comes");
	check(ends_well(pid), "and they all end");
	close(sock[0]);
	check(driver_does(&q, "bind"), "the driver is bound again");
}

#define HELD	(2 * UNIT)

/* One page that the kernel lends to somebody */
static bool lend_fixed(char *p)
{
	static struct ring r;

	ring_make(&r);
	return !ring_pin(&r, p, 4096);
}

static bool lend_pipe(char *p)
{
	struct iovec vec = { p, 4096 };
	int pipefd[2];

	return !pipe(pipefd) && vmsplice(pipefd[1], &vec, 1, 0) == 4096;
}

static bool (*hold_by)(char *p);

struct named {
	struct pln_gpu_alloc a;
	int fd;
};

/* The name of a thread is not that of the process */
static void *alloc_as_thread(void *arg)
{
	struct named *n = arg;

	need(!pthread_setname_np(pthread_self(), "thread"), "name");
	n->a = gpu_alloc(n->fd, HELD);
	return NULL;
}

/* A program of nobody frees memory of which it has lent one page */
static bool hold_one_page(void)
{
	struct named n;
	pthread_t thread;
	char *p;

	be_nobody();
	n.fd = gpu_open();
	if (pthread_create(&thread, NULL, alloc_as_thread, &n) ||
	    pthread_join(thread, NULL))
		return false;
	p = dev_map(n.fd, &n.a);
	*(volatile char *)p = 1;
	return hold_by(p) && !gpu_free(n.fd, n.a.handle) && !munmap(p, HELD);
}

/* Of the pages of BAR1 none can be lent so */
static bool lend_bar1(void)
{
	int fd = gpu_open(), buf;
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p;

	buf = gpu_export(fd, a.handle, 0, UNIT);
	p = mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	return p == MAP_FAILED || lend_pipe(p) || lend_fixed(p);
}

static void pci_address(const struct pln_gpu_query *q, char *text, size_t size)
{
	snprintf(text, size, "%04x:%02x:%02x.%x", q->pci_domain, q->pci_bus,
		 q->pci_devfn >> 3, q->pci_devfn & 7);
}

/* The line of the quarantine for memory of this process; its place in VRAM, or ~0 */
static unsigned long long quarantined(const char *pci, pid_t pid)
{
	unsigned long long vram, size, found = ~0ull;
	char path[96], line[256];
	int process;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/peerlane_gpu/%s/quarantine",
		 pci);
	f = fopen(path, "r");
	need(f, "quarantine");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "vram %llx size %llu process %d", &vram, &size,
			   &process) == 3 && process == pid && size == HELD &&
		    strstr(line, " (pln_rights) ") &&
		    strstr(line, " coherent-pages=1\n"))
			found = vram;
	fclose(f);
	return found;
}

/* All memory that there is, and none of it is at [@vram, @vram + HELD) */
static bool never_given(int fd, unsigned long long vram)
{
	struct pln_gpu_alloc a;
	uint64_t size, got = 0;
	bool given = false;

	for (size = 64 * MIB; size >= UNIT; size /= 2)
		for (;;) {
			a = (struct pln_gpu_alloc){ .size = size };
			if (ioctl(fd, PLN_GPU_IOC_ALLOC, &a))
				break;
			got += a.size;
			given |= a.mmap_offset < vram + HELD &&
				 vram < a.mmap_offset + a.size;
		}
	return !given && got == gpu_query(fd).vram_size - HELD;
}

static void test_lend(const char *what, bool (*lend)(char *p))
{
	int fd = gpu_open(), all, i, status;
	struct pln_gpu_query q = gpu_query(fd);
	unsigned long long vram;
	char pci[32];
	double start;
	pid_t pid, unbind;

	hold_by = lend;
	pci_address(&q, pci, sizeof(pci));
	pid = start_holder(hold_one_page);
	vram = quarantined(pci, pid);
	check(vram != ~0ull && gpu_query(fd).vram_free == q.vram_free - HELD,
	      "%s: freed with a page lent, it is in quarantine, with the process's number and name",
	      what);
	/* Once: each size that does not fit waits half a second for the quarantine */
	if (lend == lend_fixed) {
		all = gpu_open();
		check(never_given(all, vram),
		      "%s: and never given out meanwhile", what);
		close(all);
	}

	need(!shell("dmesg -c >/dev/null"), "dmesg");
	fflush(stdout);
	unbind = fork();
	need(unbind >= 0, "fork");
	if (!unbind)
		_exit(shell("echo %s >/sys/bus/pci/drivers/peerlane_gpu/unbind", pci) != 0);
	for (i = 0; i < 3000 && shell("dmesg | grep -q 'removal waits for %u bytes of GPU memory of process %d (pln_rights)'",
				      HELD, pid); i++)
		usleep(10000);
	check(i < 3000, "%s: removal waits, and the log names the process", what);
	check(!waitpid(unbind, &status, WNOHANG), "%s: it waits", what);
	end_holder(pid);
	start = now();
	check(ends_well(unbind) && now() - start < 20,
	      "%s: it ends with the process", what);
	close(fd);
	check(driver_does(&q, "bind"), "%s: the driver is bound again", what);
	fd = gpu_open();
	check(room_is(fd, &q), "%s: all memory is free again", what);
	close(fd);
}

/* The last descriptor of the device is in a socket: who sent it is gone, not the memory */
static void test_in_flight(void)
{
	int fd = gpu_open(), gpu, in_flight[2];
	struct pln_gpu_query q;
	pid_t pid;

	q = gpu_query(fd);
	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in_flight),
	     "sockets");
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		need(!setresuid(NOBODY, NOBODY, NOBODY), "nobody");
		gpu = gpu_open();
		gpu_alloc(gpu, HELD);
		send_fd(in_flight[0], gpu);
		_exit(0);
	}
	need(ends_well(pid), "the sender");
	check(gpu_query(fd).vram_free == q.vram_free - HELD,
	      "a descriptor under way keeps the memory of a program that has ended");
	check(driver_does(&q, "unbind"), "and does not hold up removal");
	close(in_flight[0]);
	close(in_flight[1]);
	close(fd);
	check(driver_does(&q, "bind"), "the driver is bound again");
	fd = gpu_open();
	check(room_is(fd, &q), "all memory is free again");
	close(fd);
}

int main(void)
{
	struct pln_gpu_query q;
	pid_t pid;
	int fd, status;

	/* The receiver is a third user, so root forks */
	need(!setgroups(0, NULL), "no groups");
	fd = gpu_open();
	q = gpu_query(fd);
	test_range(fd);
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		be_nobody();
		/* Its own open file */
		close(fd);
		fd = gpu_open();
		test_path(fd);
		test_memlock(fd);
		close(fd);
		fflush(stdout);
		_exit(test_failed ? 1 : test_count);
	}
	need(waitpid(pid, &status, 0) == pid, "wait");
	need(WIFEXITED(status) && WEXITSTATUS(status) > 1, "nobody's part");
	test_count = WEXITSTATUS(status);
	check(room_is(fd, &q), "all memory is free again");
	close(fd);
	test_stuck();
	test_in_flight();
	if (q.features & PLN_GPU_FEAT_COHERENT) {
		fflush(stdout);
		pid = fork();
		need(pid >= 0, "fork");
		if (!pid)
			_exit(lend_bar1());
		check(ends_well(pid),
		      "pages of BAR1 go neither into a pipe nor into fixed buffers");
		if (ring_pins_mappings())
			test_lend("fixed buffer", lend_fixed);
		else
			printf("ok %d - fixed buffer # SKIP io_uring of this kernel pins no mappings of devices\n",
			       ++test_count);
		test_lend("pipe", lend_pipe);
	}
	return test_end();
}

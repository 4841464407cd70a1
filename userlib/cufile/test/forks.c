// SPDX-License-Identifier: MIT
/*
 * A child of a process of which another thread holds one of the library's locks: each
 * lock that each call takes, one after the other.  The child has no such thread, so
 * nobody will ever release what it finds locked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "unit.h"

#define SIZE	KIB(64)

static struct {
	int fd;
	CUfileHandle_t fh;
	char *g, *staged;
	CUfileBatchHandle_t b;
} it;

/* ---- with the library closed ---- */

static void get_parameter(void)
{
	size_t value;

	cuFileGetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, &value);
}

static void set_parameters(void)
{
	static const size_t kb[] = { 4, 1024, 16384 }, n[] = { 128, 64, 64 };

	cuFileSetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, 0);
	cuFileSetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, false);
	cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "INFO");
	cuFileSetParameterPosixPoolSlabArray(kb, n, 3);
}

static void set_now(void)
{
	cuFileDriverSetMaxDirectIOSize(16384);
}

static void count_uses(void)
{
	cuFileUseCount();
}

static void all_stats(void)
{
	stats_of(NULL);
}

static void stats_of_none(void)
{
	struct pln_file_stats s = { .size = sizeof(s) };

	pln_file_stats(it.fh, &s);
}

static void read_none(void)
{
	cuFileRead(it.fh, it.g, SIZE, 0, 0);
}

static void no_batch(void)
{
	cuFileBatchIOCancel(it.b);
	cuFileBatchIODestroy(it.b);
}

static void topology(void)
{
	cuFileExportPCIeTopology("/nonexistent/file");
}

/* ---- that open it, or with it open ---- */

static void opens(void)
{
	cuFileDriverOpen();
}

static void closes(void)
{
	cuFileDriverClose();
}

static void properties(void)
{
	CUfileDrvProps_t p;

	cuFileDriverGetProperties(&p);
	set_now();
	get_parameter();
}

static void handles(void)
{
	reg_error(open(other, O_RDWR));
}

static void buffers(void)
{
	cuFileBufRegister(it.g, SIZE, 0);
	cuFileBufDeregister(it.g);
}

static void direct(void)
{
	if (cuFileRead(it.fh, it.g, SIZE, 0, 0) != SIZE ||
	    cuFileWrite(it.fh, it.g, SIZE, 0, 0) != SIZE)
		abort();
}

static void staged(void)
{
	mock.handle_error = 801;
	it.staged = gpu(MIB(8));
	if (cuFileRead(it.fh, it.staged, MIB(8), 0, 0) != MIB(8))
		abort();
}

static void parts(void)
{
	setenv("PEERLANE_STRICT", "1", 1);
	while (cuFileUseCount())
		cuFileDriverClose();
	it.fh = reg(it.fd);
	if (cuFileRead(it.fh, it.g, 100, 5, 0) != 100)
		abort();
	unsetenv("PEERLANE_STRICT");
}

static void batch(void)
{
	CUfileIOParams_t p = {
		.mode = CUFILE_BATCH, .fh = it.fh, .opcode = CUFILE_READ,
		.u.batch = { it.g, 0, 0, SIZE },
	};
	CUfileIOEvents_t e;
	unsigned int n = 1;

	direct();
	if (cuFileBatchIOSetUp(&it.b, 1).err ||
	    cuFileBatchIOSubmit(it.b, 1, &p, 0).err ||
	    cuFileBatchIOGetStatus(it.b, 1, &n, &e, NULL).err || n != 1)
		abort();
	cuFileBatchIOCancel(it.b);
	cuFileBatchIODestroy(it.b);
}

static void stream(void)
{
	CUstream s = (CUstream)(uintptr_t)16;
	static off_t zero;
	static size_t size = SIZE;
	static ssize_t r;

	cuFileStreamRegister(s, 0);
	cuFileReadAsync(it.fh, it.g, &size, &zero, &zero, &r, s);
	mock_settle();
	cuFileStreamDeregister(s);
}

static void stats(void)
{
	stats_of(it.fh);
	stats_of(NULL);
}

/* A function of a stream that CUDA calls when the library is closed */
static void late_function(void)
{
	mock_lost();
}

static const struct call {
	const char *name;
	void (*make)(void);
	enum { CLOSED, ANY, OPEN } state;	/* ANY: closed before, perhaps open then */
} calls[] = {
	{ "cuFileGetParameterSizeT", get_parameter, CLOSED },
	{ "cuFileSetParameter...", set_parameters, CLOSED },
	{ "cuFileDriverSetMaxDirectIOSize", set_now, CLOSED },
	{ "cuFileUseCount", count_uses, CLOSED },
	{ "pln_file_stats", all_stats, CLOSED },
	{ "pln_file_stats of no handle", stats_of_none, CLOSED },
	{ "cuFileRead of no handle", read_none, CLOSED },
	{ "calls of no batch", no_batch, CLOSED },
	{ "cuFileExportPCIeTopology", topology, CLOSED },
	{ "cuFileDriverOpen", opens, ANY },
	{ "cuFileDriverClose", closes, OPEN },
	{ "properties and settings", properties, OPEN },
	{ "a handle", handles, OPEN },
	{ "a buffer", buffers, OPEN },
	{ "direct transfers", direct, OPEN },
	{ "a staged read", staged, OPEN },
	{ "parts of blocks", parts, ANY },
	{ "a batch", batch, OPEN },
	{ "a stream", stream, OPEN },
	{ "pln_file_stats of a handle", stats, OPEN },
	{ "cuFileExportPCIeTopology, open", topology, OPEN },
};

static _Atomic bool over;

static void *call_it(void *arg)
{
	((const struct call *)arg)->make();
	over = true;
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

/* All calls of before, where they come back; 5001 or 0: what an open comes to */
static int in_child(void)
{
	char *data = malloc(SIZE);
	pthread_t thread;
	int r;

	alarm(5);
	unsetenv("PEERLANE_STRICT");
	if (!data || pthread_create(&thread, NULL, nothing, NULL) ||
	    pthread_join(thread, NULL))
		return 1;
	count_uses();
	get_parameter();
	set_parameters();
	set_now();
	stats_of_none();
	read_none();
	no_batch();
	topology();
	r = cuFileDriverOpen().err;
	if (r)
		return r == 5001 ? 51 : 2;
	/* with a reason that is told and logged */
	it.fh = reg(it.fd);
	all_stats();
	mock.p2p_errno = EREMOTEIO;
	if (cuFileRead(it.fh, it.g, SIZE, 0, 0) != SIZE ||
	    stats_of(it.fh).last_path != PLN_PATH_BOUNCE)
		return 3;
	mock.p2p_errno = 0;
	buffers();
	handles();
	if (cuFileStreamRegister((CUstream)(uintptr_t)16, 0).err ||
	    cuFileStreamDeregister((CUstream)(uintptr_t)16).err)
		return 5;
	cuFileHandleDeregister(it.fh);
	return cuFileDriverClose().err ? 4 : 0;
}

/* How a child of that moment ends; < 0: the call took fewer locks. */
static int beside(const struct call *c, int n)
{
	int status = -1;
	pthread_t thread;
	pid_t pid;

	if (c->state != CLOSED) {
		fresh(NULL);
		it.fh = reg(it.fd);
	}
	if (c->state == ANY)
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
	over = false;
	mock.hold_lock = true;
	mock.lock_turns = n;
	if (pthread_create(&thread, NULL, call_it, (void *)(uintptr_t)c))
		abort();
	while (!mock.in_lock && !over)
		usleep(100);
	if (mock.in_lock) {
		pid = fork();
		if (!pid) {
			mock.lock_turns = 0;
			_exit(in_child());
		}
		waitpid(pid, &status, 0);
		status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	mock.lock_turns = 0;
	mock.hold_lock = false;
	pthread_join(thread, NULL);
	while (mock.in_lock)
		usleep(100);
	if (it.staged)
		gpu_free(it.staged);
	it.staged = NULL;
	return status;
}

/* False: some child did not end well. */
static bool each_beside(const struct call *c)
{
	unsigned int bad = 0;
	int n, r;

	for (n = 1; bad < 3 && (r = beside(c, n)) >= 0; n++) {
		if ((c->state != OPEN && !r) || (c->state != CLOSED && r == 51))
			continue;
		printf("# %s, lock %d: %d\n", c->name, n, r);
		bad++;
	}
	printf("# %s: %d locks\n", c->name, n - 1);
	fflush(stdout);
	return !bad && n > 1;
}

/* ---- each instruction of the close ---- */

#ifdef __x86_64__
#define TRACED	0x100		/* of the flags: a signal after each instruction */

static struct {
	uintptr_t from, size;	/* of the function */
	_Atomic bool on;
	unsigned int open, closed, open_again; /* children of a process that was so */
	unsigned int lost;	/* that hung, or crashed */
} steps;

static void step(int sig, siginfo_t *info, void *at)
{
	greg_t *reg = ((ucontext_t *)at)->uc_mcontext.gregs;
	int status;
	pid_t pid;

	(void)sig;
	(void)info;
	reg[REG_EFL] &= ~(greg_t)TRACED;
	if (!steps.on)
		return;
	reg[REG_EFL] |= TRACED;
	if ((uintptr_t)reg[REG_RIP] - steps.from >= steps.size)
		return;
	pid = fork();
	if (!pid) {
		alarm(5);
		_exit(cuFileDriverOpen().err == 5001 ? 51 : 0);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != 51))
		steps.lost++;
	else if (!WEXITSTATUS(status))
		steps.closed++;
	else if (steps.closed)
		steps.open_again++;
	else
		steps.open++;
}

/* A child finds the library open, or being closed, until it is closed, and then for good. */
static bool each_step(void)
{
	struct sigaction how = { .sa_sigaction = step, .sa_flags = SA_SIGINFO }, was;
	void *f = dlsym(RTLD_DEFAULT, "cuFileDriverClose_v2");
	CUfileError_t (*close_it)(void);
	const ElfW(Sym) *sym;
	Dl_info info;

	fresh(NULL);
	if (!f || !dladdr1(f, &info, (void **)&sym, RTLD_DL_SYMENT))
		return false;
	*(void **)&close_it = f;
	steps.from = (uintptr_t)f;
	steps.size = sym->st_size;
	sigaction(SIGTRAP, &how, &was);
	steps.on = true;
	raise(SIGTRAP);
	close_it();
	steps.on = false;
	sigaction(SIGTRAP, &was, NULL);
	printf("# children of each instruction: %u of an open library, %u of a closed one, %u wrong, %u lost\n",
	       steps.open, steps.closed, steps.open_again, steps.lost);
	fflush(stdout);
	return steps.open > 1 && steps.closed > 1 && !steps.open_again && !steps.lost &&
	       !cuFileUseCount();
}
#else
static bool each_step(void)
{
	printf("# children of each instruction: on x86-64 only\n");
	return true;
}
#endif

/* What such a function is for is gone with its context, and then with the library. */
static void lose_function(void)
{
	fresh(NULL);
	it.fh = reg(it.fd);
	mock.lose_calls = true;
	mock.other_ctx = 1;
	stream();
	mock.other_ctx = 2;
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock.other_ctx = 0;
	mock.lose_calls = false;
}

static bool all_beside(void)
{
	static const struct call late = { "a function of a stream", late_function, CLOSED };
	char *data = malloc(MIB(8));
	unsigned int i;
	bool good = true;

	noise(data, MIB(8));
	close(make(other, 0, data, SIZE));
	it.fd = make(path, 0, data, MIB(8));
	it.g = gpu(SIZE);
	/* the library is not opened before the first that opens it */
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		good &= each_beside(&calls[i]);
	/* and closed from here on */
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	for (i = 0; calls[i].state == CLOSED; i++)
		good &= each_beside(&calls[i]);
	lose_function();
	good &= each_beside(&late);
	good &= each_step();
	free(data);
	return good;
}

/* First: in a process whose parent has not opened the library, with settings of its own */
void test_forks(void)
{
	int status;
	pid_t pid;

	/*
	 * TSan's locks do not pass through the mock.  ASan holds a lock of its own while a
	 * thread starts, so a child of that moment cannot start one.
	 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	return;
#endif
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(!all_beside());
	waitpid(pid, &status, 0);
	is(status, 0, "children of a moment when another thread has a lock of the library, "
	   "each lock of each call: they go on");
}

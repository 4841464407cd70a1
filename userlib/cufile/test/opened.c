// SPDX-License-Identifier: MIT
/* What the library opens of a file, how, and whether it is still its own. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "unit.h"

/* ---- is it the same open()? ---- */

/*
 * The kernel tells, by fcntl() or kcmp(): one that has the same number, file, flags and position
 * as the one before is another one all the same, and the same one is so whatever else can be read.
 */
static void *ask_kernel(void *arg)
{
	int fd = *(int *)arg, twin, other_one;

	if (mock.query)
		forbid(SYS_kcmp, EPERM);
	reg(fd);
	if (lseek(fd, 2, SEEK_SET) != 2)
		abort();
	is(reg_error(fd), 5028, "the same");
	mock.fdinfo_errno = EMFILE;
	is(reg_error(fd), 5028, "also where its position cannot be read");
	mock.fdinfo_errno = 0;
	twin = dup(fd);
	if (dup2(twin, fd) != fd)
		abort();
	close(twin);
	is(reg_error(fd), 5028, "a duplicate with the same number");
	other_one = open(path, O_RDWR);
	if (lseek(other_one, 2, SEEK_SET) != 2 || dup2(other_one, fd) != fd)
		abort();
	close(other_one);
	is(reg_error(fd), 0, "another one: it is registered");
	return NULL;
}

void test_number_told(void)
{
	pthread_t thread;
	int fd, i;

	for (i = 0; i < 4; i++) {
		fresh(NULL);
		fd = make(path, 0, "abcd", 4);
		mock.query = !i;
		mock.no_query = mock.kcmp = i;
		mock.kcmp_other = i;
		printf("# by %s, which says %d of others\n", i ? "kcmp()" : "fcntl()", i);
		pthread_create(&thread, NULL, ask_kernel, &fd);
		pthread_join(thread, NULL);
		close(fd);
	}
	fresh(NULL);
}

struct again {
	int fd, err[7];
};

/* The number of another file, or of another open of this one, which begins at the same position */
static int as_number(int fd, const char *name, int flags)
{
	close(fd);
	if (open(name, flags) != fd)
		abort();
	return reg_error(fd);
}

static void *register_others(void *arg)
{
	struct again *a = arg;

	forbid(SYS_kcmp, EPERM);
	reg(a->fd);
	a->err[0] = reg_error(a->fd);
	a->err[1] = as_number(a->fd, other, O_RDWR);
	a->err[2] = as_number(a->fd, path, O_RDWR | O_DIRECT);
	a->err[3] = as_number(a->fd, path, O_RDONLY);
	a->err[4] = as_number(a->fd, path, O_RDWR);
	mock.dev = 77;
	mock.dev_fd = a->fd;
	a->err[5] = reg_error(a->fd);
	mock.dev = 0;
	mock.fdinfo_errno = EMFILE;
	a->err[6] = reg_error(a->fd);
	mock.fdinfo_errno = 0;
	return NULL;
}

/* The kernel does not tell: it is another file, or has another device, or other flags */
void test_number_other(void)
{
	struct again a;
	pthread_t thread;

	fresh(NULL);
	close(make(other, 0, "abcd", 4));
	a.fd = make(path, 0, "abcd", 4);
	mock.no_query = true;
	pthread_create(&thread, NULL, register_others, &a);
	pthread_join(thread, NULL);
	is(a.err[0], 5028, "twice the same");
	is(a.err[1], 0, "the number of another file, opened in the same way: it is registered");
	is(a.err[2], 0, "of the same file, opened with O_DIRECT: it is");
	is(a.err[3], 0, "opened to read: it is");
	/* as said at same_open(): this cannot be told */
	is(a.err[4], 5028, "opened in the same way: it is not");
	is(a.err[5], 0, "of one that has the same number on another device: it is");
	is(a.err[6], 0, "where its position cannot be read: it is");
	mock.no_query = false;
	close(a.fd);
	unlink(other);
}

/* Looks at the position in turns of three: its, the registered one's, its own again */
static const struct {
	unsigned int turns;	/* a bit for each at which it moves on before */
	unsigned int back;	/* each so many-th look it is back where it was, 0: never */
	off_t at;		/* where another open stands, -1: it is the same */
	bool same;
} steps[] = {
	{ 7, 0, -1, true },
	/* it moves between two of the looks only */
	{ 1, 0, -1, true }, { 2, 0, -1, true }, { 4, 0, -1, true }, { 3, 0, -1, true }, { 6, 0, -1, true },
	/* who reads goes back at times */
	{ 7, 5, -1, true }, { 7, 7, -1, true },
	/* another one stands where it comes past, once at most */
	{ 7, 0, 0, false }, { 7, 0, 1, false }, { 7, 0, 2, false }, { 7, 0, 3, false }, { 7, 0, 4, false },
	{ 7, 0, 9, false }, { 7, 0, 1000, false },
};

static void *look_at_steps(void *arg)
{
	int *fd = arg, at;
	unsigned int i;

	forbid(SYS_kcmp, EPERM);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		CUfileHandle_t fh;

		if (lseek(*fd, steps[i].at < 0 ? 0 : steps[i].at, SEEK_SET) < 0)
			abort();
		fh = reg(*fd);
		if (steps[i].at >= 0) {
			close(*fd);
			if (open(path, O_RDWR) != *fd)
				abort();
		}
		mock.moved_turns = steps[i].turns;
		mock.moved_back = steps[i].back;
		mock.moved_looks = 0;
		mock.moved_fd = *fd;
		at = reg_error(*fd);
		mock.moved_fd = 0;
		is(at, steps[i].same ? 5028 : 0, steps[i].same ? "it is the same" : "it is another one");
		cuFileHandleDeregister(fh);
	}
	return NULL;
}

void test_number_steps(void)
{
	pthread_t thread;
	int fd;

	fresh(NULL);
	fd = make(path, 0, "abcd", 4);
	mock.no_query = true;
	pthread_create(&thread, NULL, look_at_steps, &fd);
	pthread_join(thread, NULL);
	fresh(NULL);
	close(fd);
}

/* ---- is it still the library's? ---- */

/* What leads to @from from now on has the number @to, too */
static void takes(int to, int from)
{
	if (from < 0 || to < 0 || dup2(from, to) != to)
		abort();
	close(from);
}

/*
 * The program has closed all descriptors, and the duplicate's number is that of another open of
 * the file for the same access: this is not closed, whichever of the library's have no mark.
 */
void test_number_astray(void)
{
	static const struct {
		int flags, err, only, first;	/* as in test_no_again() */
		const char *what;
	} how[] = {
		{ 0, 0, 0, 0, "all have been opened" },
		{ 0, EINVAL, O_DIRECT, 0, "there is none with O_DIRECT" },
		{ 0, EACCES, 0, 1, "the program's serves without it" },
		{ O_DIRECT, EINVAL, O_DIRECT, 0, "the program's serves with it" },
	};
	char *g = gpu(4096), page[4096] = "";
	int fd, n, own, each;
	CUfileHandle_t fh;
	unsigned int i;

	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		for (each = 0; each < 2; each++) {
			fresh(NULL);
			fd = make(path, how[i].flags, page, sizeof(page));
			mock.again_errno = how[i].err;
			mock.again_flags = how[i].only;
			mock.again_count = how[i].first;
			fh = reg(fd);
			n = number_of(fd, 0);
			takes(n, open(path, O_RDWR | how[i].flags));
			while ((own = number_of(fd, 1)) >= 0)
				close(own);
			if (each) {
				is(cuFileRead(fh, g, 4096, 0, 0), -5027, "a read by none of the library's own");
				is(cuFileRead(fh, g, 4096, 0, 0), -5027, "again");
				is((long long)log_count("the program has closed descriptors"), 1, "is told once");
			}
			cuFileHandleDeregister(fh);
			is(lseek(n, 0, SEEK_CUR), 0, how[i].what);
			close(n);
			is(number_of(fd, 0), -1, "and nothing is left");
			close(fd);
		}
	/* the duplicate alone: it is closed, or has become another file's, or one of another device */
	for (i = 0; i < 3; i++) {
		fresh(NULL);
		fd = make(path, 0, page, sizeof(page));
		fh = reg(fd);
		n = number_of(fd, 0);
		if (!i)
			close(n);
		else if (i == 1)
			takes(n, make(other, 0, page, sizeof(page)));
		mock.dev = i == 2 ? 77 << 8 : 0;
		mock.dev_fd = n;
		is(cuFileRead(fh, g, 4096, 0, 0), -5027, "where the duplicate is no more, nothing is read");
		mock.dev = 0;
		cuFileHandleDeregister(fh);
		close(n);
		/* which of the rest are still the library's nobody knows */
		while ((own = number_of(fd, 0)) >= 0)
			close(own);
		close(fd);
	}
	/* the server of the file does not answer, or overlayfs has copied it: that says nothing */
	fresh(NULL);
	fd = make(path, 0, page, sizeof(page));
	fh = reg(fd);
	mock.statx_errno = ESTALE;
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "it is read, whatever its server says of it");
	mock.statx_errno = 0;
	cuFileHandleDeregister(fh);
	mock.fs = 0x794c7630;
	fh = reg(fd);
	mock.other_ino = 1;
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "and though it has another number on overlayfs");
	mock.other_ino = 0;
	cuFileHandleDeregister(fh);
	is(number_of(fd, 0), -1, "nothing is left");
	close(fd);
	/* another file, with the duplicate's number alone */
	fresh(NULL);
	fd = make(path, 0, page, sizeof(page));
	fh = reg(fd);
	n = number_of(fd, 0);
	takes(n, make(other, 0, page, sizeof(page)));
	cuFileHandleDeregister(fh);
	is(lseek(n, 0, SEEK_CUR), 0, "another file that has the duplicate's number stays open");
	close(n);
	is(number_of(fd, 0), -1, "what is the library's does not");
	close(fd);
	unlink(other);
	gpu_free(g);
}

struct registration {
	pthread_t thread;
	int fd, err;
	CUfileHandle_t fh;
};

static void *register_it(void *arg)
{
	struct registration *r = arg;
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = r->fd };

	r->err = cuFileHandleRegister(&r->fh, &d).err;
	return NULL;
}

/* Two threads register one descriptor at once */
void test_number_twice(void)
{
	struct registration r[2];
	unsigned int fds;
	int fd, i;

	fresh(NULL);
	fd = make(path, 0, "abcd", 4);
	fds = open_fds();
	mock.hold_again = 1;
	for (i = 0; i < 2; i++) {
		r[i].fd = fd;
		pthread_create(&r[i].thread, NULL, register_it, &r[i]);
	}
	AWAIT(mock.in_again == 2);
	mock.hold_again = 0;
	for (i = 0; i < 2; i++)
		pthread_join(r[i].thread, NULL);
	check((!r[0].err && r[1].err == 5028) || (!r[1].err && r[0].err == 5028), "one has it: %d, %d",
	      r[0].err, r[1].err);
	is(open_fds(), fds + 3, "and the descriptors for it");
	cuFileHandleDeregister(r[0].err ? r[1].fh : r[0].fh);
	is(open_fds(), fds, "until it has not");
	close(fd);
}

/*
 * Of two handles of a file one has lost a descriptor, and the other one opens another with its
 * number, with the same mark.
 */
void test_number_passed(void)
{
	char *g = gpu(KIB(128)), *data = calloc(1, KIB(128));
	CUfileHandle_t one, two;
	int fd, more, n;

	fresh("{\"properties\":{\"force_compat_mode\":true}}");
	fd = make(path, 0, data, KIB(128));
	more = dup(fd);
	one = reg(fd);
	n = number_of(fd, 3);	/* after the program's second and two others */
	two = reg(more);
	check(fcntl(n, F_GETFL) & O_DIRECT, "a descriptor that transfers use");
	close(n);
	warm_file(path, KIB(128));
	is(cuFileWrite(two, g, KIB(128), 0, 0), KIB(128), "a write by the other one");
	may_cool();
	if (fcntl(n, F_GETFD) < 0) {
		check(true, "# SKIP nothing is looked at before a write where cachestat() says nothing");
	} else {
		cuFileHandleDeregister(one);
		check(fcntl(n, F_GETFD) >= 0, "what it has opened is not closed by the first");
	}
	cuFileHandleDeregister(two);
	while ((n = number_of(fd, 0)) >= 0)
		close(n);
	close(fd);
	fresh(NULL);
	gpu_free(g);
	free(data);
}

/* It has closed all, and registers the file anew, whose descriptors have the same numbers */
void test_number_anew(void)
{
	char *g = gpu(KIB(128)), *page = calloc(1, KIB(128));
	CUfileHandle_t fh, anew, third;
	struct flock l = { .l_type = F_WRLCK };
	int fd, more, own, locks;
	unsigned int fds;

	for (locks = 0; locks < 2; locks++) {
		fresh("{\"properties\":{\"force_compat_mode\":true}}");
		fd = make(path, 0, page, KIB(128));
		fds = open_fds();
		fh = reg(fd);
		/* with what a write looks at, where the kernel says what is cached */
		warm_file(path, KIB(128));
		is(cuFileWrite(fh, g, KIB(128), 0, 0), KIB(128), "a write");
		may_cool();
		own = number_of(fd, 3) >= 0;
		while (number_of(fd, 0) >= 0)
			close(number_of(fd, 0));
		anew = reg(fd);
		warm_file(path, KIB(128));
		is(cuFileWrite(anew, g, KIB(128), 0, 0), KIB(128), "a write by the file that is registered anew");
		may_cool();
		is(number_of(fd, 3) >= 0, own, "which has as many descriptors");
		if (locks && fcntl(fd, F_SETLK, &l))
			abort();
		cuFileHandleDeregister(fh);
		is(cuFileWrite(anew, g, KIB(128), 0, 0), KIB(128), "the old handle closes none of them");
		is(number_of(fd, 3) >= 0, own, "really");
		more = dup(fd);
		third = reg(more);
		is(cuFileRead(anew, g, KIB(128), 0, 0), KIB(128), "and a third takes none");
		is(cuFileRead(third, g, KIB(128), 0, 0), KIB(128), "has some");
		check(!locks || is_locked(), "the lock is there");
		cuFileHandleDeregister(third);
		cuFileHandleDeregister(anew);
		l.l_type = F_UNLCK;
		fcntl(fd, F_SETLK, &l);
		l.l_type = F_WRLCK;
		close(more);
		is(reg_error(fd), 0, "without the lock");
		is(open_fds(), fds, "nothing is left open");
		close(fd);
	}
	gpu_free(g);
	free(page);
}

/* What is kept for the sake of a lock, and has become another file's, serves nobody */
void test_number_kept(void)
{
	char *g = gpu(4096), *page = aligned_alloc(4096, 4096), *others = aligned_alloc(4096, 4096);
	struct flock l = { .l_type = F_WRLCK };
	unsigned int which, fds;
	CUfileHandle_t fh;
	int fd, n;

	fresh(NULL);
	fds = open_fds() + 1;
	memset(page, 'p', 4096);
	memset(others, 'o', 4096);
	/* nor does it serve for another file */
	fd = make(path, 0, page, 4096);
	n = make(other, 0, others, 4096);
	if (fcntl(fd, F_SETLK, &l))
		abort();
	cuFileHandleDeregister(reg(fd));
	fh = reg(n);
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "another file is registered while some are kept");
	check(!memcmp(mem(g), others, 4096), "and is what is read");
	cuFileHandleDeregister(fh);
	close(n);
	close(fd);
	for (which = 0; which < 4; which++) {
		fresh(NULL);
		fd = make(path, 0, page, 4096);
		if (fcntl(fd, F_SETLK, &l))
			abort();
		fh = reg(fd);
		cuFileHandleDeregister(fh);
		check(is_locked(), "a file with a lock is deregistered");
		n = which < 3 ? number_of(fd, which) : -1;
		check(which == 3 || n >= 0, "its descriptors are kept");
		if (n >= 0)
			takes(n, make(other, which == 2 ? O_DIRECT : 0, others, 4096));
		if (fcntl(fd, F_SETLK, &l))
			abort();
		fh = reg(fd);
		check(is_locked(), "the lock stays, whatever of them is left");
		memset(mem(g), 0, 4096);
		is(cuFileRead(fh, g, 4096, 0, 0), 4096, n < 0 ? "they serve again" :
		   "where one of them was taken, none does");
		check(!memcmp(mem(g), page, 4096), "the right file is read");
		is(cuFileRead(fh, g, 100, 1, 0), 100, "a part of a page, too");
		check(!memcmp(mem(g), page, 100), "of the right file");
		is(cuFileWrite(fh, g, 100, 1, 0), 100, "and is written");
		cuFileHandleDeregister(fh);
		if (n >= 0) {
			check(pread(n, page, 4096, 0) == 4096 && !memcmp(page, others, 4096),
			      "the other file is as it was, and open");
			memset(page, 'p', 4096);
			close(n);
		}
		close(fd);
		fd = open(path, O_RDWR);
		is(reg_error(fd), 0, "without the lock");
		is(open_fds(), fds, "nothing is left open");
		close(fd);
		unlink(other);
	}
	gpu_free(g);
	free(page);
	free(others);
}

/* ---- how ---- */

/* What the library opens of a file that was opened with @flags: as that was, for itself alone */
static void opened_with(int flags, int keeps, const char *what)
{
	const int kept = O_ACCMODE | O_SYNC;
	unsigned int i, direct = 0;
	CUfileHandle_t fh;
	int fd, own, has;
	char *g = gpu(8192), zero[8192] = "";

	fresh(NULL);
	close(make(path, 0, zero, sizeof(zero)));
	fd = open(path, flags);
	fh = reg(fd);
	for (i = 0; (own = number_of(fd, i)) >= 0; i++) {
		has = fcntl(own, F_GETFL);
		check(own > 2 && fcntl(own, F_GETFD) == FD_CLOEXEC, "%s: no child and no stream has it", what);
		check((has & kept) == keeps, "it is opened so: %#o", (unsigned int)has);
		direct += i && has & O_DIRECT;
		/* the first is the program's own open */
		if (i)
			check(!(has & (O_APPEND | O_NONBLOCK)), "and not otherwise");
	}
	is(i, 3, "there are three");
	is(direct, 1, "of which one goes around the page cache");
	if ((keeps & O_ACCMODE) != O_WRONLY) {
		is(cuFileRead(fh, g, 8192, 0, 0), 8192, "a read");
		is(stats_of(fh).last_path, PLN_PATH_P2P, "goes p2p");
	}
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
}

void test_open_flags(void)
{
	opened_with(O_RDWR, O_RDWR, "to read and write");
	opened_with(O_RDONLY, O_RDONLY, "to read");
	opened_with(O_WRONLY, O_WRONLY, "to write");
	opened_with(O_RDWR | O_SYNC, O_RDWR | O_SYNC, "O_SYNC");
	opened_with(O_RDWR | O_DSYNC, O_RDWR | O_DSYNC, "O_DSYNC");
	/* of the name, which has been found */
	opened_with(O_RDWR | O_NOFOLLOW, O_RDWR, "O_NOFOLLOW");
	opened_with(O_RDWR | O_DIRECT | O_SYNC, O_RDWR | O_SYNC, "O_DIRECT and O_SYNC");
}

/* A daemon has no standard streams, and what it writes there must not get into its file */
void test_low_numbers(void)
{
	char data[8192] = "", back[8192], *g[] = { gpu(8192), gpu(8192), gpu(8192) };
	int status, fd, low, n, bad = 0;
	CUfileHandle_t fh;
	pid_t pid;

	fresh(NULL);
	cuFileDriverClose();
	fd = make(path, 0, data, sizeof(data));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		/* without one of them, two, and all */
		cuFileDriverOpen();
		mock.p2p_errno = EREMOTEIO;
		for (low = 2; low >= 0; low--) {
			close(low);
			fh = reg(fd);
			mock.gpu = low;	/* of which the log tells */
			bad += cuFileRead(fh, g[low], 8192, 0, 0) != 8192;
			for (n = low; n < 3; n++)
				bad += write(n, "oops", 4) != -1;
			cuFileHandleDeregister(fh);
			for (n = low; n < 3; n++)
				bad += fcntl(n, F_GETFD) >= 0;
		}
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	is(status, 0, "without standard streams, nothing can be written to them");
	is((long long)log_count("no p2p: p2p refused"), 3, "also where it writes to its log");
	is(pread(fd, back, sizeof(back), 0), sizeof(back), "the file");
	check(!memcmp(back, data, sizeof(data)) && lseek(fd, 0, SEEK_END) == sizeof(data), "is as it was");
	close(fd);
	for (n = 0; n < 3; n++)
		gpu_free(g[n]);
}

/*
 * A program that had no standard streams when it opened the library, and opens them then, as a
 * daemon does: what the library keeps open is not closed by that.
 */
static int no_streams_at_first(int fd, char *g, int way)
{
	int n, null, bad = 0;
	CUfileHandle_t fh;

	for (n = 0; n < 3; n++)
		close(n);
	mock.module = way == PLN_PATH_KERNEL ? PLN_ABI_VERSION : 0;
	mock.nvidia = way == PLN_PATH_P2P ? "580.159" : NULL;
	mock.kernel = "6.14.11-generic";
	mock.vmm = true;
	bad += cuFileDriverOpen().err != 0;
	bad += cuFileBufRegister(g, 8192, 0).err != 0;
	bad += mock.nv_open != (way == PLN_PATH_P2P ? 2 : 0);
	for (n = 0; n < 3; n++)
		bad += fcntl(n, F_GETFD) >= 0;
	null = open("/dev/null", O_RDWR);
	for (n = 0; n < 3; n++)
		bad += dup2(null, n) != n;
	fh = reg(fd);
	bad += cuFileRead(fh, g, 8192, 0, 0) != 8192;
	return bad + (stats_of(fh).last_path != (unsigned int)way) + (mock.handles != 0);
}

void test_low_numbers_first(void)
{
	static const struct {
		int way;
		const char *json;
	} by[] = {
		{ PLN_PATH_KERNEL, "{\"peerlane\":{\"use_pci_p2pdma\":false}}" },
		{ PLN_PATH_P2P, "{\"peerlane\":{\"nvidia_uvm\":true}}" },
	};
	char data[8192] = "", *g = gpu(8192);
	int status, fd, i;
	pid_t pid;

	fd = make(path, 0, data, sizeof(data));
	for (i = 0; i < 2; i++) {
		fresh(by[i].json);
		cuFileDriverClose();
		fflush(stdout);
		pid = fork();
		if (!pid) {
			/* what the parent has opened for its statistics is no child's */
			_exit(no_streams_at_first(fd, g, by[i].way));
		}
		waitpid(pid, &status, 0);
		is(status, 0, i ? "nor of what nvidia-uvm lends memory by" :
		   "opened without standard streams, the library has none of their numbers");
	}
	close(fd);
	gpu_free(g);
}

static int standard_streams(void)
{
	int n, open = 0;

	for (n = 0; n < 3; n++)
		open += fcntl(n, F_GETFD) >= 0;
	return open;
}

static bool waits(int so_many)
{
	int turn;

	for (turn = 0; turn < 100000 && mock.in_again != so_many; turn++)
		usleep(100);
	return mock.in_again == so_many;
}

/* Two threads open files: which is ready first takes no number from the other one's guard. */
static int two_open(int fd, int reader)
{
	struct registration r[2] = { { .fd = fd }, { .fd = reader } };
	int bad = 0;

	mock.hold_again = 1;
	pthread_create(&r[0].thread, NULL, register_it, &r[0]);
	bad += !waits(1);
	pthread_create(&r[1].thread, NULL, register_it, &r[1]);
	bad += !waits(2);
	mock.hold_again = 2;
	pthread_join(r[0].thread, NULL);
	bad += write(0, "oops", 4) != -1;
	mock.hold_again = 0;
	pthread_join(r[1].thread, NULL);
	bad += r[0].err || r[1].err || standard_streams();
	cuFileHandleDeregister(r[0].fh);
	cuFileHandleDeregister(r[1].fh);
	return bad;
}

/* Meanwhile the program takes a number for itself; or the open fails, and it has closed all numbers. */
static int taken_meanwhile(int fd, bool fails)
{
	struct registration r = { .fd = fd };
	int bad = 0, n;

	mock.hold_again = 1;
	mock.again_errno = fails ? EMFILE : 0;
	mock.again_count = 1;
	pthread_create(&r.thread, NULL, register_it, &r);
	bad += !waits(1) || standard_streams() != 3;
	for (n = 0; fails && n < 3; n++)
		close(n);
	bad += !fails && dup2(fd, 1) != 1;
	mock.hold_again = 0;
	pthread_join(r.thread, NULL);
	if (fails)
		return bad + (r.err != 5031) + standard_streams();
	bad += r.err || fcntl(1, F_GETFL) < 0 || fcntl(1, F_GETFL) & O_PATH || standard_streams() != 1;
	cuFileHandleDeregister(r.fh);
	close(1);
	return bad;
}

/* A child of that moment has nothing there, either. */
static int forked_meanwhile(int fd)
{
	struct registration r = { .fd = fd };
	int status, bad = 0;
	pid_t pid;

	mock.hold_again = 1;
	pthread_create(&r.thread, NULL, register_it, &r);
	bad += !waits(1);
	pid = fork();
	if (!pid)
		_exit(standard_streams());
	waitpid(pid, &status, 0);
	mock.hold_again = 0;
	pthread_join(r.thread, NULL);
	cuFileHandleDeregister(r.fh);
	return bad + !!status + standard_streams();
}

void test_low_numbers_threads(void)
{
	char data[8192] = "", back[8192];
	int status, fd, i;
	pid_t pid;

	for (i = 0; i < 4; i++) {
		fresh(NULL);
		cuFileDriverClose();
		fd = make(path, 0, data, sizeof(data));
		fflush(stdout);
		pid = fork();
		if (!pid) {
			int reader = open(path, O_RDONLY), n;

			cuFileDriverOpen();
			for (n = 0; n < 3; n++)
				close(n);
			_exit(!i ? two_open(fd, reader) : i == 3 ? forked_meanwhile(fd) :
			      taken_meanwhile(fd, i == 2));
		}
		waitpid(pid, &status, 0);
		is(status, 0, !i ? "two threads without standard streams: no file has their numbers" :
		   i == 1 ? "what the program has there is not closed" :
		   i == 2 ? "why none could be opened is kept" : "a child of that moment has nothing there");
		is(pread(fd, back, sizeof(back), 0), sizeof(back), "the file");
		check(!memcmp(back, data, sizeof(data)), "is as it was");
		close(fd);
	}
}

/* A file that cannot be opened once more: by what it is used then, and what is said */
void test_no_again(void)
{
	static const struct {
		int flags, err, only;	/* of the program; of who opens it again, with these flags */
		int first;		/* for the first time only */
		int result;
		int path;
		const char *why;
	} how[] = {
		{ 0, EMFILE, 0, .result = 5031 },
		{ 0, ENFILE, 0, .result = 5031 },
		{ 0, ENOMEM, 0, .result = 5031 },
		{ O_DIRECT, ENFILE, 0, .result = 5031 },
		/* the second is there again, as another thread has closed one */
		{ 0, EMFILE, 0, 1, .result = 5031 },
		{ 0, EACCES, 0, 0, 0, PLN_PATH_BOUNCE, "the file cannot be opened with O_DIRECT: EACCES (13)" },
		{ 0, EACCES, 0, 1, 0, PLN_PATH_P2P, "" },
		{ 0, EINVAL, O_DIRECT, 0, 0, PLN_PATH_BOUNCE, "the file cannot be opened with O_DIRECT: EINVAL (22)" },
		{ 0, EMFILE, O_DIRECT, .result = 5031 },
		{ O_DIRECT, EACCES, 0, 0, 0, PLN_PATH_P2P, "" },
		{ O_DIRECT, EINVAL, O_DIRECT, 0, 0, PLN_PATH_P2P, "" },
	};
	char *g = gpu(8192), data[8192];
	unsigned int i, fds;
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	fds = open_fds();
	noise(data, sizeof(data));
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		fresh(NULL);
		fd = make(path, how[i].flags, data, sizeof(data));
		mock.again_errno = how[i].err;
		mock.again_flags = how[i].only;
		mock.again_count = how[i].first;
		is(reg_error(fd), how[i].result, how[i].why ? how[i].why : "no descriptor is left");
		mock.again_errno = how[i].err;
		mock.again_count = how[i].first;
		if (!how[i].result) {
			fh = reg(fd);
			memset(mem(g), 0, 8192);
			is(cuFileRead(fh, g, 8192, 0, 0), 8192, "it is read");
			check(!memcmp(mem(g), data, 8192), "the right data");
			is(stats_of(fh).last_path, how[i].path, "by this path");
			check(how[i].why[0] ? strstr(stats_of(fh).reason, how[i].why) != NULL :
			      !stats_of(fh).reason[0], "why: %s", stats_of(fh).reason);
			cuFileHandleDeregister(fh);
		}
		mock.again_errno = 0;
		close(fd);
		fresh(NULL);
		is(open_fds(), fds, "nothing is left open");
	}
	gpu_free(g);
}

/* Blocks of direct IO, as the kernel tells of them, and where it does not */
void test_blocks(void)
{
	static const struct {
		uint32_t align, memory;		/* statx(); 0: unsaid, or none */
		bool said;
		long fs;
		uint32_t sector;
		bool block;
		size_t at, from, n;		/* of the file, of the memory */
		uint64_t p2p;			/* bytes */
		const char *why;
	} how[] = {
		/* of the file 512, of memory a page */
		{ 512, 4096, true, 0, 0, false, 512, 0, 1024, 1024, "" },
		{ 512, 4096, true, 0, 0, false, 512, 512, 1024, 0, "does not match the file offset in blocks of 4096" },
		{ 4096, 512, true, 0, 0, false, 4096, 512, 4096, 4096, "" },
		{ 4096, 512, true, 0, 0, false, 512, 512, 1024, 0, "no whole block of 4096" },
		/* no less than 512 */
		{ 512, 4, true, 0, 0, false, 512, 512, 1024, 1024, "" },
		{ 512, 4, true, 0, 0, false, 512, 256, 1024, 0, "in blocks of 512" },
		/* ext4 before it told them: pages */
		{ 0, 0, false, EXT4_SUPER_MAGIC, 0, false, 4096, 4096, 4096, 4096, "" },
		{ 0, 0, false, EXT4_SUPER_MAGIC, 0, false, 512, 512, 1024, 0, "no whole block of 4096" },
		/* who tells nothing, and is not known, may copy with the processor */
		{ 0, 0, false, 0x794c7630 /* overlayfs */, 0, false, 4096, 4096, 4096, 0,
		  "the file system is not known to do direct IO between device and memory" },
		{ 512, 512, true, 0x794c7630, 0, false, 512, 512, 1024, 1024, "" },
		{ 0, 0, false, TMPFS_MAGIC, 0, false, 4096, 4096, 4096, 0, "keeps its data in host memory" },
		{ 512, 512, true, TMPFS_MAGIC, 0, false, 4096, 4096, 4096, 0, "keeps its data in host memory" },
		/* this file has none, as one that is encrypted */
		{ 0, 1, true, 0, 0, false, 4096, 4096, 4096, 0, "the file system does no direct IO on this file" },
		{ 512, 0, true, 0, 0, false, 4096, 4096, 4096, 0, "the file system does no direct IO on this file" },
		/* a block device: its node lies in a tmpfs */
		{ 0, 0, false, TMPFS_MAGIC, 512, true, 512, 512, 1024, 1024, "" },
		{ 0, 0, false, TMPFS_MAGIC, 4096, true, 512, 512, 1024, 0, "no whole block of 4096" },
		{ 0, 0, false, TMPFS_MAGIC, 0, true, 4096, 4096, 4096, 4096, "" },
		{ 4096, 512, true, TMPFS_MAGIC, 512, true, 512, 512, 1024, 0, "no whole block of 4096" },
	};
	char *g = gpu(16384), data[16384];
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(data, sizeof(data));
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		fresh(NULL);
		fd = make(path, 0, data, sizeof(data));
		mock.dio_said = how[i].said;
		mock.no_dio = !how[i].said;
		mock.dio_align = how[i].align;
		mock.dio_memory = how[i].memory;
		mock.fs = how[i].fs;
		mock.sector = how[i].sector;
		mock.block = how[i].block;
		mock.dev = 259 << 8 | 7;
		fh = reg(fd);
		memset(mem(g), 0, 16384);
		is(cuFileRead(fh, g, how[i].n, (off_t)how[i].at, (off_t)how[i].from), (long long)how[i].n, "a read");
		check(!memcmp(mem(g) + how[i].from, data + how[i].at, how[i].n), "the right data");
		is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read, (long long)how[i].p2p, "so much by p2p");
		check(strstr(stats_of(fh).reason, how[i].why) && !how[i].why[0] == !stats_of(fh).reason[0],
		      "why: %s", stats_of(fh).reason);
		cuFileHandleDeregister(fh);
		close(fd);
	}
	/* of a block device, its own number, and no descriptor for what a write replaces */
	fresh(NULL);
	fd = make(path, 0, data, sizeof(data));
	mock.block = true;
	mock.dev = 259 << 8 | 7;
	mock.p2p_errno = EREMOTEIO;
	fh = reg(fd);
	warm_file(path, sizeof(data));
	is(cuFileWrite(fh, g, sizeof(data), 0, 0), sizeof(data), "a write to a block device, staged");
	may_cool();
	check(log_has("notice: device 259:7 and GPU 0: no p2p"), "it is the device");
	is(number_of(fd, 3), -1, "no more is open than before");
	cuFileHandleDeregister(fh);
	close(fd);
	fresh(NULL);
	gpu_free(g);
}


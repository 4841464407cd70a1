// SPDX-License-Identifier: MIT
/* What the files of the unit test share: see unit.h. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

unsigned int checks, failed;
char path[256], other[256], config[256], logfile[256];

bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	checks++;
	if (!good)
		failed++;
	printf("%sok %u - ", good ? "" : "not ", checks);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return good;
}

void is(long long got, long long want, const char *what)
{
	if (!check(got == want, "%s", what))
		printf("# got %lld, want %lld\n", got, want);
}

/* ---- helpers ---- */

struct pln_file_stats stats_of(CUfileHandle_t fh)
{
	struct pln_file_stats s = { .size = sizeof(s) };

	if (pln_file_stats(fh, &s))
		abort();
	return s;
}

static void open_anew(const char *json)
{
	FILE *f;

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock_reset();
	unsetenv("PEERLANE_STRICT");
	unsetenv("PEERLANE_NVIDIA_UVM");
	unlink(logfile);
	if (json) {
		f = fopen(config, "w");
		fputs(json, f);
		fclose(f);
		setenv("CUFILE_ENV_PATH_JSON", config, 1);
	} else {
		unsetenv("CUFILE_ENV_PATH_JSON");
	}
	if (cuFileDriverOpen().err)
		abort();
}

void fresh(const char *json)
{
	unsetenv("PEERLANE_PAGE_CACHE");
	open_anew(json);
}

void fresh_cache(const char *json)
{
	setenv("PEERLANE_PAGE_CACHE", "1", 1);
	open_anew(json);
}

/* By the call, which goes before the file: another test may have called it */
void set_slabs(size_t kb, size_t count)
{
	const size_t sizes[] = { 4, 1024, 16384 }, counts[] = { 128, 64, 64 };

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	if (cuFileSetParameterPosixPoolSlabArray(kb ? &kb : sizes, kb ? &count : counts,
						 kb ? 1 : 3).err)
		abort();
}

void group(void)
{
	char name[300];

	snprintf(name, sizeof(name), "%s.cgroup", path);
	mkdir(name, 0700);
	setenv("PEERLANE_CGROUP", name, 1);
}

void group_says(const char *file, const char *text)
{
	char name[300];

	snprintf(name, sizeof(name), "%s.cgroup/%s", path, file);
	unlink(name);
	close(make(name, 0, text, strlen(text)));
}

void no_group(void)
{
	static const char *const files[] = {
		"memory.max", "memory.high", "memory.current", "memory.stat"
	};
	char name[300];
	unsigned int i;

	unsetenv("PEERLANE_CGROUP");
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s.cgroup/%s", path, files[i]);
		unlink(name);
	}
	snprintf(name, sizeof(name), "%s.cgroup", path);
	rmdir(name);
}

int make(const char *name, int flags, const void *data, size_t n)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || (n && write(fd, data, n) != (ssize_t)n) || fsync(fd))
		abort();
	close(fd);
	fd = open(name, O_RDWR | flags);
	if (fd < 0)
		abort();
	return fd;
}

CUfileHandle_t reg(int fd)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
			    .handle.fd = fd };
	CUfileHandle_t fh = NULL;

	if (cuFileHandleRegister(&fh, &d).err)
		abort();
	return fh;
}

int reg_error(int fd)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
			    .handle.fd = fd };
	CUfileHandle_t fh = NULL;
	int r = cuFileHandleRegister(&fh, &d).err;

	if (!r)
		cuFileHandleDeregister(fh);
	return r;
}

int number_of(int program, unsigned int which)
{
	struct stat st, own;
	int fd;

	if (fstat(program, &own))
		abort();
	for (fd = 3; fd < 1024; fd++)
		if (fd != program && !fstat(fd, &st) && st.st_ino == own.st_ino &&
		    st.st_dev == own.st_dev && !which--)
			return fd;
	return -1;
}

/* A thread for each: what a thread was told lately of its memory it does not ask again. */
struct reader {
	const struct refusal *r;
	pthread_t thread;
	sem_t go, done;
	bool good, end;
};

static bool refused_so(const struct refusal *r)
{
	char why[PLN_FILE_REASON_MAX];

	mock.gpu = r->gpu;
	if (cuFileRead(r->fh, r->g, 8192, 0, 0) != 8192)
		return false;
	strcpy(why, stats_of(r->fh).reason);
	if (strstr(why, r->words) && !strcmp(why, stats_of(NULL).reason))
		return true;
	printf("# %s instead of %s\n", why, r->words);
	return false;
}

static void *read_in_turn(void *arg)
{
	struct reader *t = arg;

	for (;;) {
		while (sem_wait(&t->go))
			continue;
		if (t->end)
			return NULL;
		t->good = refused_so(t->r);
		sem_post(&t->done);
	}
}

static bool turn(struct reader *t)
{
	sem_post(&t->go);
	while (sem_wait(&t->done))
		continue;
	return t->good;
}

void each_after_each(const struct refusal *r, unsigned int n)
{
	struct reader t[16] = { 0 };
	unsigned int i, k, bad = 0;

	for (i = 0; i < n; i++) {
		t[i].r = &r[i];
		if (sem_init(&t[i].go, 0, 0) || sem_init(&t[i].done, 0, 0) ||
		    pthread_create(&t[i].thread, NULL, read_in_turn, &t[i]))
			abort();
	}
	/* what is said first, and what is remembered */
	for (i = 0; i < 2 * n; i++)
		bad += !turn(&t[i / 2]);
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			bad += !turn(&t[i]) || !turn(&t[k]);
	is(bad, 0, "each reason after each other one is told");
	for (i = 0; i < n; i++) {
		t[i].end = true;
		sem_post(&t[i].go);
		pthread_join(t[i].thread, NULL);
	}
	mock.gpu = 0;
}

void *gpu(size_t n)
{
	unsigned long long p;

	if (cuMemAlloc_v2(&p, n))
		abort();
	return (void *)(uintptr_t)p;
}

void gpu_free(void *p)
{
	cuMemFree_v2((uintptr_t)p);
}

char *mem(void *p)
{
	return mock_memory((uintptr_t)p);
}

static uint64_t seed = 88172645463325252ull;

uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

void noise(void *p, size_t n)
{
	unsigned char *c = p;

	while (n--)
		*c++ = (unsigned char)rnd();
}

unsigned int lines_with(const char *name, const char *words)
{
	FILE *f = fopen(name, "r");
	unsigned int n = 0;
	char line[1024];

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, words) != NULL;
	if (f)
		fclose(f);
	return n;
}

unsigned int log_count(const char *words)
{
	return lines_with(logfile, words);
}

bool log_has(const char *words)
{
	return log_count(words);
}

unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

unsigned int tasks(void)
{
	unsigned int n = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Threads: %u", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* Has this process a lock on the file?  Another one asks. */
bool is_locked(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct flock l = { .l_type = F_WRLCK };
		int fd = open(path, O_RDWR);

		_exit(fcntl(fd, F_GETLK, &l) || l.l_type == F_UNLCK);
	}
	waitpid(pid, &status, 0);
	return !status;
}

int mount_id(int fd)
{
	char line[256], name[64];
	int id = -1;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	f = fopen(name, "r");
	while (f && id < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	if (f)
		fclose(f);
	return id;
}

static bool say(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Who is not root gets a user namespace, where it has to be somebody to make files. */
bool own_mounts(void)
{
	const unsigned int user = geteuid(), group = getegid();
	char users[32], groups[32];

	snprintf(users, sizeof(users), "%u %u 1", user, user);
	snprintf(groups, sizeof(groups), "%u %u 1", group, group);
	if (user ? unshare(CLONE_NEWUSER | CLONE_NEWNS) || !say("/proc/self/setgroups", "deny") ||
		   !say("/proc/self/uid_map", users) || !say("/proc/self/gid_map", groups) :
		   unshare(CLONE_NEWNS))
		return false;
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

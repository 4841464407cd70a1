// SPDX-License-Identifier: MIT
/*
 * libcufile on a mock of the CUDA driver (see mock.h): every argument check,
 * every branch of the choice of the path, splitting, ends of files, unaligned
 * transfers against a model, threads, faults, and each allocation failing.
 *
 *   cufile-unit DIR      DIR must lie on a file system with O_DIRECT
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* ---- the driver ---- */

static void test_driver(void)
{
	CUfileDrvProps_t p;
	CUfileHandle_t fh;
	char text[256];
	size_t n = 0;
	bool b;
	int v = 0, fd;

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock_reset();
	is(cuFileUseCount(), 0, "use count of a closed library");
	is(cuFileDriverClose().err, 5001, "close when closed");
	is(cuFileRead((void *)1, &v, 1, 0, 0), -5001, "read when closed");
	is(cuFileBufDeregister(&v).err, 5001, "buffer deregister when closed");
	is(cuFileSetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 8192).err, 0,
	   "a parameter is set while closed");
	is(cuFileSetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 3).err, 5003,
	   "a size out of range");
	is(cuFileSetParameterSizeT((CUFileSizeTConfigParameter_t)99, 1).err,
	   5022, "a parameter that does not exist");
	is(cuFileSetParameterBool((CUFileBoolConfigParameter_t)99, 1).err,
	   5022, "a flag that does not exist");
	is(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "loud").err,
	   5022, "a level that does not exist");
	is(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, NULL).err,
	   5022, "no string");
	is(cuFileDriverOpen().err, 0, "open");
	is(cuFileDriverOpen().err, 0, "open again");
	is(cuFileUseCount(), 2, "opens are counted");
	is(cuFileSetParameterBool(CUFILE_PARAM_FORCE_COMPAT_MODE, true).err,
	   5026, "parameters stay while open");
	is(cuFileSetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, 1).err, 5026,
	   "sizes too");
	is(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, "/").err, 5026,
	   "strings too");
	is(cuFileGetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, &n).err, 0,
	   "a parameter is read");
	is((long long)n, 8192, "and is what was set");
	is(cuFileGetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, NULL).err, 5022,
	   "nowhere to put it");
	is(cuFileGetParameterBool(CUFILE_PARAM_USE_PCIP2PDMA, &b).err, 0,
	   "a flag is read");
	check(b, "p2p is on by default");
	is(cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text,
				    sizeof(text)).err, 0, "a string is read");
	is(cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 2).err,
	   5022, "a string that has no room");
	is(cuFileDriverGetProperties(&p).err, 0, "properties");
	is((long long)p.nvfs.max_direct_io_size, 8192, "with the size set");
	check(p.nvfs.dcontrolflags & 1u << CU_FILE_ALLOW_COMPAT_MODE,
	      "falling back is allowed");
	check(p.fflags & 1u << CU_FILE_BATCH_IO_SUPPORTED &&
	      p.fflags & 1u << CU_FILE_STREAMS_SUPPORTED,
	      "batches and streams, and it says so");
	check(!(p.fflags & 1u << CU_FILE_P2P_SUPPORTED),
	      "no p2p before a transfer went so");
	is(p.max_batch_io_size, 128, "entries of a batch");
	is(cuFileDriverGetProperties(NULL).err, 5022, "properties to nowhere");
	is(cuFileDriverSetMaxDirectIOSize(16384).err, 0, "direct IO size");
	is(cuFileDriverSetMaxDirectIOSize(1).err, 5003, "too small");
	is(cuFileDriverSetMaxCacheSize(4096).err, 0, "cache size");
	is(cuFileDriverSetMaxCacheSize(3).err, 5003, "not in steps of 4");
	is(cuFileDriverSetMaxPinnedMemSize(1u << 20).err, 0, "pinned size");
	is(cuFileDriverSetPollMode(true, 8).err, 0, "poll mode");
	is(cuFileDriverSetPollMode(true, 7).err, 5003, "poll size of 7");
	cuFileDriverGetProperties(&p);
	check(p.nvfs.dcontrolflags & 1u << CU_FILE_USE_POLL_MODE &&
	      p.nvfs.poll_thresh_size == 8, "poll mode is told back");
	is(cuFileGetVersion(&v).err, 0, "version");
	is(v, 1170, "the version of which all calls are here");
	is(cuFileGetVersion(NULL).err, 5022, "version to nowhere");
	is(cuFileDriverClose_v2().err, 0, "close");
	is(cuFileUseCount(), 1, "still open once");
	is(cuFileDriverClose().err, 0, "close for good");
	is(cuFileUseCount(), 0, "closed");

	fd = make(path, 0, "x", 1);
	fh = reg(fd);
	is(cuFileUseCount(), 1, "a handle opens the library");
	is(cuFileDriverClose().err, 0, "close with a handle registered");
	is(cuFileDriverOpen().err, 0, "open again");
	is(cuFileRead(fh, &v, 1, 0, 0), -5027, "handles end with the close");
	cuFileDriverClose();
	is(cuFileBufRegister(&v, sizeof(v), 0).err, 0,
	   "a buffer opens the library");
	is(cuFileUseCount(), 1, "so it does");
	close(fd);
	is(cuFileDriverClose().err, 0, "close");
	is(cuFileSetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 16384).err, 0,
	   "parameter back");
}

static void test_config(void)
{
	static const struct {
		const char *json, *words;
	} bad[] = {
		{ "{\"properties\":{\"max_direct_io_size_kb\":\"1M\"}}",
		  "properties.max_direct_io_size_kb must be a number, not a "
		  "string" },
		{ "{\"properties\":{\"max_direct_io_size_kb\":66}}",
		  "properties.max_direct_io_size_kb must be a whole number" },
		{ "{\"properties\":{\"max_direct_io_size_kb\":-4}}",
		  "properties.max_direct_io_size_kb" },
		{ "{\"properties\":{\"allow_compat_mode\":1}}",
		  "properties.allow_compat_mode must be true or false, not a "
		  "number" },
		{ "{\"peerlane\":{\"max_io_threads\":1.5}}",
		  "peerlane.max_io_threads must be a whole number" },
		{ "{\"peerlane\":{\"strikt\":true}}",
		  "there is no peerlane.strikt" },
		{ "{\"peerlane\":true}", "peerlane must be an object, not true" },
		{ "{\"logging\":{\"level\":7}}",
		  "logging.level must be a string" },
		{ "{\"logging\":{\"level\":\"loud\"}}",
		  "logging.level: no such level: loud" },
		{ "{\"properties\":{\"posix_pool_slab_size_kb\":4}}",
		  "properties.posix_pool_slab_size_kb must be a list" },
		{ "{\"properties\":{\"posix_pool_slab_size_kb\":[0]}}",
		  "properties.posix_pool_slab_size_kb must be a list of" },
		{ "{\"properties\":{\"posix_pool_slab_size_kb\":[64]}}",
		  "of the same length" },
		{ "{\"peerlane\":{\"strict\":\"yes\"}}",
		  "peerlane.strict must be true or false" },
		{ "{\"denylist\":[[1]]}", "denylist must be an object" },
		{ "[]", "the whole file must be an object" },
		{ "{\"properties\":", "line 1:" },
	};
	unsigned int i;
	size_t n = 0;
	bool b = true;
	FILE *f;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fresh(NULL);
		cuFileDriverClose();
		f = fopen(config, "w");
		fputs(bad[i].json, f);
		fclose(f);
		setenv("CUFILE_ENV_PATH_JSON", config, 1);
		is(cuFileDriverOpen().err, 5002, bad[i].json);
		if (!check(log_has(bad[i].words), "says: %s", bad[i].words))
			printf("# see %s\n", logfile);
		is(cuFileGetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, &n).err,
		   5002, "and asking fails the same way");
	}
	fresh("// a comment\n{\"unknown\": {\"key\": [1]}, \"profile\": {"
	      "\"nvtx\": true}, \"properties\": {\"per_buffer_cache_size_kb\": 2048},"
	      "\"miscellaneous\": {\"skip_topology_detection\": true,"
	      "\"stream_memops_bypass\": true},"
	      "\"peerlane\": {\"max_io_threads\": 2}}");
	cuFileGetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, &n);
	is((long long)n, 2048, "a size from the file; unknown keys pass");
	cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, &b);
	check(b, "a flag from the file");
	for (i = CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION;
	     i <= CUFILE_PARAM_STREAM_MEMOPS_BYPASS; i++) {
		b = false;
		cuFileGetParameterBool((CUFileBoolConfigParameter_t)i, &b);
		check(b, "flag %u is in NVIDIA's section, miscellaneous", i);
	}
	cuFileDriverClose();
	setenv("CUFILE_NVTX", "false", 1);
	cuFileDriverOpen();
	cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, &b);
	check(!b, "the environment goes before the file");
	cuFileDriverClose();
	cuFileSetParameterBool(CUFILE_PARAM_PROFILE_NVTX, true);
	cuFileDriverOpen();
	cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, &b);
	check(b, "a call goes before the environment");
	cuFileDriverClose();
	cuFileSetParameterBool(CUFILE_PARAM_PROFILE_NVTX, false);
	setenv("CUFILE_NVTX", "perhaps", 1);
	is(cuFileDriverOpen().err, 5002, "an environment variable with no sense");
	check(log_has("CUFILE_NVTX"), "is named");
	unsetenv("CUFILE_NVTX");
	setenv("CUFILE_ENV_PATH_JSON", "/nonexistent/cufile.json", 1);
	is(cuFileDriverOpen().err, 0, "a missing file means defaults");
	check(log_has("/nonexistent/cufile.json"), "and is told");
	fresh(NULL);
}

/* ---- registration ---- */

static void test_handles(void)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh, fh2;
	unsigned int fds, i;
	int fd, pipes[2], before;
	char c = 'c';

	fresh(NULL);
	before = (int)open_fds();
	fd = make(path, 0, "abc", 3);
	d.handle.fd = fd;
	is(cuFileHandleRegister(NULL, &d).err, 5022, "nowhere for the handle");
	is(cuFileHandleRegister(&fh, NULL).err, 5022, "no descriptor");
	d.type = CU_FILE_HANDLE_TYPE_OPAQUE_WIN32;
	is(cuFileHandleRegister(&fh, &d).err, 5008, "a Windows handle");
	d.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS;
	is(cuFileHandleRegister(&fh, &d).err, 5008, "a user space file system");
	d.type = (enum CUfileFileHandleType)0;
	is(cuFileHandleRegister(&fh, &d).err, 5022, "no type");
	is(reg_error(-1), 5022, "fd -1");
	is(reg_error(1 << 20), 5022, "an fd that is not open");
	if (pipe(pipes))
		abort();
	is(reg_error(pipes[0]), 5018, "a pipe");
	close(pipes[0]);
	close(pipes[1]);
	pipes[0] = open("/", O_RDONLY | O_DIRECTORY);
	is(reg_error(pipes[0]), 5018, "a directory");
	close(pipes[0]);
	pipes[0] = open("/dev/null", O_RDWR);
	is(reg_error(pipes[0]), 5018, "a character device");
	close(pipes[0]);
	pipes[0] = open(path, O_RDWR | O_APPEND);
	is(reg_error(pipes[0]), 5019, "O_APPEND");
	close(pipes[0]);
	pipes[0] = open(path, O_RDWR | O_NONBLOCK);
	is(reg_error(pipes[0]), 5019, "O_NONBLOCK");
	close(pipes[0]);
	pipes[0] = open(path, O_RDWR | O_NOATIME);
	is(reg_error(pipes[0]), 5019, "O_NOATIME");
	close(pipes[0]);
	pipes[0] = open(path, O_PATH);
	is(reg_error(pipes[0]), 5019, "O_PATH");
	close(pipes[0]);
	/* the kernel signals nobody, but lets a file be opened so */
	pipes[0] = open(path, O_RDWR | O_ASYNC);
	is(reg_error(pipes[0]), 5019, "O_ASYNC");
	close(pipes[0]);
	is(reg_error(pipes[0]), 5022, "a descriptor that is closed");
	is(reg_error(-1), 5022, "a negative one");
	mock.stat_errno = ESTALE;
	is(reg_error(fd), 5022, "a file that its server no longer has");
	mock.stat_errno = 0;
	strcpy(other, path);
	*strrchr(other, '/') = '\0';
	pipes[0] = open(other, O_RDWR | O_TMPFILE, 0600);
	if (pipes[0] >= 0) {
		is(reg_error(pipes[0]), 5019, "O_TMPFILE");
		close(pipes[0]);
	}
	fh = reg(fd);
	is(reg_error(fd), 5028, "the same fd twice");
	mock.again_errno = EMFILE;
	is(reg_error(fd), 5028, "which needs no other descriptor to be told");
	mock.again_errno = 0;
	is(cuFileRead(fh, &c, 1, 1, 0), 1, "read by it");
	is(c, 'b', "the right byte");
	fds = open_fds();
	for (i = 0; i < 200; i++) {
		int again = dup(fd);

		fh2 = reg(again);
		cuFileHandleDeregister(fh2);
		close(again);
	}
	is(open_fds(), fds, "no descriptor is left behind");
	is(cuFileRead(fh2, &c, 1, 0, 0), -5027, "a stale handle");
	i = (unsigned int)dup(fd);
	is(reg((int)i) == fh2, 0, "one that takes its place has another number");
	is(cuFileRead(fh2, &c, 1, 0, 0), -5027, "and is not taken for it");
	close((int)i);
	is(cuFileRead((void *)0x1234567890, &c, 1, 0, 0), -5027,
	   "an invented handle");
	is(cuFileRead((void *)&c, &c, 1, 0, 0), -5027, "an address as handle");
	is(cuFileRead(NULL, &c, 1, 0, 0), -5027, "no handle");
	for (i = 0; i < 64; i++)
		if (cuFileRead((void *)((uintptr_t)fh ^ (uintptr_t)1 << i), &c,
			       1, 0, 0) != -5027)
			break;
	is(i, 64, "a handle with any one bit turned is none");
	cuFileHandleDeregister(fh2);
	cuFileHandleDeregister((void *)0x1234567890);
	cuFileHandleDeregister(NULL);
	check(1, "deregistering what is none does nothing");
	close(fd);
	is(cuFileRead(fh, &c, 1, 2, 0), 1, "the program may close its own fd");
	is(c, 'c', "and the right byte comes");
	fd = open(path, O_RDWR);
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(fh);
	is(cuFileWrite(fh, &c, 1, 0, 0), -5027, "write by a closed handle");
	close(fd);
	fresh(NULL);
	check((int)open_fds() <= before + 1, "nothing is left open");
}

static void test_locks(void)
{
	struct flock l = { .l_type = F_WRLCK };
	unsigned int fds, i;
	CUfileHandle_t fh;
	int fd, more;
	char c;

	fresh(NULL);
	fds = open_fds();
	fd = make(path, 0, "abc", 3);
	fh = reg(fd);
	if (fcntl(fd, F_SETLK, &l))
		abort();
	check(is_locked(), "the program locks its file");
	is(reg_error(fd), 5028, "it registers the file twice, which is refused");
	check(is_locked(), "and the lock is still there");
	cuFileHandleDeregister(fh);
	check(is_locked(), "after the deregistration, too");
	for (i = 0; i < 50; i++)
		if (reg_error(fd))
			break;
	is(i, 50, "registered again, and again");
	check(is_locked(), "it is locked");
	fh = reg(fd);
	more = dup(fd);
	is(reg_error(more), 0, "so is a duplicate of the descriptor");
	is(cuFileRead(fh, &c, 1, 1, 0), 1, "the handle reads");
	is(c, 'b', "the right byte");
	check(open_fds() <= fds + 8, "with few descriptors");
	/* an NFS server may not answer, and /proc may be of processes that have other numbers */
	cuFileHandleDeregister(fh);
	fh = reg(fd);
	mock.getlk_errno = ENOLCK;
	cuFileHandleDeregister(fh);
	check(is_locked(), "where the file system does not tell, the lock is there, too");
	/* as a server of FUSE may say of what is open */
	fh = reg(fd);
	mock.getlk_errno = EBADF;
	cuFileHandleDeregister(fh);
	check(is_locked(), "also where it takes the descriptor for none");
	mock.getlk_errno = 0;
	fh = reg(fd);
	mock.getlk_closes = fd;
	cuFileHandleDeregister(fh);
	check(is_locked(), "a thread closes one of those that are kept, and locks the file again: it is locked");
	fh = reg(fd);
	mock.locks = "/dev/null";
	cuFileHandleDeregister(fh);
	check(is_locked(), "and where /proc does not");
	mock.locks = NULL;
	fresh(NULL);
	check(is_locked(), "closing the library leaves the lock");
	l.l_type = F_UNLCK;
	fcntl(fd, F_SETLK, &l);
	is(reg_error(fd), 0, "without the lock");
	close(fd);
	close(more);
	is(open_fds(), fds, "nothing is left open");
}

/* Are descriptors kept of the file when /proc/locks says that we have a lock on this one? */
static bool kept_for(const char *locks, pid_t child, unsigned int dev, unsigned long ino)
{
	unsigned int fds = open_fds();
	FILE *f = fopen(locks, "w");
	int fd = open(path, O_RDWR);

	fprintf(f, "1: POSIX  ADVISORY  READ %d %02x:%02x:%lu 0 EOF\n", (int)child,
		dev >> 8, dev & 0xff, ino);
	fprintf(f, "2: POSIX  ADVISORY  READ %d %02x:%02x:%lu 0 EOF\n", (int)getpid(),
		dev >> 8, dev & 0xff, ino);
	fclose(f);
	mock.locks = locks;
	is(reg_error(fd), 0, "it is registered");
	close(fd);
	mock.locks = NULL;
	return open_fds() > fds;
}

/*
 * What /proc/locks says of the child's file, and who reads it: %1$d is this process,
 * %2$s the number of the inode, %3$s of its file system as mountinfo has it (0:5 or 259:70000).
 */
static const struct {
	const char *line, *mount;
	bool kept;
} lock_lines[] = {
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu 0 EOF\n", "0:5", true },
	{ "1: POSIX  ADVISORY  WRITE %1$d 103:11170:%2$lu 4096 8191\n", "259:70000", true },
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu 0 EOF\n", "5:0", false },
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu 0 EOF\n", "0:6", false },
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu 0 EOF\n", "0:53", false },
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu0 0 EOF\n", "0:5", false },
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:9%2$lu 0 EOF\n", "0:5", false },
	{ "1: POSIX  ADVISORY  READ %1$d0 00:05:%2$lu 0 EOF\n", "0:5", false },
	{ "1: POSIX  ADVISORY  READ 9%1$d 00:05:%2$lu 0 EOF\n", "0:5", false },
	/* other locks than those that a close() takes away */
	{ "1: FLOCK  ADVISORY  WRITE %1$d 00:05:%2$lu 0 EOF\n", "0:5", false },
	{ "1: OFDLCK ADVISORY  WRITE -1 00:05:%2$lu %1$d EOF\n", "0:5", false },
	{ "1: LEASE  ACTIVE    READ %1$d 00:05:%2$lu 0 EOF\n", "0:5", false },
	/* another's, of bytes that begin with the number of this process */
	{ "1: POSIX  ADVISORY  READ 9%1$d 00:05:%2$lu %1$d EOF\n", "0:5", false },
	{ "1: POSIX  ADVISORY  READ 9%1$d 00:05:%2$lu %1$d EOF\n", NULL, false },
	{ "1: FLOCK  ADVISORY  WRITE 7 00:01:2 0 EOF\n2: POSIX  ADVISORY  READ %1$d 00:05:%2$lu 0 EOF\n",
	  "0:5", true },
	/* the mount is not to be seen: the inode alone has to do */
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu 0 EOF\n", NULL, true },
	{ "1: POSIX  ADVISORY  READ %1$d 00:05:%2$lu0 0 EOF\n", NULL, false },
	{ "", "0:5", false },
	{ NULL, "0:5", true },
};

static void lock_line(unsigned int i, const char *locks, const char *mounts)
{
	unsigned int fds = open_fds();
	struct stat st;
	FILE *f;
	int fd;

	fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &st))
		abort();
	unlink(locks);
	f = lock_lines[i].line ? fopen(locks, "w") : NULL;
	if (f) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		fprintf(f, lock_lines[i].line, (int)getpid(), (unsigned long)st.st_ino);
#pragma GCC diagnostic pop
		fclose(f);
	}
	f = fopen(mounts, "w");
	if (lock_lines[i].mount)
		fprintf(f, "%d 1 %s / /mnt rw - ext4 /dev/sda1 rw\n", mount_id(fd), lock_lines[i].mount);
	fclose(f);
	mock.locks = locks;
	mock.mounts = mounts;
	is(reg_error(fd), 0, "it is registered");
	close(fd);
	check((open_fds() > fds) == lock_lines[i].kept, "descriptors are %skept for %.60s on %s",
	      lock_lines[i].kept ? "" : "not ", lock_lines[i].line ? lock_lines[i].line : "what cannot be read",
	      lock_lines[i].mount ? lock_lines[i].mount : "what is not to be seen");
	/* the next registration closes what need not be kept */
	mock.locks = mock.mounts = NULL;
	fd = open(path, O_RDWR);
	is(reg_error(fd), 0, "and anew, as the kernel has it");
	close(fd);
	is(open_fds(), fds, "nothing is left open");
	unlink(locks);
	unlink(mounts);
}

/* The file that  has locked, and another one whose inode has the same number */
static void other_inode(pid_t child)
{
	unsigned int major, minor, fds = open_fds();
	char line[256], locks[300];
	unsigned long ino = 0;
	int pid = 0, fd;
	FILE *f = fopen("/proc/locks", "r");

	while (pid != child && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d: POSIX ADVISORY READ %d %x:%x:%lu", &pid, &major,
			   &minor, &ino) != 4)
			pid = 0;
	fclose(f);
	if (!check(pid == child, "the kernel tells of the other process"))
		return;
	snprintf(locks, sizeof(locks), "%s.locks", path);
	check(!kept_for(locks, child, (major << 8 | minor) ^ 0x101, ino),
	      "a lock of our own on another file system is none on it");
	check(kept_for(locks, child, major << 8 | minor, ino), "one on it is");
	unlink(locks);
	fd = open(path, O_RDWR);
	is(reg_error(fd), 0, "without it");
	close(fd);
	is(open_fds(), fds, "none are kept");
}

/* A lock of somebody else's is no reason to keep descriptors */
static void test_foreign_lock(void)
{
	struct flock l = { .l_type = F_RDLCK };
	char locks[300], mounts[300];
	int fd, ready[2], end[2];
	unsigned int fds, i;
	CUfileHandle_t fh;
	pid_t child;
	char c;

	fresh(NULL);
	fd = make(path, 0, "abc", 3);
	is(reg_error(fd), 0, "what was kept for another test is closed");
	close(fd);
	if (pipe(ready) || pipe(end))
		abort();
	fflush(stdout);
	child = fork();
	if (!child) {
		close(end[1]);
		fd = open(path, O_RDONLY);
		i = fd >= 0 && !fcntl(fd, F_SETLK, &l) &&
		    write(ready[1], "r", 1) == 1 && read(end[0], &c, 1) == 0;
		_exit(!i);
	}
	close(ready[1]);
	is(read(ready[0], &c, 1), 1, "another process locks the file");
	fds = open_fds();
	for (i = 0; i < 20; i++) {
		fd = open(path, O_RDWR);
		if (fd < 0 || reg_error(fd))
			break;
		close(fd);
	}
	is(i, 20, "it is opened, registered, closed, again and again");
	fd = open(path, O_RDWR);
	if (fcntl(fd, F_SETLK, &l))
		abort();
	is(reg_error(fd), 0, "with a lock of our own beside");
	check(open_fds() > fds + 1, "descriptors are kept");
	close(fd);	/* which drops ours */
	fd = open(path, O_RDWR);
	is(reg_error(fd), 0, "without it");
	close(fd);
	is(open_fds(), fds, "none are kept");
	other_inode(child);
	snprintf(locks, sizeof(locks), "%s.locks", path);
	snprintf(mounts, sizeof(mounts), "%s.mounts", path);
	for (i = 0; i < sizeof(lock_lines) / sizeof(lock_lines[0]); i++)
		lock_line(i, locks, mounts);
	/* whether its server tells of the file and its locks, or not: what the kernel keeps decides */
	for (i = 0; i < 4; i++) {
		fd = open(path, O_RDWR);
		fh = reg(fd);
		if (i >= 2 && fcntl(fd, F_SETLK, &l))
			abort();
		mock.getlk_errno = mock.stat_errno = ESTALE;
		mock.statx_errno = i % 2 ? ESTALE : 0;
		cuFileHandleDeregister(fh);
		check((open_fds() > fds + 1) == (i >= 2), "descriptors are kept for a lock, and for nothing else");
		mock.getlk_errno = mock.stat_errno = mock.statx_errno = 0;
		close(fd);
		fd = open(path, O_RDWR);
		is(reg_error(fd), 0, "its server is back");
		close(fd);
		is(open_fds(), fds, "then none are");
	}
	close(end[1]);
	close(end[0]);
	close(ready[0]);
	if (waitpid(child, (int *)&i, 0) != child)
		abort();
	is(i, 0, "the other process ended well");
}

/* Registration needs three descriptors, and one is left */
static void test_no_descriptors(int flags, const char *what)
{
	int fd, some[256], n = 0, i;
	struct rlimit old, few;
	CUfileHandle_t fh;
	unsigned int fds;

	fresh(NULL);
	fd = make(path, flags, "abc", 3);
	getrlimit(RLIMIT_NOFILE, &old);
	few = (struct rlimit){ 128, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < 256 && (some[n] = dup(fd)) >= 0)
		n++;
	close(some[--n]);
	is(reg_error(fd), 5031, what);
	i = dup(fd);
	check(i >= 0, "and the last descriptor is free again");
	close(i);
	setrlimit(RLIMIT_NOFILE, &old);
	while (n)
		close(some[--n]);
	fds = open_fds();
	fh = reg(fd);
	check(fh, "later it can be registered");
	cuFileHandleDeregister(fh);
	is(open_fds(), fds, "nothing is left open");
	close(fd);
}

/* What is kept for the sake of a lock is no handle without its descriptors */
static void test_no_descriptors_locked(void)
{
	struct flock l = { .l_type = F_WRLCK };
	int fd, some[256], n = 0;
	struct rlimit old, few;
	CUfileHandle_t fh;
	char c = 0;

	fresh(NULL);
	fd = make(path, 0, "abc", 3);
	if (fcntl(fd, F_SETLK, &l))
		abort();
	getrlimit(RLIMIT_NOFILE, &old);
	few = (struct rlimit){ 128, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < 256 && (some[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	close(some[--n]);
	is(reg_error(fd), 5031, "a locked file, and one descriptor is left");
	setrlimit(RLIMIT_NOFILE, &old);
	while (n)
		close(some[--n]);
	check(is_locked(), "it is still locked");
	fh = reg(fd);
	is(cuFileRead(fh, &c, 1, 1, 0), 1, "later it is registered, and read");
	is(c, 'b', "the right byte");
	cuFileHandleDeregister(fh);
	close(fd);
}

static void test_buffers(void)
{
	char host[100];
	char *g, *g2;
	unsigned int i;

	fresh(NULL);
	g = gpu(MIB(1));
	is(cuFileBufRegister(NULL, 1, 0).err, 5022, "no address");
	is(cuFileBufRegister(g, 0, 0).err, 5022, "no length");
	is(cuFileBufRegister(g, SIZE_MAX, 0).err, 5014, "beyond all addresses");
	is(cuFileBufRegister(g, MIB(1) + 1, 0).err, 5014, "a byte too long");
	is(cuFileBufRegister(g + 1, MIB(1), 0).err, 5014, "from inside, too");
	is(cuFileBufRegister(g, MIB(1), 0).err, 0, "a GPU buffer");
	is(cuFileBufRegister(g, 100, 0).err, 5023, "the same base twice");
	is(cuFileBufRegister(g + 4096, 4096, 0).err, 0, "a part of it");
	is(cuFileBufRegister(host, sizeof(host), 0).err, 0, "host memory");
	is(cuFileBufDeregister(NULL).err, 5022, "deregister nothing");
	is(cuFileBufDeregister(g + 1).err, 5024, "deregister what is unknown");
	is(cuFileBufDeregister(host).err, 0, "deregister host memory");
	is(cuFileBufDeregister(g + 4096).err, 0, "deregister the part");
	is(cuFileBufDeregister(g).err, 0, "deregister it all");
	is(cuFileBufDeregister(g).err, 5024, "and again");
	mock.bar1_size = 0;
	is(cuFileBufRegister(g, MIB(1), 0).err, 0,
	   "registering works with no BAR1 at all");
	cuFileBufDeregister(g);
	g2 = gpu(4096);
	for (i = 0; i < 4096; i++)
		if (cuFileBufRegister(g + (i * 37 % 4096) * 256, 256, 0).err)
			break;
	is(i, 4096, "many buffers");
	is(cuFileBufRegister(g + 256 * 100, 256, 0).err, 5023, "each known");
	for (i = 0; i < 4096; i++)
		if (cuFileBufDeregister(g + i * 256).err)
			break;
	is(i, 4096, "and forgotten");
	gpu_free(g);
	gpu_free(g2);
}

/* ---- transfers ---- */

static void test_arguments(void)
{
	char data[8192], buf[8192], *g;
	CUfileHandle_t fh, ro, wo;
	int fd, rfd, wfd;

	fresh(NULL);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	g = gpu(MIB(1));
	is(cuFileRead(fh, NULL, 1, 0, 0), -5022, "no buffer");
	is(cuFileRead(fh, g, 1, -1, 0), -5022, "a negative file offset");
	is(cuFileRead(fh, g, 1, 0, -1), -5022, "a negative buffer offset");
	is(cuFileRead(fh, g, SIZE_MAX, 0, 0), -5022, "a size without sense");
	is(cuFileRead(fh, g, 2, INT64_MAX, 0), -5022, "beyond all offsets");
	is(cuFileRead(fh, g, 0, 0, 0), 0, "nothing to read");
	is(cuFileWrite(fh, g, 0, 0, 0), 0, "nothing to write");
	is(cuFileRead(fh, g, 4096, 8192, 0), 0, "at the end of the file");
	is(cuFileRead(fh, g, 4096, 1 << 20, 0), 0, "far beyond it");
	is(cuFileRead(fh, g, 100, 9000, 0), 0, "beyond it, unaligned");
	is(cuFileRead(fh, g, MIB(1) + 1, 0, 0), -5014,
	   "more than the memory has");
	is(cuFileRead(fh, g, 4096, 0, MIB(1) - 4095), -5014,
	   "beyond its end by one byte");
	cuFileBufRegister(g, 8192, 0);
	is(cuFileRead(fh, g, 8193, 0, 0), -5017, "past the registration");
	is(cuFileRead(fh, g, 4096, 0, 4097), -5017, "past it by an offset");
	is(cuFileRead(fh, g, 4096, 0, MIB(2)), -5017, "far past it");
	is(cuFileRead(fh, g, 4096, 0, 4096), 4096, "just inside");
	check(!memcmp(mem(g) + 4096, data, 4096), "data");
	is(cuFileRead(fh, g + 8192, 4096, 4096, 0), 4096,
	   "unregistered memory of the same allocation");
	check(!memcmp(mem(g) + 8192, data + 4096, 4096), "data");
	cuFileBufDeregister(g);

	is(cuFileRead(fh, buf, 8192, 0, 0), 8192, "into host memory");
	check(!memcmp(buf, data, 8192), "data");
	is(stats_of(fh).last_path, PLN_PATH_POSIX, "by the posix path");
	is(cuFileRead(fh, (void *)16, 100, 0, 0), -5012,
	   "into an address that is nothing");
	check(strstr(stats_of(fh).reason, "neither"), "with a reason");

	rfd = open(path, O_RDONLY);
	ro = reg(rfd);
	wfd = open(path, O_WRONLY);
	wo = reg(wfd);
	errno = 0;
	is(cuFileWrite(ro, g, 4096, 0, 0), -1, "write to a read-only file");
	is(errno, EBADF, "EBADF");
	is(cuFileWrite(ro, g, 100, 0, 0), -1, "likewise unaligned");
	is(errno, EBADF, "EBADF");
	is(cuFileWrite(ro, buf, 100, 0, 0), -1, "likewise from host memory");
	is(errno, EBADF, "EBADF");
	is(cuFileRead(wo, g, 4096, 0, 0), -1, "read from a write-only file");
	is(errno, EBADF, "EBADF");
	is(cuFileRead(ro, g, 4096, 0, 0), 4096, "the next one works");
	is((long long)stats_of(ro).errors, 3, "errors are counted");
	close(rfd);
	close(wfd);

	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(ro);
	cuFileHandleDeregister(wo);
	close(fd);
	gpu_free(g);
	fresh("{\"properties\":{\"allow_system_memory\":false}}");
	fd = open(path, O_RDWR);
	fh = reg(fd);
	is(cuFileRead(fh, buf, 100, 0, 0), -5013,
	   "host memory when it is not allowed");
	cuFileHandleDeregister(fh);
	close(fd);
}

static void test_paths(void)
{
	const size_t n = MIB(40);
	char *data = malloc(n), *back = malloc(n), *g, *g2;
	struct pln_file_stats s, t;
	CUfileHandle_t fh, out;
	int fd, ofd;

	fresh(NULL);
	noise(data, n);
	fd = make(path, 0, data, n);
	ofd = make(other, 0, "", 0);
	fh = reg(fd);
	out = reg(ofd);
	g = gpu(n);
	g2 = gpu(n);
	t = stats_of(NULL);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "p2p: 40 MiB are read");
	check(!memcmp(mem(g), data, n), "data");
	s = stats_of(fh);
	is((long long)s.path[PLN_PATH_P2P].bytes_read, (long long)n,
	   "all of it by p2p");
	is((long long)s.path[PLN_PATH_BOUNCE].bytes_read, 0, "none staged");
	is(s.last_path, PLN_PATH_P2P, "the last path");
	is((long long)s.fallbacks, 0, "no fall-back");
	check(!s.reason[0], "no reason needed");
	is((long long)mock.p2p_bytes, (long long)n, "the mock agrees");
	is((long long)mock.copies, 0, "CUDA copied nothing");
	is(cuFileWrite(out, g, n, 0, 0), (long long)n, "and written");
	is(pread(ofd, back, n, 0), (long long)n, "the file has its size");
	check(!memcmp(back, data, n), "data");
	is((long long)stats_of(out).path[PLN_PATH_P2P].bytes_written,
	   (long long)n, "all of it by p2p");
	is((long long)(stats_of(NULL).path[PLN_PATH_P2P].bytes_read -
		       t.path[PLN_PATH_P2P].bytes_read), (long long)n,
	   "totals agree");
	is((long long)stats_of(NULL).windows, 3, "three windows of at most 16 MiB");
	cuFileRead(fh, g, 4096, 0, 0);
	is((long long)mock.maps, 3, "which later transfers find again");

	/* the whole file in a program's order of its own */
	memset(mem(g2), 0, n);
	mock.short_io = 12288;
	mock.interrupt = 7;
	is(cuFileRead(fh, g2, n, 0, 0), (long long)n,
	   "p2p: short transfers go on, signals are no end");
	check(!memcmp(mem(g2), data, n), "data");
	memset(mem(g2), 0, n);
	setenv("CUFILE_FORCE_COMPAT_MODE", "1", 1);
	cuFileDriverClose();
	cuFileDriverOpen();
	fh = reg(fd);
	out = reg(ofd);
	is(cuFileRead(fh, g2, MIB(3), 0, 0), (long long)MIB(3),
	   "bounce: likewise");
	check(!memcmp(mem(g2), data, MIB(3)), "data");
	mock.short_io = 0;
	mock.interrupt = 0;
	is(cuFileRead(fh, g2, n, 0, 0), (long long)n, "bounce: 40 MiB are read");
	check(!memcmp(mem(g2), data, n), "data");
	s = stats_of(fh);
	is((long long)s.path[PLN_PATH_P2P].bytes_read, 0, "none by p2p");
	is((long long)s.path[PLN_PATH_BOUNCE].bytes_read,
	   (long long)(n + MIB(3)), "all staged");
	check(strstr(s.reason, "force_compat_mode"), "and why");
	is(ftruncate(ofd, 0), 0, "empty the other file");
	is(cuFileWrite(out, g2, n, 0, 0), (long long)n, "bounce: written");
	is(pread(ofd, back, n, 0), (long long)n, "the file has its size");
	check(!memcmp(back, data, n), "data");
	check(mock.pinned > 0, "the buffers are pinned");
	mock.no_streams = true;
	unsetenv("CUFILE_FORCE_COMPAT_MODE");
	cuFileDriverClose();
	is(mock.pinned, 0, "closing unpins them");
	is((long long)stats_of(NULL).lanes, 0, "and gives them back");

	setenv("CUFILE_FORCE_COMPAT_MODE", "1", 1);
	mock.no_pinning = true;
	cuFileDriverOpen();
	fh = reg(fd);
	memset(mem(g2), 0, n);
	is(cuFileRead(fh, g2, n, 0, 0), (long long)n,
	   "bounce: without streams and pinned memory");
	check(!memcmp(mem(g2), data, n), "data");
	unsetenv("CUFILE_FORCE_COMPAT_MODE");
	fresh(NULL);
	gpu_free(g);
	gpu_free(g2);
	close(fd);
	close(ofd);
	free(data);
	free(back);
}

static void refusal(int err, const char *kernel, const char *words)
{
	const size_t n = MIB(2);
	char *data = malloc(n), *g;
	struct pln_file_stats s;
	CUfileHandle_t fh;
	uint64_t calls;
	int fd;

	fresh(NULL);
	noise(data, n);
	fd = make(path, 0, data, n);
	fh = reg(fd);
	g = gpu(n);
	mock.p2p_errno = err;
	mock.kernel_line = kernel;
	printf("# p2p answers errno %d\n", err);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "refused: read all the same");
	check(!memcmp(mem(g), data, n), "data");
	s = stats_of(fh);
	is(s.last_path, PLN_PATH_BOUNCE, "bounce, and it says so");
	is(s.last_errno, err, "errno is told");
	if (!check(strstr(s.reason, words) != NULL, "the reason: %s", words))
		printf("# %s\n", s.reason);
	is((long long)s.fallbacks, 1, "a fall-back is counted");
	calls = mock.p2p_calls;
	mock.p2p_errno = 0;
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "once more");
	is((long long)(mock.p2p_calls - calls), 0,
	   "the verdict is remembered for this pair");
	is(cuFileWrite(fh, g, n, 0, 0), (long long)n, "write too");
	is((long long)(mock.p2p_calls - calls), 0, "without trying");
	cuFileDriverClose();
	setenv("PEERLANE_STRICT", "1", 1);
	cuFileDriverOpen();
	mock.p2p_errno = err;
	fh = reg(fd);
	memset(mem(g), 0, n);
	mock.host_bytes = 0;
	is(cuFileRead(fh, g, n, 0, 0), -5008, "strict: refused");
	is((long long)mock.host_bytes, 0, "and nothing staged");
	s = stats_of(fh);
	check(s.reason[0] && s.last_error == -5008, "with a reason: %s",
	      s.reason);
	mock.p2p_errno = 0;
	is(cuFileRead(fh, g, n, 0, 0), (long long)n,
	   "strict: works when p2p does");
	is(cuFileRead(fh, g, 100, 0, 0), 100, "strict: unaligned, too");
	is((long long)mock.host_bytes, 0, "by p2p");
	is(cuFileRead(fh, data, 100, 0, 0), 100, "strict: host memory is fine");
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}

static void test_refusals(void)
{
	char data[65536], kmsg[300], *g;
	CUfileHandle_t fh;
	struct pln_file_stats s;
	int fd, mfd;

	unsetenv("PEERLANE_KMSG");
	snprintf(kmsg, sizeof(kmsg), "%s.kmsg", path);
	fclose(fopen(kmsg, "w"));
	setenv("PEERLANE_KMSG", kmsg, 1);
	refusal(EINVAL, "4,812,2345,-;nvme 0000:00:04.0: cannot be used for "
		"peer-to-peer DMA as the client and provider (0000:42:00.0) do "
		"not share an upstream bridge or whitelisted host bridge\n "
		"SUBSYSTEM=pci\n",
		"do not share an upstream bridge or whitelisted host bridge");
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	refusal(EREMOTEIO, NULL,
		"EREMOTEIO (121): the kernel refuses DMA between");
	refusal(EFAULT, NULL, "no P2PDMA in this kernel");
	refusal(EOPNOTSUPP, NULL, "the storage driver does not do");

	/* GPUs whose memory cannot be mapped at all */
	fresh(NULL);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	g = gpu(sizeof(data));
	mock.handle_error = 801;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "no dma-buf: read all the same");
	s = stats_of(fh);
	check(strstr(s.reason, "CUDA_ERROR_NOT_SUPPORTED"), "why: %s",
	      s.reason);
	fresh(NULL);
	fh = reg(fd);
	mock.mmap_errno = ENODEV;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "a dma-buf that cannot be mapped: read all the same");
	s = stats_of(fh);
	check(strstr(s.reason, "cannot be mapped: ENODEV"), "why: %s",
	      s.reason);
	mock.mmap_errno = 0;
	cuFileRead(fh, g, sizeof(data), 0, 0);
	is((long long)mock.p2p_calls, 0, "remembered");
	fresh(NULL);
	fh = reg(fd);
	mock.handle_error = 46;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "a dma-buf that fails once: read all the same");
	mock.handle_error = 0;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data), "and again");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "then by p2p");

	/* O_DIRECT itself does not work, p2p is not to blame */
	fresh(NULL);
	fh = reg(fd);
	mock.p2p_errno = EINVAL;
	mock.p2p_count = 1;
	mock.host_errno = EINVAL;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), -1,
	   "EINVAL whatever the memory");
	is(errno, EINVAL, "is EINVAL for the program");
	mock.host_errno = 0;

	/* an error of the moment is no verdict, not even at first */
	fresh(NULL);
	fh = reg(fd);
	mock.p2p_errno = ENOMEM;
	mock.p2p_count = 1;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "no memory at the first try: read all the same");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "which is staged");
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data), "and again");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");

	/* the same request with host memory is the same in size, too */
	fresh(NULL);
	close(fd);
	fd = make(path, O_DIRECT, data, sizeof(data));
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	is(cuFileWrite(fh, g, 4608, 0, 0), 4608, "p2p of the first write fails");
	s = stats_of(fh);
	check(strstr(s.reason, "p2p refused: EREMOTEIO"), "why: %s", s.reason);
	mock.p2p_errno = 0;
	cuFileHandleDeregister(fh);
	close(fd);
	fd = make(path, 0, data, sizeof(data));

	/* what works stays: a single failure is no verdict */
	fresh(NULL);
	fh = reg(fd);
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data), "p2p works");
	mock.p2p_errno = EREMOTEIO;
	mock.p2p_count = 1;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "then fails once");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "which is staged");
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data), "then works");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");

	/* a file system that only looks as if it did direct IO */
	fresh(NULL);
	mfd = memfd_create("data", 0);
	if (write(mfd, data, sizeof(data)) != sizeof(data))
		abort();
	fh = reg(mfd);
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "a file in host memory");
	check(!memcmp(mem(g), data, sizeof(data)), "data");
	is((long long)mock.p2p_calls, 0, "p2p is not tried");
	s = stats_of(fh);
	check(s.last_path == PLN_PATH_BOUNCE && s.reason[0], "why: %s",
	      s.reason);
	close(mfd);

	fresh("{\"peerlane\":{\"use_pci_p2pdma\":false}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "p2p switched off");
	is((long long)mock.p2p_calls, 0, "is not tried");
	fresh("{\"properties\":{\"allow_compat_mode\":false},"
	      "\"peerlane\":{\"use_pci_p2pdma\":false}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, sizeof(data), 0, 0), -5008,
	   "nothing allowed: refused");
	close(fd);
	gpu_free(g);
	unlink(kmsg);
}

/* Pages that are not whole are the page cache's, whatever the drive's block is */
static void test_pages(void)
{
	static const struct {
		size_t n, at;
		uint64_t p2p;
	} writes[] = {
		{ 512, 0, 0 }, { 512, 512, 0 }, { 4096, 512, 0 },
		{ 4608, 0, 4096 }, { 8192, 512, 4096 }, { 8192, 0, 8192 },
	};
	char *g = gpu(65536);
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	for (i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		fresh(NULL);
		fd = make(path, 0, NULL, 0);
		if (ftruncate(fd, 65536))
			abort();
		fh = reg(fd);
		is(cuFileWrite(fh, g, writes[i].n, writes[i].at, 0),
		   writes[i].n, "a write");
		check(mock.p2p_bytes == writes[i].p2p,
		      "%zu bytes at %zu: %llu of them by p2p, want %llu",
		      writes[i].n, writes[i].at,
		      (unsigned long long)mock.p2p_bytes,
		      (unsigned long long)writes[i].p2p);
		close(fd);
	}
	gpu_free(g);
}

/* One range of addresses, two allocations behind it */
static void test_two_allocations(void)
{
	const size_t n = MIB(4);
	char *data = malloc(2 * n), *g = (char *)(uintptr_t)mock_two(n);
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	noise(data, 2 * n);
	fd = make(path, 0, data, 2 * n);
	fh = reg(fd);
	is(cuFileRead(fh, g, 2 * n, 0, 0), 2 * n, "a read across both");
	check(!memcmp(mem(g), data, n) && !memcmp(mem(g + n), data + n, n),
	      "both have the data");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");
	is((long long)mock.p2p_bytes, 2 * n, "all of it");
	is(cuFileRead(fh, g, 8192, n - 4096, n - 4096), 8192, "a small one");
	is(cuFileWrite(fh, g, 2 * n, 0, 0), 2 * n, "a write of both");
	mock.p2p_errno = EREMOTEIO;
	mock.p2p_count = -1;
	memset(mem(g), 0, n);
	memset(mem(g + n), 0, n);
	is(cuFileRead(fh, g, 2 * n, 0, 0), 2 * n, "staged");
	check(!memcmp(mem(g), data, n) && !memcmp(mem(g + n), data + n, n),
	      "the same data");
	mock.p2p_errno = 0;
	cuFileHandleDeregister(fh);
	close(fd);

	/* Registered while there is only the first */
	fresh(NULL);
	gpu_free(g + n);
	fd = make(path, 0, data, 2 * n);
	fh = reg(fd);
	is(cuFileBufRegister(g, 2 * n, 0).err, 0, "a range mapped in part");
	is(cuFileRead(fh, g, n, 0, 0), n, "a read of what is there");
	is(cuFileRead(fh, g, n + 1, 0, 0), -5014, "a read of more");
	is((uintptr_t)gpu(n), (uintptr_t)(g + n), "the rest is mapped");
	memset(mem(g + n), 0, n);
	is(cuFileRead(fh, g, 2 * n, 0, 0), 2 * n, "a read of all of it");
	check(!memcmp(mem(g + n), data + n, n), "the right data");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");
	is(cuFileBufDeregister(g).err, 0, "deregister");
	close(fd);
	gpu_free(g + n);
	gpu_free(g);
	free(data);
}

struct once {
	CUfileHandle_t fh;
	char *g;
	ssize_t result;
};

static void *read_once(void *arg)
{
	struct once *o = arg;

	o->result = cuFileRead(o->fh, o->g, 4096, 0, 0);
	return NULL;
}

static void *close_now(void *arg)
{
	(void)arg;
	cuFileDriverClose();
	return NULL;
}

/* The last close waits for a transfer; meanwhile another thread begins anew */
static void test_close_open(void)
{
	char *g = gpu(4096), data[4096];
	pthread_t reader, closer;
	struct once once = { 0 };
	CUfileHandle_t fh;
	int fd, tries;

	fresh(NULL);
	fd = make(path, 0, data, sizeof(data));
	once.fh = reg(fd);
	once.g = g;
	mock.hold_io = true;
	pthread_create(&reader, NULL, read_once, &once);
	for (tries = 0; tries < 20000 && !mock.in_io; tries++)
		usleep(1000);
	pthread_create(&closer, NULL, close_now, NULL);
	for (tries = 0; tries < 20000 && cuFileUseCount(); tries++)
		usleep(1000);
	check(mock.in_io == 1 && !cuFileUseCount(),
	      "the library closes while a transfer is under way");
	mock.slow_ms = 300;
	mock.hold_io = false;
	is(cuFileDriverOpen().err, 0, "open meanwhile");
	fh = reg(fd);
	is(cuFileBufRegister(g, 4096, 0).err, 0, "register a buffer");
	pthread_join(reader, NULL);
	pthread_join(closer, NULL);
	mock.slow_ms = 0;
	is(once.result, 4096, "the transfer has ended well");
	is(cuFileUseCount(), 1, "it is open once");
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "the new handle is there");
	is(cuFileBufDeregister(g).err, 0, "and the new buffer");
	close(fd);
	gpu_free(g);
}

struct reader {
	pthread_t thread;
	CUfileHandle_t fh;
	char *g;
	ssize_t result;
	_Atomic bool done;
};

static void *read_one(void *arg)
{
	struct reader *r = arg;

	r->result = cuFileRead(r->fh, r->g, MIB(1), 0, 0);
	r->done = true;
	return NULL;
}

/* Two transfers at once, and memory for the staging buffers of neither */
static void test_no_lanes(void)
{
	struct reader r[2] = { 0 };
	char *data = malloc(MIB(1));
	int fd, i, tries;

	fresh("{\"peerlane\":{\"use_pci_p2pdma\":false}}");
	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	mock.anon_errno = ENOMEM;
	mock.anon_together = 2;
	for (i = 0; i < 2; i++) {
		r[i].fh = reg(dup(fd));
		r[i].g = gpu(MIB(1));
		pthread_create(&r[i].thread, NULL, read_one, &r[i]);
	}
	for (tries = 0; tries < 1000 && !(r[0].done && r[1].done); tries++)
		usleep(10000);
	if (!check(r[0].done && r[1].done,
		   "no staging buffers for two transfers: both end")) {
		printf("1..%u\n", checks);
		_exit(1);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(r[i].thread, NULL);
		is(r[i].result, MIB(1), "well");
		check(!memcmp(mem(r[i].g), data, MIB(1)), "with the right data");
		gpu_free(r[i].g);
	}
	is((long long)stats_of(NULL).lanes, 1, "by the buffers of the open");
	mock.anon_errno = 0;
	is(cuFileRead(r[0].fh, r[0].g = gpu(MIB(1)), MIB(1), 0, 0), MIB(1),
	   "with memory the next goes");
	gpu_free(r[0].g);
	close(fd);
	free(data);
}

static void test_media(void)
{
	const size_t n = MIB(4);
	char *data = malloc(n), *g;
	CUfileHandle_t fh;
	int fd, pass;

	noise(data, n);
	fd = make(path, 0, data, n);
	g = gpu(n);
	for (pass = 0; pass < 2; pass++) {
		fresh(pass ? "{\"properties\":{\"force_compat_mode\":true}}" :
			     NULL);
		printf("# %s\n", pass ? "bounce" : "p2p");
		fh = reg(fd);
		mock.bad_from = MIB(2) + 4096;
		mock.bad_to = mock.bad_from + 4096;
		mock.media_errno = EIO;
		is(cuFileRead(fh, g, n, 0, 0), (long long)mock.bad_from,
		   "a bad block: what lies before it is read");
		check(!memcmp(mem(g), data, mock.bad_from), "data");
		errno = 0;
		is(cuFileRead(fh, g, n - mock.bad_from, (off_t)mock.bad_from,
			      0), -1, "then an error");
		is(errno, EIO, "with EIO");
		check(strstr(stats_of(fh).reason, "EIO"), "and a reason: %s",
		      stats_of(fh).reason);
		/* an error of a read by p2p is met again, staged, as a write may have come between */
		is((long long)stats_of(fh).path[PLN_PATH_BOUNCE].bytes_read,
		   pass ? (long long)mock.bad_from : 0, "and nothing is staged behind it");
		/* what lies there of a read that failed is undefined */
		memcpy(mem(g), data, n);
		if (!pass) {
			/* an error that another try would not meet */
			mock.media_errno = 0;
			mock.p2p_errno = EIO;
			mock.p2p_count = 1;
			errno = 0;
			is(cuFileWrite(fh, g, n, 0, 0), -1, "EIO of a write, once only");
			is(errno, EIO, "is told all the same");
			mock.p2p_errno = 0;
			mock.p2p_count = -1;
		}
		mock.media_errno = ENODATA;
		is(cuFileRead(fh, g, 4096, (off_t)mock.bad_from, 0), -1,
		   "a medium error of the block layer");
		is(errno, EIO, "is EIO too");
		mock.media_errno = EIO;
		is(cuFileWrite(fh, g, n, 0, 0), (long long)mock.bad_from,
		   "a write likewise");
		is(cuFileWrite(fh, g, 4096, (off_t)mock.bad_from, 0), -1,
		   "then an error");
		is(errno, EIO, "with EIO");
		is(cuFileRead(fh, g, 4096 + 100, (off_t)mock.bad_from - 4096,
			      (off_t)mock.bad_from - 4096), 4096,
		   "unaligned: likewise");
		mock.media_errno = ENOSPC;
		is(cuFileWrite(fh, g, n, 0, 0), (long long)mock.bad_from,
		   "a full disk: what fitted is told");
		is(cuFileWrite(fh, g, 4096, (off_t)mock.bad_from, 0), -1,
		   "then an error");
		is(errno, ENOSPC, "with ENOSPC");
		mock.media_errno = 0;
		is(cuFileRead(fh, g, n, 0, 0), (long long)n, "the next one works");
		if (pass) {
			mock.copy_error = 700;
			is(cuFileRead(fh, g, n, 0, 0), -5011,
			   "a copy that CUDA refuses");
			check(strstr(stats_of(fh).reason, "CUDA"), "is named");
			mock.copy_after = 3;
			is(cuFileRead(fh, g, n, 0, 0), -5011, "later, too");
			mock.copy_after = 3;
			is(cuFileWrite(fh, g, n, 0, 0), -5011, "in writes, too");
			mock.copy_error = 0;
			is(cuFileRead(fh, g, n, 0, 0), (long long)n,
			   "the next one works");
		}
	}
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}

static void test_windows(void)
{
	const size_t n = MIB(8);
	char *data = malloc(n), *g[4], *p;
	struct pln_file_stats s, t;
	CUfileHandle_t fh;
	unsigned int i, loop;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	fresh("{\"peerlane\":{\"window_size_kb\":1024}}");
	fh = reg(fd);
	t = stats_of(NULL);
	mock.bar1_size = MIB(3);
	for (i = 0; i < 4; i++) {
		g[i] = gpu(n);
		is(cuFileBufRegister(g[i], n, 0).err, 0,
		   "register more than BAR1 has");
	}
	for (loop = 0; loop < 2; loop++)
		for (i = 0; i < 4; i++) {
			is(cuFileRead(fh, g[i], n, 0, 0), (long long)n, "read");
			check(!memcmp(mem(g[i]), data, n), "data");
		}
	s = stats_of(NULL);
	check(s.window_evictions - t.window_evictions >= 8 * 8 - 3,
	      "windows were given up for others");
	is((long long)stats_of(fh).path[PLN_PATH_BOUNCE].bytes_read, 0,
	   "nothing was staged");
	check(mock.bar1_used <= (int64_t)MIB(3), "BAR1 was not exceeded");
	mock.bar1_size = KIB(192);
	is(cuFileRead(fh, g[0], n, 0, 0), (long long)n,
	   "a window does not fit: smaller ones are used");
	check(!memcmp(mem(g[0]), data, n), "data");
	is((long long)stats_of(fh).path[PLN_PATH_BOUNCE].bytes_read, 0,
	   "nothing was staged");
	mock.bar1_size = KIB(32);
	is(cuFileRead(fh, g[1], n, 0, 0), (long long)n, "no window fits");
	check(!memcmp(mem(g[1]), data, n), "data");
	check(strstr(stats_of(fh).reason, "BAR1 is full"), "why: %s",
	      stats_of(fh).reason);
	mock.bar1_size = -1;
	is(cuFileRead(fh, g[1], n, 0, 0), (long long)n, "room again");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "and p2p again");
	for (i = 0; i < 4; i++)
		is(cuFileBufDeregister(g[i]).err, 0, "deregister");
	is((long long)stats_of(NULL).windows, 0, "gives the windows back");
	is((long long)mock.bar1_used, 0, "all of them");

	/* memory that is freed, and other memory at its address */
	is(cuFileRead(fh, g[0], n, 0, 0), (long long)n, "map it");
	p = g[0];
	gpu_free(g[0]);
	is(cuFileRead(fh, p, 4096, 0, 0), -5012, "freed memory is no memory");
	g[0] = gpu(n);
	check(g[0] == p, "new memory has the same address");
	is(cuFileRead(fh, g[0], n, 0, 0), (long long)n, "read into it");
	check(!memcmp(mem(g[0]), data, n),
	      "and the data is in the new memory, not in the old");
	/* the same when nothing tells that the old mapping is stale */
	mock.no_revoke = true;
	gpu_free(g[0]);
	g[0] = gpu(n);
	memset(mem(g[0]), 0, n);
	check(g[0] == p, "once more at the same address");
	is(cuFileRead(fh, g[0], n, 0, 0), (long long)n, "read into it");
	check(!memcmp(mem(g[0]), data, n), "the data is in the new memory");
	mock.no_revoke = false;
	/* the limit of pinned memory */
	fresh("{\"peerlane\":{\"window_size_kb\":1024},\"properties\":{"
	      "\"max_device_pinned_mem_size_kb\":2048}}");
	fh = reg(fd);
	is(cuFileRead(fh, g[0], n, 0, 0), (long long)n, "a limit of 2 MiB");
	check(mock.bar1_used <= (int64_t)MIB(2), "is kept");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");
	fresh(NULL);
	is((long long)mock.bar1_used, 0, "closing gives all windows back");
	for (i = 0; i < 4; i++)
		gpu_free(g[i]);
	close(fd);
	free(data);
}

/* ---- threads ---- */

#define THREADS	8
#define AREA	MIB(1)

static CUfileHandle_t shared;
static char *shared_gpu;
static _Atomic int thread_bad;

static void *worker(void *arg)
{
	unsigned int id = (unsigned int)(uintptr_t)arg, i;
	uint64_t s = id * 7919 + 1;
	char *mine = mem(shared_gpu) + id * AREA;
	unsigned char *want = malloc(AREA);

	for (i = 0; i < 60; i++) {
		size_t off, len;

		s = s * 6364136223846793005ull + 1442695040888963407ull;
		off = (s >> 33) % (AREA / 2);
		len = (s >> 20) % (AREA / 2) + 1;
		if (i % 3 == 0) {
			off &= ~(size_t)4095;
			len = (len + 4095) & ~(size_t)4095;
		}
		memset(mine, (int)(i + id), AREA);
		memset(want, (int)(i + id), AREA);
		if (cuFileWrite(shared, shared_gpu, len,
				(off_t)(id * AREA + off),
				(off_t)(id * AREA + off)) != (ssize_t)len)
			thread_bad++;
		memset(mine, 0, AREA);
		if (cuFileRead(shared, shared_gpu, len,
			       (off_t)(id * AREA + off),
			       (off_t)(id * AREA + off)) != (ssize_t)len)
			thread_bad++;
		if (memcmp(mine + off, want + off, len))
			thread_bad++;
	}
	free(want);
	return NULL;
}

static void threads(const char *what, const char *json, int p2p_errno,
		    int64_t bar1)
{
	pthread_t t[THREADS];
	unsigned int i;
	int fd;

	fresh(json);
	mock.p2p_errno = p2p_errno;
	mock.bar1_size = bar1;
	fd = make(path, 0, "", 0);
	shared = reg(fd);
	shared_gpu = gpu(THREADS * AREA);
	thread_bad = 0;
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, worker, (void *)(uintptr_t)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	is(thread_bad, 0, what);
	cuFileHandleDeregister(shared);
	gpu_free(shared_gpu);
	close(fd);
}

static void *closer(void *arg)
{
	(void)arg;
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	return NULL;
}

static void *reader(void *arg)
{
	ssize_t r;

	do {
		r = cuFileRead(shared, shared_gpu, MIB(1), 0, 0);
	} while (r == (ssize_t)MIB(1));
	*(long *)arg = r;
	return NULL;
}

static void test_threads(void)
{
	char *data = calloc(1, MIB(1));
	pthread_t t[5];
	long r[4];
	int fd, i, round;

	threads("8 threads, p2p", NULL, 0, -1);
	threads("8 threads, p2p, a small BAR1",
		"{\"peerlane\":{\"window_size_kb\":128}}", 0, KIB(384));
	threads("8 threads, bounce", NULL, EREMOTEIO, -1);
	set_slabs(64, 4);
	threads("8 threads, bounce, two lanes for all",
		"{\"peerlane\":{\"min_io_threshold_size_kb\":64}}", EREMOTEIO, -1);
	is((long long)stats_of(NULL).lanes, 2, "which there are");
	set_slabs(0, 0);

	for (round = 0; round < 2; round++) {
		fresh(round & 1 ? "{\"properties\":{\"force_compat_mode\":"
		      "true}}" : NULL);
		fd = make(path, 0, data, MIB(1));
		shared = reg(fd);
		shared_gpu = gpu(MIB(1));
		mock.slow_ms = 100;
		pthread_create(&t[0], NULL, reader, &r[0]);
		for (i = 0; i < 5000 && !mock.in_io; i++)
			usleep(1000);
		is(cuFileDriverClose().err, 0, "close with a transfer on its way");
		is(mock.in_io, 0, "waits for its end");
		pthread_join(t[0], NULL);
		is(r[0], -5001, "and the next one is refused");
		gpu_free(shared_gpu);
		close(fd);
	}
	for (round = 0; round < 5; round++) {
		bool good = true;

		fresh(round & 1 ? "{\"properties\":{\"force_compat_mode\":"
		      "true}}" : NULL);
		fd = make(path, 0, data, MIB(1));
		shared = reg(fd);
		shared_gpu = gpu(MIB(1));
		for (i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, reader, &r[i]);
		usleep(1000);
		pthread_create(&t[4], NULL, closer, NULL);
		for (i = 0; i < 5; i++)
			pthread_join(t[i], NULL);
		for (i = 0; i < 4; i++)
			good &= r[i] == -5001 || r[i] == -5027;
		check(good, "closing under load: transfers end well, later "
		      "ones are told");
		gpu_free(shared_gpu);
		close(fd);
	}
	free(data);
}

static void test_fork(void)
{
	CUfileHandle_t fh;
	char *g, c;
	unsigned int fds;
	int fd, status;
	pid_t pid;

	fresh(NULL);
	fd = make(path, 0, "abcd", 4);
	fh = reg(fd);
	g = gpu(4096);
	is(cuFileRead(fh, g, 4, 0, 0), 4, "before a fork");
	fds = open_fds();
	pid = fork();
	if (!pid) {
		struct pln_file_stats stats = { .size = sizeof(stats) };
		bool good = pln_file_stats(fh, &stats) == -ECHILD &&
			    pln_file_stats(NULL, &stats) == -ECHILD &&
			    pln_file_stats_json(NULL, NULL, 0) == -ECHILD &&
			    cuFileRead(fh, g, 4, 0, 0) == -5001 &&
			    cuFileRead(fh, &c, 1, 0, 0) == -5001 &&
			    cuFileDriverOpen().err == 5001 &&
			    cuFileDriverClose().err == 5001 &&
			    cuFileUseCount() == 0 &&
			    cuFileBufRegister(&c, 1, 0).err == 5001;

		cuFileHandleDeregister(fh);
		_exit((good ? 0 : 1) | (open_fds() == fds ? 0 : 2));
	}
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && !(WEXITSTATUS(status) & 1),
	      "in the child every call says: not open");
	check(WIFEXITED(status) && !(WEXITSTATUS(status) & 2),
	      "and no descriptor of the program's is closed");
	is(cuFileRead(fh, g, 4, 0, 0), 4, "the parent goes on");
	close(fd);
	gpu_free(g);
	fresh(NULL);
}

static struct {
	CUfileHandle_t fh;
	char *g;
	_Atomic int result;	/* of the close, -1: not yet */
} gone;

static void *deregister_buffer(void *arg)
{
	*(int *)arg = cuFileBufDeregister(gone.g).err;
	return NULL;
}

static void *deregister_handle(void *arg)
{
	cuFileHandleDeregister(gone.fh);
	*(int *)arg = 0;
	return NULL;
}

static void *close_last(void *arg)
{
	gone.result = cuFileDriverClose().err;
	return arg;
}

/* What gives back a window or a file, and who closes the library meanwhile */
static void test_deregister_close(void)
{
	_Atomic bool *const hold[] = { &mock.hold_unmap, &mock.hold_close };
	_Atomic int *const in[] = { &mock.in_unmap, &mock.in_close };
	void *(*const how[])(void *) = { deregister_buffer, deregister_handle };
	static const char *const name[] = { "buffer", "handle" };
	char data[4096] = "";
	pthread_t thread, closer;
	int i, r, fd;

	for (i = 0; i < 2; i++) {
		fresh(NULL);
		fd = make(path, 0, data, sizeof(data));
		gone.fh = reg(fd);
		gone.g = gpu(4096);
		is(cuFileBufRegister(gone.g, 4096, 0).err, 0, "a buffer");
		is(cuFileRead(gone.fh, gone.g, 4096, 0, 0), 4096, "a window");
		gone.result = r = -1;
		*hold[i] = true;
		pthread_create(&thread, NULL, how[i], &r);
		AWAIT(*in[i]);
		pthread_create(&closer, NULL, close_last, NULL);
		while (!mock.in_cond && gone.result < 0)
			usleep(100);
		check(gone.result < 0, "the last close waits for who deregisters a %s",
		      name[i]);
		*hold[i] = false;
		pthread_join(closer, NULL);
		pthread_join(thread, NULL);
		is(gone.result, 0, "and then it closes");
		is(r, 0, "that was deregistered");
		is(mock.bar1_used, 0, "and nothing stays mapped");
		gpu_free(gone.g);
		close(fd);
	}
	fresh(NULL);
}

static void *open_now(void *arg)
{
	*(int *)arg = cuFileDriverOpen().err;
	return NULL;
}

/* The parent's locks may be held by threads that a child does not have */
static void test_fork_in_open(void)
{
	pthread_t opener;
	int status, r, i;
	pid_t pid;

	fresh("{}");
	cuFileDriverClose();
	mock.hold_stat = true;
	pthread_create(&opener, NULL, open_now, &r);
	for (i = 0; i < 5000 && !mock.in_stat; i++)
		usleep(1000);
	pid = fork();
	if (!pid) {
		alarm(5);
		_exit(cuFileUseCount() || cuFileDriverOpen().err != 5001);
	}
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && !WEXITSTATUS(status),
	      "a child of while another thread opens is told so, too");
	mock.hold_stat = false;
	pthread_join(opener, NULL);
	is(r, 0, "that thread gets its open library");
	fresh(NULL);
}

static void test_stats(void)
{
	struct pln_file_stats s = { .size = 8 };
	struct { struct pln_file_stats s; uint64_t more; } larger;

	fresh(NULL);
	is(pln_file_stats(NULL, NULL), -EINVAL, "stats to nowhere");
	is(pln_file_stats(NULL, &s), -EINVAL, "stats of another size");
	s.size = sizeof(s);
	is(pln_file_stats((void *)0x1234, &s), -EBADF, "stats of no handle");
	is(pln_file_stats(NULL, &s), 0, "totals");
	memset(&larger, 0xff, sizeof(larger));
	is(pln_file_stats(NULL, &larger.s), -EINVAL, "a size that was never set");
	larger.s.size = sizeof(larger);
	is(pln_file_stats(NULL, &larger.s), 0, "a larger structure");
	check(!larger.more && larger.s.size == sizeof(larger) &&
	      larger.s.lanes == s.lanes, "what the library does not know is 0");
	check(!strcmp(pln_path_name(PLN_PATH_P2P), "p2p") &&
	      !strcmp(pln_path_name(PLN_PATH_BOUNCE), "bounce") &&
	      !strcmp(pln_path_name(77), "unknown"), "names of paths");
}

static void test_no_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
	check(1, "# SKIP allocations are ASan's own here");
#else
	const size_t n = MIB(1);
	char *data = malloc(n), *g;
	unsigned int i, bad = 0, errors = 0;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	g = gpu(n);
	for (i = 0; i < 60; i++) {
		CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				    .handle.fd = fd };
		CUfileHandle_t fh;
		ssize_t r;
		int e;

		fresh(i & 1 ? "{\"properties\":{\"force_compat_mode\":true}}" :
			      NULL);
		mock.alloc_after = i / 2;
		e = cuFileBufRegister(g, n, 0).err;
		if (e && e != CU_FILE_NOMEM_ERROR)
			bad++;
		e = cuFileHandleRegister(&fh, &d).err;
		if (e) {
			errors++;
			if (e != CU_FILE_NOMEM_ERROR)
				bad++;
			mock.alloc_after = -1;
			continue;
		}
		memset(mem(g), 0, n);
		r = cuFileRead(fh, g, n, 0, 0);
		if (r == (ssize_t)n) {
			if (memcmp(mem(g), data, n))
				bad++;
		} else {
			errors++;
			if (r != -1 || errno != ENOMEM)
				bad++;
		}
		mock.alloc_after = -1;
		if (cuFileRead(fh, g, n, 0, 0) != (ssize_t)n ||
		    memcmp(mem(g), data, n))
			bad++;
	}
	is(bad, 0, "each allocation fails once: an error or the right data, "
	   "and the next transfer works");
	check(errors >= 2, "and some did fail (%u)", errors);
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
#endif
}

/* With one thread at a time, but for helpers of the library */
static void alone(const char *dir)
{
	test_unknown_keys();	/* first: in processes without settings */
	test_no_effect();
	test_default_file();
	test_environment();
	test_log_dir();
	test_log_wrong();
	test_driver();
	test_config();
	test_stats();
	test_handles();
	test_locks();
	test_no_descriptors(0, "one descriptor is left: not registered");
	test_no_descriptors(O_DIRECT, "the same with O_DIRECT");
	test_no_descriptors_locked();
	test_foreign_lock();
	snprintf(other, sizeof(other), "%s/other", dir);
	test_buffers();
	test_arguments();
	test_paths();
	test_refusals();
	test_no_compat();
	test_environment_compat();
	test_unaligned_key();
	test_large_blocks();
	test_denylist();
	test_mounts();
	test_drives();
	test_layers();
	test_stock_file();
	test_told();
	test_told_strict();
	test_kernel_words();
	test_kernel_words_once();
	test_costs();
	test_half_probe();
	test_direct_collision();
	test_p2p_collision();
	test_strict_collision();
	test_refused_before();
	test_refused_looked_at();
	test_each_reason();
	test_first_errno();
	test_refused_pair();
	test_refused_pieces();
	test_refused_halves();
	test_refused_mapping();
	test_refused_memory();
	test_out_of_files();
	test_pages();
	test_two_allocations();
	test_media();
	test_odd_write();
	test_host_direct();
	test_short_write();
	test_append_later();
	test_number_again();
	test_number_taken();
	test_number_blind();
	test_number_read();
	test_number_moved();
	test_number_unshared();
	test_number_told();
	test_number_other();
	test_number_steps();
	test_number_astray();
	test_number_twice();
	test_number_passed();
	test_number_anew();
	test_number_kept();
	test_open_flags();
	test_low_numbers();
	test_low_numbers_first();
	test_low_numbers_threads();
	test_no_again();
	test_blocks();
	test_half_there();
	test_strict_end();
	test_huge();
	test_scratch();
	test_scratch_together();
	test_scratch_none();
	test_scratch_write();
	test_vectors();
	test_vector_counts();
	test_settings_calls();
	test_beside_freed();
	test_small_limit();
	test_seams();
	test_many_windows();
	test_freed_windows();
	test_registered_windows();
	test_no_id();
	test_no_dmabuf();
	test_fork();
	test_deregister_close();
	test_no_memory();
}

/* What another thread does meanwhile */
static void together(void)
{
	test_told_later();
	test_same_reason();
	test_refused_beside();
	test_grows();
	test_real_collisions();
	test_words_of_two();
	test_one_chunk();
	test_marks();
	test_warmed();
	test_helpers();
	test_write_turns();
	test_most_helpers();
	test_share();
	test_lost_copies();
	test_lost_before_write();
	test_no_record();
	test_cold();
	test_other_slabs();
	test_slab_classes();
	test_slab_turns();
	test_slab_memory();
	test_slab_failure();
	test_two_contexts();
	test_lane_context();
	test_turns();
	test_no_lanes();
	test_close_open();
	test_cancel();
	test_batch();
	test_batch_errors();
	test_batch_cancel();
	test_batch_threads();
	test_batch_wakes();
	test_batch_close();
	test_batch_ring();
	test_ring_errors();
	test_ring_ends();
	test_ring_waits();
	test_ring_leased();
	test_ring_again();
	test_most_threads();
	test_async();
	test_async_ring();
	test_async_close();
	test_async_scarce();
	test_async_beside();
	test_async_first();
	test_async_lost();
	test_results();
	test_stats_json();
	test_counts();
	test_windows();
	test_map_apart();
	test_next_gpu();
	test_module();
	test_module_refused();
	test_module_request();
	test_module_opened();
	test_module_quota();
	test_module_no_pages();
	test_module_after_late();
	test_module_beside();
	test_module_ring();
	test_module_taken();
	test_module_reopened();
	test_nvidia();
	test_nvidia_refused();
	test_nvidia_reasons();
	test_nvidia_again();
	test_nvidia_off();
	test_nvidia_registered();
	test_nvidia_ranges();
	test_nvidia_scarce();
	test_nvidia_fork();
	test_cache();
	test_cache_page();
	test_cache_many();
	test_cache_mincore();
	test_cache_lease();
	test_cache_number();
	test_cache_writers();
	test_cache_budget();
	test_cache_scan();
	test_cache_displaced();
	test_cache_refused();
	test_cache_pending();
	test_cache_again();
	test_cache_context();
	test_cache_fork();
	test_cache_start();
	test_cache_signal_lost();
	test_cache_fork_early();
	test_cache_memfd();
	test_cache_foreign();
	test_cache_cgroup();
	test_cache_memory();
	test_cache_shorter();
	test_cache_small();
	test_cache_sure();
	test_cache_broken();
	test_cache_asks();
	test_cache_crowd();
	test_cache_early();
	test_cache_after_p2p();
	test_cache_beside();
	test_cache_registering();
	test_cache_stands();	/* after it the library counts one for ever */
	test_threads();
	test_batch_no_ring();
	test_fork_in_open();
}

int main(int argc, char **argv)
{
	if (argc != 2 && (argc != 3 || (strcmp(argv[2], "together") && strcmp(argv[2], "locks")))) {
		fprintf(stderr, "usage: cufile-unit DIR [together|locks]\n");
		return 2;
	}
	alarm(500);
	snprintf(path, sizeof(path), "%s/file", argv[1]);
	snprintf(other, sizeof(other), "%s/other", argv[1]);
	snprintf(config, sizeof(config), "%s/cufile.json", argv[1]);
	snprintf(logfile, sizeof(logfile), "%s/log", argv[1]);
	setenv("CUFILE_LOGFILE_PATH", logfile, 1);
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && !strcmp(argv[2], "locks")) {
		/* on the file system of DIR */
		test_locks();
		test_foreign_lock();
		goto out;
	}
	test_closes_all();
	test_forks();
	if (argc == 2)
		alone(argv[1]);
	together();
out:
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}

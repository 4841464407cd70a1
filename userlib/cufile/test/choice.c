// SPDX-License-Identifier: MIT
/* The choice of the path: what the settings allow, and what is said about it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* What goes to a file, and to standard error, of a process that asks, then opens */
static void unknown(const char *json, const char *level, bool file, size_t n_file,
		 size_t n_err)
{
	FILE *f = fopen(config, "w");
	char err[300];
	size_t n = 0;
	int status;
	pid_t pid;

	fputs(json, f);
	fclose(f);
	snprintf(err, sizeof(err), "%s.err", path);
	unlink(err);
	unlink(logfile);
	pid = fork();
	if (!pid) {
		if (!freopen(err, "w", stderr))
			abort();
		setenv("CUFILE_ENV_PATH_JSON", config, 1);
		if (level)
			setenv("PEERLANE_LOG", level, 1);
		if (!file)
			unsetenv("CUFILE_LOGFILE_PATH");
		_exit(cuFileGetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, &n).err ||
		      cuFileDriverOpen().err || cuFileDriverClose().err ||
		      cuFileDriverOpen().err);
	}
	waitpid(pid, &status, 0);
	is(status, 0, json);
	is((long long)log_count("notice: cufile.json has unknown keys: "
				"properties.max_dierct_io_size_kb, mistake"), (long long)n_file, "in the log file");
	is((long long)lines_with(err, "unknown keys"), (long long)n_err, "on standard error");
	unlink(err);
}

void test_unknown_keys(void)
{
	static const char some[] = "{\"properties\":{\"max_dierct_io_size_kb\":4,"
		"\"rdma_dev_addr_list\":[]},\"mistake\":1}";

	unknown("{\"denylist\":{\"drivers\":[],\"mounts\":[]},"
		"\"fs\":{\"lustre\":{\"posix_gds_min_kb\":0}},"
		"\"block\":{\"nvme\":{\"use_pci_p2pdma\":true}},"
		"\"miscellaneous\":{\"api_check_aggressive\":false,"
		"\"skip_topology_detection\":false,\"stream_memops_bypass\":false,"
		"\"rcu_library_used\":false}}", NULL, true, 0, 0);
	is((long long)log_count("unknown"), 0, "NVIDIA's own keys are known");
	unknown("{\"denylist\":{\"file_systems\":[\"ext4\"]}}", NULL, true, 0, 0);
	check(log_has("unknown keys: denylist.file_systems"), "a list that is none");
	unknown("{\"a\\nnotice: b\":1}", NULL, true, 0, 0);
	check(log_has("unknown keys: a?notice: b"), "a line is one line");
	unknown("{\"properties.force_compat_mode\":true}", NULL, true, 0, 0);
	check(log_has("unknown keys: properties.force_compat_mode"),
	      "a point in a key is no way into an object");
	unknown(some, NULL, true, 1, 0);
	unknown(some, NULL, false, 0, 1);
	unknown(some, "off", false, 0, 0);
	unknown(some, "off", true, 0, 0);
}

/* ---- the environment ---- */

/* What a process that has this variable, and no other setting, says of a flag: 0 or 1, or an error */
static int flag_with(const char *name, const char *value,
		     CUFileBoolConfigParameter_t param)
{
	int status = -1;
	pid_t pid;

	unlink(logfile);
	pid = fork();
	if (!pid) {
		bool b = false;
		int r;

		unsetenv("CUFILE_ENV_PATH_JSON");
		if (name)
			setenv(name, value, 1);
		r = cuFileDriverOpen().err;
		if (!r)
			r = cuFileGetParameterBool(param, &b).err;
		_exit(r ? r - 5000 : 200 + b);
	}
	waitpid(pid, &status, 0);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return status >= 200 ? status - 200 : 5000 + status;
}

void test_environment(void)
{
	/* NVIDIA's names, in what its library reads and its manual has */
	static const struct {
		const char *name;
		CUFileBoolConfigParameter_t param;
	} flags[] = {
		{ "CUFILE_ALLOW_COMPAT_MODE", CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE },
		{ "CUFILE_FORCE_COMPAT_MODE", CUFILE_PARAM_FORCE_COMPAT_MODE },
		{ "CUFILE_NVTX", CUFILE_PARAM_PROFILE_NVTX },
		{ "CUFILE_USE_PCIP2PDMA", CUFILE_PARAM_USE_PCIP2PDMA },
		{ "CUFILE_SKIP_TOPOLOGY_DETECTION", CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION },
		{ "CUFILE_STREAM_MEMOPS_BYPASS", CUFILE_PARAM_STREAM_MEMOPS_BYPASS },
	};
	static const char *const none[] = {
		"CUFILE_IO_PRIORITY", "CUFILE_IB_SL", "CUFILE_ETH_SL", "CUFILE_RDMA_DC_KEY",
		"CUFILE_DMABUF_ENABLE", "CUFILE_EXPERIMENTAL_FS", "CUFILE_ALOW_COMPAT_MODE",
	};
	char words[128], err[300];
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		is(flag_with(flags[i].name, "true", flags[i].param), 1, flags[i].name);
		is(flag_with(flags[i].name, "0", flags[i].param), 0, "and off");
		is(flag_with(flags[i].name, "", flags[i].param),
		   flag_with(NULL, NULL, flags[i].param), "empty: as if it were not there");
		is(flag_with(flags[i].name, "perhaps", flags[i].param), 5002, "no sense");
		check(log_has(flags[i].name), "and it is named");
	}
	setenv("PEERLANE_LOG", "warn", 1);
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		is(flag_with(none[i], "1", CUFILE_PARAM_PROFILE_NVTX), 0, none[i]);
		snprintf(words, sizeof(words), "warning: the environment has "
			 "variables without effect: %s\n", none[i]);
		is((long long)log_count(words), 1, "has none, and that is said");
	}
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		flag_with(flags[i].name, "0", flags[i].param);
		is((long long)log_count("without effect"), 0, "what has one is not named");
	}
	unsetenv("PEERLANE_LOG");
	flag_with(none[0], "1", CUFILE_PARAM_PROFILE_NVTX);
	is((long long)log_count("without effect"), 0, "by default nothing is said");

	/* the level and the file of the log; once, however often it is opened */
	snprintf(err, sizeof(err), "%s.err", path);
	unlink(err);
	unlink(logfile);
	pid = fork();
	if (!pid) {
		char level[16] = "", file[300] = "";

		setenv("CUFILE_LOGGING_LEVEL", "warn", 1);
		setenv("CUFILE_LOGFILE_PATH", err, 1);
		setenv("CUFILE_A\nB", "1", 1);
		setenv("CUFILE_C", "1", 1);
		if (cuFileDriverOpen().err || cuFileDriverClose().err || cuFileDriverOpen().err ||
		    cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, level, sizeof(level)).err ||
		    cuFileGetParameterString(CUFILE_PARAM_ENV_LOGFILE_PATH, file, sizeof(file)).err)
			_exit(1);
		_exit(strcmp(level, "warn") || strcmp(file, err) ? 2 : 0);
	}
	waitpid(pid, &status, 0);
	is(status, 0, "CUFILE_LOGGING_LEVEL and CUFILE_LOGFILE_PATH are told back");
	check(!log_count("peerlane: "), "nothing is in the other file");
	is((long long)lines_with(err, "without effect: CUFILE_A?B, CUFILE_C"), 1,
	   "two variables without effect are named once, in one line");
	unlink(err);
}

/* Its effect: a file that cannot go directly is staged, or refused */
void test_environment_compat(void)
{
	char data[8192] = "", *g;
	int fd;

	fd = make(path, 0, data, sizeof(data));
	g = gpu(sizeof(data));
	fresh(NULL);
	cuFileDriverClose();
	for (int allow = 0; allow < 2; allow++) {
		setenv("CUFILE_ALLOW_COMPAT_MODE", allow ? "1" : "0", 1);
		cuFileDriverOpen();
		mock.p2p_errno = EREMOTEIO;
		is(cuFileRead(reg(fd), g, sizeof(data), 0, 0), allow ? 8192 : -5008,
		   allow ? "CUFILE_ALLOW_COMPAT_MODE=1: staged" :
			   "CUFILE_ALLOW_COMPAT_MODE=0: refused");
		cuFileDriverClose();
	}
	unsetenv("CUFILE_ALLOW_COMPAT_MODE");
	fresh(NULL);
	close(fd);
	gpu_free(g);
}

/* ---- keys ---- */

/* An odd write to a file that has O_DIRECT: the whole pages go directly, or nothing does */
static void odd_write(const char *json, unsigned int calls)
{
	char data[3 * 4096 + 200], back[sizeof(data) + 100], *g;
	CUfileHandle_t fh;
	uint64_t before;
	int fd;

	fresh(json);
	noise(data, sizeof(data));
	memset(back, 0, sizeof(back));
	fd = make(path, O_DIRECT, back, sizeof(back));
	fh = reg(fd);
	g = gpu(16384);
	memcpy(mem(g), data, sizeof(data));
	before = mock.reads;
	is(cuFileWrite(fh, g, sizeof(data), 100, 0), sizeof(data), json);
	is((long long)(mock.reads - before), calls, "it took so many calls");
	close(fd);
	fd = open(path, O_RDONLY);
	is(pread(fd, back, sizeof(back), 0), sizeof(back), "the file has its size");
	check(!memcmp(back + 100, data, sizeof(data)), "and its data");
	close(fd);
	gpu_free(g);
}

void test_unaligned_key(void)
{
	odd_write("{\"properties\":{\"force_compat_mode\":true}}", 3);
	odd_write("{\"properties\":{\"force_compat_mode\":true},"
		  "\"fs\":{\"generic\":{\"posix_unaligned_writes\":true}}}", 1);
	fresh(NULL);
}

/* Blocks from what chunks are multiples of to more than a lane has room for */
static void largest_blocks(void)
{
	char *data = malloc(MIB(8)), *g;
	CUfileHandle_t fh;
	uint32_t align;
	int fd;

	noise(data, MIB(8));
	for (align = KIB(128); align <= MIB(4); align *= 2) {
		size_t size = 5 * align > MIB(4) ? MIB(4) : 5 * align;
		bool fits = align <= MIB(1);

		fresh("{\"properties\":{\"force_compat_mode\":true}}");
		fd = make(path, O_DIRECT, data, MIB(8));
		mock.dio_align = align;
		mock.again_errno = EACCES;
		fh = reg(fd);
		g = gpu(MIB(8));
		errno = 0;
		is(cuFileRead(fh, g, size, MIB(4), 0), fits ? (ssize_t)size : -1, "blocks");
		is(errno, fits ? 0 : EINVAL, fits ? "some are read" : "there is no room for one");
		check(!fits || !memcmp(mem(g), data + MIB(4), align), "the right ones");
		cuFileHandleDeregister(fh);
		close(fd);
		gpu_free(g);

		/* by p2p, and then asked whether it is the drive that says so */
		fresh(NULL);
		fd = make(path, 0, data, MIB(8));
		mock.dio_align = align;
		mock.p2p_errno = EINVAL;
		fh = reg(fd);
		g = gpu(MIB(8));
		is(cuFileRead(fh, g, MIB(4), MIB(4), 0), MIB(4), "p2p is refused: staged");
		check(!memcmp(mem(g), data + MIB(4), MIB(4)), "and right");
		is(cuFileRead(fh, g, MIB(4), MIB(3), 0), MIB(4), "from within a block");
		check(!memcmp(mem(g), data + MIB(3), MIB(4)), "right, too");
		cuFileHandleDeregister(fh);
		close(fd);
		gpu_free(g);
	}
	free(data);
}

/*
 * Blocks are larger than a page, and the file cannot be opened again without O_DIRECT:
 * whole blocks are read, and parts of one are refused.
 */
void test_large_blocks(void)
{
	static char data[65536];
	CUfileHandle_t fh;
	char *g;
	int fd;

	fresh("{\"properties\":{\"force_compat_mode\":true}}");
	noise(data, sizeof(data));
	fd = make(path, O_DIRECT, data, sizeof(data));
	mock.dio_align = 16384;
	mock.again_errno = EACCES;
	fh = reg(fd);
	g = gpu(65536);
	is(cuFileRead(fh, g, 32768, 16384, 0), 32768, "blocks of 16 KiB: two are read");
	check(!memcmp(mem(g), data + 16384, 32768), "and are right");
	errno = 0;
	is(cuFileRead(fh, g, 4096, 16384, 0), -1, "a part of one is not");
	is(errno, EINVAL, "it is invalid");
	is(cuFileRead(fh, g, 16384, 4096, 0), -1, "nor what begins within one");
	is(errno, EINVAL, "that is invalid, too");
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	largest_blocks();
	fresh(NULL);
}

/* The folder of the log, unless the environment names a file */
void test_log_dir(void)
{
	char json[400], dir[300], file[320];

	snprintf(dir, sizeof(dir), "%s.d", path);
	snprintf(file, sizeof(file), "%s/cufile.log", dir);
	snprintf(json, sizeof(json), "{\"logging\":{\"dir\":\"%s\"},\"mistake\":1}", dir);
	mkdir(dir, 0755);
	for (int named = 0; named < 2; named++) {
		FILE *f = fopen(config, "w");
		int status;
		pid_t pid;

		fputs(json, f);
		fclose(f);
		unlink(file);
		unlink(logfile);
		pid = fork();
		if (!pid) {
			setenv("CUFILE_ENV_PATH_JSON", config, 1);
			if (!named)
				unsetenv("CUFILE_LOGFILE_PATH");
			_exit(cuFileDriverOpen().err);
		}
		waitpid(pid, &status, 0);
		is(status, 0, "logging.dir: the library opens");
		is((long long)lines_with(file, "unknown keys: mistake"), !named,
		   named ? "a file of the environment goes before" :
			   "the log is in cufile.log of that folder");
		is((long long)log_count("unknown keys: mistake"), named, "and nowhere else");
	}
	unlink(file);
	rmdir(dir);
}

/* Settings that are wrong are told where the others say, so far as they can be read */
static const struct wrong {
	const char *what, *json;	/* %s: a folder */
	const char *env, *value;	/* a variable */
	const char *set;		/* a folder for the log, by call */
	bool named;			/* the environment names the file of the log */
	unsigned int dots;		/* with so many "./" */
	bool ask;			/* a setting is asked for, the library not opened */
	int result;
	const char *dir, *file, *err;	/* what is in the folder's file, in the named one, and on
					 * standard error */
} wrongs[] = {
	{ "a key of ours that is none, and a folder for the log",
	  "{\"peerlane\":{\"mistake\":1},\"logging\":{\"dir\":\"%s\"}}",
	  .result = 5002, .dir = "there is no peerlane.mistake" },
	{ "the same, and the environment names a file",
	  "{\"peerlane\":{\"mistake\":1},\"logging\":{\"dir\":\"%s\"}}",
	  .named = true, .result = 5002, .file = "there is no peerlane.mistake" },
	{ "the same, where a setting is asked for",
	  "{\"peerlane\":{\"mistake\":1},\"logging\":{\"dir\":\"%s\"}}",
	  .ask = true, .result = 5002, .dir = "there is no peerlane.mistake" },
	{ "and a call names a folder", "{\"peerlane\":{\"mistake\":1}}", .set = "%s",
	  .result = 5002, .dir = "there is no peerlane.mistake" },
	{ "nobody names a file", "{\"peerlane\":{\"mistake\":1}}", .result = 5002,
	  .err = "there is no peerlane.mistake" },
	{ "the log is off", "{\"peerlane\":{\"mistake\":1},\"logging\":{\"level\":\"off\"}}",
	  .named = true, .result = 5002 },
	{ "no JSON", "{\"logging\":{\"dir\":\"%s\"}", .named = true, .result = 5002,
	  .file = "closing bracket" },
	{ "a folder that is a number", "{\"logging\":{\"dir\":1}}", .result = 5002,
	  .err = "logging.dir must be a string" },
	{ "a level that is none, and a folder",
	  "{\"logging\":{\"level\":\"loud\",\"dir\":\"%s\"}}", .result = 5002,
	  .dir = "no such level: loud" },
	{ "the same of the environment", "{\"logging\":{\"dir\":\"%s\"}}",
	  .env = "PEERLANE_LOG", .value = "loud", .result = 5002,
	  .dir = "no such log level: loud" },
	{ "a flag of the environment that is none", "{\"logging\":{\"dir\":\"%s\"}}",
	  .env = "CUFILE_FORCE_COMPAT_MODE", .value = "perhaps", .result = 5002,
	  .dir = "CUFILE_FORCE_COMPAT_MODE" },
	{ "a file of the log by a name of 1000 bytes", "{\"peerlane\":{\"mistake\":1}}", .named = true,
	  .dots = 500, .result = 5002, .file = "there is no peerlane.mistake" },
	{ "a name that is longer than any", "{}", .named = true, .dots = 2048, .result = 5002,
	  .err = "CUFILE_LOGFILE_PATH is longer than 4095 bytes" },
	{ "there is no such file", NULL, .named = true, .file = "defaults are used" },
};

/* So many lines there are, and those that were expected */
static void lines_are(const char *name, const char *words, const char *what)
{
	is((long long)lines_with(name, "peerlane: "), words ? 1 : 0, what);
	if (words)
		is((long long)lines_with(name, words), 1, words);
}

/* The environment names the file of the log, by a detour */
static void name_log(unsigned int dots)
{
	const char *name = strrchr(logfile, '/') + 1;
	char text[2 * PATH_MAX];
	int n = snprintf(text, sizeof(text), "%.*s", (int)(name - logfile), logfile);

	for (; dots; dots--)
		n += sprintf(text + n, "./");
	strcpy(text + n, name);
	setenv("CUFILE_LOGFILE_PATH", text, 1);
}

void test_log_wrong(void)
{
	char dir[300], file[320], err[300], text[400];
	const struct wrong *w;
	int status;
	pid_t pid;
	FILE *f;

	snprintf(dir, sizeof(dir), "%s.d", path);
	snprintf(file, sizeof(file), "%s/cufile.log", dir);
	snprintf(err, sizeof(err), "%s.err", path);
	mkdir(dir, 0755);
	for (w = wrongs; w < wrongs + sizeof(wrongs) / sizeof(wrongs[0]); w++) {
		unlink(config);
		f = w->json ? fopen(config, "w") : NULL;
		if (f) {
			fprintf(f, w->json, dir);
			fclose(f);
		}
		unlink(file);
		unlink(err);
		unlink(logfile);
		pid = fork();
		if (!pid) {
			bool b;
			int r;

			if (!freopen(err, "a", stderr))
				abort();
			setenv("CUFILE_ENV_PATH_JSON", config, 1);
			if (!w->named)
				unsetenv("CUFILE_LOGFILE_PATH");
			else
				name_log(w->dots);
			if (w->env)
				setenv(w->env, w->value, 1);
			snprintf(text, sizeof(text), w->set ? w->set : "", dir);
			if (w->set && cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, text).err)
				abort();
			r = w->ask ? cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, &b).err :
				     cuFileDriverOpen().err;
			_exit(r != w->result);
		}
		waitpid(pid, &status, 0);
		is(status, 0, w->what);
		lines_are(file, w->dir, "the folder's file");
		lines_are(logfile, w->file, "the named one");
		lines_are(err, w->err, "standard error");
	}
	unlink(file);
	unlink(err);
	rmdir(dir);
}

/* Where the file system of @name is mounted, and its type. */
static void mount_of(const char *name, char *point, char *type)
{
	char line[1024], at[512], kind[64], *rest;
	FILE *f = fopen("/proc/self/mountinfo", "r");
	unsigned int major_n, minor_n;
	struct stat st;

	if (!f || stat(name, &st))
		abort();
	while (fgets(line, sizeof(line), f)) {
		rest = strstr(line, " - ");
		if (rest &&
		    sscanf(line, "%*d %*d %u:%u %*s %511s", &major_n, &minor_n,
			   at) == 3 && sscanf(rest, " - %63s", kind) == 1 &&
		    makedev(major_n, minor_n) == st.st_dev &&
		    !strncmp(name, at, strlen(at))) {
			strcpy(point, at);
			strcpy(type, kind);
		}
	}
	fclose(f);
}

static void denied(const char *list, const char *item, bool hit)
{
	char json[KIB(4)], words[64], *data = calloc(1, KIB(64)), *g;
	struct pln_file_stats s;
	CUfileHandle_t fh;
	int fd;

	snprintf(json, sizeof(json), "{\"denylist\":{\"%s\":[\"%s\"]}}", list, item);
	snprintf(words, sizeof(words), "denylist.%s of cufile.json has", list);
	fresh(json);
	fd = make(path, 0, data, KIB(64));
	fh = reg(fd);
	g = gpu(KIB(64));
	is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), json);
	s = stats_of(fh);
	is(s.last_path, hit ? PLN_PATH_BOUNCE : PLN_PATH_P2P, "the path");
	check(!strncmp(s.reason, words, strlen(words)) == hit, "the reason: %s",
	      s.reason);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

void test_denylist(void)
{
	char point[512] = "", type[64] = "", slash[KIB(3)] = "";
	unsigned int i;

	fresh(NULL);
	close(make(path, 0, "x", 1));
	mount_of(path, point, type);
	if (!point[0]) {
		check(true, "# SKIP the mount of the file is not to be seen");
		return;
	}
	denied("filesystems", type, true);
	denied("filesystems", "nofs", false);
	denied("mounts", point, true);
	snprintf(slash, sizeof(slash), "%s/", point);
	denied("mounts", slash, true);
	denied("mounts", "/nowhere", false);
	/* long ones, many of them, and none */
	memset(slash, 'x', 1000);
	for (i = 0; i < 64; i++)
		sprintf(slash + strlen(slash), "\", \"/mnt/%u", i);
	sprintf(slash + strlen(slash), "\", \"\", \"%s", point);
	denied("mounts", slash, true);
	denied("devices", "/dev/null", false);
	denied("drivers", "no_such_driver", false);
}

/* No compat mode: no file is staged as a whole, ends of files are */
void test_no_compat(void)
{
	static const char json[] = "{\"properties\":{"
		"\"allow_compat_mode\":false}}";
	char data[10000], *g = gpu(65536);
	CUfileHandle_t fh, tmpfs;
	int fd, mfd;

	fresh(json);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "no compat mode: a file whose end is no whole block");
	check(!memcmp(mem(g), data, sizeof(data)), "the right data");
	check(stats_of(fh).path[PLN_PATH_P2P].bytes_read == sizeof(data),
	      "by p2p: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, 100, 7, 3), 100, "a few bytes of it");
	check(!memcmp(mem(g) + 3, data + 7, 100), "the right ones");
	is(cuFileRead(fh, g, 4096, 0, 1), 4096, "to an odd address");
	is(cuFileWrite(fh, g, 5000, 1000, 0), 5000, "a write to the middle");
	is(cuFileWrite(fh, g, 4097, 0, 0), 4097, "a write of a page and a byte");
	check(pread(fd, data, 4097, 0) == 4097 && !memcmp(mem(g), data, 4097),
	      "is in the file");
	mfd = memfd_create("data", 0);
	if (write(mfd, data, sizeof(data)) != sizeof(data))
		abort();
	tmpfs = reg(mfd);
	is(cuFileRead(tmpfs, g, 8192, 0, 0), -5008,
	   "a file that cannot be read by p2p is refused");
	is(cuFileRead(tmpfs, g, 100, 0, 0), -5008, "a part of it, too");
	close(mfd);

	fresh(json);
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	is(cuFileRead(fh, g, 10000, 0, 0), -5008, "p2p is refused: no read");
	is(cuFileRead(fh, g, 100, 0, 0), -5008, "nor of a few bytes");
	is(cuFileWrite(fh, g, 100, 100, 0), -5008, "nor a write of them");
	check(strstr(stats_of(fh).reason, "refused before"), "why: %s",
	      stats_of(fh).reason);
	is(cuFileWrite(fh, g, 9000, 100, 0), -5008, "nor a write of more");
	is((long long)mock.host_bytes, 0, "nothing is staged");
	mock.p2p_errno = 0;
	is(cuFileWrite(fh, g, 100, 100, 0), -5008, "while p2p has not worked");
	is(cuFileRead(fh, g, 100, 0, 0), 100, "p2p works, so do a few bytes");
	is(cuFileWrite(fh, g, 100, 100, 0), 100, "and the write");
	close(fd);
	gpu_free(g);
}

/* The file that NVIDIA's toolkit puts into /etc */
void test_stock_file(void)
{
	size_t threshold = 0, threads = 0, ways = 0, t2 = 0, t3 = 0, t4 = 0;
	char data[8192], *g = gpu(8192);
	CUfileHandle_t fh;
	bool p2p = false;
	int fd;

	fresh(NULL);
	cuFileGetParameterSizeT(
		CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, &threshold);
	cuFileGetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, &threads);
	cuFileGetParameterSizeT(
		CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, &ways);
	fresh("{\"execution\":{\"max_io_queue_depth\":128,"
	      "\"max_io_threads\":64,\"parallel_io\":true,"
	      "\"min_io_threshold_size_kb\":8192,"
	      "\"max_request_parallelism\":64},\"properties\":{"
	      "\"use_pci_p2pdma\":false,\"allow_compat_mode\":true}}");
	cuFileGetParameterBool(CUFILE_PARAM_USE_PCIP2PDMA, &p2p);
	check(p2p, "NVIDIA's file does not switch p2p off");
	cuFileGetParameterSizeT(
		CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, &t2);
	cuFileGetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, &t3);
	cuFileGetParameterSizeT(
		CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, &t4);
	check(t2 == threshold && t3 == threads && t4 == ways,
	      "nor does it change the tuning");
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "a read");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "goes p2p");
	fresh("{\"peerlane\":{\"min_io_threshold_size_kb\":8192,"
	      "\"use_pci_p2pdma\":false}}");
	cuFileGetParameterSizeT(
		CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, &t2);
	cuFileGetParameterBool(CUFILE_PARAM_USE_PCIP2PDMA, &p2p);
	check(t2 == 8192 && !p2p, "keys of our own do both");
	close(fd);
	gpu_free(g);
}

/* What of a file is used, and what is not */
void test_no_effect(void)
{
	static const char stock[] = "{\"logging\":{\"level\":\"INFO\"},"
		"\"profile\":{\"nvtx\":false,\"cufile_stats\":0},"
		"\"properties\":{\"io_priority\":\"default\",\"max_batch_io_timeout_msecs\":5,"
		"\"vanilla_posix_io_mode\":false,\"use_poll_mode\":false,"
		"\"posix_pool_slab_size_kb\":[4,1024,16384],"
		"\"posix_pool_slab_count\":[128,60,64],\"allow_compat_mode\":true,"
		"\"gpu_bounce_buffer_slab_config\":{\"slab_size_kb\":[1024],"
		"\"slab_count\":[8]}},\"fs\":{\"generic\":{\"posix_unaligned_writes\":false},"
		"\"lustre\":{\"posix_gds_min_kb\":0}},\"denylist\":{\"drivers\":[]}}";
	FILE *f = fopen(config, "w");
	int status;
	pid_t pid;

	fputs(stock, f);
	fclose(f);
	unlink(logfile);
	pid = fork();
	if (!pid) {
		setenv("CUFILE_ENV_PATH_JSON", config, 1);
		_exit(cuFileDriverOpen().err || cuFileDriverClose().err ||
		      cuFileDriverOpen().err);
	}
	waitpid(pid, &status, 0);
	is(status, 0, "a file as NVIDIA's");
	is((long long)log_count("info: cufile.json has keys that are accepted, without effect: "
		"profile.nvtx, properties.io_priority, properties.max_batch_io_timeout_msecs, "
		"properties.vanilla_posix_io_mode, properties.use_poll_mode, "
		"properties.gpu_bounce_buffer_slab_config.slab_size_kb, "
		"properties.gpu_bounce_buffer_slab_config.slab_count, "
		"fs.lustre.posix_gds_min_kb\n"), 1,
	   "one line has the keys without effect, and no other");
	check(log_has("info: the pool for staging has slabs of KiB: 128 of 4, 60 of 1024, "
		      "64 of 16384\n"), "another one the slabs");
}

static bool write_text(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	if (!f)
		return false;
	fputs(text, f);
	return !fclose(f);
}

/*
 * In a process with an /etc of its own, which has the library's file, and another one in
 * @env: the entries of a batch that are in force.  1: it cannot have one.
 */
static int batchsize_with(const char *env)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		size_t n = 0;

		if (!own_mounts() || mount("none", "/etc", "tmpfs", 0, NULL) ||
		    !write_text("/etc/cufile.json", "{\"properties\":{\"io_batchsize\":7}}") ||
		    !write_text(config, "{\"properties\":{\"io_batchsize\":9}}"))
			_exit(1);
		unsetenv("CUFILE_ENV_PATH_JSON");
		if (env)
			setenv("CUFILE_ENV_PATH_JSON", env, 1);
		if (cuFileDriverOpen().err ||
		    cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &n).err)
			_exit(2);
		_exit((int)n);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The file that is there for all, and the one that the environment names */
void test_default_file(void)
{
	int n = batchsize_with(NULL);

	if (n == 1) {
		check(true, "# SKIP no mount namespace for an /etc/cufile.json");
		return;
	}
	is(n, 7, "/etc/cufile.json is read");
	is(batchsize_with(""), 7, "also where CUFILE_ENV_PATH_JSON is empty");
	is(batchsize_with(config), 9, "CUFILE_ENV_PATH_JSON goes before it");
	is(batchsize_with("/nonexistent/cufile.json"), 128,
	   "also where there is no such file: then the defaults are in force");
}

/* One line for each cause, at the level that a program without settings has */
static void told(int fd, const char *words, const char *what)
{
	CUfileHandle_t fh = reg(fd), again;
	char *g = gpu(16384);
	int fd2 = dup(fd), i;

	for (i = 0; i < 3; i++)
		is(cuFileRead(fh, g, 8192, 0, 0), 8192, what);
	again = reg(fd2);
	is(cuFileRead(again, g, 8192, 0, 0), 8192, "by another handle, too");
	check(log_count("notice: device ") == 1 && log_count(words) == 1,
	      "one line says why: %s", words);
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(again);
	close(fd2);
	gpu_free(g);
}

void test_told(void)
{
	const unsigned int p2p = 1u << CU_FILE_NVME_P2P_SUPPORTED;
	char data[16384], *g = gpu(16384), *odd = gpu(16384);
	CUfileHandle_t fh;
	CUfileDrvProps_t p;
	int fd, mfd;

	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	mfd = memfd_create("data", 0);
	if (write(mfd, data, sizeof(data)) != sizeof(data))
		abort();
	fresh(NULL);
	told(mfd, "keeps its data in host memory", "a file in host memory");
	fresh("{\"properties\":{\"force_compat_mode\":true}}");
	told(fd, "force_compat_mode is set", "compat mode forced");
	fresh("{\"peerlane\":{\"use_pci_p2pdma\":false}}");
	told(fd, "use_pci_p2pdma is off", "p2p switched off");
	fresh(NULL);
	mock.p2p_errno = EREMOTEIO;
	/* an NVMe namespace with partitions has such a number */
	mock.dev = makedev(259, 70000);
	told(fd, "device 259:70000 and GPU 0: no p2p: p2p refused: EREMOTEIO",
	     "p2p refused");
	fresh(NULL);
	mock.handle_error = 801;
	told(fd, "no dma-buf of this GPU memory", "memory without a dma-buf");
	fresh(NULL);
	mock.bar1_size = 0;
	told(fd, "BAR1 is full", "no room in BAR1");
	fresh(NULL);
	fh = reg(fd);
	is(cuFileRead(fh, odd, 8192, 0, 1), 8192, "to an odd address");
	is((long long)log_count("notice: "), 1, "is told");
	is(cuFileRead(fh, g, 100, 0, 0), 100, "a few bytes");
	is((long long)log_count("notice: "), 1, "are not worth a word");
	fresh("{\"logging\":{\"level\":\"off\"}}");
	fh = reg(mfd);
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "staged, with the log off");
	is((long long)log_count("peerlane: "), 0, "nothing is said");

	fresh(NULL);
	cuFileDriverGetProperties(&p);
	is(p.nvfs.dstatusflags, 0,
	   "the properties claim no p2p that nobody has seen, nor NVMe");
	fh = reg(fd);
	cuFileRead(fh, g, 8192, 0, 0);
	is(stats_of(fh).last_path, PLN_PATH_P2P, "p2p works");
	cuFileDriverGetProperties(&p);
	is(p.nvfs.dstatusflags, (long long)(p2p | 1u << CU_FILE_NVME_SUPPORTED),
	   "then they do");
	close(fd);
	close(mfd);
	gpu_free(g);
	gpu_free(odd);
}

/* A refused transfer says its reason, too, once for each cause */
void test_told_strict(void)
{
	char data[16384], *g = gpu(16384), *more = gpu(16384);
	CUfileHandle_t fh;
	int fd, mfd, i;

	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	mfd = memfd_create("data", 0);
	if (write(mfd, data, sizeof(data)) != sizeof(data))
		abort();
	for (i = 0; i < 2; i++) {
		fresh(i ? "{\"properties\":{\"allow_compat_mode\":false}}" :
			  "{\"peerlane\":{\"strict\":true}}");
		fh = reg(mfd);
		is(cuFileRead(fh, g, 8192, 0, 0), -5008, "no O_DIRECT: refused");
		is(cuFileRead(fh, g, 8192, 0, 0), -5008, "again");
		is((long long)log_count("no p2p: the file system keeps its data "
					"in host memory"), 1, "is told once");
		fh = reg(fd);
		mock.p2p_errno = EAGAIN;
		is(cuFileRead(fh, g, 8192, 0, 0), -5008, "not now: refused");
		mock.bar1_size = 0;
		is(cuFileRead(fh, more, 8192, 0, 0), -5008, "no room: refused");
		is((long long)log_count("no p2p: BAR1 is full"), 1,
		   "is told, after another shortage, too");
		mock.bar1_size = -1;
		mock.p2p_errno = EREMOTEIO;
		is(cuFileRead(fh, g, 8192, 0, 0), -5008, "never: refused");
		is(cuFileRead(fh, g, 8192, 0, 0), -5008, "again");
		is((long long)log_count("no p2p: p2p read failed: EREMOTEIO"), 1,
		   "is told once, a reason of the moment before it or not");
		is(cuFileWrite(fh, g, 100, 0, 0), -5008, "a few bytes: refused");
		is(cuFileWrite(fh, g, 100, 0, 0), -5008, "again");
		is((long long)log_count("no p2p: unaligned"), 1, "is told once");
		is((long long)log_count("notice: "), 5, "and nothing else");
	}
	fresh("{\"peerlane\":{\"strict\":true}}");
	fh = reg(fd);
	mock.p2p_errno = EINVAL;
	is(cuFileRead(fh, g, 8192, 0, 0), -5008, "EINVAL: refused");
	check(strstr(stats_of(fh).reason, ", or direct IO on this file"),
	      "nobody knows what it is about: %s", stats_of(fh).reason);
	mock.gpu = 8;
	is(cuFileRead(fh, more, 8192, 0, 0), -5008, "on GPU 8, too");
	is((long long)log_count("GPU 8: no p2p: p2p read failed: EINVAL"), 1,
	   "is told after GPU 0");
	fresh(NULL);
	close(fd);
	close(mfd);
	gpu_free(g);
	gpu_free(more);
}

const char *refused(int fd, const char *before, const char *now)
{
	static struct pln_file_stats s;
	char kmsg[300], *g = gpu(8192);
	CUfileHandle_t fh;
	FILE *f;

	snprintf(kmsg, sizeof(kmsg), "%s.kmsg", path);
	f = fopen(kmsg, "w");
	fputs(before, f);
	fclose(f);
	fresh(NULL);
	setenv("PEERLANE_KMSG", kmsg, 1);
	mock.p2p_errno = EINVAL;
	mock.kernel_line = now;
	fh = reg(fd);
	cuFileRead(fh, g, 8192, 0, 0);
	s = stats_of(fh);
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	unlink(kmsg);
	gpu_free(g);
	return s.reason;
}

/* The PCI address of the drive of this file, if it has one */
static bool drive_of(int fd, char addr[13])
{
	char name[64], link[512];
	struct stat st;
	ssize_t n;

	fstat(fd, &st);
	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u", major(st.st_dev),
		 minor(st.st_dev));
	n = readlink(name, link, sizeof(link) - 1);
	while (--n >= 10)
		if (link[n] == '.' && link[n - 3] == ':' && link[n - 6] == ':') {
			memcpy(addr, link + n - 10, 12);
			addr[12] = '\0';
			return true;
		}
	return false;
}

#define REFUSES(drive, n) "4," n ",2345,-;nvme " drive ": cannot be used for " \
	"peer-to-peer DMA as the client and provider (0000:42:00.0) do not " \
	"share an upstream bridge\n"

/* The kernel's words are those about this refusal, not the last ones there are */
void test_kernel_words(void)
{
	char data[8192] = "", addr[13], line[300];
	const char *why;
	int fd = make(path, 0, data, sizeof(data));

	why = refused(fd, REFUSES("0000:fe:1f.6", "1"), NULL);
	check(!strstr(why, "kernel:") && strstr(why, "p2p refused"),
	      "words about another drive are not the reason: %s", why);
	why = refused(fd, "4,1,2,-;p2pdma: something else\n", NULL);
	check(!strstr(why, "kernel:"), "nor are words about nobody: %s", why);
	why = refused(fd, REFUSES("0000:fe:1f.6", "1"),
		      REFUSES("0000:fe:1f.7", "2"));
	check(strstr(why, "kernel: nvme 0000:fe:1f.7"),
	      "what it says at the refusal is: %s", why);
	if (drive_of(fd, addr)) {
		snprintf(line, sizeof(line), REFUSES("%s", "3"), addr);
		why = refused(fd, line, NULL);
		check(strstr(why, "kernel: nvme") && strstr(why, addr),
		      "so is what it said of this drive and GPU: %s", why);
	} else {
		check(1, "# SKIP the drive has no PCI address");
	}
	close(fd);
}

/* The same request with host memory, which is to tell what p2p lacks, fails, too */
void test_half_probe(void)
{
	const size_t n = MIB(1);
	char *data = malloc(n), *g = gpu(n);
	CUfileHandle_t fh;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	fresh(NULL);
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	mock.media_errno = EIO;
	mock.bad_from = n / 2;
	mock.bad_to = n;
	is(cuFileRead(fh, g, n, 0, 0), n / 2, "a probe that fails half way");
	is((long long)log_count("no p2p"), 0, "is no verdict");
	mock.p2p_errno = mock.media_errno = 0;
	is(cuFileRead(fh, g, n, 0, 0), n, "the next one");
	is((long long)mock.p2p_bytes, n, "goes p2p");
	check(!memcmp(mem(g), data, n), "the right data");
	close(fd);
	gpu_free(g);
	free(data);
}

/* iomap says EIO where a write into the page cache came between */
void test_direct_collision(void)
{
	static char host[8192] __attribute__((aligned(4096)));
	const size_t n = KIB(64);
	char *data = malloc(n), *g = gpu(n);
	CUfileHandle_t fh;
	int fd;

	noise(data, n);
	close(make(path, 0, data, n));
	fd = open(path, O_RDONLY | O_DIRECT);
	fresh(NULL);
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	is(cuFileRead(fh, g, n, 0, 0), n, "p2p is refused, and it is staged");
	memset(mem(g), 0, n);
	mock.direct_errno = EIO;
	is(cuFileRead(fh, g, n, 0, 0), n, "a direct read that collides");
	check(mock.direct_failed > 0, "it was direct at first");
	check(!memcmp(mem(g), data, n), "the page cache has the right data");
	memset(host, 0, sizeof(host));
	is(cuFileRead(fh, host, sizeof(host), 0, 0), sizeof(host), "into host memory, too");
	check(!memcmp(host, data, sizeof(host)), "the right data");
	mock.host_errno = EIO;
	is(cuFileRead(fh, g, n, 0, 0), -1, "where that fails, too: an error");
	is(errno, EIO, "of the system");
	is(cuFileRead(fh, host, sizeof(host), 0, 0), -1, "into host memory, too");
	is(errno, EIO, "of the system");
	close(fd);
	gpu_free(g);
	free(data);
}

/* What a read was told to have moved by each path since @s */
static void by_paths(CUfileHandle_t fh, const struct pln_file_stats *s, uint64_t p2p,
		     uint64_t staged)
{
	struct pln_file_stats now = stats_of(fh);

	is((long long)(now.path[PLN_PATH_P2P].bytes_read - s->path[PLN_PATH_P2P].bytes_read),
	   (long long)p2p, "so much by p2p");
	is((long long)(now.path[PLN_PATH_BOUNCE].bytes_read -
		       s->path[PLN_PATH_BOUNCE].bytes_read), (long long)staged,
	   "and so much staged");
}

/* The same of p2p: its piece is staged, and nothing is held against the two devices. */
void test_p2p_collision(void)
{
	enum { PIECE = 64 << 10, ALL = 4 * PIECE };
	char *data = malloc(ALL), *g = gpu(ALL);
	struct pln_file_stats s;
	CUfileHandle_t fh;
	uint64_t calls;
	int fd, worked;

	noise(data, ALL);
	fd = make(path, 0, data, ALL);
	fresh("{\"peerlane\":{\"window_size_kb\":64}}");
	fh = reg(fd);
	for (worked = 0; worked < 2; worked++) {
		memset(mem(g), 0, ALL);
		s = stats_of(fh);
		calls = mock.p2p_calls;
		mock.p2p_errno = EIO;
		mock.p2p_count = 1;
		is(cuFileRead(fh, g, PIECE, 0, 0), PIECE, worked ?
		   "p2p works, and meets a write" : "the first read meets a write");
		check(!memcmp(mem(g), data, PIECE), "the data is right");
		by_paths(fh, &s, 0, PIECE);
		is((long long)(mock.p2p_calls - calls), 1, "p2p is not tried again");
		check(strstr(stats_of(fh).reason, "p2p read failed: EIO (5)"), "why: %s",
		      stats_of(fh).reason);
		s = stats_of(fh);
		is(cuFileRead(fh, g, ALL, 0, 0), ALL, "the next read");
		by_paths(fh, &s, ALL, 0);
	}
	is((long long)log_count("no p2p"), 0, "nothing is said against p2p");

	/* the second piece of four */
	memset(mem(g), 0, ALL);
	s = stats_of(fh);
	mock.p2p_after = 1;
	mock.p2p_count = 1;
	is(cuFileRead(fh, g, ALL, 0, 0), ALL, "a piece in the middle");
	check(!memcmp(mem(g), data, ALL), "the data is right");
	by_paths(fh, &s, ALL - PIECE, PIECE);

	/* neither way */
	s = stats_of(fh);
	mock.p2p_count = -1;
	mock.host_errno = EIO;
	is(cuFileRead(fh, g, ALL, 0, 0), -1, "where the other way fails, too");
	is(errno, EIO, "it is EIO");
	mock.host_errno = ENOMEM;
	is(cuFileRead(fh, g, ALL, 0, 0), -1, "where that fails for want of memory");
	is(errno, EIO, "also");
	mock.p2p_after = 1;
	memset(mem(g), 0, ALL);
	is(cuFileRead(fh, g, ALL, 0, 0), PIECE, "what went before is told");
	check(!memcmp(mem(g), data, PIECE), "its data is right");
	by_paths(fh, &s, PIECE, 0);
	mock.p2p_errno = mock.host_errno = 0;
	is((long long)log_count("no p2p"), 0, "nothing is said against p2p");

	/* a medium: a part of a piece can be read */
	s = stats_of(fh);
	memset(mem(g), 0, ALL);
	mock.media_errno = EIO;
	mock.bad_from = PIECE + 8192;
	mock.bad_to = mock.bad_from + 512;
	mock.p2p_errno = EIO;
	mock.p2p_after = 1;
	is(cuFileRead(fh, g, ALL, 0, 0), PIECE + 8192, "what lies before a bad block");
	check(!memcmp(mem(g), data, PIECE + 8192), "its data is right");
	by_paths(fh, &s, PIECE, 8192);
	is(cuFileRead(fh, g, PIECE, PIECE + 8192, 0), -1, "then an error");
	is(errno, EIO, "EIO");
	/* as the block layer tells a bad medium: that is no collision */
	calls = mock.reads;
	mock.media_errno = ENODATA;
	mock.p2p_errno = 0;
	is(cuFileRead(fh, g, PIECE, PIECE + 8192, 0), -1, "ENODATA");
	is(errno, EIO, "is EIO");
	is((long long)(mock.reads - calls), 0, "which nobody tries again");
	mock.media_errno = 0;

	/* nor is a write that failed */
	calls = mock.reads;
	mock.p2p_errno = EIO;
	is(cuFileWrite(fh, g, PIECE, 0, 0), -1, "a write");
	is(errno, EIO, "that failed says so");
	is((long long)(mock.reads - calls), 0, "and is not made again");
	mock.p2p_errno = 0;
	s = stats_of(fh);
	is(cuFileRead(fh, g, ALL, 0, 0), ALL, "after all of it a read");
	by_paths(fh, &s, ALL, 0);
	close(fd);
	gpu_free(g);
	free(data);
}

/* No other way is allowed: an error of the system, and no verdict */
void test_strict_collision(void)
{
	char data[8192], *g = gpu(8192);
	CUfileHandle_t fh;
	int fd, i;

	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	for (i = 0; i < 2; i++) {
		fresh(i ? "{\"properties\":{\"allow_compat_mode\":false}}" :
			  "{\"peerlane\":{\"strict\":true}}");
		fh = reg(fd);
		mock.p2p_errno = EIO;
		is(cuFileRead(fh, g, 8192, 0, 0), -1, "p2p alone is allowed, and meets a write");
		is(errno, EIO, "which is an error of the system");
		check(strstr(stats_of(fh).reason, "no other path is allowed"), "why: %s",
		      stats_of(fh).reason);
		is(cuFileRead(fh, g, 100, 7, 0), -1, "a part of a block, too");
		is(errno, EIO, "which is an error of the system");
		is((long long)mock.host_bytes, 0, "nothing was staged");
		is((long long)log_count("no p2p"), 0, "nor told");
		mock.p2p_errno = 0;
		is(cuFileRead(fh, g, 8192, 0, 0), 8192, "the next one goes");
		check(!memcmp(mem(g), data, 8192), "the right data");
	}
	fresh(NULL);
	close(fd);
	gpu_free(g);
}

/* What is staged between devices that have done p2p before is told, too */
void test_told_later(void)
{
	char data[8192] = "", *g = gpu(8192);
	CUfileHandle_t fh;
	int fd;

	fd = make(path, 0, data, sizeof(data));
	fresh(NULL);
	fh = reg(fd);
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "p2p works");
	is((long long)log_count("notice: "), 0, "nothing is said");
	mock.p2p_errno = EAGAIN;
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "no p2p for a moment");
	is((long long)log_count("notice: "), 0, "is not worth a word");
	mock.p2p_errno = EREMOTEIO;
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "no p2p any more");
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "nor here");
	is((long long)log_count("no p2p: p2p read failed: EREMOTEIO"), 1,
	   "is told once");
	is((long long)stats_of(fh).fallbacks, 3, "and counted each time");
	close(fd);
	gpu_free(g);
}

struct meeting {
	CUfileHandle_t fh;
	char *g;
	ssize_t result;
};

static void *meet(void *arg)
{
	struct meeting *m = arg;

	m->result = cuFileRead(m->fh, m->g, 8192, 0, 0);
	return NULL;
}

/* The kernel speaks once.  Who heard it may be the second to give the reason. */
void test_words_of_two(void)
{
	char data[8192] = "", kmsg[300];
	struct meeting m = { .g = gpu(8192) };
	char *g = gpu(8192);
	pthread_t first;
	int fd, i;

	snprintf(kmsg, sizeof(kmsg), "%s.kmsg", path);
	close(open(kmsg, O_CREAT | O_TRUNC | O_WRONLY, 0600));
	fd = make(path, 0, data, sizeof(data));
	fresh(NULL);
	setenv("PEERLANE_KMSG", kmsg, 1);
	m.fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	mock.kernel_line = REFUSES("0000:fe:1f.7", "1");
	mock.hold_host = true;
	pthread_create(&first, NULL, meet, &m);
	for (i = 0; i < 5000 && !mock.in_host; i++)
		usleep(1000);
	check(mock.in_host, "one is refused, and tries host memory");
	mock.kernel_line = NULL;
	is(cuFileRead(m.fh, g, 8192, 0, 0), 8192, "so is another, meanwhile");
	check(!strstr(stats_of(m.fh).reason, "kernel:"), "without words: %s",
	      stats_of(m.fh).reason);
	mock.hold_host = false;
	pthread_join(first, NULL);
	is(m.result, 8192, "the first goes on");
	is(cuFileRead(m.fh, g, 8192, 0, 0), 8192, "a third");
	check(strstr(stats_of(m.fh).reason, "kernel: nvme 0000:fe:1f.7"),
	      "is told the kernel's words: %s", stats_of(m.fh).reason);
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	unlink(kmsg);
	close(fd);
	gpu_free(g);
	gpu_free(m.g);
}

/* One read after @seconds more: how often p2p is tried, and the path taken */
static void read_later(CUfileHandle_t fh, void *g, int seconds, uint64_t tries,
		       enum pln_path way)
{
	char what[80];

	mock.later += seconds;
	mock.p2p_calls = 0;
	snprintf(what, sizeof(what), "%d s later", seconds);
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, what);
	is((long long)mock.p2p_calls, (long long)tries, "p2p is tried so often");
	is(stats_of(fh).last_path, way, "and that is the path");
}

/* A refusal does not hold for ever */
void test_refused_before(void)
{
	static char data[16384];
	int fd = make(path, 0, data, sizeof(data)), again;
	char *g = gpu(sizeof(data));
	CUfileHandle_t fh;

	fresh("{\"logging\": {\"level\": \"NOTICE\"}}");
	mock_stop_clock();
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	read_later(fh, g, 0, 1, PLN_PATH_BOUNCE);
	read_later(fh, g, 5, 0, PLN_PATH_BOUNCE);
	/* asked again, and twice as long after each refusal */
	read_later(fh, g, 6, 1, PLN_PATH_BOUNCE);
	read_later(fh, g, 11, 0, PLN_PATH_BOUNCE);
	mock.p2p_errno = EOPNOTSUPP;
	read_later(fh, g, 10, 1, PLN_PATH_BOUNCE);
	check(strstr(stats_of(fh).reason, "EOPNOTSUPP"), "the new reason: %s",
	      stats_of(fh).reason);
	read_later(fh, g, 1, 0, PLN_PATH_BOUNCE);
	check(strstr(stats_of(fh).reason, "EOPNOTSUPP"), "is kept: %s",
	      stats_of(fh).reason);
	is(log_count("no p2p"), 1, "it is said once");
	read_later(fh, g, 20, 0, PLN_PATH_BOUNCE);	/* nor is it less than before */
	for (again = 0; again < 8; again++)
		read_later(fh, g, 641, 1, PLN_PATH_BOUNCE);
	read_later(fh, g, 630, 0, PLN_PATH_BOUNCE);
	/* neither verdict: what failed was of that moment */
	mock.p2p_errno = ENOMEM;
	mock.p2p_count = 1;
	read_later(fh, g, 11, 1, PLN_PATH_BOUNCE);
	mock.p2p_errno = 0;
	read_later(fh, g, 1, 0, PLN_PATH_BOUNCE);
	read_later(fh, g, 640, 1, PLN_PATH_P2P);
	is(log_count("notice: device "), 2, "that it works is said as well");
	is(log_count("p2p works now"), 1, "namely now");
	read_later(fh, g, 0, 1, PLN_PATH_P2P);
	fresh(NULL);
	close(fd);
	gpu_free(g);
}

/* How the program asks for a transfer */
enum how { CALL, BATCH, STREAM };

static void ask(enum how how, CUfileHandle_t fh, void *g)
{
	CUfileIOParams_t p = { .mode = CUFILE_BATCH, .fh = fh,
			       .u.batch = { .devPtr_base = g, .size = 8192 } };
	off_t off = 0, buf_off = 0;
	CUfileBatchHandle_t b;
	CUfileIOEvents_t e;
	size_t size = 8192;
	unsigned int n = 1;
	ssize_t r = -9;

	if (how == CALL) {
		r = cuFileRead(fh, g, size, 0, 0);
	} else if (how == BATCH) {
		cuFileBatchIOSetUp(&b, 1);
		if (!cuFileBatchIOSubmit(b, 1, &p, 0).err &&
		    !cuFileBatchIOGetStatus(b, 1, &n, &e, NULL).err)
			r = (ssize_t)e.ret;
		cuFileBatchIODestroy(b);
	} else {
		cuFileReadAsync(fh, g, &size, &off, &buf_off, &r, (CUstream)16);
		mock_settle();
	}
	is(r, 8192, "a transfer");
}

/* What only looks at a refusal leaves the attempt to who makes one */
void test_refused_looked_at(void)
{
	static char data[16384];
	int fd = make(path, 0, data, sizeof(data));
	char *g = gpu(sizeof(data)), *second;
	CUfileHandle_t fh;
	enum how how;

	for (how = CALL; how <= STREAM; how++) {
		fresh(NULL);
		mock_stop_clock();
		fh = reg(fd);
		mock.p2p_errno = EREMOTEIO;
		ask(how, fh, g);
		mock.p2p_errno = 0;
		mock.later += 5;
		ask(how, fh, g);
		is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "refused");
		mock.later += 6;
		ask(how, fh, g);
		is(stats_of(fh).last_path, PLN_PATH_P2P, "11 s later p2p is tried");
		ask(how, fh, g);
		is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read, 16384,
		   "and works from then on");
	}

	/* what finds no window, or nothing to read, has tried nothing */
	fresh(NULL);
	mock_stop_clock();
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	ask(CALL, fh, g);
	mock.p2p_errno = 0;
	mock.later += 11;
	is(cuFileRead(fh, g, 8192, sizeof(data), 0), 0, "a read behind the end");
	second = gpu(8192);
	mock.handle_error = 801;
	ask(CALL, fh, second);
	mock.handle_error = 0;
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "one into memory that has no window");
	ask(CALL, fh, g);
	is(stats_of(fh).last_path, PLN_PATH_P2P, "the next one tries p2p");
	fresh(NULL);
	close(fd);
	gpu_free(g);
	gpu_free(second);
}

/* What refuses p2p, and what refuses the cache: reasons are never taken for others. */
void test_each_reason(void)
{
	static const struct {
		int cuda, mmap_errno;
		const char *words;
	} maps[] = {
		{ 801, 0, "no dma-buf of this GPU memory: CUDA_ERROR_NOT_SUPPORTED (801)" },
		{ 1, 0, "no dma-buf of this GPU memory: MOCK_ERROR (1)" },
		{ 0, ENODEV, "cannot be mapped: ENODEV" },
		{ 0, ENOTSUP, "cannot be mapped: EOPNOTSUPP" },
		{ 0, EPERM, "cannot be mapped: EPERM" },
		{ 0, EACCES, "cannot be mapped: EACCES" },
	};
	static const struct {
		int err;
		const char *words;
	} pairs[] = {
		{ EREMOTEIO, "EREMOTEIO" }, { EOPNOTSUPP, "EOPNOTSUPP" },
		{ EINVAL, "EINVAL" }, { ENXIO, "ENXIO" },
	};
	enum { MAPS = sizeof(maps) / sizeof(maps[0]),
	       ALL = MAPS + sizeof(pairs) / sizeof(pairs[0]) };
	struct refusal r[ALL];
	char *data = calloc(1, 8192);
	CUfileHandle_t fh;
	int fd, i;

	fd = make(path, 0, data, 8192);
	fresh(NULL);
	mock_stop_clock();	/* a refusal holds for 10 seconds */
	fh = reg(fd);
	for (i = 0; i < MAPS; i++) {
		r[i] = (struct refusal){ fh, gpu(8192), 0, maps[i].words };
		mock.handle_error = maps[i].cuda;
		mock.mmap_errno = maps[i].mmap_errno;
		is(cuFileRead(fh, r[i].g, 8192, 0, 0), 8192, maps[i].words);
	}
	mock.handle_error = mock.mmap_errno = 0;
	for (; i < ALL; i++) {
		r[i] = (struct refusal){ fh, gpu(8192), i - MAPS + 1, pairs[i - MAPS].words };
		mock.gpu = r[i].gpu;
		mock.p2p_errno = pairs[i - MAPS].err;
		is(cuFileRead(fh, r[i].g, 8192, 0, 0), 8192, r[i].words);
	}
	mock.p2p_errno = 0;
	each_after_each(r, ALL);
	for (i = 0; i < ALL; i++)
		gpu_free(r[i].g);
	close(fd);
	free(data);
}

/*
 * One reads as before, which need not be put into words.  Before that is in the
 * accounts, another one has other reasons.
 */
void test_same_reason(void)
{
	char data[8192] = "", *g = gpu(8192);
	struct meeting m = { .g = gpu(8192) };
	static const char all[] = "no cache: pieces of less than 64 KiB might be read by the CPU";
	pthread_t same;
	int fd, i;

	fd = make(path, 0, data, sizeof(data));
	fresh_cache("{}");
	mock_stop_clock();	/* a refusal holds for 10 seconds */
	m.fh = reg(fd);
	for (i = 0; i < 6; i++) {
		mock.p2p_errno = i % 2 ? EREMOTEIO : EOPNOTSUPP;
		mock.gpu = i % 2;
		is(cuFileRead(m.fh, i % 2 ? m.g : g, 8192, 0, 0), 8192, "p2p is refused");
		/* the first two are found out with host memory, and the cache not asked */
		check(strstr(stats_of(m.fh).reason, i % 2 ? "EREMOTEIO" : "EOPNOTSUPP") &&
		      (i < 2 || strstr(stats_of(m.fh).reason, all)), "why: %s",
		      stats_of(m.fh).reason);
	}
	mock.hold_pop = true;
	pthread_create(&same, NULL, meet, &m);
	AWAIT(mock.in_pop == 1);
	mock.gpu = 0;
	is(cuFileRead(m.fh, g, 8192, 0, 0), 8192, "another read, meanwhile");
	check(strstr(stats_of(m.fh).reason, "EOPNOTSUPP") &&
	      strstr(stats_of(m.fh).reason, all), "why: %s", stats_of(m.fh).reason);
	mock.hold_pop = false;
	pthread_join(same, NULL);
	is(m.result, 8192, "the first ends");
	check(strstr(stats_of(m.fh).reason, all) && strstr(stats_of(NULL).reason, all),
	      "no reason is cut short: %s", stats_of(m.fh).reason);
	close(fd);
	gpu_free(g);
	gpu_free(m.g);
}

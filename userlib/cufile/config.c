// SPDX-License-Identifier: MIT
/*
 * Settings: defaults, then cufile.json, then the environment, then what the
 * program set by call.  A later one wins.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "json.h"

#define DEFAULT_FILE	"/etc/cufile.json"
#define CONFIG_FILE	"CUFILE_ENV_PATH_JSON"
#define MAX_FILE	MIB(1)
#define MAX_SLAB_KB	(1u << 24)	/* tests of cuda-python set as much */
#define MAX_SLAB_COUNT	65536

/* Keys that are no parameters */
#define STRICT		"peerlane.strict"
#define WINDOW_SIZE_KB	"peerlane.window_size_kb"
#define KERNEL_MODULE	"peerlane.kernel_module"
#define NVIDIA_UVM	"peerlane.nvidia_uvm"
#define PAGE_CACHE	"peerlane.page_cache"
#define PAGE_CACHE_KB	"peerlane.max_page_cache_kb"
#define STATS_1_19	"peerlane.stats_1_19"
#define POSIX_SLAB_KB	"properties.posix_pool_slab_size_kb"
#define POSIX_SLAB_COUNT "properties.posix_pool_slab_count"
#define GPU_SLAB_KB	"properties.gpu_bounce_buffer_slab_config.slab_size_kb"
#define GPU_SLAB_COUNT	"properties.gpu_bounce_buffer_slab_config.slab_count"

struct size_setting {
	const char *key;
	size_t value, min, max, step;
};

/*
 * A key is NVIDIA's where its file says the same of both libraries.  That file
 * lies on every host with its toolkit, switches p2p off and sets what is right
 * for another library: those keys are our own.
 *
 * Order of CUFileSizeTConfigParameter_t.
 */
static const struct size_setting sizes[12] = {
	{ "profile.cufile_stats", 0, 0, 3, 1 },
	{ "execution.max_io_queue_depth", 128, 1, 65536, 1 },
	{ "peerlane.max_io_threads", 4, 0, 64, 1 },
	{ "peerlane.min_io_threshold_size_kb", 512, 4, 1u << 20, 1 },
	{ "peerlane.max_request_parallelism", 4, 0, 64, 1 },
	{ "properties.max_direct_io_size_kb", 16384, 64, 1u << 20, 4 },
	{ "properties.max_device_cache_size_kb", 131072, 0, 1u << 30, 4 },
	{ "properties.per_buffer_cache_size_kb", 1024, 4, 1u << 20, 4 },
	{ "properties.max_device_pinned_mem_size_kb", 33554432, 64, 1u << 30,
	  4 },
	{ "properties.io_batchsize", 128, 1, 256, 1 },
	{ "properties.poll_mode_max_size_kb", 4, 0, 1u << 20, 4 },
	{ "properties.max_batch_io_timeout_msecs", 5, 0, 1u << 20, 1 },
};

struct flag_setting {
	const char *key, *env;
	bool value;
};

/* Order of CUFileBoolConfigParameter_t. */
static const struct flag_setting flags[12] = {
	{ "properties.use_poll_mode", NULL, false },
	{ "properties.allow_compat_mode", "CUFILE_ALLOW_COMPAT_MODE", true },
	{ "properties.force_compat_mode", "CUFILE_FORCE_COMPAT_MODE", false },
	{ "miscellaneous.api_check_aggressive", NULL, false },
	{ "execution.parallel_io", NULL, true },
	{ "profile.nvtx", "CUFILE_NVTX", false },
	{ "properties.allow_system_memory", NULL, true },
	{ "peerlane.use_pci_p2pdma", "CUFILE_USE_PCIP2PDMA", true },
	{ "peerlane.prefer_iouring", NULL, true },
	{ "properties.force_odirect_mode", NULL, false },
	{ "miscellaneous.skip_topology_detection",
	  "CUFILE_SKIP_TOPOLOGY_DETECTION", false },
	{ "miscellaneous.stream_memops_bypass", "CUFILE_STREAM_MEMOPS_BYPASS",
	  false },
};

/* Order of CUFileStringConfigParameter_t. */
static const struct {
	const char *key, *env, *value;
} texts[3] = {
	{ "logging.level", "CUFILE_LOGGING_LEVEL", "ERROR" },
	{ NULL, "CUFILE_LOGFILE_PATH", "" },
	{ "logging.dir", NULL, "" },
};

struct config config;

/*
 * Parameters set by call.  They are changed in the one that is not in force, so that a
 * child of any moment has whole ones.
 */
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;
static struct set {
	size_t size[12];
	bool flag[12];
	char text[3][PATH_MAX];
	struct slabs slabs, gpu_slabs;
	bool has_size[12], has_flag[12], has_text[3], has_slabs, has_gpu_slabs;
} sets[2];
static struct set *_Atomic set = &sets[0];

static struct set *change(void)
{
	struct set *s;

	pthread_mutex_lock(&set_lock);
	s = &sets[set == &sets[0]];
	*s = *set;
	return s;
}

static void changed(struct set *s)
{
	set = s;
	pthread_mutex_unlock(&set_lock);
}

void config_forked(void)
{
	pthread_mutex_init(&set_lock, NULL);
}

void config_size_range(unsigned int param, size_t *min, size_t *max)
{
	*min = sizes[param].min;
	*max = sizes[param].max;
}

bool config_size_ok(unsigned int param, size_t value)
{
	const struct size_setting *s = &sizes[param];

	return value >= s->min && value <= s->max && !(value % s->step);
}

CUfileOpError config_set_size(unsigned int param, size_t value)
{
	struct set *s;

	if (param >= 12)
		return CU_FILE_INVALID_VALUE;
	if (!config_size_ok(param, value))
		return CU_FILE_DRIVER_UNSUPPORTED_LIMIT;
	s = change();
	s->size[param] = value;
	s->has_size[param] = true;
	changed(s);
	return CU_FILE_SUCCESS;
}

CUfileOpError config_set_flag(unsigned int param, bool value)
{
	struct set *s;

	if (param >= 12)
		return CU_FILE_INVALID_VALUE;
	s = change();
	s->flag[param] = value;
	s->has_flag[param] = true;
	changed(s);
	return CU_FILE_SUCCESS;
}

CUfileOpError config_set_text(unsigned int param, const char *value)
{
	struct set *s;

	if (param >= 3 || !value || strlen(value) >= sizeof(s->text[0]))
		return CU_FILE_INVALID_VALUE;
	if (param == CUFILE_PARAM_LOGGING_LEVEL &&
	    log_parse_level(value) < 0)
		return CU_FILE_INVALID_VALUE;
	s = change();
	strcpy(s->text[param], value);
	s->has_text[param] = true;
	changed(s);
	return CU_FILE_SUCCESS;
}

CUfileOpError config_set_slabs(bool gpu, const size_t *kb, const size_t *n,
			       unsigned int len)
{
	struct slabs s = { .n = len };
	struct set *with;
	unsigned int i;

	if (!len || len > MAX_SLABS)
		return CU_FILE_INVALID_VALUE;
	for (i = 0; i < len; i++) {
		if (!kb[i] || kb[i] > MAX_SLAB_KB || !n[i] ||
		    n[i] > MAX_SLAB_COUNT)
			return CU_FILE_INVALID_VALUE;
		s.kb[i] = kb[i];
		s.count[i] = n[i];
	}
	with = change();
	*(gpu ? &with->gpu_slabs : &with->slabs) = s;
	*(gpu ? &with->has_gpu_slabs : &with->has_slabs) = true;
	changed(with);
	return CU_FILE_SUCCESS;
}

static bool wrong_type(const char *key, const struct json *j,
		       const char *wanted, char *err, size_t size)
{
	snprintf(err, size, "%s must be %s, not %s", key, wanted,
		 json_type_name(j->type));
	return false;
}

static bool take_size(const struct json *root, const char *key, size_t min,
		      size_t max, size_t step, size_t *out, char *err,
		      size_t size)
{
	const struct json *j = json_find(root, key);

	if (!j)
		return true;
	if (j->type != JSON_NUMBER)
		return wrong_type(key, j, "a number", err, size);
	if (!(j->number >= (double)min && j->number <= (double)max) ||
	    j->number != (double)(size_t)j->number ||
	    (size_t)j->number % step) {
		snprintf(err, size,
			 "%s must be a whole number from %zu to %zu%s, not %g",
			 key, min, max, step > 1 ? ", in steps of 4" : "",
			 j->number);
		return false;
	}
	*out = (size_t)j->number;
	return true;
}

static bool take_flag(const struct json *root, const char *key, bool *out,
		      char *err, size_t size)
{
	const struct json *j = json_find(root, key);

	if (!j)
		return true;
	if (j->type != JSON_BOOL)
		return wrong_type(key, j, "true or false", err, size);
	*out = j->boolean;
	return true;
}

static bool take_list(const struct json *root, const char *key, size_t max,
		      size_t *out, unsigned int *count, char *err, size_t size)
{
	const struct json *j = json_find(root, key);
	unsigned int n = 0;

	if (!j)
		return true;
	if (j->type != JSON_ARRAY)
		return wrong_type(key, j, "a list of numbers", err, size);
	for (j = j->child; j; j = j->next) {
		if (n == MAX_SLABS || j->type != JSON_NUMBER || j->number < 1 ||
		    j->number > (double)max ||
		    j->number != (double)(size_t)j->number) {
			snprintf(err, size, "%s must be a list of at most 8 "
				 "whole numbers from 1 to %zu", key, max);
			return false;
		}
		out[n++] = (size_t)j->number;
	}
	*count = n;
	return true;
}

bool config_has_key(const char *key)
{
	static const char *const more[] = {
		"fs.generic.posix_unaligned_writes", POSIX_SLAB_KB,
		POSIX_SLAB_COUNT, GPU_SLAB_KB, GPU_SLAB_COUNT,
	};
	unsigned int i;

	for (i = 0; i < 12; i++)
		if (!strcmp(key, sizes[i].key) || !strcmp(key, flags[i].key))
			return true;
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (!strcmp(key, more[i]))
			return true;
	return false;
}

static bool take_slabs(const struct json *root, const char *kb,
		       const char *count, struct slabs *out, char *err,
		       size_t size)
{
	unsigned int nsize = out->n, ncount = out->n;

	if (!take_list(root, kb, MAX_SLAB_KB, out->kb, &nsize, err, size) ||
	    !take_list(root, count, MAX_SLAB_COUNT, out->count, &ncount, err,
		       size))
		return false;
	if (nsize != ncount || !nsize) {
		snprintf(err, size, "%s and %s must be lists of the same "
			 "length, and not empty", kb, count);
		return false;
	}
	out->n = nsize;
	return true;
}

/* The file has no key of ours that is none. */
static bool ours_known(const struct json *root, char *err, size_t size)
{
	const struct json *j = json_find(root, "peerlane");
	char key[128];
	unsigned int i;
	bool known;

	if (!j)
		return true;
	if (j->type != JSON_OBJECT)
		return wrong_type("peerlane", j, "an object", err, size);
	for (j = j->child; j; j = j->next) {
		snprintf(key, sizeof(key), "peerlane.%s", j->key);
		known = !strcmp(key, STRICT) || !strcmp(key, WINDOW_SIZE_KB) ||
			!strcmp(key, KERNEL_MODULE) || !strcmp(key, NVIDIA_UVM) ||
			!strcmp(key, PAGE_CACHE) || !strcmp(key, PAGE_CACHE_KB) ||
			!strcmp(key, STATS_1_19);
		for (i = 0; i < 12 && !known; i++)
			known = !strcmp(key, sizes[i].key) ||
				!strcmp(key, flags[i].key);
		if (!known) {
			snprintf(err, size, "there is no %.60s", key);
			return false;
		}
	}
	return true;
}

static bool apply_json(struct config *cfg, const struct json *root,
		       char *err, size_t size)
{
	const struct json *j;
	unsigned int i;

	if (root->type != JSON_OBJECT)
		return wrong_type("the whole file", root, "an object", err,
				  size);
	if (!ours_known(root, err, size))
		return false;
	for (i = 0; i < 12; i++)
		if (!take_size(root, sizes[i].key, sizes[i].min, sizes[i].max,
			       sizes[i].step, &cfg->size[i], err, size) ||
		    !take_flag(root, flags[i].key, &cfg->flag[i], err, size))
			return false;
	for (i = 0; i < 3; i++) {
		if (!texts[i].key)
			continue;
		j = json_find(root, texts[i].key);
		if (!j)
			continue;
		if (j->type != JSON_STRING)
			return wrong_type(texts[i].key, j, "a string", err,
					  size);
		if (i == CUFILE_PARAM_LOGGING_LEVEL &&
		    log_parse_level(j->string) < 0) {
			snprintf(err, size, "%s: no such level: %.40s",
				 texts[i].key, j->string);
			return false;
		}
	}
	if (!take_flag(root, "fs.generic.posix_unaligned_writes",
		       &cfg->posix_unaligned_writes, err, size) ||
	    !take_flag(root, STRICT, &cfg->strict, err, size) ||
	    !take_flag(root, KERNEL_MODULE, &cfg->kernel_module, err, size) ||
	    !take_flag(root, NVIDIA_UVM, &cfg->nvidia_uvm, err, size) ||
	    !take_flag(root, PAGE_CACHE, &cfg->page_cache, err, size) ||
	    !take_flag(root, STATS_1_19, &cfg->stats_1_19, err, size) ||
	    !take_size(root, PAGE_CACHE_KB, 0, 1u << 31, 4,
		       &cfg->page_cache_kb, err, size) ||
	    !take_size(root, WINDOW_SIZE_KB, 64, 1u << 20, 4,
		       &cfg->window_kb, err, size) ||
	    !take_slabs(root, POSIX_SLAB_KB, POSIX_SLAB_COUNT, &cfg->slabs, err,
			size) ||
	    !take_slabs(root, GPU_SLAB_KB, GPU_SLAB_COUNT, &cfg->gpu_slabs, err,
			size))
		return false;
	deny_keys(root, true, cfg->unknown, sizeof(cfg->unknown));
	deny_keys(root, false, cfg->no_effect, sizeof(cfg->no_effect));
	return deny_take(&cfg->deny, root, err, size);
}

/* What the file @fd has, or NULL and why not. */
static struct json *parse_file(int fd, char *words, size_t size)
{
	struct json *root = NULL;
	size_t len = 0;
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (size_t)st.st_size > MAX_FILE) {
		snprintf(words, size, "not a regular file of at most 1 MiB");
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		snprintf(words, size, "out of memory");
		return NULL;
	}
	while (len < (size_t)st.st_size) {
		n = read(fd, text + len, (size_t)st.st_size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	root = json_parse(text, len, words, size);
	free(text);
	return root;
}

/* What the environment has, or NULL */
static const char *env_text(const char *name)
{
	const char *v = name ? secure_getenv(name) : NULL;

	return v && *v ? v : NULL;
}

/*
 * The texts, of which those about the log are needed to tell what else is wrong.
 * False: the environment has a level of the log that is none, or one is too long.
 */
static bool take_texts(struct config *cfg, const struct json *root, char *err,
		       size_t size)
{
	const char *v, *env, *name;
	const struct json *j;
	unsigned int i;
	bool ok = true, level;

	for (i = 0; i < 3; i++) {
		level = i == CUFILE_PARAM_LOGGING_LEVEL;
		v = texts[i].value;
		j = root && texts[i].key ? json_find(root, texts[i].key) : NULL;
		/* apply_json() tells of others */
		if (j && j->type == JSON_STRING &&
		    (!level || log_parse_level(j->string) >= 0))
			v = j->string;
		name = texts[i].key;
		env = level ? env_text("PEERLANE_LOG") : NULL;
		env = env ? env : env_text(texts[i].env);
		if (env && level && log_parse_level(env) < 0) {
			snprintf(err, size, "no such log level: %.40s (off, "
				 "error, warn, info, debug)", env);
			ok = false;
		} else if (env) {
			v = env;
			name = texts[i].env;
		}
		if (strlen(v) >= sizeof(cfg->text[i])) {
			snprintf(err, size, "%s is longer than %zu bytes", name,
				 sizeof(cfg->text[i]) - 1);
			ok = false;
			v = texts[i].value;
		}
		strcpy(cfg->text[i], v);
	}
	pthread_mutex_lock(&set_lock);
	for (i = 0; i < 3; i++)
		if (set->has_text[i])
			strcpy(cfg->text[i], set->text[i]);
	pthread_mutex_unlock(&set_lock);
	return ok;
}

static void set_up_log(const struct config *cfg)
{
	const char *file = cfg->text[CUFILE_PARAM_ENV_LOGFILE_PATH];
	const char *dir = cfg->text[CUFILE_PARAM_LOG_DIR];
	char in_dir[sizeof(cfg->text[0]) + 16];

	snprintf(in_dir, sizeof(in_dir), "%s/cufile.log", dir);
	log_setup(log_parse_level(cfg->text[CUFILE_PARAM_LOGGING_LEVEL]),
		  *file || !*dir ? file : in_dir);
}

/* The file, and the texts of all; true when there is no file, or when it was good. */
static bool take_file(struct config *cfg, char *err, size_t size)
{
	const char *env = secure_getenv(CONFIG_FILE);
	const char *path = env && *env ? env : DEFAULT_FILE;
	int fd = open(path, O_RDONLY | O_CLOEXEC), no_file = errno;
	char words[256], text[128];
	struct json *root;
	bool ok, texts_ok;

	root = fd < 0 ? NULL : parse_file(fd, words, sizeof(words));
	texts_ok = take_texts(cfg, root, text, sizeof(text));
	set_up_log(cfg);
	if (fd < 0 && path == env)
		log_line(LOG_ERROR, "%s (from CUFILE_ENV_PATH_JSON) "
			 "cannot be opened: %s; defaults are used",
			 path, strerror(no_file));
	ok = fd < 0 || (root && apply_json(cfg, root, words, sizeof(words)));
	if (!ok)
		snprintf(err, size, "%s: %s", path, words);
	else if (!texts_ok)
		snprintf(err, size, "%s", text);
	json_free(root);
	if (fd >= 0)
		close(fd);
	return ok && texts_ok;
}

static bool env_flag(const char *name, bool *out, char *err, size_t size)
{
	const char *v = secure_getenv(name);

	if (!v || !*v)
		return true;
	if (!strcasecmp(v, "true") || !strcasecmp(v, "1") ||
	    !strcasecmp(v, "on") || !strcasecmp(v, "yes")) {
		*out = true;
	} else if (!strcasecmp(v, "false") || !strcasecmp(v, "0") ||
		   !strcasecmp(v, "off") || !strcasecmp(v, "no")) {
		*out = false;
	} else {
		snprintf(err, size, "environment variable %s must be true or "
			 "false, not %.40s", name, v);
		return false;
	}
	return true;
}

static bool has_variable(const char *name, size_t len)
{
	const char *known;
	unsigned int i;

	for (i = 0; i < 16; i++) {
		known = i < 12 ? flags[i].env : i < 15 ? texts[i - 12].env : CONFIG_FILE;
		if (known && strlen(known) == len && !strncmp(known, name, len))
			return true;
	}
	return false;
}

/* CUFILE_... that is not read here: a typing error, or NVIDIA's own. */
static void unused_variables(char *list, size_t size)
{
	char **e, name[64];
	size_t len, n;

	list[0] = '\0';
	for (e = environ; e && *e; e++) {
		len = strcspn(*e, "=");
		if (strncmp(*e, "CUFILE_", 7) || has_variable(*e, len))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, *e);
		/* that of a program with more rights is not looked at */
		if (len < sizeof(name) && !secure_getenv(name))
			continue;
		deny_printable(name);
		n = strlen(list);
		snprintf(list + n, size - n, "%s%s", n ? ", " : "", name);
	}
}

/* Half of the CPUs, from 2 to 8. */
static size_t default_lanes(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	return n < 2 ? 2 : n > 8 ? 8 : (size_t)n;
}

/* Where this process's group is, and how much of that is above all groups */
static void find_group(struct config *cfg)
{
	const char *root = secure_getenv("PEERLANE_CGROUP");
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[1024];

	root = root ? root : "/sys/fs/cgroup";
	strcpy(line, "0::/");
	while (f && fgets(line, sizeof(line), f) && strncmp(line, "0::/", 4))
		continue;
	if (f)
		fclose(f);
	if (strncmp(line, "0::/", 4))
		strcpy(line, "0::/");
	line[strcspn(line, "\n")] = '\0';
	/* of the root it is a slash alone */
	if (!line[4])
		line[3] = '\0';
	cfg->group_root = min_of(strlen(root), sizeof(cfg->group) - sizeof(line));
	snprintf(cfg->group, sizeof(cfg->group), "%.*s%s", (int)cfg->group_root,
		 root, line + 3);
}

/* The number behind @key, with which a line of @dir/@file begins; false: none is. */
static bool number_in(const char *dir, const char *file, const char *key,
		      uint64_t *n)
{
	unsigned long long value;
	char line[256], name[2100];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", dir, file);
	f = fopen(name, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		/* "max" is no number */
		found = !strncmp(line, key, strlen(key)) &&
			sscanf(line + strlen(key), "%llu", &value) == 1;
	if (f)
		fclose(f);
	*n = found ? value : 0;
	return found;
}

bool of_descriptor(int fd, const char *key, uint64_t *n)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", fd);
	return number_in("/proc/thread-self/fdinfo", name, key, n);
}

/*
 * Bytes that a group may use, all or those that it does not: files can go.  Above
 * memory.high it is made to wait while it has them go.
 */
static uint64_t group_memory(const char *dir, bool left)
{
	uint64_t max, high, used, active, inactive;

	if (!number_in(dir, "memory.max", "", &max))
		max = UINT64_MAX;
	if (number_in(dir, "memory.high", "", &high))
		max = min_of(max, high);
	if (max == UINT64_MAX || !left || !number_in(dir, "memory.current", "", &used))
		return max;
	number_in(dir, "memory.stat", "active_file ", &active);
	number_in(dir, "memory.stat", "inactive_file ", &inactive);
	used -= min_of(used, active + inactive);
	return max - min_of(max, used);
}

/* The least of that of this process's group and those above it */
static uint64_t groups_memory(const struct config *cfg, bool left)
{
	uint64_t least = UINT64_MAX;
	char dir[sizeof(cfg->group)], *slash;

	strcpy(dir, cfg->group);
	for (;;) {
		least = min_of(least, group_memory(dir, left));
		slash = strrchr(dir + cfg->group_root, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

uint64_t config_memory_left(void)
{
	uint64_t kb;

	if (!number_in("/proc", "meminfo", "MemAvailable:", &kb))
		kb = UINT64_MAX >> 10;
	return min_of(KIB(kb), groups_memory(&config, true));
}

/*
 * What is registered cannot be taken from the page cache: an eighth of the memory
 * that this process may use, and not more than 1 GiB.
 */
static size_t default_page_cache_kb(const struct config *cfg)
{
	uint64_t n = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		     (uint64_t)sysconf(_SC_PAGESIZE);

	n = min_of(n, groups_memory(cfg, false)) / 8;
	return min_of(n, (uint64_t)1 << 30) / KIB(4) * 4;
}

static bool load(struct config *cfg, char *err, size_t size)
{
	static const struct slabs slabs = {
		{ 4, 1024, 16384 }, { 128, 64, 64 }, 3
	};
	static const struct slabs gpu_slabs = {
		{ 1024, 8192, 16384, 65536 }, { 128, 8, 4, 2 }, 4
	};
	unsigned int i;

	memset(cfg, 0, sizeof(*cfg));
	for (i = 0; i < 12; i++) {
		cfg->size[i] = sizes[i].value;
		cfg->flag[i] = flags[i].value;
	}
	cfg->slabs = slabs;
	cfg->gpu_slabs = gpu_slabs;
	cfg->size[CUFILE_PARAM_EXECUTION_MAX_IO_THREADS] =
		cfg->size[CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM] =
			default_lanes();
	cfg->window_kb = 16384;
	cfg->kernel_module = true;
	find_group(cfg);
	cfg->page_cache_kb = default_page_cache_kb(cfg);

	if (!take_file(cfg, err, size))
		return false;
	for (i = 0; i < 12; i++)
		if (flags[i].env &&
		    !env_flag(flags[i].env, &cfg->flag[i], err, size))
			return false;
	if (!env_flag("PEERLANE_STRICT", &cfg->strict, err, size) ||
	    !env_flag("PEERLANE_KERNEL_MODULE", &cfg->kernel_module, err, size) ||
	    !env_flag("PEERLANE_NVIDIA_UVM", &cfg->nvidia_uvm, err, size) ||
	    !env_flag("PEERLANE_PAGE_CACHE", &cfg->page_cache, err, size) ||
	    !env_flag("PEERLANE_STATS_1_19", &cfg->stats_1_19, err, size))
		return false;
	unused_variables(cfg->unused, sizeof(cfg->unused));

	pthread_mutex_lock(&set_lock);
	for (i = 0; i < 12; i++) {
		if (set->has_size[i])
			cfg->size[i] = set->size[i];
		if (set->has_flag[i])
			cfg->flag[i] = set->flag[i];
	}
	if (set->has_slabs)
		cfg->slabs = set->slabs;
	if (set->has_gpu_slabs)
		cfg->gpu_slabs = set->gpu_slabs;
	pthread_mutex_unlock(&set_lock);
	return true;
}

bool config_load(struct config *cfg, char *err, size_t size)
{
	bool ok = load(cfg, err, size);

	if (!ok)
		deny_free(&cfg->deny);
	return ok;
}

// SPDX-License-Identifier: MIT
/*
 * What cufile.json says that is no setting: keys that nobody knows, and the
 * denylist of drivers, devices, mounts and file systems.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../core/mountinfo.h"
#include "../core/topo.h"
#include "internal.h"
#include "json.h"

/* ---- keys ---- */

/* A dot or a line at the end: all that begin so */
static bool is_among(const char *key, const char *const *of, size_t n)
{
	size_t i, len;

	for (i = 0; i < n; i++) {
		len = strlen(of[i]);
		if (of[i][len - 1] == '.' || of[i][len - 1] == '_' ?
		    !strncmp(key, of[i], len) : !strcmp(key, of[i]))
			return true;
	}
	return false;
}

#define AMONG(key, of) is_among(key, of, sizeof(of) / sizeof((of)[0]))

enum known { EFFECT, NO_EFFECT, NOBODYS };

static enum known known(const char *key)
{
	/* settings that are checked, and told back */
	static const char *const told_back[] = {
		"profile.nvtx", "properties.use_poll_mode",
		"properties.poll_mode_max_size_kb",
		"properties.max_batch_io_timeout_msecs",
		"properties.gpu_bounce_buffer_slab_config.", "miscellaneous.",
	};
	static const char *const lists[] = {
		"denylist.drivers", "denylist.devices", "denylist.mounts",
		"denylist.filesystems", "logging.level", "logging.dir", "peerlane.",
	};
	/*
	 * NVIDIA's keys that say nothing to this library: what they are about is not
	 * here, or has keys of its own.
	 */
	static const char *const passed_over[] = {
		"profile.io_tracing.",
		"execution.max_io_threads", "execution.max_request_parallelism",
		"execution.min_io_threshold_size_kb", "execution.gpu_bounce_buffer.",
		"properties.use_pci_p2pdma", "properties.prefer_iouring",
		"properties.io_priority", "properties.gds_rdma_write_support",
		"properties.rdma_", "properties.vanilla_posix_io_mode",
		"properties.max_peer_io_threads", "properties.static_routing_filepath",
		"properties.enable_static_routing", "block.", "sparse.", "fs.", "rdma.",
		"miscellaneous.rcu_library_used", "logging.",
	};
	bool setting = config_has_key(key);

	if (AMONG(key, lists) || (setting && !AMONG(key, told_back)))
		return EFFECT;
	return setting || AMONG(key, passed_over) ? NO_EFFECT : NOBODYS;
}

void deny_printable(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
}

static void look(const struct json *j, const char *above, enum known what,
		 char *list, size_t size)
{
	char key[256];
	size_t n;

	for (j = j->child; j; j = j->next) {
		snprintf(key, sizeof(key), "%s%s%s", above, *above ? "." : "",
			 j->key);
		deny_printable(key);
		n = strlen(list);
		/* "a.b" is one key, and not what is written so here */
		if (j->type == JSON_OBJECT && !strchr(j->key, '.'))
			look(j, key, what, list, size);
		else if ((strchr(j->key, '.') ? NOBODYS : known(key)) == what)
			snprintf(list + n, size - n, "%s%.60s", n ? ", " : "",
				 key);
	}
}

void deny_keys(const struct json *root, bool unknown, char *list, size_t size)
{
	list[0] = '\0';
	look(root, "", unknown ? NOBODYS : NO_EFFECT, list, size);
}

/* ---- the denylist ---- */

static const char *const names[DENY_LISTS] = {
	"drivers", "devices", "mounts", "filesystems",
};

bool deny_take(struct deny *deny, const struct json *root, char *err, size_t size)
{
	const struct json *j, *e;
	char key[32], *to;
	size_t len;
	int i;

	j = json_find(root, "denylist");
	if (j && j->type != JSON_OBJECT) {
		snprintf(err, size, "denylist must be an object, not %s",
			 json_type_name(j->type));
		return false;
	}
	for (i = 0; i < DENY_LISTS; i++) {
		snprintf(key, sizeof(key), "denylist.%s", names[i]);
		j = json_find(root, key);
		if (!j)
			continue;
		len = 1;
		for (e = j->child; e && j->type == JSON_ARRAY; e = e->next) {
			if (e->type != JSON_STRING)
				break;
			len += strlen(e->string) + 1;
		}
		if (j->type != JSON_ARRAY || e) {
			snprintf(err, size, "%s must be a list of strings", key);
			return false;
		}
		to = calloc(1, len);
		if (!to) {
			snprintf(err, size, "out of memory");
			return false;
		}
		free(deny->items[i]);
		deny->items[i] = to;
		for (e = j->child; e; e = e->next)
			if (e->string[0])
				to = stpcpy(to, e->string) + 1;
	}
	return true;
}

void deny_free(struct deny *deny)
{
	int i;

	for (i = 0; i < DENY_LISTS; i++) {
		free(deny->items[i]);
		deny->items[i] = NULL;
	}
}

/* The list's first one, and the next one: "" after the last. */
static const char *first(enum deny_list which)
{
	const char *s = config.deny.items[which];

	return s ? s : "";
}

static const char *next(const char *s)
{
	return s + strlen(s) + 1;
}

static bool has(enum deny_list which, const char *what)
{
	const char *s;

	for (s = first(which); *s; s = next(s))
		if (!strcmp(s, what))
			return true;
	return false;
}

/* @path may have slashes at its end, which the kernel's mount points have not. */
static bool is_point(const char *point, const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return strlen(point) == n && !strncmp(point, path, n);
}

bool deny_mount(int fd, char *point, char *type, uint64_t *dev)
{
	char *line = NULL;
	struct mount_line m;
	bool found = false;
	unsigned int major, minor;
	size_t room = 0;
	uint64_t id;
	FILE *f;

	f = of_descriptor(fd, "mnt_id:", &id) ? fopen("/proc/thread-self/mountinfo", "re") : NULL;
	while (f && !found && getline(&line, &room, f) > 0) {
		found = mount_parse(line, &m) && (uint64_t)m.id == id &&
			strlen(m.point) < PATH_MAX && strlen(m.type) < 64 &&
			sscanf(m.device, "%u:%u", &major, &minor) == 2;
		if (!found)
			continue;
		strcpy(point, m.point);
		strcpy(type, m.type);
		*dev = makedev(major, minor);
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}

/* Is it that device, or a partition of it? */
static bool is_device(uint64_t dev, const char *path)
{
	unsigned int major, minor;
	char disk[96], text[32];
	struct stat st;
	bool is;
	FILE *f;

	if (stat(path, &st) || !S_ISBLK(st.st_mode))
		return false;
	if (st.st_rdev == dev)
		return true;
	snprintf(disk, sizeof(disk), "/sys/dev/block/%u:%u/../dev", major(dev),
		 minor(dev));
	f = fopen(disk, "re");
	is = f && fgets(text, sizeof(text), f) &&
	     sscanf(text, "%u:%u", &major, &minor) == 2 &&
	     makedev(major, minor) == st.st_rdev;
	if (f)
		fclose(f);
	return is;
}

/* One of the drivers between the device that @name of sysfs leads to and the root of the tree. */
static bool has_driver(const char *name)
{
	char path[PATH_MAX], link[PATH_MAX + 8], driver[PATH_MAX];
	char *end;
	ssize_t n;

	if (!realpath(name, path))
		return false;
	while (!strncmp(path, "/sys/devices/", 13)) {
		snprintf(link, sizeof(link), "%s/driver", path);
		n = readlink(link, driver, sizeof(driver) - 1);
		if (n > 0) {
			driver[n] = '\0';
			end = strrchr(driver, '/');
			if (has(DENY_DRIVERS, end ? end + 1 : driver))
				return true;
		}
		end = strrchr(path, '/');
		*end = '\0';
	}
	return false;
}

struct below {
	struct facts *f;
	const char *why;
	int err;		/* memory or files ran out */
};

static void look_at(struct below *l, const char *name)
{
	char path[128], text[32] = "";
	unsigned int major, minor;
	const char *s;
	uint64_t dev;
	int r;

	if (l->why)
		return;
	snprintf(path, sizeof(path), "/sys/class/block/%s/dev", name);
	r = facts_text(l->f, path, text, sizeof(text));
	if (facts_ran_out(r))
		l->err = r;
	if (sscanf(text, "%u:%u", &major, &minor) == 2) {
		dev = makedev(major, minor);
		for (s = first(DENY_DEVICES); *s; s = next(s))
			if (is_device(dev, s))
				l->why = "denylist.devices of cufile.json has a device below it";
		snprintf(path, sizeof(path), "/sys/class/block/%s", name);
	} else {
		/* a controller of a drive that several lead to */
		snprintf(path, sizeof(path), "/sys/class/nvme/%s", name);
	}
	if (!l->why && *first(DENY_DRIVERS) && has_driver(path))
		l->why = "denylist.drivers of cufile.json has the driver of a device below it";
}

static void look_below(void *arg, const struct topo_block *b)
{
	if (b->part[0])
		look_at(arg, b->part);
	look_at(arg, b->name);
}

/*
 * Of what a RAID array or the device mapper stands on; of a loop device Linux does not say it there.
 * What cannot be looked for, for want of memory or files, may be denied.
 */
static const char *deny_below(uint64_t dev)
{
	struct below l = { .why = NULL };
	char path[64], disk[PATH_MAX];
	int r;

	if (!*first(DENY_DEVICES) && !*first(DENY_DRIVERS))
		return NULL;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	r = facts_open_live(&l.f);
	if (!r) {
		r = facts_link(l.f, path, disk, sizeof(disk));
		if (!r)
			r = topo_blocks(l.f, disk, look_below, &l);
		facts_close(l.f);
	}
	if (!l.why && (facts_ran_out(r) || l.err))
		l.why = "denylist of cufile.json has devices or drivers, and what the file "
			"lies on cannot be looked for: memory or files ran out";
	return l.why;
}

const char *deny_file(int fd, uint64_t dev, bool block)
{
	char point[PATH_MAX], type[64], link[64];
	uint64_t its;
	const char *s;

	for (s = first(DENY_DEVICES); *s; s = next(s))
		if (is_device(dev, s))
			return "denylist.devices of cufile.json has it";
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (*first(DENY_DRIVERS) && has_driver(link))
		return "denylist.drivers of cufile.json has its driver";
	s = deny_below(dev);
	if (s)
		return s;
	if (block || (!*first(DENY_MOUNTS) && !*first(DENY_FILESYSTEMS)))
		return NULL;
	if (!deny_mount(fd, point, type, &its))
		return "denylist of cufile.json has mounts or file systems, and the mount of "
		       "the file is not to be found";
	for (s = first(DENY_MOUNTS); *s; s = next(s))
		if (is_point(point, s))
			return "denylist.mounts of cufile.json has its mount";
	if (has(DENY_FILESYSTEMS, type))
		return "denylist.filesystems of cufile.json has its file system";
	return NULL;
}

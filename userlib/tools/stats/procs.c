// SPDX-License-Identifier: MIT
/*
 * peerlane stats PID: what libcufile counts in other processes, from the page that
 * each of them has in a memfd (userlib/cufile/page.h).
 *
 * A process may be anybody's, and change what it has while it is read.  So it is held
 * by its folder in /proc, not by its number; what a descriptor leads to is looked at
 * before it is opened, as opening may do something; and the page is copied, not
 * mapped, as a mapping could end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../cufile/page_json.h"
#include "procs.h"
#include "tool.h"

#define LINK	"/memfd:" STATS_NAME " (deleted)"


struct process {
	pid_t pid;
	char name[64];
	struct stats_page page;
	bool told;		/* its reason is whole */
};

struct processes {
	struct process *p;
	size_t n;
	double when;
};

/* ---- finding them ---- */

/* The device of all memfds */
static bool memfd_dev(dev_t *dev)
{
	int fd = stats_memfd();
	struct stat st;
	bool good = fd >= 0 && !fstat(fd, &st);

	if (good)
		*dev = st.st_dev;
	if (fd >= 0)
		close(fd);
	return good;
}

static bool read_at(int dir, const char *name, char *buf, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The number that the process has for itself, in its own namespace; -1: it has ended */
static pid_t own_pid(int proc)
{
	char text[8192], *line, *end;

	if (!read_at(proc, "status", text, sizeof(text)) ||
	    strstr(text, "\nState:\tZ"))
		return -1;
	line = strstr(text, "\nNSpid:");
	if (!line)
		line = strstr(text, "\nPid:");
	if (!line)
		return -1;
	end = strchr(line + 1, '\n');
	if (end)
		*end = '\0';
	line += strcspn(line, "0123456789");
	line = strrchr(line, '\t') ? strrchr(line, '\t') + 1 : line;
	return (pid_t)strtol(line, NULL, 10);
}

static bool read_writing(int fd, uint32_t *writing)
{
	return pread(fd, writing, sizeof(*writing),
		     offsetof(struct stats_page, total.writing)) ==
	       (ssize_t)sizeof(*writing);
}

/* Copies, until nothing was written into the reason during one */
static bool read_page(int fd, pid_t own, struct process *p)
{
	uint32_t before, after;
	unsigned int i;

	if (!read_writing(fd, &before))
		return false;
	p->told = false;
	for (i = 0; i < 100 && !p->told; i++, before = after) {
		if (pread(fd, &p->page, sizeof(p->page), 0) !=
		    (ssize_t)sizeof(p->page) || !read_writing(fd, &after))
			return false;
		if (p->page.magic != STATS_MAGIC ||
		    p->page.version != STATS_VERSION ||
		    p->page.size != sizeof(p->page) || p->page.pid != own)
			return false;
		p->told = before == after && after % 2 == 0;
	}
	p->page.total.reason[sizeof(p->page.total.reason) - 1] = '\0';
	make_plain(p->page.total.reason);
	if (!p->told)
		strcpy(p->page.total.reason, "it changes all the time");
	return true;
}

/* The page behind a descriptor, if there is one of this version and this process */
static bool take(int fds, const char *name, dev_t dev, pid_t own,
		 struct process *p)
{
	char link[sizeof(LINK) + 1], path[64];
	ssize_t n = readlinkat(fds, name, link, sizeof(link));
	bool good = false;
	struct stat st;
	int at, fd;

	if (n != (ssize_t)strlen(LINK) || memcmp(link, LINK, (size_t)n))
		return false;
	at = openat(fds, name, O_PATH | O_CLOEXEC);
	if (at < 0)
		return false;
	if (!fstat(at, &st) && S_ISREG(st.st_mode) && st.st_dev == dev &&
	    st.st_size == (off_t)sizeof(p->page)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		good = fd >= 0 && read_page(fd, own, p);
		if (fd >= 0)
			close(fd);
	}
	close(at);
	return good;
}

/* 0, or why there is none: -ESRCH no process, -EACCES, -ENODATA */
static int look_at(pid_t pid, dev_t dev, struct process *p)
{
	int proc, fds, r = -ENODATA;
	struct dirent *d;
	char path[32];
	pid_t own;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	fds = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fds < 0 ? NULL : fdopendir(fds);
	if (!dir) {
		r = errno == ENOENT ? -ESRCH : -errno;
		if (fds >= 0)
			close(fds);
	}
	/* behind that: of one that has ended the descriptors are root's */
	own = own_pid(proc);
	if (own < 0)
		r = -ESRCH;
	while (r == -ENODATA && (d = readdir(dir)))
		if (take(fds, d->d_name, dev, own, p))
			r = 0;
	if (!r) {
		p->pid = pid;
		read_at(proc, "comm", p->name, sizeof(p->name));
		if (strlen(p->name))	/* of several lines, perhaps */
			p->name[strlen(p->name) - 1] = '\0';
		make_plain(p->name);
	}
	if (dir)
		closedir(dir);
	close(proc);
	return r;
}

static bool add(struct processes *all, const struct process *p)
{
	struct process *bigger = realloc(all->p, (all->n + 1) * sizeof(*p));

	if (!bigger) {
		complain("out of memory");
		return false;
	}
	all->p = bigger;
	all->p[all->n++] = *p;
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int look_at_all(dev_t dev, struct processes *all)
{
	DIR *dir = opendir("/proc");
	struct process p;
	struct dirent *d;
	char *end;
	long pid;

	if (!dir) {
		complain("/proc: %s", strerror(errno));
		return EXIT_NO_INPUT;
	}
	while ((d = readdir(dir))) {
		pid = strtol(d->d_name, &end, 10);
		if (*end || pid <= 0 || pid > INT_MAX)
			continue;
		/* those of others are theirs, and some end meanwhile */
		if (!look_at((pid_t)pid, dev, &p) && !add(all, &p)) {
			closedir(dir);
			return EXIT_NO_INPUT;
		}
	}
	closedir(dir);
	if (all->n)
		qsort(all->p, all->n, sizeof(*all->p), by_pid);
	return EXIT_OK;
}

#define ENDED	-1

/* EXIT_OK, ENDED after the first look, or a complaint */
static int look(const struct procs_options *o, bool first, struct processes *all)
{
	struct process p;
	dev_t dev;
	int r;

	*all = (struct processes){ .when = now_wall() };
	if (!memfd_dev(&dev)) {
		complain("memfd_create: %s", strerror(errno));
		return EXIT_NO_INPUT;
	}
	if (!o->pid)
		return look_at_all(dev, all);
	r = look_at(o->pid, dev, &p);
	if (!r)
		return add(all, &p) ? EXIT_OK : EXIT_NO_INPUT;
	if (!first && (r == -ESRCH || r == -ENODATA))
		return ENDED;
	if (r == -ENODATA)
		complain("process %d has not opened this version of Peerlane's "
			 "libcufile", (int)o->pid);
	else if (r == -EACCES)
		complain("process %d is another user's: this needs root",
			 (int)o->pid);
	else
		complain("process %d: %s", (int)o->pid, strerror(-r));
	return EXIT_NO_INPUT;
}

/* ---- JSON, of which the text is made ---- */

static void put(struct json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static uint64_t moved(const struct process *p, bool write)
{
	const struct tally *t = &p->page.total;
	uint64_t n = 0;
	unsigned int i;

	for (i = 1; i < PLN_PATH_COUNT; i++)
		n += write ? t->bytes_written[i] : t->bytes_read[i];
	return n;
}

/* Since the look before, of the same process */
static void put_rates(struct json_object *o, const struct process *p, double when,
		      const struct processes *before)
{
	double s = when - before->when;
	struct json_object *rates;
	size_t i;
	int k;

	for (i = 0; i < before->n && before->p[i].pid != p->pid; i++)
		continue;
	if (i == before->n || s <= 0)
		return;
	rates = json_object_new_object();
	json_object_object_add(o, "bytes_per_second", rates);
	for (k = 0; k < 2; k++) {
		uint64_t was = moved(&before->p[i], k), is = moved(p, k);

		/* less: another process has the number now */
		put(rates, flow_names[k], is < was ? 0 :
		    (uint64_t)((double)(is - was) / s));
	}
}

/* What the process counts, behind what is known of itself; a copy of its page cannot change. */
static struct json_object *json_of_one(const struct process *p)
{
	struct json_object *o = json_object_new_object(), *counted = NULL;
	const struct tally *t = &p->page.total;
	struct told told = { t->last_errno, t->last_error, "" };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	memcpy(told.reason, t->reason, sizeof(told.reason));
	put(o, "pid", (uint64_t)p->pid);
	json_object_object_add(o, "name", json_object_new_string(p->name));
	if (f) {
		json_stats(f, t, &told, &p->page);
		counted = fclose(f) ? NULL : json_tokener_parse(text);
	}
	free(text);
	if (!counted)
		return o;
	json_object_object_foreach(counted, key, v)
		json_object_object_add(o, key, json_object_get(v));
	json_object_put(counted);
	return o;
}

static struct json_object *json_of(const struct processes *all,
				   const struct processes *before)
{
	struct json_object *list = json_object_new_array(), *o;
	size_t i;

	for (i = 0; i < all->n; i++) {
		o = json_of_one(&all->p[i]);
		put_rates(o, &all->p[i], all->when, before);
		json_object_array_add(list, o);
	}
	return list;
}

static void print_values(struct json_object *o, int indent)
{
	json_object_object_foreach(o, name, v) {
		if (json_object_get_type(v) == json_type_object) {
			if (!json_object_object_length(v))
				continue;
			printf("%*s%s\n", indent, "", name);
			print_values(v, indent + 2);
		} else if (json_object_get_type(v) != json_type_string ||
			   json_object_get_string_len(v)) {
			printf("%*s%-22s %s\n", indent, "", name,
			       json_object_get_string(v));
		}
	}
}

static void print(struct json_object *list)
{
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		printf("process %s (%s)\n",
		       json_object_get_string(json_object_object_get(o, "pid")),
		       json_object_get_string(json_object_object_get(o, "name")));
		json_object_object_del(o, "pid");
		json_object_object_del(o, "name");
		print_values(o, 2);
	}
	if (!i)
		puts("no process here has opened Peerlane's libcufile");
}

/* ---- Prometheus ---- */

static void labels(FILE *f, const char *metric, const struct process *p)
{
	const char *c;

	fprintf(f, "peerlane_cufile_%s{pid=\"%d\",name=\"", metric, (int)p->pid);
	for (c = p->name; *c; c++)
		fprintf(f, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	fputc('"', f);
}

static void head(FILE *f, const char *metric, const char *help)
{
	fprintf(f, "# HELP peerlane_cufile_%s %s\n"
		"# TYPE peerlane_cufile_%s counter\n", metric, help, metric);
}

static void line(FILE *f, uint64_t v)
{
	fprintf(f, "} %llu\n", (unsigned long long)v);
}

/* Of each path and direction: bytes, or transfers */
static void put_by_path(FILE *f, const struct processes *all, const char *metric,
			bool bytes)
{
	unsigned int path, k;
	size_t i;

	for (i = 0; i < all->n; i++) {
		const struct tally *t = &all->p[i].page.total;

		for (path = 1; path < PLN_PATH_COUNT; path++)
			for (k = 0; k < 2; k++) {
				labels(f, metric, &all->p[i]);
				fprintf(f, ",path=\"%s\",direction=\"%s\"",
					path_names[path], flow_names[k]);
				line(f, bytes ? k ? t->bytes_written[path] :
						    t->bytes_read[path] :
					k ? t->writes[path] : t->reads[path]);
			}
	}
}

static void put_prometheus(FILE *f, const void *arg)
{
	const struct processes *all = arg;
	unsigned int k, bin;
	size_t i;

	head(f, "bytes_total", "Bytes moved.");
	put_by_path(f, all, "bytes_total", true);
	head(f, "transfers_total", "Transfers in which the path moved bytes.");
	put_by_path(f, all, "transfers_total", false);
	head(f, "errors_total", "Transfers that failed.");
	for (i = 0; i < all->n; i++) {
		labels(f, "errors_total", &all->p[i]);
		line(f, all->p[i].page.total.errors);
	}
	head(f, "fallbacks_total", "Transfers of which some bytes did not go p2p.");
	for (i = 0; i < all->n; i++) {
		labels(f, "fallbacks_total", &all->p[i]);
		line(f, all->p[i].page.total.fallbacks);
	}
	head(f, "call_microseconds_total", "Time in calls that went well (level 1).");
	for (i = 0; i < all->n; i++)
		for (k = 0; k < 2 && all->p[i].page.level >= 1; k++) {
			labels(f, "call_microseconds_total", &all->p[i]);
			fprintf(f, ",direction=\"%s\"", flow_names[k]);
			line(f, all->p[i].page.counters.flow[k].ns / 1000);
		}
	head(f, "calls_by_size_total",
	     "Calls of less bytes than below, and not less than half of it (level 2).");
	for (i = 0; i < all->n; i++)
		for (k = 0; k < 2 && all->p[i].page.level >= 2; k++)
			for (bin = 0; bin < STATS_BINS; bin++) {
				uint64_t v = all->p[i].page.counters.flow[k].bin[bin];

				if (!v)
					continue;
				labels(f, "calls_by_size_total", &all->p[i]);
				fprintf(f, ",direction=\"%s\",below=\"%llu\"",
					flow_names[k], 4096ull << bin);
				line(f, v);
			}
}

/* ---- all of it ---- */

static int show(const struct procs_options *o, const struct processes *all,
		const struct processes *before)
{
	struct json_object *list, *top;

	if (o->prometheus)
		return replace_file(o->prometheus, put_prometheus, all);
	list = json_of(all, before);
	if (o->json) {
		top = json_object_new_object();
		json_object_object_add(top, "processes", list);
		print_json(top);
	} else {
		print(list);
		json_object_put(list);
	}
	fflush(stdout);
	return EXIT_OK;
}

int procs_stats(const struct procs_options *o)
{
	struct timespec pause = { .tv_sec = (time_t)o->watch };
	struct processes now, before = { 0 };
	uint64_t looks;
	int r = EXIT_OK;

	for (looks = 1; !r; looks++) {
		r = look(o, looks == 1, &now);
		if (!r)
			r = show(o, &now, &before);
		free(before.p);
		before = now;
		if (!o->watch || (o->looks && looks >= o->looks))
			break;
		if (!r)
			nanosleep(&pause, NULL);
	}
	free(before.p);
	return r == ENDED ? EXIT_OK : r;
}

// SPDX-License-Identifier: MIT
/*
 * peerlane io load: job files of gdsio.
 *
 *	[global]
 *	rw=read
 *	bs=1M
 *	[job1]
 *	filename=/mnt/a
 *
 * What [global] sets is so in each job behind it.  A job is a process of its own; all
 * begin when all are ready.
 */
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "tool.h"

#define JOBS_MAX 64
#define MOST_TEXT (1 << 20)	/* of a job file */

enum kind {
	VALUE,			/* as the option has it */
	OR_NONE,		/* so, but 0 is as if there were none */
	SWITCH,			/* 1 or 0 */
	CACHED,			/* 0 is O_DIRECT */
	IGNORED,		/* nothing here depends on it */
	ONLY_0,			/* there is no such thing here */
};

static const struct {
	const char *key, *option;
	enum kind kind;
} keys[] = {
	{ "name", NULL, IGNORED },
	{ "xfer_type", "transfer", VALUE },
	{ "rw", "rw", VALUE },
	{ "bs", "chunk", VALUE },
	{ "size", "size", VALUE },
	{ "start_offset", "offset", VALUE },
	{ "random_seed", "seed", VALUE },
	{ "runtime", "seconds", OR_NONE },
	{ "num_threads", "threads", VALUE },
	{ "gpu_dev_id", "gpu", VALUE },
	{ "filename", "file", VALUE },
	{ "mem_type", "memory", VALUE },
	{ "do_verify", "verify", SWITCH },
	{ "skip_bufregister", "unregistered", SWITCH },
	{ "fd_type", NULL, CACHED },
	{ "numa_node", NULL, IGNORED },
	{ "enable_nvlinks", NULL, ONLY_0 },
	{ "fill_random", NULL, ONLY_0 },
	{ "refill_buffer", NULL, ONLY_0 },
	{ "unaligned_random", NULL, SWITCH },
	{ "alignment_size", "align", OR_NONE },
};

struct job {
	char name[64];
	struct options o;
	pid_t pid;
	FILE *out;		/* what it says */
};

static bool set(struct options *o, const char *key, const char *value)
{
	bool zero = !strcmp(value, "0"), one = !strcmp(value, "1");
	unsigned int i, n = sizeof(keys) / sizeof(keys[0]);

	for (i = 0; i < n && strcmp(keys[i].key, key); i++)
		continue;
	if (i == n) {
		complain("\"%s\" is not known; see peerlane-io(1), JOB FILES", key);
		return false;
	}
	switch (keys[i].kind) {
	case IGNORED:
		return true;
	case ONLY_0:
		if (!zero)
			complain("%s can only be 0 here", key);
		return zero;
	case OR_NONE:
		if (!zero)
			break;
		*(strcmp(key, "runtime") ? &o->align : &o->seconds) = 0;
		return true;
	case CACHED:
	case SWITCH:
		if (!zero && !one) {
			complain("%s is 0 or 1, not \"%s\"", key, value);
			return false;
		}
		if (keys[i].kind == CACHED)
			o->direct = zero;
		else if (!strcmp(key, "do_verify"))
			o->verify = one;
		else if (!strcmp(key, "unaligned_random"))
			o->align = one;
		else
			o->unregistered = one;
		return true;
	default:
		break;
	}
	return io_option(o, keys[i].option, value);
}

/* Without the white space around it, and without a comment, which is a line or has
 * white space before it: a file's name may have these characters
 */
static char *trim(char *s)
{
	size_t n;

	s[strcspn(s, "\r\n")] = '\0';
	for (n = 0; s[n]; n++)
		if (strchr("#;", s[n]) && (!n || isspace((unsigned char)s[n - 1])))
			s[n] = '\0';
	s += strspn(s, " \t");
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

/* [global], which is before all jobs, or the name of the next one */
static bool section(char *line, struct job *jobs, unsigned int *n,
		    const struct options *global)
{
	char *end = strchr(line, ']');

	if (!end || end[1] || end == line + 1 ||
	    end - line > (int)sizeof(jobs->name) - 1) {
		complain("\"%s\" is no name of a job in brackets", line);
		return false;
	}
	*end = '\0';
	if (!strcmp(line + 1, "global")) {
		if (*n)
			complain("[global] follows a job");
		return !*n;
	}
	if (*n == JOBS_MAX) {
		complain("there are more than %u jobs", JOBS_MAX);
		return false;
	}
	snprintf(jobs[*n].name, sizeof(jobs->name), "%s", line + 1);
	jobs[*n].o = *global;
	++*n;
	return true;
}

/* EXIT_OK, or complains */
static int read_jobs(FILE *f, const char *file, struct options *global,
		     struct job *jobs, unsigned int *n)
{
	char *text = NULL, *line, *value;
	unsigned int number = 0, i;
	bool good = true, begun = false;
	size_t size = 0;

	while (good && getline(&text, &size, f) >= 0) {
		number++;
		line = trim(text);
		if (!*line)
			continue;
		if (*line == '[') {
			good = section(line, jobs, n, global);
			begun = true;
			continue;
		}
		value = strchr(line, '=');
		if (!value || !begun) {
			complain(value ? "\"%s\" is before any [section]" :
				 "\"%s\" is no KEY=VALUE", line);
			good = false;
			break;
		}
		*value++ = '\0';
		/* it stays as long as the program; so may a file's name in it */
		value = strdup(trim(value));
		good = value && set(*n ? &jobs[*n - 1].o : global, trim(line), value);
	}
	free(text);
	if (!good) {
		complain("that is line %u of %s", number, file);
		return EXIT_USAGE;
	}
	if (ferror(f)) {
		complain("%s cannot be read: %s", file, strerror(errno));
		return EXIT_NO_INPUT;
	}
	for (i = 0; i < *n && jobs[i].o.in; i++)
		continue;
	if (!*n || i < *n) {
		complain(*n ? "%s: [%s] has no filename" : "%s has no job", file,
			 jobs[i].name);
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

/* A process of its own; @go and @ready are pipes of all of them. */
static bool start(struct job *j, const int *ready, const int *go)
{
	pid_t parent = getpid();
	int out[2];

	if (pipe(out))
		return false;
	fflush(NULL);
	j->pid = fork();
	if (!j->pid) {
		if (dup2(out[1], STDOUT_FILENO) < 0)
			_exit(EXIT_IO);
		close(out[0]);
		close(out[1]);
		close(ready[0]);
		close(go[1]);
		/* not on after whoever started all of them */
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
			_exit(EXIT_IO);
		j->o.is_job = true;
		j->o.ready = ready[1];
		j->o.go = go[0];
		exit(io_run(&j->o));
	}
	close(out[1]);
	j->out = j->pid > 0 ? fdopen(out[0], "r") : NULL;
	if (!j->out)
		close(out[0]);
	return j->out;
}

/* What a job has said, and how it ended; into @list, or printed */
static int end(struct job *j, bool json, struct json_object *list)
{
	struct json_object *o;
	char *text = NULL, died[64] = "";
	size_t size = 0;
	int status;

	if (getdelim(&text, &size, '\0', j->out) < 0 && text)
		*text = '\0';
	fclose(j->out);
	while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFSIGNALED(status)) {
		snprintf(died, sizeof(died), "signal %d ended it", WTERMSIG(status));
		complain("[%s]: %s", j->name, died);
	}
	status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_IO;
	if (json) {
		o = text ? json_tokener_parse(text) : NULL;
		if (!o)
			o = json_object_new_object();
		if (*died) {
			json_object_object_add(o, "ok", json_object_new_boolean(false));
			json_object_object_add(o, "error", json_object_new_string(died));
		}
		json_object_object_add(o, "name", json_object_new_string(j->name));
		json_object_array_add(list, o);
	} else {
		printf("[%s]\n%s", j->name, text ? text : "");
	}
	free(text);
	return status;
}

static int run(struct job *jobs, unsigned int n, bool json)
{
	struct json_object *all = json_object_new_object();
	struct json_object *list = json_object_new_array();
	int ready[2], go[2], status = EXIT_OK, r;
	unsigned int i, started;
	char c;

	if (pipe(ready) || pipe(go)) {
		complain("no pipe: %s", strerror(errno));
		return EXIT_IO;
	}
	for (started = 0; started < n; started++)
		if (!start(&jobs[started], ready, go)) {
			complain("no process for [%s]: %s", jobs[started].name,
				 strerror(errno));
			status = EXIT_IO;
			break;
		}
	close(ready[1]);
	/* ends when all jobs are ready, or have ended */
	while (read(ready[0], &c, 1) < 0 && errno == EINTR)
		continue;
	/* a byte for each: an end of file is the end of this process */
	for (i = 0; i < started; i++)
		if (status)
			kill(jobs[i].pid, SIGTERM);
		else if (write(go[1], "", 1) != 1)
			status = EXIT_IO;
	close(go[1]);
	close(go[0]);
	close(ready[0]);
	for (i = 0; i < started; i++) {
		r = end(&jobs[i], json, list);
		status = status ? status : r;
	}
	json_object_object_add(all, "what", json_object_new_string("load"));
	json_object_object_add(all, "ok", json_object_new_boolean(!status));
	json_object_object_add(all, "jobs", list);
	if (json)
		print_json(json_object_get(all));
	json_object_put(all);
	return status;
}

int jobs_run(const struct options *base, const char *file)
{
	struct job *jobs = calloc(JOBS_MAX, sizeof(*jobs));
	struct options global = *base;
	FILE *f = fopen(file, "r");
	unsigned int n = 0;
	struct stat st;
	int r;

	if (!f || !jobs) {
		complain("%s cannot be read: %s", file, strerror(errno));
		free(jobs);
		return EXIT_NO_INPUT;
	}
	if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode) || st.st_size > MOST_TEXT) {
		complain("%s is no job file: not a regular one, or of more than %d bytes",
			 file, MOST_TEXT);
		fclose(f);
		free(jobs);
		return EXIT_NO_INPUT;
	}
	r = read_jobs(f, file, &global, jobs, &n);
	fclose(f);
	if (!r)
		r = run(jobs, n, base->json);
	free(jobs);
	return r;
}

// SPDX-License-Identifier: MIT
/*
 * peerlane doctor --try: what registrations of memory do here, by trying; and with a
 * file, how long reads of it take.
 *
 * It is done in a process of its own: a driver in trouble may crash it or keep
 * it forever, and doctor is there to tell about that.  What it finds becomes
 * facts, so that a record has them, too, under /peerlane/trial:
 *
 *	/peerlane/trial#verbs	ok, or why libibverbs cannot be used
 *	/peerlane/trial#cuda	ok, or why CUDA cannot
 *	/peerlane/trial#end	ok, or how the process died
 *	/peerlane/trial/DEVICE#open, #host, #dmabuf
 *				ok, or the name of an errno; dmabuf is what the
 *				device says of file descriptor -1
 *	/peerlane/trial/DEVICE/ports/PORT#gid, #gid_index, #mtu
 *				ipv4, ipv6, link-local, other or none; where that
 *				is in the table; bytes of the path MTU
 *	/peerlane/trial/DEVICE/GPU#dmabuf, #plain, #staged
 *				ok, or the name of an errno, ": " and words
 */
#ifdef PEERLANE_STATIC
#include "doctor.h"
#include "tool.h"

bool doc_try(struct doctor *d)
{
	(void)d;
	complain("--try: this is the program in one file, which cannot load "
		 "the libraries of RDMA devices and GPUs: use the other one");
	return false;
}

bool doc_try_file(struct doctor *d)
{
	return doc_try(d);
}
#else
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <peerlane/mr.h>
#include <peerlane/peerlane.h>

#include "doctor.h"
#include "tool.h"
#include "verbs.h"

#define TRIAL		"/peerlane/trial"
#define BYTES		65536
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ)

/* ---- in the other process ---- */

/* A line: path, tab, key, tab, value */
static void __attribute__((format(printf, 4, 5)))
tell(FILE *out, const char *where, const char *key, const char *fmt, ...)
{
	char value[512];
	va_list ap;
	size_t i;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	for (i = 0; value[i]; i++)
		if ((unsigned char)value[i] < ' ')
			value[i] = ' ';
	fprintf(out, TRIAL "%s\t%s\t%s\n", where, key, value);
	fflush(out);
}

static const char *ok_or(int err)
{
	return err ? pln_errname(-err) : "ok";
}

static void try_gpus(FILE *out, struct ibv_pd *pd, const char *device, int gpus)
{
	static const unsigned int only[] = {
		[PLN_MR_DMABUF] = PLN_MR_ONLY_DMABUF | PLN_MR_STRICT,
		[PLN_MR_PLAIN] = PLN_MR_ONLY_PLAIN | PLN_MR_STRICT,
		[PLN_MR_STAGED] = PLN_MR_ONLY_STAGED,
	};
	struct pln_mr_info info;
	char where[128], address[32];
	unsigned int way;
	struct pln_mr *mr;
	uint64_t ptr;
	int i, r;

	for (i = 0; i < gpus; i++) {
		if (!gpu_open(i) || !gpu_address(i, address, sizeof(address)) ||
		    !gpu_alloc(BYTES, &ptr))
			continue;
		snprintf(where, sizeof(where), "/%s/%s", device, address);
		for (way = PLN_MR_DMABUF; way <= PLN_MR_STAGED; way++) {
			info = (struct pln_mr_info){ .size = sizeof(info) };
			mr = NULL;
			r = pln_mr_reg(pd, (void *)(uintptr_t)ptr, BYTES, ACCESS,
				       only[way], &mr);
			if (r && pln_mr_info(NULL, &info))
				info.tried[way].words[0] = '\0';
			tell(out, where, pln_mr_way_name(way), "%s%s%s",
			     ok_or(-r), r ? ": " : "",
			     r ? info.tried[way].words : "");
			pln_mr_dereg(mr);
		}
		gpu_free(ptr);
	}
}

static void try_ports(FILE *out, struct ibv_context *ctx, const char *device)
{
	struct ibv_device_attr dev = { .phys_port_cnt = 0 };
	struct ibv_port_attr port;
	char where[96];
	const char *gid;
	int i, index;

	if (verbs_lib.query_device(ctx, &dev))
		return;
	for (i = 1; i <= dev.phys_port_cnt; i++) {
		memset(&port, 0, sizeof(port));
		if (verbs_lib.query_port(ctx, (uint8_t)i, &port))
			continue;
		snprintf(where, sizeof(where), "/%.63s/ports/%d", device, i);
		gid = verbs_gid_kind(ctx, (uint8_t)i, &port, &index);
		tell(out, where, "gid", "%s", gid);
		if (index >= 0)
			tell(out, where, "gid_index", "%d", index);
		if (port.active_mtu)
			tell(out, where, "mtu", "%u", verbs_mtu_bytes(port.active_mtu));
	}
}

static void try_device(FILE *out, struct ibv_device *dev, int gpus)
{
	const char *name = verbs_lib.get_device_name(dev);
	struct ibv_context *ctx;
	char where[80];
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	void *host;

	snprintf(where, sizeof(where), "/%.63s", name);
	ctx = verbs_lib.open_device(dev);
	pd = ctx ? verbs_lib.alloc_pd(ctx) : NULL;
	tell(out, where, "open", "%s", ok_or(pd ? 0 : errno));
	if (!pd)
		return;
	try_ports(out, ctx, name);
	host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = verbs_lib.reg_mr(pd, host, BYTES, ACCESS);
	tell(out, where, "host", "%s", ok_or(mr ? 0 : errno));
	if (mr)
		verbs_lib.dereg_mr(mr);
	/* what takes dma-bufs misses the file; what does not, says so */
	mr = NULL;
	errno = EOPNOTSUPP;
	if (verbs_lib.reg_dmabuf_mr)
		mr = verbs_lib.reg_dmabuf_mr(pd, 0, BYTES, 0, -1, ACCESS);
	tell(out, where, "dmabuf", "%s", ok_or(mr ? 0 : errno));
	if (mr)
		verbs_lib.dereg_mr(mr);
	try_gpus(out, pd, name, gpus);
	verbs_lib.dealloc_pd(pd);
	verbs_lib.close_device(ctx);
}

static void try_all(const struct doctor *d, FILE *out)
{
	struct ibv_device **list;
	char why[256];
	int i, n, gpus = 0;

	(void)d;
	if (!gpu_count(&gpus, why, sizeof(why)))
		tell(out, "", "cuda", "%s", why);
	else
		tell(out, "", "cuda", "ok");
	if (verbs_load(why, sizeof(why))) {
		tell(out, "", "verbs", "%s", why);
		return;
	}
	tell(out, "", "verbs", "ok");
	list = verbs_lib.get_device_list(&n);
	for (i = 0; list && i < n; i++)
		try_device(out, list[i], gpus);
	if (list)
		verbs_lib.free_device_list(list);
}

/* ---- in doctor ---- */

static void keep(struct doctor *d, char *line)
{
	char *save, *path = strtok_r(line, "\t", &save);
	char *key = strtok_r(NULL, "\t", &save);
	char *value = strtok_r(NULL, "\t", &save);

	if (path && key && value && !strncmp(path, TRIAL, strlen(TRIAL)))
		facts_tell(d->f, path, key, value);
}

/* All that comes, to be freed; *whole: to its end, else the time is over */
static char *hear(int fd, double end, bool *whole)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	size_t n = 0, room = 1 << 16;
	char *text = doc_need(malloc(room));
	ssize_t r = 1;
	double left;

	while (r > 0 && (left = end - now_wall()) > 0) {
		if (poll(&pfd, 1, (int)(left * 1e3) + 1) < 1)
			continue;
		if (n == room - 1) {
			room *= 2;
			text = doc_need(realloc(text, room));
		}
		r = read(fd, text + n, room - 1 - n);
		if (r > 0)
			n += (size_t)r;
	}
	text[n] = '\0';
	*whole = r <= 0;
	return text;
}

/* It may hang in the kernel with its files half closed, so ask, do not wait. */
static bool ended(pid_t pid, int *status, double end)
{
	pid_t r;

	while (!(r = waitpid(pid, status, WNOHANG)) && now_wall() < end)
		poll(NULL, 0, 10);
	return r == pid;
}

/* How a process ended */
struct ending {
	char how[64];		/* ok, or not */
	char words[512];	/* its last line of complaint, or "" */
};

/* The last line of a file; without the name with which complain() begins */
static void last_line(int fd, char *line, size_t size)
{
	static const char name[] = "peerlane: ";
	off_t all = lseek(fd, 0, SEEK_END);
	char text[4096], *from;
	ssize_t n;

	line[0] = '\0';
	n = pread(fd, text, sizeof(text) - 1,
		  all < (off_t)sizeof(text) ? 0 : all - (off_t)sizeof(text) + 1);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	text[n] = '\0';
	from = strrchr(text, '\n');
	from = from ? from + 1 : text;
	if (!strncmp(from, name, sizeof(name) - 1))
		from += sizeof(name) - 1;
	snprintf(line, size, "%.*s", (int)size - 1, from);
}

/*
 * What @body writes in a process of its own, to be freed, and how that ended.
 * NULL: there is no such process.
 */
static char *apart(const struct doctor *d,
		   void (*body)(const struct doctor *d, FILE *out),
		   struct ending *ending)
{
	double end = now_wall() + d->timeout;
	int fd[2], words, status;
	bool in_time;
	const size_t size = sizeof(ending->how);
	char *text, *how = ending->how;
	FILE *out;
	pid_t pid;

	words = memfd_create("words", MFD_CLOEXEC);
	if (words < 0 || pipe(fd)) {
		complain("--try: no pipe: %s", strerror(errno));
		if (words >= 0)
			close(words);
		return NULL;
	}
	pid = fork();
	if (!pid) {
		close(fd[0]);
		if (dup2(words, STDERR_FILENO) < 0)
			_exit(EXIT_IO);
		out = fdopen(fd[1], "w");
		if (out)
			body(d, out);
		_exit(out ? EXIT_OK : EXIT_IO);
	}
	close(fd[1]);
	if (pid < 0) {
		complain("--try: no second process: %s", strerror(errno));
		close(fd[0]);
		close(words);
		return NULL;
	}
	text = hear(fd[0], end, &in_time);
	in_time = in_time && ended(pid, &status, end);
	close(fd[0]);
	last_line(words, ending->words, sizeof(ending->words));
	close(words);
	snprintf(how, size, "ok");
	if (!in_time) {
		kill(pid, SIGKILL);
		snprintf(how, size, "no answer within %d s", d->timeout);
	}
	/* one that hangs in the kernel does not die: leave it to init */
	if (!in_time)
		waitpid(pid, &status, WNOHANG);
	else if (WIFSIGNALED(status))
		snprintf(how, size, "killed by SIG%s",
			 sigabbrev_np(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		snprintf(how, size, "ended with status %d",
			 WEXITSTATUS(status));
	return text;
}

bool doc_try(struct doctor *d)
{
	struct ending ending;
	char *save, *line, *text = apart(d, try_all, &ending);

	if (!text)
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		keep(d, line);
	free(text);
	facts_tell(d->f, TRIAL, "end", ending.how);
	return true;
}

/* ---- a file ---- */

/* As peerlane io does it: for a second, at random places */
static void read_file(const struct doctor *d, FILE *out)
{
	const char *address = d->gpu < 0 ? NULL : doc_gpu_at(d, d->gpu)->address;
	char gpu[16] = "near", why[512];
	int ordinal;

	if (address && !gpu_count(&ordinal, why, sizeof(why))) {
		complain("%s", why);
		_exit(EXIT_NO_GPU);
	}
	/* CUDA has an order of its own, and may not show all */
	if (address && !gpu_at(address, &ordinal)) {
		complain("CUDA does not show the GPU at %s: check CUDA_VISIBLE_DEVICES",
			 address);
		_exit(EXIT_NO_GPU);
	}
	if (address)
		snprintf(gpu, sizeof(gpu), "%d", ordinal);
	if (dup2(fileno(out), STDOUT_FILENO) >= 0)
		execl("/proc/self/exe", "peerlane", "io", "load", "--file",
		      d->path, "--gpu", gpu, "--chunk", "4096", "--rw",
		      "randread", "--seconds", "1", "--json", NULL);
	_exit(EXIT_CANNOT_RUN);
}

bool doc_try_file(struct doctor *d)
{
	static const char *const keys[] = { "gpu_address", "path", "reason",
					    "calls", "microseconds", "emulated" };
	struct json_object *all, *list, *read, *error = NULL, *o, *v;
	struct ending ending;
	char *text, why[640];
	struct stat st;
	size_t i;

	/* of others a read says nothing, or never ends */
	if (stat(d->path, &st) ||
	    !(S_ISBLK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size > 0))) {
		complain("--try: %s is neither a file with data nor a block device",
			 d->path);
		return false;
	}
	text = apart(d, read_file, &ending);
	if (!text)
		return false;
	o = json_object_new_object();
	all = json_tokener_parse(text);
	free(text);
	json_object_object_get_ex(all, "error", &error);
	if (json_object_object_get_ex(all, "transfers", &list) &&
	    json_object_array_length(list)) {
		read = json_object_array_get_idx(list, 0);
		for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (json_object_object_get_ex(read, keys[i], &v))
				json_object_object_add(o, keys[i],
						       json_object_get(v));
	}
	snprintf(why, sizeof(why), "%s%s%s", ending.how, ending.words[0] ? ": " : "",
		 ending.words);
	if (strcmp(ending.how, "ok"))
		json_object_object_add(o, "error", json_object_new_string(why));
	else
		json_object_object_add(o, "error", json_object_get(error));
	json_object_put(all);
	json_object_object_add(d->answer, "trial", o);
	return true;
}
#endif

// SPDX-License-Identifier: MIT
/*
 * peerlane copy: a file to another place by libcufile, in pieces through GPU memory.
 *
 * It is written beside the target, and takes its name when all of it is there: the
 * target is what it was, or all of the new one, whenever the program ends.  What an
 * earlier run has left is compared with the source byte by byte, and the copy goes on
 * behind what is the same; so there is no state that could be wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cufile.h>

#include "tool.h"
#include "transfer.h"

#define PART	".peerlane-part"
#define PAGE	4096u
#define BAR_LEAST 8
#define BAR_MOST 40

static const char usage[] =
"usage: peerlane copy [OPTION...] SOURCE TARGET\n"
"\n"
"Copies a file with libcufile through GPU memory, and prints the path that it took.\n"
"TARGET is a file or a folder.  If the copy was interrupted, run it again: it\n"
"continues where it stopped.\n";

enum { GPU = 1, CHUNK, NO_VERIFY, STRICT, JSON };

static const struct opt options[] = {
	{ GPU, "gpu", "N|near", .words = "0 near",
	  .help = "the number of the GPU (0), or the one nearest to SOURCE" },
	{ CHUNK, "chunk", "N",
	  .help = "bytes of each piece, a multiple of 4K (16M)" },
	{ NO_VERIFY, "no-verify", .help = "do not verify what was copied",
	  .more = "Otherwise each piece is read again from both files, bypassing the page cache, and compared with "
	  "the CRC32C of GPU memory." },
	{ STRICT, "strict", .help = "fail instead of using another path than p2p" },
	{ JSON, "json", .help = "print one JSON object, and no progress" },
	{ 0 }
};

const struct command copy_command = {
	.name = "copy", .operands = "FILE",
	.what = "copy a file through GPU memory; continues after an interruption",
	.usage = usage, .options = options,
	.after = "Numbers may end in K, M, G or T (powers of 1024).\n",
};

struct side {
	const char *name;
	int fd;
	CUfileHandle_t fh;
};

struct copy {
	/* options */
	int gpu;
	bool near, verify, strict, json;
	uint64_t chunk;
	/* files */
	const char *source;
	char target[PATH_MAX], why_gpu[512];
	char part[PATH_MAX];		/* empty when it is the target */
	struct side in, out;
	struct stat st;			/* of the source */
	/* how far it is */
	uint64_t base, size, resumed, done;
	double began, shown;
	bool progress;			/* a line of it is on the terminal */
	char error[1024];
};

static int __attribute__((format(printf, 3, 4)))
fail(struct copy *c, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->error, sizeof(c->error), fmt, ap);
	va_end(ap);
	return status;
}

/* ---- progress: only where somebody looks at it ---- */

/* So many columns are left on the terminal's line: as much of a bar as they have room for */
static void show_bar(double part, int columns)
{
	int width = columns - 3, filled, i;

	if (width > BAR_MOST)
		width = BAR_MOST;
	if (width < BAR_LEAST)
		return;
	filled = (int)(part * width);
	fputs(" [", stderr);
	for (i = 0; i < width; i++)
		fputc(i < filled ? '#' : '-', stderr);
	fputc(']', stderr);
}

static void show(struct copy *c, const char *what, bool now)
{
	double t = now_wall(), s = t - c->began, rate, part;
	uint64_t new = c->done - c->resumed;
	char text[128], left[48] = "";
	struct winsize w;
	int n;

	if (c->json || !isatty(STDERR_FILENO) || (!now && t - c->shown < 0.2))
		return;
	c->shown = t;
	c->progress = true;
	rate = s > 0 ? (double)new / s : 0;
	part = c->size ? (double)c->done / (double)c->size : 1;
	if (rate > 0)
		snprintf(left, sizeof(left), ", %.0f s left",
			 (double)(c->size - c->done) / rate);
	n = snprintf(text, sizeof(text), " %3.0f %% of %.1f MB, %.1f MB/s%s",
		     100 * part, (double)c->size / 1e6, rate / 1e6, left);
	fprintf(stderr, "\r%s", what);
	/* the last column stays free: some terminals begin a new line there */
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col)
		show_bar(part, w.ws_col - 1 - n - (int)strlen(what));
	fprintf(stderr, "%s\033[K", text);
}

static void show_end(struct copy *c)
{
	if (c->progress)
		fputs("\r\033[K", stderr);
	c->progress = false;
}

/* ---- files ---- */

static int find_source(struct copy *c)
{
	ssize_t behind;
	char byte;

	c->in.name = c->source;
	c->in.fd = open(c->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (c->in.fd < 0 || fstat(c->in.fd, &c->st))
		return fail(c, EXIT_IO, "%s cannot be opened: %s", c->source,
			    strerror(errno));
	if (!S_ISREG(c->st.st_mode))
		return fail(c, EXIT_IO, "%s is no regular file; peerlane io copy "
			    "copies block devices", c->source);
	c->size = (uint64_t)c->st.st_size;
	/* some have a size of 0 and make their contents when they are read */
	behind = pread(c->in.fd, &byte, 1, c->st.st_size);
	if (behind < 0)
		return fail(c, EXIT_IO, "%s cannot be read: %s", c->source,
			    strerror(errno));
	if (behind)
		return fail(c, EXIT_IO, "%s has more than the %llu bytes of its "
			    "size", c->source, (unsigned long long)c->size);
	/* it was for a pipe, or for such a file; libcufile does not take it */
	fcntl(c->in.fd, F_SETFL, 0);
	return EXIT_OK;
}

/* The file that TARGET is, or will be */
static int find_target(struct copy *c, const char *target)
{
	const char *name = strrchr(c->source, '/');
	char path[PATH_MAX], real[PATH_MAX];
	struct stat st;
	int n;

	name = name ? name + 1 : c->source;
	n = snprintf(path, sizeof(path), "%s", target);
	if (!stat(target, &st) && S_ISDIR(st.st_mode))
		n = snprintf(path, sizeof(path), "%s/%s", target, name);
	if (n >= (int)(sizeof(path) - sizeof(PART)))
		return fail(c, EXIT_IO, "%s: %s", target, strerror(ENAMETOOLONG));
	if (!stat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return fail(c, EXIT_IO, "%s is no regular file; peerlane "
				    "io copy copies to block devices", path);
		if (st.st_dev == c->st.st_dev && st.st_ino == c->st.st_ino)
			return fail(c, EXIT_IO, "%s and %s are the same file",
				    c->source, path);
		/* the file behind a link is replaced, not the link */
		if (!realpath(path, real) ||
		    strlen(real) >= sizeof(path) - sizeof(PART))
			return fail(c, EXIT_IO, "%s: its path cannot be resolved",
				    path);
		strcpy(path, real);
	} else if (errno != ENOENT) {
		return fail(c, EXIT_IO, "%s cannot be used: %s", path,
			    strerror(errno));
	} else if (!lstat(path, &st)) {
		return fail(c, EXIT_IO, "%s is a dangling link", path);
	}
	strcpy(c->target, path);
	snprintf(c->part, sizeof(c->part), "%s" PART, path);
	return EXIT_OK;
}

/*
 * The file beside the target.  It is locked: another copy to the same target may be
 * at work, and may have given it the target's name since it was opened here.
 */
static int open_part(struct copy *c)
{
	struct stat st, now;
	int fd, tries;

	for (tries = 0; tries < 100; tries++) {
		fd = open(c->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
			  O_CLOEXEC, 0600);
		if (fd < 0 || fstat(fd, &st))
			return fail(c, EXIT_IO, "%s cannot be written: %s",
				    c->part, strerror(errno));
		if (!S_ISREG(st.st_mode) || st.st_nlink > 1 ||
		    st.st_uid != geteuid())
			return fail(c, EXIT_IO, "%s is not from a copy of this "
				    "user: remove it", c->part);
		if (flock(fd, LOCK_EX | LOCK_NB))
			return errno == EWOULDBLOCK ?
			       fail(c, EXIT_IO, "another copy to %s is running: "
				    "%s is locked", c->target, c->part) :
			       fail(c, EXIT_IO, "%s cannot be locked: %s",
				    c->part, strerror(errno));
		if (!lstat(c->part, &now) && now.st_dev == st.st_dev &&
		    now.st_ino == st.st_ino) {
			/* one that was ended before its new name has the
			 * source's mode */
			if (fchmod(fd, 0600))
				return fail(c, EXIT_IO, "%s: %s", c->part,
					    strerror(errno));
			fcntl(fd, F_SETFL, 0);
			c->out = (struct side){ c->part, fd, NULL };
			return EXIT_OK;
		}
		close(fd);
	}
	return fail(c, EXIT_IO, "%s keeps changing", c->part);
}

static int register_side(struct copy *c, struct side *s)
{
	CUfileDescr_t d = {
		.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = s->fd,
	};
	CUfileError_t e = cuFileHandleRegister(&s->fh, &d);

	return e.err ? fail(c, EXIT_IO, "%s cannot be used: %s (%d)", s->name,
			    cufileop_status_error(e.err), e.err) : EXIT_OK;
}

static uint64_t piece_at(const struct copy *c, uint64_t at)
{
	return c->size - at < c->chunk ? c->size - at : c->chunk;
}

/* All of it, or what there is; -1 with errno */
static ssize_t read_all(int fd, char *buf, size_t n, uint64_t off)
{
	size_t done = 0;
	ssize_t r;

	while (done < n) {
		r = pread(fd, buf + done, n - done, (off_t)(off + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (!r)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

/* How much of what an earlier run left is what the source has */
static int go_on(struct copy *c)
{
	char *a = malloc(c->chunk), *b = malloc(c->chunk);
	int r = a && b ? EXIT_OK : fail(c, EXIT_IO, "out of memory");
	ssize_t got, want;
	struct stat st;

	if (!r && fstat(c->out.fd, &st))
		r = fail(c, EXIT_IO, "%s: %s", c->part, strerror(errno));
	while (!r && c->done < c->size && piece_at(c, c->done) <=
	       (uint64_t)st.st_size - c->done) {
		want = read_all(c->in.fd, a, piece_at(c, c->done), c->done);
		got = read_all(c->out.fd, b, piece_at(c, c->done), c->done);
		if (want < 0 || got < 0)
			r = fail(c, EXIT_IO, "%s: reading: %s", want < 0 ?
				 c->source : c->part, strerror(errno));
		else if (want != got || memcmp(a, b, (size_t)want) ||
			 (uint64_t)want < piece_at(c, c->done))
			break;
		else
			c->done += (uint64_t)want;
		show(c, "comparing what is there:", false);
	}
	free(a);
	free(b);
	c->resumed = c->done;
	if (!r && ftruncate(c->out.fd, (off_t)c->done))
		r = fail(c, EXIT_IO, "%s cannot be made shorter: %s", c->part,
			 strerror(errno));
	return r;
}

/* ---- the copy ---- */

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* The time of its change, too: who writes may set the other one */
static bool changed(const struct copy *c)
{
	struct stat st;

	return fstat(c->in.fd, &st) || st.st_size != c->st.st_size ||
	       !same_time(st.st_mtim, c->st.st_mtim) ||
	       !same_time(st.st_ctim, c->st.st_ctim);
}

static int say_changed(struct copy *c)
{
	return fail(c, EXIT_IO, "%s changed while it was copied", c->source);
}

static int move(struct copy *c, struct side *s, bool write, uint64_t n)
{
	struct pln_file_stats st = { .size = sizeof(st) };
	char words[256];
	ssize_t r;

	r = write ? cuFileWrite(s->fh, (void *)c->base, n, (off_t)c->done, 0) :
		    cuFileRead(s->fh, (void *)c->base, n, (off_t)c->done, 0);
	if (r == (ssize_t)n)
		return EXIT_OK;
	if (!write && changed(c))
		return say_changed(c);
	if (r >= 0)
		return fail(c, EXIT_IO, "%s: only %zd of %llu bytes at %llu "
			    "were %s", s->name, r, (unsigned long long)n,
			    (unsigned long long)c->done, write ? "written" :
			    "read");
	result_words(r, words, sizeof(words));
	pln_file_stats(s->fh, &st);
	return fail(c, r == -CU_FILE_IO_NOT_SUPPORTED ? EXIT_REFUSED : EXIT_IO,
		    "%s of %s at %llu failed: %s%s%s", write ? "write" : "read",
		    s->name, (unsigned long long)c->done, words, st.reason[0] ?
		    ": " : "", st.reason);
}

/* Has a file, where the copy is, what GPU memory has? */
static int verify(struct copy *c, const struct side *s, uint64_t n, uint32_t crc)
{
	char name[64];
	uint32_t have;
	uint64_t got;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", s->fd);
	if (!file_crc(name, c->done, n, &have, &got))
		return fail(c, EXIT_IO, "%s could not be read again", s->name);
	if (got == n && have == crc)
		return EXIT_OK;
	if (changed(c))
		return say_changed(c);
	return fail(c, EXIT_MISMATCH, "at %llu CRC32C of GPU memory is 0x%08x, of "
		    "%llu bytes of %s 0x%08x", (unsigned long long)c->done, crc,
		    (unsigned long long)got, s->name, have);
}

static int copy_piece(struct copy *c)
{
	uint64_t n = piece_at(c, c->done);
	const char *by;
	uint32_t crc;
	int r;

	r = move(c, &c->in, false, n);
	if (!r && c->verify && !gpu_crc32c(c->base, n, &crc, &by))
		r = fail(c, EXIT_NO_GPU, "the CRC could not be computed");
	if (!r && c->verify)
		r = verify(c, &c->in, n, crc);
	if (!r)
		r = move(c, &c->out, true, n);
	if (!r && c->verify)
		r = verify(c, &c->out, n, crc);
	if (!r)
		c->done += n;
	return r;
}

/* All is there: now it is the target. */
static int put_in_place(struct copy *c)
{
	mode_t mask = umask(0);
	char folder[PATH_MAX], *slash;
	int fd, r = EXIT_OK;

	umask(mask);
	if (changed(c))
		return say_changed(c);
	if (fchmod(c->out.fd, c->st.st_mode & 0777 & ~mask) ||
	    fsync(c->out.fd))
		return fail(c, EXIT_IO, "%s: %s", c->part, strerror(errno));
	if (rename(c->part, c->target))
		return fail(c, EXIT_IO, "%s cannot become %s: %s", c->part,
			    c->target, strerror(errno));
	c->part[0] = '\0';
	strcpy(folder, c->target);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* some file systems have no fsync of a folder */
	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		r = fail(c, EXIT_IO, "%s is whole, but a power failure may lose "
			 "its name: %s", c->target, strerror(errno));
	if (fd >= 0)
		close(fd);
	return r;
}

static int start(struct copy *c)
{
	uint64_t bytes = (c->size + PAGE - 1) / PAGE * PAGE;
	CUfileError_t e;

	if (bytes > c->chunk)
		bytes = c->chunk;
	if (c->strict)
		setenv("PEERLANE_STRICT", "1", 1);
	if (c->near && !gpu_near(c->source, &c->gpu, c->why_gpu,
				 sizeof(c->why_gpu)))
		return fail(c, EXIT_NO_GPU, "no GPU could be chosen");
	if (!gpu_open(c->gpu) || !gpu_alloc(bytes ? bytes : PAGE, &c->base))
		return fail(c, EXIT_NO_GPU, "no usable GPU");
	e = cuFileDriverOpen();
	if (e.err)
		return fail(c, EXIT_NO_GPU, "libcufile cannot be opened: %s (%d)",
			    cufileop_status_error(e.err), e.err);
	e = cuFileBufRegister((void *)c->base, bytes ? bytes : PAGE, 0);
	return e.err ? fail(c, EXIT_IO, "the GPU buffer cannot be registered: "
			    "%s (%d)", cufileop_status_error(e.err), e.err) :
		       EXIT_OK;
}

static int run(struct copy *c, const char *target)
{
	int r;

	r = find_source(c);
	if (!r)
		r = find_target(c, target);
	if (!r)
		r = start(c);
	if (!r)
		r = register_side(c, &c->in);
	/* Nothing is written until all else is known to work */
	if (!r)
		r = open_part(c);
	if (!r)
		r = register_side(c, &c->out);
	if (!r)
		r = go_on(c);
	c->began = now_wall();
	for (; !r && c->done < c->size; show(c, "copying:", c->done == c->size))
		r = copy_piece(c);
	if (!r)
		r = put_in_place(c);
	show_end(c);
	return r;
}

/* ---- what came of it ---- */

static struct json_object *flow_of(const struct copy *c, const struct side *s,
				   const char *name, enum flow flow)
{
	struct pln_file_stats st = { .size = sizeof(st) };
	struct json_object *t = json_object_new_object();
	const char *path;

	if (s->fh)
		pln_file_stats(s->fh, &st);
	path = flow_path(&st, flow);
	json_object_object_add(t, "what", json_object_new_string(flow == READS ?
						"read" : "write"));
	json_object_object_add(t, "file", json_object_new_string(name));
	json_object_object_add(t, "gpu", json_object_new_int(c->gpu));
	json_object_object_add(t, "path", json_object_new_string(path));
	json_object_object_add(t, "bytes",
			       json_object_new_uint64(c->done - c->resumed));
	json_object_object_add(t, "reason", json_object_new_string(st.reason));
	json_object_object_add(t, "bytes_by_path", flow_by_path(&st, flow));
	return t;
}

static void say_why(struct json_object *t)
{
	struct json_object *reason = json_object_object_get(t, "reason");

	if (json_object_get_string_len(reason))
		printf("      %s because: %s\n",
		       json_object_get_string(json_object_object_get(t, "what")),
		       json_object_get_string(reason));
}

static void say(struct copy *c, int status, double seconds)
{
	struct json_object *read = flow_of(c, &c->in, c->source, READS);
	struct json_object *write = flow_of(c, &c->out, c->target, WRITES);
	struct json_object *o = json_object_new_object(), *list;
	double bytes = (double)(c->done - c->resumed);
	char rate[32];

	snprintf(rate, sizeof(rate), "%.1f", seconds > 0 ? bytes / seconds : 0);
	if (!c->json && !status) {
		printf("copy  %s to %s: %llu bytes", c->source, c->target,
		       (unsigned long long)c->size);
		if (c->resumed)
			printf(", %llu of them copied before",
			       (unsigned long long)c->resumed);
		printf("; read by ");
		print_path(read);
		printf(", written by ");
		print_path(write);
		printf(" in %.3f s, %.2f MB/s%s\n", seconds, seconds > 0 ?
		       bytes / seconds / 1e6 : 0, c->verify ? ", verified" : "");
		say_why(read);
		say_why(write);
	}
	list = json_object_new_array();
	json_object_array_add(list, read);
	json_object_array_add(list, write);
	json_object_object_add(o, "what", json_object_new_string("copy"));
	json_object_object_add(o, "ok", json_object_new_boolean(!status));
	json_object_object_add(o, "bytes", json_object_new_uint64(c->size));
	json_object_object_add(o, "resumed", json_object_new_uint64(c->resumed));
	json_object_object_add(o, "verified",
			       json_object_new_boolean(c->verify && !status));
	if (c->near)
		json_object_object_add(o, "gpu_reason",
				       json_object_new_string(c->why_gpu));
	json_object_object_add(o, "seconds", json_seconds(seconds));
	json_object_object_add(o, "bytes_per_second",
			       json_object_new_double_s(strtod(rate, NULL), rate));
	json_object_object_add(o, "transfers", list);
	json_object_object_add(o, "error", status ?
			       json_object_new_string(c->error) : NULL);
	if (c->json)
		print_json(o);
	else
		json_object_put(o);
}

/* A part that has nothing goes; one that has something is there for the next run. */
static void give_up(struct copy *c)
{
	struct stat st;
	size_t n = strlen(c->error);

	if (c->part[0] && c->out.fd >= 0 && !fstat(c->out.fd, &st)) {
		if (!st.st_size)
			unlink(c->part);
		else if (st.st_nlink)
			snprintf(c->error + n, sizeof(c->error) - n, "; %s has "
				 "what was copied: run it again to continue",
				 c->part);
	}
	complain("%s", c->error);
}

static bool take(struct copy *c, int option, const char *arg)
{
	uint64_t n = 0;
	bool ok = true;

	switch (option) {
	case GPU:
		c->near = !strcmp(arg, "near");
		ok = c->near || number_of("--gpu", arg, 0, 1023, &n);
		c->gpu = (int)n;
		break;
	case CHUNK:
		ok = number_of("--chunk", arg, PAGE, 1 << 30, &c->chunk);
		if (ok && c->chunk % PAGE) {
			complain("--chunk needs a multiple of 4K");
			ok = false;
		}
		break;
	case NO_VERIFY: c->verify = false; break;
	case STRICT: c->strict = true; break;
	case JSON: c->json = true; break;
	default: ok = false;
	}
	return ok;
}

int cmd_copy(int argc, char **argv)
{
	struct copy c = { .verify = true, .chunk = 16 << 20, .in.fd = -1,
			  .out.fd = -1 };
	int option, status;

	while ((option = next_option(&copy_command, argc, argv, NULL)) != -1) {
		if (take(&c, option, optarg))
			continue;
		say_usage(&copy_command);
		return EXIT_USAGE;
	}
	if (argc - optind != 2) {
		complain("copy needs a SOURCE and a TARGET");
		say_usage(&copy_command);
		return EXIT_USAGE;
	}
	c.source = argv[optind];
	c.began = now_wall();
	status = run(&c, argv[optind + 1]);
	if (status)
		give_up(&c);
	say(&c, status, now_wall() - c.began);
	return status;
}

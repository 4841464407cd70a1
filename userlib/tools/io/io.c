// SPDX-License-Identifier: MIT
/* peerlane io: move data, and say which way it went and what it cost. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cufile.h>
#include <peerlane/file.h>

#include "io.h"
#include "tool.h"
#include "transfer.h"

/* ---- what is printed ---- */

static struct json_object *transfers[2];
static unsigned int ntransfers;

void io_say(const struct options *o, struct json_object *t)
{
	struct json_object *us;

	if (o->json) {
		transfers[ntransfers++] = t;
		return;
	}
	printf("%-5s %s: %s bytes by ",
	       json_object_get_string(json_object_object_get(t, "what")),
	       json_object_get_string(json_object_object_get(t, "file")),
	       json_object_get_string(json_object_object_get(t, "bytes")));
	print_path(t);
	printf(" in %.3f s, CPU %.3f s",
	       json_object_get_double(json_object_object_get(t, "seconds")),
	       json_object_get_double(json_object_object_get(t,
							     "cpu_seconds")));
	if (json_object_object_get(t, "crc32c"))
		printf(", CRC32C %s",
		       json_object_get_string(json_object_object_get(t,
								"crc32c")));
	us = json_object_object_get(t, "microseconds");
	if (us)
		printf(", %.2f MB/s, %.0f calls/s",
		       json_object_get_double(json_object_object_get(t,
						"bytes_per_second")) / 1e6,
		       json_object_get_double(json_object_object_get(t,
						"calls_per_second")));
	printf("\n");
	if (us) {
		printf("      microseconds of a call:");
		json_object_object_foreach(us, name, v)
			printf(" %s %s", name, v ? json_object_get_string(v) :
			       "-");
		printf("\n");
	}
	if (json_object_get_string_len(json_object_object_get(t, "reason")))
		printf("      because: %s\n",
		       json_object_get_string(json_object_object_get(t,
								"reason")));
	json_object_put(t);
}

/* json-c's serializer of a list: each transfer is a line of its own for tools that read lines */
static int lines_of_transfers(struct json_object *list, struct printbuf *out, int level, int flags)
{
	size_t i, n = json_object_array_length(list);
	const char *s;

	(void)level;
	printbuf_strappend(out, "[\n");
	for (i = 0; i < n; i++) {
		s = json_object_to_json_string_ext(json_object_array_get_idx(list, i), flags);
		printbuf_memappend(out, s, (int)strlen(s));
		if (i + 1 < n)
			printbuf_strappend(out, "\n,");
		printbuf_strappend(out, "\n");
	}
	printbuf_strappend(out, "]");
	return 0;
}

int io_finish(const struct options *o, int status, const char *error)
{
	struct json_object *e = error ? json_object_new_string(error) : NULL;
	struct json_object *all, *list;
	unsigned int i;

	if (!o->json)
		return status;
	if (o->what != COPY && o->what != LOAD && ntransfers == 1) {
		if (e)
			json_object_object_add(transfers[0], "error", e);
		json_object_object_add(transfers[0], "ok",
				       json_object_new_boolean(!status));
		print_json(json_object_get(transfers[0]));
		return status;
	}
	list = json_object_new_array();
	json_object_set_serializer(list, lines_of_transfers, NULL, NULL);
	for (i = 0; i < ntransfers; i++)
		json_object_array_add(list, json_object_get(transfers[i]));
	all = json_object_new_object();
	json_object_object_add(all, "what", json_object_new_string(io_what_name[o->what]));
	json_object_object_add(all, "ok", json_object_new_boolean(!status));
	json_object_object_add(all, "transfers", list);
	json_object_object_add(all, "error", e);
	print_json(all);
	return status;
}

int io_give_up(const struct options *o, int status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain("%s", text);
	return io_finish(o, status, text);
}

/* ---- files ---- */

int io_open(const struct options *o, struct io_file *f, const char *name,
	    int flags, bool may_lack)
{
	struct stat st;

	f->name = name;
	f->fh = NULL;
	f->regular = true;
	f->size = 0;
	f->fd = open(name, flags | O_CLOEXEC | (o->direct ? O_DIRECT : 0),
		     0644);
	if (f->fd < 0 && errno == ENOENT && may_lack)
		return EXIT_OK;
	if (f->fd < 0)
		return io_give_up(o, EXIT_IO, "%s cannot be opened: %s%s", name,
			       strerror(errno), errno == EINVAL && o->direct ?
			       " (its file system has no O_DIRECT; leave out "
			       "--direct)" : "");
	if (fstat(f->fd, &st))
		return io_give_up(o, EXIT_IO, "%s: %s", name, strerror(errno));
	f->regular = S_ISREG(st.st_mode);
	f->dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	f->ino = S_ISBLK(st.st_mode) ? 0 : st.st_ino;
	f->size = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(f->fd, BLKGETSIZE64, &f->size))
		return io_give_up(o, EXIT_IO, "%s: its size is not known: %s",
			       name, strerror(errno));
	return EXIT_OK;
}

int io_register(const struct options *o, struct io_file *f)
{
	CUfileDescr_t d = {
		.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = f->fd,
	};
	CUfileError_t e = cuFileHandleRegister(&f->fh, &d);

	if (e.err)
		return io_give_up(o, e.err == CU_FILE_PLATFORM_NOT_SUPPORTED ||
			       e.err == CU_FILE_DRIVER_INVALID_PROPS ?
			       EXIT_NO_GPU : EXIT_IO,
			       "%s cannot be used: %s (%d)", f->name,
			       cufileop_status_error(e.err), e.err);
	return EXIT_OK;
}

/* ---- transfers ---- */

/* One direction, o->loops times; the result is an exit status. */
static int transfer(const struct options *o, struct io_file *f, bool write,
		    uint64_t base, uint64_t off, uint64_t size, uint64_t *moved)
{
	struct pln_file_stats st = { .size = sizeof(st) };
	struct json_object *t = json_object_new_object();
	double wall = now_wall(), cpu = now_cpu();
	uint64_t loop, at, total = 0, chunk = o->chunk ? o->chunk : size;
	char words[256], crc_text[16];
	const char *crc_by = NULL;
	ssize_t r = 0;
	uint32_t crc;
	int status = EXIT_OK, saved = 0;

	*moved = 0;
	for (loop = 0; loop < o->loops && r >= 0; loop++) {
		for (at = 0; at < size; at += (uint64_t)r) {
			uint64_t n = size - at < chunk ? size - at : chunk;

			r = write ? cuFileWrite(f->fh, (void *)base, n,
						(off_t)(off + at),
						(off_t)(o->gpu_offset + at))
				  : cuFileRead(f->fh, (void *)base, n,
					       (off_t)(off + at),
					       (off_t)(o->gpu_offset + at));
			saved = errno;
			if (r <= 0)
				break;
			total += (uint64_t)r;
		}
		*moved = at;
	}
	if (r >= 0 && write && o->sync && fdatasync(f->fd)) {
		saved = errno;
		r = -1;
	}
	wall = now_wall() - wall;
	cpu = now_cpu() - cpu;
	pln_file_stats(f->fh, &st);

	json_object_object_add(t, "what", json_object_new_string(write ? "write"
								: "read"));
	json_object_object_add(t, "file", json_object_new_string(f->name));
	json_object_object_add(t, "gpu", json_object_new_int(o->gpu));
	if (o->near)
		json_object_object_add(t, "gpu_reason",
				       json_object_new_string(o->gpu_reason));
	json_object_object_add(t, "path",
			       json_object_new_string(flow_path(&st, ALL)));
	json_object_object_add(t, "bytes", json_object_new_uint64(total));
	json_object_object_add(t, "reason", json_object_new_string(st.reason));
	if (st.last_errno)
		json_object_object_add(t, "errno",
				       json_object_new_int(st.last_errno));
	if (o->crc || o->verify) {
		if (r >= 0 && gpu_crc32c(base + o->gpu_offset, *moved, &crc,
					 &crc_by)) {
			snprintf(crc_text, sizeof(crc_text), "0x%08x", crc);
			json_object_object_add(t, "crc32c",
				json_object_new_string(crc_text));
			json_object_object_add(t, "crc32c_by",
				json_object_new_string(crc_by));
		} else if (r >= 0) {
			status = EXIT_NO_GPU;
		}
	}
	json_object_object_add(t, "seconds", json_seconds(wall));
	json_object_object_add(t, "cpu_seconds", json_seconds(cpu));
	json_object_object_add(t, "bytes_by_path", flow_by_path(&st, ALL));
	if (r < 0) {
		errno = saved;
		result_words(r, words, sizeof(words));
		json_object_object_add(t, "result", json_object_new_int64(r));
		if (r == -1)
			json_object_object_add(t, "result_errno",
					       json_object_new_int(saved));
	}
	io_say(o, t);
	if (r < 0) {
		status = r == -CU_FILE_IO_NOT_SUPPORTED ? EXIT_REFUSED :
			 EXIT_IO;
		return io_give_up(o, status, "%s of %s failed: %s%s%s",
			       write ? "write" : "read", f->name, words,
			       st.reason[0] ? ": " : "", st.reason);
	}
	if (status)
		return io_finish(o, status, "the CRC could not be computed");
	if (write && *moved < size)
		return io_give_up(o, EXIT_IO, "only %llu of %llu bytes were "
			       "written to %s: %s", (unsigned long long)*moved,
			       (unsigned long long)size, f->name, st.reason);
	if (!write && o->have_size && *moved < size)
		return io_give_up(o, EXIT_IO, "%s ends after %llu of %llu bytes",
			       f->name, (unsigned long long)*moved,
			       (unsigned long long)size);
	if (o->verify) {
		uint32_t want;
		uint64_t n;

		if (!file_crc(f->name, off, *moved, &want, &n))
			return io_finish(o, EXIT_IO, "the file could not be read");
		if (n != *moved || want != crc)
			return io_give_up(o, EXIT_MISMATCH, "CRC32C of GPU memory "
				       "is 0x%08x, of %s 0x%08x", crc, f->name,
				       want);
	}
	return EXIT_OK;
}

static bool fill(uint64_t ptr, uint64_t n, uint64_t seed)
{
	const size_t step = 1 << 20;
	uint64_t *buf = malloc(step), at;
	bool good = buf != NULL;

	for (at = 0; good && at < n; at += step) {
		pattern(buf, step, at, seed);
		good = gpu_put(ptr + at, buf, n - at < step ? n - at : step);
	}
	free(buf);
	return good;
}

static int run_crc(struct options *o)
{
	struct json_object *t;
	double wall = now_wall(), cpu = now_cpu();
	char text[16];
	uint64_t n;
	uint32_t crc;

	if (!file_crc(o->in, o->offset, o->have_size ? o->size : INT64_MAX,
		      &crc, &n))
		return io_finish(o, EXIT_IO, "the file could not be read");
	snprintf(text, sizeof(text), "0x%08x", crc);
	t = json_object_new_object();
	json_object_object_add(t, "what", json_object_new_string("crc"));
	json_object_object_add(t, "file", json_object_new_string(o->in));
	json_object_object_add(t, "path", json_object_new_string("posix"));
	json_object_object_add(t, "bytes", json_object_new_uint64(n));
	json_object_object_add(t, "reason", json_object_new_string(""));
	json_object_object_add(t, "crc32c", json_object_new_string(text));
	json_object_object_add(t, "seconds",
			       json_seconds(now_wall() - wall));
	json_object_object_add(t, "cpu_seconds",
			       json_seconds(now_cpu() - cpu));
	io_say(o, t);
	if (o->have_size && n < o->size)
		return io_give_up(o, EXIT_IO, "%s ends after %llu of %llu bytes",
			       o->in, (unsigned long long)n,
			       (unsigned long long)o->size);
	return io_finish(o, EXIT_OK, NULL);
}

/* Of zeros */
static bool allocate(const struct options *o, uint64_t all, uint64_t *base)
{
	void *p = NULL;

	switch (o->memory) {
	case IN_DEVICE:
		return gpu_alloc(all, base) && gpu_set(*base, 0, all);
	case IN_VMM:
		return gpu_alloc_vmm(all, base) && gpu_set(*base, 0, all);
	case IN_PINNED:
		if (!gpu_alloc_pinned(all, &p))
			return false;
		break;
	case IN_MALLOC:
		if (posix_memalign(&p, 4096, all))
			p = NULL;
		break;
	default:
		p = mmap(NULL, all, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			p = NULL;
	}
	if (!p) {
		complain("out of memory");
		return false;
	}
	memset(p, 0, all);
	*base = (uintptr_t)p;
	return true;
}

int io_start(struct options *o, uint64_t all, uint64_t *base)
{
	CUfileError_t e;

	if (o->near) {
		if (!gpu_near(o->in, &o->gpu, o->gpu_reason,
			      sizeof(o->gpu_reason)))
			return io_finish(o, EXIT_NO_GPU, "no GPU could be chosen");
		if (!o->json)
			printf("GPU %d is the nearest: %s\n", o->gpu,
			       o->gpu_reason);
	}
	if (!gpu_open(o->gpu) || !allocate(o, all, base))
		return io_finish(o, EXIT_NO_GPU, "no usable GPU");
	e = cuFileDriverOpen();
	if (e.err)
		return io_give_up(o, EXIT_NO_GPU, "libcufile cannot be opened: "
			       "%s (%d)", cufileop_status_error(e.err), e.err);
	if (!o->unregistered) {
		e = cuFileBufRegister((void *)*base, all, 0);
		if (e.err)
			return io_give_up(o, EXIT_IO, "the GPU buffer cannot be "
				       "registered: %s (%d)",
				       cufileop_status_error(e.err), e.err);
	}
	return EXIT_OK;
}

int io_run(struct options *o)
{
	struct io_file in = { .fd = -1 }, out = { .fd = -1 };
	uint64_t base, moved, all;
	int r;

	if (o->strict)
		setenv("PEERLANE_STRICT", "1", 1);
	if (o->what == CRC)
		return run_crc(o);
	if (o->what == LOAD)
		return load_run(o);
	if (o->what != WRITE) {
		r = io_open(o, &in, o->in, O_RDONLY, false);
		if (r)
			return r;
		if (!o->have_size) {
			if (in.size <= o->offset)
				return io_give_up(o, EXIT_IO, "%s has %llu bytes: "
					       "nothing to read from %llu on",
					       o->in,
					       (unsigned long long)in.size,
					       (unsigned long long)o->offset);
			o->size = in.size - o->offset;
		}
	} else {
		r = io_open(o, &in, o->in, O_RDWR, true);
		if (r)
			return r;
	}
	if (o->what == COPY) {
		r = io_open(o, &out, o->out, O_RDWR, true);
		if (r)
			return r;
		/* Within one file: from one place to another, if all stays */
		if (in.dev == out.dev && in.ino == out.ino &&
		    ((out.regular && !o->to_offset) ||
		     (o->offset < o->to_offset + o->size &&
		      o->to_offset < o->offset + o->size)))
			return io_give_up(o, EXIT_IO, "%s and %s are the same file, and the copy would destroy its source; nothing was written",
				       o->in, o->out);
	}
	all = o->size + o->gpu_offset;
	r = io_start(o, all, &base);
	if (r)
		return r;
	/* What is not there yet is made when all else is known to work */
	if (in.fd < 0)
		r = io_open(o, &in, o->in, O_RDWR | O_CREAT, false);
	if (!r && o->what == COPY && out.fd < 0)
		r = io_open(o, &out, o->out, O_RDWR | O_CREAT, false);
	if (!r)
		r = io_register(o, &in);
	if (!r && o->what == COPY)
		r = io_register(o, &out);
	if (r)
		return r;
	if (o->what == WRITE) {
		if (o->fill && !fill(base + o->gpu_offset, o->size, o->seed))
			return io_finish(o, EXIT_NO_GPU, "GPU memory could not be "
				      "filled");
		r = transfer(o, &in, true, base, o->offset, o->size, &moved);
	} else {
		r = transfer(o, &in, false, base, o->offset, o->size, &moved);
	}
	/* Not before all of the source is in GPU memory */
	if (!r && o->what == COPY && out.regular && !o->to_offset &&
	    ftruncate(out.fd, 0))
		return io_give_up(o, EXIT_IO, "%s cannot be emptied: %s", o->out,
			       strerror(errno));
	if (!r && o->what == COPY)
		r = transfer(o, &out, true, base, o->to_offset, moved, &moved);
	if (r)
		return r;
	if (!o->unregistered)
		cuFileBufDeregister((void *)base);
	cuFileHandleDeregister(in.fh);
	if (o->what == COPY)
		cuFileHandleDeregister(out.fh);
	cuFileDriverClose();
	gpu_free(base);
	return io_finish(o, EXIT_OK, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * What the guest programs of scenarios share: KTAP, a GPU to work with, files
 * with known contents, and CRC-32C by the processor.
 *
 * The few CUDA functions are declared here, by their binary interface, so that
 * these programs need no CUDA header.
 */
#ifndef SCENARIO_GUEST_H
#define SCENARIO_GUEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PEERLANE_CUFILE_WITHOUT_CUDA_H
#include <cufile.h>
#include <peerlane/file.h>

#include "../../../userlib/cufile/test/noise.h"
#include "../jsonc.h"

typedef unsigned long long gpu_ptr;
typedef void *gpu_ctx;

int cuInit(unsigned int flags);
int cuDeviceGet(int *dev, int ordinal);
int cuDeviceGetPCIBusId(char *id, int len, int dev);
int cuDevicePrimaryCtxRetain(gpu_ctx *ctx, int dev);
int cuCtxSetCurrent(gpu_ctx ctx);
int cuMemAlloc_v2(gpu_ptr *ptr, size_t size);
int cuMemFree_v2(gpu_ptr ptr);
int cuMemsetD8_v2(gpu_ptr ptr, unsigned char value, size_t size);
int cuMemcpyHtoD_v2(gpu_ptr dst, const void *src, size_t size);
int cuMemcpyDtoH_v2(void *dst, gpu_ptr src, size_t size);
int plnMemCrc32c(gpu_ptr ptr, size_t size, uint32_t *crc);

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

static int guest_checks, guest_failed;
static gpu_ctx guest_ctx;
static char guest_bdf[32];	/* as sysfs writes it */

static inline bool __attribute__((format(printf, 2, 3)))
ok(bool good, const char *fmt, ...)
{
	va_list ap;

	guest_checks++;
	if (!good)
		guest_failed++;
	printf("%sok %d - ", good ? "" : "not ", guest_checks);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return good;
}

static inline void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

/* An IO's or a registration's result must be this number. */
static inline bool is(long long got, long long want, const char *what)
{
	bool good = ok(got == want, "%s", what);

	if (!good)
		note("want %lld, got %lld (errno %d: %s)", want, got, errno,
		     strerror(errno));
	return good;
}

/* A negative result with this errno. */
static inline bool is_errno(long long got, int want, const char *what)
{
	int err = errno;
	bool good = ok(got == -1 && err == want, "%s", what);

	if (!good)
		note("want -1 with errno %d (%s), got %lld with errno %d (%s)",
		     want, strerror(want), got, err, strerror(err));
	return good;
}

/* For the result: @key of its facts; @o is the caller's no more */
static inline void tell_fact(const char *key, struct json_object *o)
{
	printf("@fact %s ", key);
	print_json(o);
}

/* What tell_transfer() takes; more keys may be added */
static inline struct json_object *
transfer_json(const char *what, const char *path, uint64_t bytes, double cpu,
	      const char *reason)
{
	struct json_object *o = json_object_new_object();

	json_set(o, "what", what);
	json_set(o, "path", path);
	json_set(o, "bytes", bytes);
	json_set(o, "cpu_seconds", cpu);
	json_set(o, "reason", reason);
	return o;
}

/* For the result: it was counted as @label; @o is the caller's no more */
static inline void tell_transfer(const char *label, struct json_object *o)
{
	printf("@transfer %s ", label);
	print_json(o);
}

static inline int finish(void)
{
	printf("1..%d\n", guest_checks);
	fflush(stdout);
	return guest_failed || !guest_checks ? 1 : 0;
}

static inline void __attribute__((noreturn)) die(const char *what)
{
	ok(false, "%s: %s", what, strerror(errno));
	exit(1);
}

static inline void gpu_open_at(int ordinal)
{
	int dev, r;

	r = cuInit(0);
	if (!r)
		r = cuDeviceGet(&dev, ordinal);
	if (!r)
		r = cuDeviceGetPCIBusId(guest_bdf, sizeof(guest_bdf), dev);
	if (!r)
		r = cuDevicePrimaryCtxRetain(&guest_ctx, dev);
	if (!r)
		r = cuCtxSetCurrent(guest_ctx);
	if (r) {
		ok(false, "a GPU to work with (CUDA error %d)", r);
		exit(1);
	}
	for (char *c = guest_bdf; *c; c++)
		*c = (char)tolower(*c);
}

static inline void gpu_open(void)
{
	gpu_open_at(0);
}

static inline gpu_ptr gpu_alloc(size_t size)
{
	gpu_ptr p = 0;
	int r = cuMemAlloc_v2(&p, size);

	if (r) {
		ok(false, "%zu bytes of GPU memory (CUDA error %d)", size, r);
		exit(1);
	}
	return p;
}

static inline void *addr(gpu_ptr p)
{
	return (void *)(uintptr_t)p;
}

static inline CUfileError_t reg(CUfileHandle_t *fh, int fd)
{
	CUfileDescr_t d;

	memset(&d, 0, sizeof(d));
	d.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
	d.handle.fd = fd;
	return cuFileHandleRegister(fh, &d);
}

static inline CUfileHandle_t must_reg(int fd, const char *what)
{
	CUfileHandle_t fh = NULL;
	CUfileError_t e = reg(&fh, fd);

	if (e.err) {
		ok(false, "%s is registered (error %d)", what, e.err);
		exit(1);
	}
	return fh;
}

static inline int must_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		die(path);
	return fd;
}

static inline uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
	static uint32_t table[256];
	const uint8_t *p = data;

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;

			for (int bit = 0; bit < 8; bit++)
				c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
			table[i] = c;
		}
	crc = ~crc;
	for (; n; n--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

/* CRC of part of a file, read by the processor through the page cache. */
static inline uint32_t file_crc(int fd, off_t off, size_t size)
{
	static uint8_t buf[1 << 16];
	uint32_t crc = 0;

	while (size) {
		ssize_t n = pread(fd, buf, size < sizeof(buf) ? size :
				  sizeof(buf), off);

		if (n <= 0)
			die("pread");
		crc = crc32c(crc, buf, (size_t)n);
		off += n;
		size -= (size_t)n;
	}
	return crc;
}

static inline uint32_t gpu_crc(gpu_ptr p, size_t size)
{
	uint32_t crc = 0;
	int r = plnMemCrc32c(p, size, &crc);

	if (r)
		note("plnMemCrc32c: CUDA error %d", r);
	return r ? 0 : crc;
}

/* GPU memory that no transfer must touch keeps this pattern. */
static inline bool gpu_is(gpu_ptr p, size_t size, unsigned char value)
{
	uint8_t *buf = malloc(size);
	bool same = buf && !cuMemcpyDtoH_v2(buf, p, size);

	for (size_t i = 0; same && i < size; i++)
		if (buf[i] != value) {
			note("byte %zu is 0x%02x, not 0x%02x", i, buf[i], value);
			same = false;
		}
	free(buf);
	return same;
}

static inline double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* By the kernel, as an administrator does it; what was in its memory is lost */
static inline void gpu_reset(void)
{
	double began;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", guest_bdf);
	fd = must_open(path, O_WRONLY);
	began = seconds();
	ok(write(fd, "1", 1) == 1 && seconds() - began < 15,
	   "the GPU's reset comes back");
	close(fd);
}

static inline struct pln_file_stats stats(void)
{
	struct pln_file_stats s;

	memset(&s, 0, sizeof(s));
	s.size = sizeof(s);
	if (pln_file_stats(NULL, &s))
		die("pln_file_stats");
	return s;
}

/* A question to the host's side; its answer in REPLY. */
static inline bool host(const char *question, char *reply, size_t len)
{
	char command[512];
	FILE *f;
	size_t n;

	fflush(stdout);
	snprintf(command, sizeof(command), "host %s", question);
	f = popen(command, "r");
	if (!f)
		return false;
	n = fread(reply, 1, len - 1, f);
	reply[n] = '\0';
	return !pclose(f);
}

/* What a scenario cannot do without; as printf() has it */
static inline void __attribute__((format(printf, 1, 2)))
host_must(const char *fmt, ...)
{
	char question[256], reply[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(question, sizeof(question), fmt, ap);
	va_end(ap);
	if (!host(question, reply, sizeof(reply)))
		ok(false, "the host answers to %s: %s", question, reply);
}

#endif /* SCENARIO_GUEST_H */

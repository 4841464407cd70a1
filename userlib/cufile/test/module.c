// SPDX-License-Identifier: MIT
/* Of the unit test: the kernel path, with a mock of /dev/peerlane. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "unit.h"

#define NO_MAP	"{\"peerlane\":{\"use_pci_p2pdma\":false}}"

/* mock_reset() takes the module away, so it is there from the next opening on. */
static void with_module(const char *json, unsigned int version)
{
	fresh(json);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock.module = version;
	if (cuFileDriverOpen().err)
		abort();
}

static unsigned long long by(CUfileHandle_t fh, int way)
{
	struct pln_file_stats s = stats_of(fh);

	return s.path[way].bytes_read + s.path[way].bytes_written;
}

static void all_by(CUfileHandle_t fh, int way, size_t n, const char *what)
{
	is((long long)by(fh, way), (long long)n, what);
}

void test_module(void)
{
	const size_t n = MIB(40), odd = MIB(1) + 100;
	char *data = malloc(n), *g = gpu(n);
	CUfileHandle_t fh, fh2;
	int fd, fd2;

	noise(data, n);
	fd = make(path, 0, data, n);
	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "a read by the module");
	check(!memcmp(mem(g), data, n), "the data is right");
	all_by(fh, PLN_PATH_KERNEL, n, "all of it by the module");
	is((long long)mock.module_bytes, (long long)n, "it says so, too");
	is((long long)mock.host_bytes, 0, "nothing through host memory");
	is((long long)stats_of(NULL).windows, 3, "in windows of 16 MiB");
	is((long long)stats_of(fh).fallbacks, 0, "and that is no fallback");
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "again");
	is((long long)mock.registrations, 3, "nothing is registered anew");

	memset(mem(g), 0, n);
	is(cuFileRead(fh, g, odd, 0, 0), (long long)odd, "an unaligned read");
	check(!memcmp(mem(g), data, odd) && !mem(g)[odd], "its data is right");
	is((long long)by(fh, PLN_PATH_BOUNCE), 100, "its end was staged");

	noise(mem(g), MIB(2));
	is(cuFileWrite(fh, g, MIB(2), 0, 0), MIB(2), "a write by the module");
	is(pread(fd, data, MIB(2), 0), MIB(2), "is in the file");
	check(!memcmp(mem(g), data, MIB(2)), "as it was");
	mock.short_io = 4096;
	memset(mem(g), 0, MIB(1));
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a page at a time");
	check(!memcmp(mem(g), data, MIB(1)), "the data is right");
	mock.short_io = 0;

	gpu_free(g);
	g = gpu(n);
	memset(mem(g), 0, MIB(1));
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "other memory at this address");
	check(!memcmp(mem(g), data, MIB(1)), "gets the data");

	/* the GPU's driver has taken the memory back since, as in a reset */
	mock.module_errno = EIDRM;
	mock.module_count = 1;
	memset(mem(g), 0, MIB(1));
	mock.registrations = 0;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a registration that ended");
	check(!memcmp(mem(g), data, MIB(1)) && mock.registrations == 1,
	      "is made anew");

	/* of this file, not of the device */
	fd2 = make(other, 0, data, MIB(1));
	mock.module_errno = EOPNOTSUPP;
	mock.module_reason = PLN_REASON_NO_DIRECT;
	fh2 = reg(fd2);
	is(cuFileRead(fh2, g, MIB(1), 0, 0), MIB(1), "a file that it refuses");
	all_by(fh2, PLN_PATH_BOUNCE, MIB(1), "is staged");
	check(strstr(stats_of(fh2).reason, "the module peerlane refuses the file"),
	      "why: %s", stats_of(fh2).reason);
	mock.module_calls = 0;
	is(cuFileRead(fh2, g, MIB(1), 0, 0), MIB(1), "again");
	is((long long)mock.module_calls, 0, "it is not asked again");
	mock.module_errno = 0;
	cuFileHandleDeregister(fh);
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "another file of the device");
	all_by(fh, PLN_PATH_KERNEL, MIB(1), "goes by the module");
	close(fd2);

	/* of the device: until it was tried again */
	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	mock_stop_clock();
	mock.module_errno = EOPNOTSUPP;
	mock.module_reason = PLN_REASON_MERGES;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a queue that merges");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "it is staged");
	check(strstr(stats_of(fh).reason, "nomerges"), "why: %s",
	      stats_of(fh).reason);
	mock.module_errno = 0;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "at once");
	all_by(fh, PLN_PATH_KERNEL, 0, "it is not tried again");
	mock.later += 11;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "after ten seconds");
	all_by(fh, PLN_PATH_KERNEL, MIB(1), "it is, and works");
	setenv("PEERLANE_STRICT", "1", 1);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	cuFileDriverOpen();
	fh = reg(fd);
	mock.module_errno = EOPNOTSUPP;
	is(cuFileRead(fh, g, MIB(1), 0, 0), -CU_FILE_IO_NOT_SUPPORTED,
	   "strict, and a queue that merges");
	mock.module_errno = 0;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "strict, and one that does not");

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is((long long)mock.registered, 0, "closed, nothing is registered");
	gpu_free(g);
	close(fd);
	free(data);
}

/* What it refuses of one file, or of one request, says nothing of the device. */
void test_module_request(void)
{
	static const struct {
		unsigned int reason;
		int err;
		const char *words;
	} of_file[] = {
		{ PLN_REASON_FILE_TYPE, EINVAL, "neither a regular file nor a block device" },
		{ PLN_REASON_FILE_SYSTEM, EOPNOTSUPP, "supports ext4 and xfs" },
		{ PLN_REASON_NO_DIRECT, EOPNOTSUPP, "does no direct IO with this file" },
	}, of_device[] = {
		{ PLN_REASON_DEVICE, EOPNOTSUPP, "does not support device memory" },
		{ PLN_REASON_INTEGRITY, EOPNOTSUPP, "has to read the data for checksums" },
		{ PLN_REASON_MERGES, EOPNOTSUPP, "nomerges" },
	};
	char *data = malloc(MIB(1)), *g = gpu(MIB(1));
	CUfileHandle_t fh, fh2;
	unsigned int i;
	int fd, fd2;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	fd2 = make(other, 0, data, MIB(1));
	memcpy(mem(g), data, MIB(1));
	for (i = 0; i < sizeof(of_file) / sizeof(of_file[0]); i++) {
		with_module(NO_MAP, PLN_ABI_VERSION);
		fh = reg(fd);
		fh2 = reg(fd2);
		mock.module_reason = of_file[i].reason;
		mock.module_errno = of_file[i].err;
		mock.module_count = 1;
		is(cuFileWrite(fh, g, MIB(1), 0, 0), MIB(1), of_file[i].words);
		all_by(fh, PLN_PATH_BOUNCE, MIB(1), "it is written otherwise");
		check(strstr(stats_of(fh).reason, of_file[i].words), "why: %s", stats_of(fh).reason);
		is(cuFileWrite(fh2, g, MIB(1), 0, 0), MIB(1), "another one");
		all_by(fh2, PLN_PATH_KERNEL, MIB(1), "goes by the module");
	}
	for (i = 0; i < sizeof(of_device) / sizeof(of_device[0]); i++) {
		with_module(NO_MAP, PLN_ABI_VERSION);
		fh = reg(fd);
		fh2 = reg(fd2);
		mock.module_reason = of_device[i].reason;
		mock.module_errno = of_device[i].err;
		mock.module_count = 1;
		is(cuFileWrite(fh, g, MIB(1), 0, 0), MIB(1), of_device[i].words);
		check(strstr(stats_of(fh).reason, of_device[i].words), "why: %s", stats_of(fh).reason);
		is(cuFileWrite(fh2, g, MIB(1), 0, 0), MIB(1), "another file of the device");
		all_by(fh2, PLN_PATH_BOUNCE, MIB(1), "is not tried");
	}

	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	mock.module_reason = PLN_REASON_ALIGNMENT;
	mock.module_errno = EINVAL;
	mock.module_count = 1;
	memset(mem(g), 0, MIB(1));
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a request in other blocks than its own");
	check(!memcmp(mem(g), data, MIB(1)), "the right data");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "is staged");
	check(strstr(stats_of(fh).reason, "other blocks than O_DIRECT") &&
	      !strstr(stats_of(fh).reason, "or direct IO on this file"), "why: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next one");
	all_by(fh, PLN_PATH_KERNEL, MIB(1), "goes by the module at once");

	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	mock.module_reason = PLN_REASON_APPEND;
	mock.module_errno = EINVAL;
	mock.module_count = 1;
	is(cuFileWrite(fh, g, MIB(1), 0, 0), MIB(1), "a write while the file has O_APPEND");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "is staged");
	check(strstr(stats_of(fh).reason, "open with O_APPEND"), "why: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read");
	all_by(fh, PLN_PATH_KERNEL, MIB(1), "goes by the module");
	for (i = 0; i < 2; i++) {
		with_module("{\"properties\":{\"allow_compat_mode\":false},"
			    "\"peerlane\":{\"use_pci_p2pdma\":false}}", PLN_ABI_VERSION);
		fh = reg(fd);
		mock.module_reason = i ? PLN_REASON_APPEND : PLN_REASON_ALIGNMENT;
		mock.module_errno = EINVAL;
		is(i ? cuFileWrite(fh, g, MIB(1), 0, 0) : cuFileRead(fh, g, MIB(1), 0, 0),
		   -CU_FILE_IO_NOT_SUPPORTED, i ? "without compat mode O_APPEND" :
		   "and blocks that the module does not take");
		check(strstr(stats_of(fh).reason, i ? "open with O_APPEND" : "other blocks than O_DIRECT"),
		      "are refused: %s", stats_of(fh).reason);
		is((long long)by(fh, PLN_PATH_BOUNCE), 0, "nothing is staged");
		mock.module_errno = 0;
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next one");
		all_by(fh, PLN_PATH_KERNEL, MIB(1), "goes by the module");
	}
	cuFileHandleDeregister(fh);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	unlink(other);
	close(fd);
	close(fd2);
	gpu_free(g);
	free(data);
}

/* A module that is there, or not, and is used */
void test_module_opened(void)
{
	static const struct {
		int err;
		unsigned int page;
		bool good, told;
	} how[] = {
		{ 0, 4096, true, false }, { 0, 65536, true, false }, { 0, 0, false, true },
		{ 0, 3, false, true }, { 0, 131072, false, true }, { EACCES, 4096, false, true },
		{ ENOENT, 4096, false, false }, { ENXIO, 4096, false, false }, { ENODEV, 4096, false, false },
	};
	char *data = malloc(MIB(1)), *g = gpu(MIB(1)), words[64];
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		fresh(NO_MAP);
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
		mock.module = PLN_ABI_VERSION;
		mock.module_none = how[i].err;
		mock.module_said = true;
		mock.module_page = how[i].page;
		if (cuFileDriverOpen().err)
			abort();
		fh = reg(fd);
		snprintf(words, sizeof(words), "a module: errno %d, pages of %u bytes", how[i].err,
			 how[i].page);
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), words);
		all_by(fh, how[i].good ? PLN_PATH_KERNEL : PLN_PATH_BOUNCE, MIB(1), "is used, or not");
		snprintf(words, sizeof(words), how[i].err ? "/dev/peerlane: EACCES (13)" :
			 "instead of 1, pages of %u bytes", how[i].page);
		is(log_count("notice: /dev/peerlane"), how[i].told, "and told, or not");
		is(log_count(words), how[i].told, "in these words");
		cuFileHandleDeregister(fh);
	}
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	close(fd);
	gpu_free(g);
	free(data);
}

/* What the module cannot register, and a module that is no help */
void test_module_refused(void)
{
	const size_t n = MIB(40);
	char *data = malloc(n), *g = gpu(n), *h = gpu(n);
	CUfileHandle_t fh;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	with_module(NO_MAP, PLN_ABI_VERSION + 1);
	check(log_has("version 2 instead of 1"),
	      "a module of another version: told");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "is staged");

	with_module("{\"peerlane\":{\"use_pci_p2pdma\":false,"
		    "\"kernel_module\":false}}", PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "switched off: a read");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "is staged");

	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	mock.register_errno = EOPNOTSUPP;
	mock.register_reason = PLN_REASON_NO_PAGES;
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "no pages: a read");
	check(!memcmp(mem(g), data, n), "its data is right");
	all_by(fh, PLN_PATH_BOUNCE, n, "it is staged");
	check(strstr(stats_of(fh).reason, "no pages of this GPU's BAR1"),
	      "why: %s", stats_of(fh).reason);
	mock.register_errno = 0;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the same memory again");
	all_by(fh, PLN_PATH_KERNEL, 0, "is not asked for again");
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "other memory");
	all_by(fh, PLN_PATH_KERNEL, MIB(1), "goes by the module");

	/* 16 MiB may be registered: windows are given up, and it goes on */
	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	mock.module_max = MIB(16);
	memset(mem(h), 0, n);
	is(cuFileRead(fh, h, n, 0, 0), (long long)n, "a limit: a read");
	check(!memcmp(mem(h), data, n), "its data is right");
	all_by(fh, PLN_PATH_KERNEL, n, "all of it by the module");
	check(stats_of(NULL).window_evictions > 0, "windows were given up");
	mock.module_max = 4096;
	gpu_free(g);
	g = gpu(n);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a limit below a page");
	check(strstr(stats_of(fh).reason, "max_pinned_mib is used up"),
	      "why: %s", stats_of(fh).reason);

	/* EIO of a direct read may be for a write into the page cache */
	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "the module works");
	memset(mem(h), 0, MIB(1));
	mock.module_errno = EIO;
	mock.module_count = 1;
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "and its read ends with EIO");
	check(!memcmp(mem(h), data, MIB(1)), "the data is right");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "it is staged");
	check(strstr(stats_of(fh).reason, "kernel read failed: EIO"), "why: %s",
	      stats_of(fh).reason);
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "the next one");
	all_by(fh, PLN_PATH_KERNEL, 2 * MIB(1), "goes by the module");

	/* both ways: a mapping first, the module for what cannot be mapped */
	with_module(NULL, PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "memory that can be mapped");
	all_by(fh, PLN_PATH_P2P, MIB(1), "is");
	mock.handle_error = 801;
	gpu_free(g);
	g = gpu(n);
	memset(mem(g), 0, n);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "memory that cannot");
	all_by(fh, PLN_PATH_KERNEL, n, "goes by the module");
	check(!memcmp(mem(g), data, n), "its data is right");
	/* a refusal of p2p says nothing about the module */
	mock.p2p_errno = EREMOTEIO;
	cuFileHandleDeregister(fh);
	with_module(NULL, PLN_ABI_VERSION);
	mock.p2p_errno = EREMOTEIO;
	fh = reg(fd);
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "p2p is refused");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "that is staged");
	mock.handle_error = 801;
	gpu_free(g);
	g = gpu(n);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "what cannot be mapped");
	all_by(fh, PLN_PATH_KERNEL, MIB(1), "goes by the module all the same");
	with_module(NULL, PLN_ABI_VERSION);
	mock.handle_error = 801;
	fh = reg(fd);
	mock.handle_error = 0;
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "memory that can be mapped");
	mock.handle_error = 801;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "and that cannot");
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "the first memory again");
	all_by(fh, PLN_PATH_P2P, MIB(2), "is still mapped");
	mock.register_errno = EOPNOTSUPP;
	gpu_free(g);
	g = gpu(n);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "and what neither can");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "is staged");
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is((long long)mock.registered, 0, "closed, nothing is registered");
	gpu_free(g);
	gpu_free(h);
	close(fd);
	free(data);
}

/* At the module's limit its registrations are given up, and no mapping */
void test_module_quota(void)
{
	const size_t n = MIB(40);
	char *data = malloc(n), *g = gpu(n), *h = gpu(n);
	CUfileHandle_t fh;
	uint64_t maps;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	with_module(NULL, PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, h, n, 0, 0), (long long)n, "memory that can be mapped");
	all_by(fh, PLN_PATH_P2P, n, "is");
	maps = mock.maps;
	mock.handle_error = 801;
	mock.module_max = MIB(16);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "more that cannot than the module takes");
	check(!memcmp(mem(g), data, n), "its data is right");
	all_by(fh, PLN_PATH_KERNEL, n, "goes by it all the same");
	check(stats_of(NULL).window_evictions > 0, "windows were given up");
	mock.handle_error = 0;
	is(cuFileRead(fh, h, n, 0, 0), (long long)n, "the first memory again");
	all_by(fh, PLN_PATH_P2P, 2 * n, "goes as before");
	is((long long)mock.maps, (long long)maps, "was mapped all the time");
	cuFileHandleDeregister(fh);
	gpu_free(g);
	gpu_free(h);
	close(fd);
	free(data);
}

/* Mappings that the kernel takes no pages of: the module may all the same. */
void test_module_no_pages(void)
{
	const size_t n = MIB(40);
	char *data = malloc(n), *g = gpu(n), *h = gpu(n);
	CUfileHandle_t fh;
	uint64_t calls;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	with_module(NULL, PLN_ABI_VERSION);
	mock.p2p_errno = EFAULT;
	fh = reg(fd);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "EFAULT of mapped memory: a read");
	check(!memcmp(mem(g), data, n), "its data is right");
	all_by(fh, PLN_PATH_KERNEL, n, "all of it by the module");
	is((long long)stats_of(fh).fallbacks, 0, "and that is no fallback");
	is((long long)log_count("does not accept pages of its mappings"), 1, "it is told");
	calls = mock.p2p_calls;
	is(cuFileRead(fh, h, n, 0, 0), (long long)n, "other memory");
	all_by(fh, PLN_PATH_KERNEL, 2 * n, "goes by it at once");
	is((long long)mock.p2p_calls, (long long)calls, "no mapping is tried");
	is((long long)log_count("does not accept pages of its mappings"), 1, "it is told once");
	gpu_free(g);
	g = gpu(n);
	mock.register_errno = EOPNOTSUPP;
	mock.register_reason = PLN_REASON_NO_PAGES;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "what it cannot register");
	all_by(fh, PLN_PATH_BOUNCE, MIB(1), "is staged");
	check(strstr(stats_of(fh).reason, "cannot take pages of the GPU's mapping"),
	      "why: %s", stats_of(fh).reason);

	setenv("PEERLANE_STRICT", "1", 1);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	cuFileDriverOpen();
	mock.register_errno = 0;
	fh = reg(fd);
	is(cuFileRead(fh, h, n, 0, 0), (long long)n, "strict: a read");
	all_by(fh, PLN_PATH_KERNEL, n, "all of it by the module");

	/* what has worked has pages: its memory is gone, or will come back */
	with_module(NULL, PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "a mapping that works");
	mock.p2p_errno = EFAULT;
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "and not for a moment");
	mock.p2p_errno = 0;
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "and again");
	all_by(fh, PLN_PATH_KERNEL, 0, "is nothing for the module");
	all_by(fh, PLN_PATH_P2P, MIB(2), "and is mapped as before");
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is((long long)mock.registered, 0, "closed, nothing is registered");
	gpu_free(g);
	gpu_free(h);
	close(fd);
	free(data);
}

/*
 * A transfer into two memories: why the first cannot be mapped is remembered and not put
 * into words; what is known of the way that the second takes is the reason.
 */
void test_module_after_late(void)
{
	const size_t n = MIB(2);
	char *data = malloc(2 * n), *g = (char *)(uintptr_t)mock_two(n);
	CUfileHandle_t fh;
	int fd, i;

	noise(data, 2 * n);
	fd = make(path, 0, data, 2 * n);
	with_module(NULL, PLN_ABI_VERSION);
	fh = reg(fd);
	mock.handle_error = 801;
	mock.register_errno = EOPNOTSUPP;
	mock.register_reason = PLN_REASON_NO_PAGES;
	for (i = 0; i < 2; i++)
		is(cuFileRead(fh, g, n, 0, 0), (long long)n, "memory that nobody can have");
	check(strstr(stats_of(fh).reason, "no pages of this GPU's BAR1"), "why: %s",
	      stats_of(fh).reason);
	mock.register_errno = 0;
	mock.module_errno = EOPNOTSUPP;
	mock.module_reason = PLN_REASON_MERGES;
	is(cuFileRead(fh, g + n, n, (off_t)n, 0), (long long)n, "memory for the module, refused");
	check(strstr(stats_of(fh).reason, "nomerges"), "why: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "the first again");
	is(cuFileRead(fh, g, 2 * n, 0, 0), (long long)(2 * n), "both");
	check(!memcmp(mem(g), data, n) && !memcmp(mem(g + n), data + n, n), "the right data");
	check(strstr(stats_of(fh).reason, "nomerges") &&
	      !strstr(stats_of(fh).reason, "BAR1"), "why the second was: %s",
	      stats_of(fh).reason);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	gpu_free(g);
	gpu_free(g + n);
	close(fd);
	free(data);
}

/* One transfer into two memories, of which one can be mapped: where one path is refused the other is not */
void test_module_beside(void)
{
	static const struct {
		const char *what;
		bool mapped;		/* the first of them */
		bool now;		/* it is refused in this very transfer */
		unsigned int reason;	/* of the module */
	} how[] = {
		{ "p2p was refused: what cannot be mapped goes by the module", true, false, 0 },
		{ "p2p is refused: what cannot be mapped goes by the module", true, true, 0 },
		{ "the module refused the device: what can be mapped goes p2p", false, false, PLN_REASON_MERGES },
		{ "the module refuses the device: what can be mapped goes p2p", false, true, PLN_REASON_MERGES },
		{ "the module refused the file: what can be mapped goes p2p", false, false, PLN_REASON_FILE_SYSTEM },
	};
	const size_t n = MIB(2);
	char *data = malloc(2 * n), *g;
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(data, 2 * n);
	fd = make(path, 0, data, 2 * n);
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		int way = how[i].mapped ? PLN_PATH_KERNEL : PLN_PATH_P2P;

		g = (char *)(uintptr_t)mock_two(n);
		with_module("{\"peerlane\":{\"window_size_kb\":64}}", PLN_ABI_VERSION);
		/* windows of the second are kept, and those of the first are made later */
		mock.handle_error = how[i].mapped ? 801 : 0;
		fh = reg(fd);
		is(cuFileRead(fh, g + n, n, (off_t)n, 0), (long long)n, "the second memory");
		all_by(fh, way, n, "by one path");
		cuFileHandleDeregister(fh);
		fh = reg(fd);
		mock.handle_error = how[i].mapped ? 0 : 801;
		mock.p2p_errno = how[i].mapped ? EREMOTEIO : 0;
		mock.module_errno = how[i].mapped ? 0 : EOPNOTSUPP;
		mock.module_reason = how[i].reason;
		if (!how[i].now)
			is(cuFileRead(fh, g, n, 0, 0), (long long)n, "the first memory is refused");
		all_by(fh, way, 0, "nothing goes so");
		memset(mem(g), 0, n);
		memset(mem(g + n), 0, n);
		is(cuFileRead(fh, g, 2 * n, 0, 0), (long long)(2 * n), how[i].what);
		check(!memcmp(mem(g), data, n) && !memcmp(mem(g + n), data + n, n), "the right data");
		all_by(fh, way, n, "all that can");
		check(stats_of(fh).reason[0], "and why not all is told: %s", stats_of(fh).reason);
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
		gpu_free(g);
		gpu_free(g + n);
	}
	close(fd);
	free(data);
}

#define N	8
#define SIZE	KIB(64)

/* One batch: entry i is for the i-th piece of the file, at @at[i]; those that end well. */
static unsigned int batch(CUfileHandle_t fh, CUfileOpcode_t op, char *const *at)
{
	CUfileIOParams_t p[N];
	CUfileIOEvents_t e[N];
	CUfileBatchHandle_t b;
	unsigned int i, n = N, good = 0;

	for (i = 0; i < N; i++)
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh, .opcode = op,
			.u.batch = { at[i], (off_t)(i * SIZE), 0, SIZE },
		};
	if (cuFileBatchIOSetUp(&b, N).err || cuFileBatchIOSubmit(b, N, p, 0).err ||
	    cuFileBatchIOGetStatus(b, N, &n, e, NULL).err)
		return 0;
	for (i = 0; i < n; i++)
		good += e[i].status == CUFILE_COMPLETE && e[i].ret == SIZE;
	cuFileBatchIODestroy(b);
	return good;
}

/* What the module has been asked since: by the ring, and by threads */
static void asked(uint64_t queued, uint64_t calls, const char *what)
{
	is((long long)mock.module_queued, (long long)queued, what);
	is((long long)mock.module_calls, (long long)calls, "calls of threads for it");
	mock.module_queued = mock.module_calls = 0;
}

/* Batches and streams, with no thread for each */
void test_module_ring(void)
{
	static const int denied[] = { EACCES, EPERM, EBADF };
	char *data = malloc(N * SIZE), *got = malloc(N * SIZE), *g = gpu(N * SIZE);
	char *h = gpu(N * SIZE), *at[N];
	size_t size = SIZE;
	CUfileHandle_t fh;
	off_t zero = 0;
	ssize_t r = -9;
	unsigned int i;
	int fd, fd2;

	noise(data, N * SIZE);
	fd = make(path, 0, data, N * SIZE);
	for (i = 0; i < N; i++)
		at[i] = g + i * SIZE;
	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	is(batch(fh, CUFILE_READ, at), N, "a batch before the module is known to work");
	check(mock.module_calls > 0 && mock.module_queued < N, "threads find that out");
	mock.module_calls = mock.module_queued = 0;
	memset(mem(g), 0, N * SIZE);
	is(batch(fh, CUFILE_READ, at), N, "a batch of reads");
	asked(N, 0, "all of them in the ring");
	check(!memcmp(mem(g), data, N * SIZE), "with the right data");
	all_by(fh, PLN_PATH_KERNEL, 2 * N * SIZE, "all counted as the module's");
	noise(mem(g), N * SIZE);
	is(batch(fh, CUFILE_WRITE, at), N, "a batch of writes");
	asked(N, 0, "all of them in the ring");
	check(pread(fd, got, N * SIZE, 0) == N * SIZE && !memcmp(got, mem(g), N * SIZE),
	      "are in the file");
	memset(mem(g), 0, SIZE);
	is(cuFileReadAsync(fh, g, &size, &zero, &zero, &r, (CUstream)(uintptr_t)16).err, 0,
	   "a read in a stream");
	mock_settle();
	is(r, SIZE, "has its bytes");
	asked(1, 0, "by the ring");
	check(!memcmp(mem(g), got, SIZE), "the right ones");
	all_by(fh, PLN_PATH_KERNEL, (3 * N + 1) * SIZE, "all counted as the module's");

	/* a registration that ended, fewer bytes, an error */
	mock.registrations = 0;
	mock.module_errno = EIDRM;
	mock.module_count = 1;
	memset(mem(g), 0, N * SIZE);
	is(batch(fh, CUFILE_READ, at), N, "a registration that ended");
	asked(N, 1, "all of them in the ring at first");
	check(!memcmp(mem(g), got, N * SIZE), "the data is right");
	cuFileHandleDeregister(fh);
	fh = reg(fd);
	mock.short_io = 4096;
	memset(mem(g), 0, N * SIZE);
	is(batch(fh, CUFILE_READ, at), N, "a page at a time");
	asked(N, N * (SIZE / 4096 - 1), "threads do the rest");
	check(!memcmp(mem(g), got, N * SIZE), "the data is right");
	all_by(fh, PLN_PATH_KERNEL, N * SIZE, "each byte counts once");
	mock.short_io = 0;
	mock.module_errno = ENOSPC;
	mock.module_count = 1;
	is(batch(fh, CUFILE_WRITE, at), N - 1, "an error that is no refusal");
	asked(N, 0, "nobody tries again");
	check(strstr(stats_of(fh).reason, "ENOSPC"), "why: %s", stats_of(fh).reason);

	/* the ring is denied the command, and ioctl() is not */
	for (i = 0; i < 3; i++) {
		mock.module_errno = denied[i];
		mock.module_count = 1;
		memset(mem(g), 0, N * SIZE);
		is(batch(fh, CUFILE_READ, at), N, "a command that is denied to the ring");
		asked(N, 1, "a thread does it");
		check(!memcmp(mem(g), got, N * SIZE), "the data is right");
	}

	/* a file that it refuses, and a module that does no such IO */
	fd2 = make(other, 0, data, N * SIZE);
	fh = reg(fd2);
	mock.module_errno = EOPNOTSUPP;
	mock.module_reason = PLN_REASON_NO_DIRECT;
	is(batch(fh, CUFILE_READ, at), N, "a file that it refuses");
	all_by(fh, PLN_PATH_BOUNCE, N * SIZE, "is staged");
	mock.module_calls = mock.module_queued = 0;
	is(batch(fh, CUFILE_READ, at), N, "again");
	asked(0, 0, "nothing of it in the ring");
	close(fd2);
	with_module(NO_MAP, PLN_ABI_VERSION);
	cuFileDriverClose();
	mock.module_waits = true;
	cuFileDriverOpen();
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "a module of older kernels");
	is(batch(fh, CUFILE_READ, at), N, "a batch");
	asked(0, N + 1, "nothing of it in the ring");
	all_by(fh, PLN_PATH_KERNEL, (N + 1) * SIZE, "all of it by the module");

	/* half of the memory can be mapped */
	with_module(NULL, PLN_ABI_VERSION);
	fh = reg(fd);
	is(cuFileRead(fh, h, SIZE, 0, 0), SIZE, "memory that can be mapped");
	mock.handle_error = 801;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "and that cannot");
	mock.module_calls = 0;
	for (i = 0; i < N; i += 2)
		at[i] = h + i * SIZE;
	memset(mem(g), 0, N * SIZE);
	memset(mem(h), 0, N * SIZE);
	i = (unsigned int)mock.p2p_calls;
	is(batch(fh, CUFILE_READ, at), N, "a batch for both");
	asked(N / 2, 0, "half of it is the module's");
	is((long long)mock.p2p_calls, i, "the other half is in the ring, too");
	for (i = 0, r = 0; i < N; i++)
		r += !memcmp(mem(at[i]), got + i * SIZE, SIZE);
	is(r, N, "the data is right");
	all_by(fh, PLN_PATH_P2P, (N / 2 + 1) * SIZE, "half by p2p");
	all_by(fh, PLN_PATH_KERNEL, (N / 2 + 1) * SIZE, "and half by the module");
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is((long long)mock.registered, 0, "closed, nothing is registered");
	gpu_free(g);
	gpu_free(h);
	close(fd);
	free(data);
	free(got);
}

static unsigned long long window_hits(void)
{
	char text[16384];
	int n = pln_file_stats_json(NULL, text, sizeof(text));
	const char *p = n > 0 && n < (int)sizeof(text) ? strstr(text, "\"hits\":") : NULL;

	return p ? strtoull(p + 7, NULL, 10) : ~0ULL;
}

/*
 * A registration is looked for once in each transfer.  Then the number of /dev/peerlane
 * becomes another open file's, as after close_range(): handles of ours mean nothing there.
 */
void test_module_taken(void)
{
	char *data = malloc(SIZE), *g = gpu(SIZE), link[64], target[64];
	int fd, i, n, own = -1;
	unsigned long long before;
	CUfileHandle_t fh;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	with_module(NO_MAP, PLN_ABI_VERSION);
	fh = reg(fd);
	before = window_hits();
	for (i = 0; i < 3; i++) {
		is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "a read by the module");
		is((long long)(window_hits() - before), i, "found its registration, but for the first");
	}
	all_by(fh, PLN_PATH_KERNEL, 3 * SIZE, "all by the module");
	for (i = 3; i < 1024 && own < 0; i++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", i);
		memset(target, 0, sizeof(target));
		if (readlink(link, target, sizeof(target) - 1) >= 0 && !strcmp(target, "/dev/null"))
			own = i;
	}
	n = open("/dev/null", O_RDWR);
	check(own >= 0 && dup2(n, own) == own, "the program has the number of /dev/peerlane");
	close(n);
	mock.module_calls = 0;
	memset(mem(g), 0, SIZE);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "a read after that");
	check(!memcmp(mem(g), data, SIZE), "has the right data");
	all_by(fh, PLN_PATH_BOUNCE, SIZE, "and was staged");
	is((long long)mock.module_calls, 0, "the other open file was not asked");
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	check(mock.registered > 0, "nor is anything unregistered there");
	check(fcntl(own, F_GETFD) >= 0 && !close(own), "it is not closed with the library");
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}

/* The program's descriptor of a device has the number that the library's had */
void test_module_reopened(void)
{
	char *data = malloc(SIZE), *g = gpu(SIZE), link[64], target[64];
	int fd, i, n, own[8], taken = 0;
	CUfileHandle_t fh;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	fresh(NULL);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	mock.module = PLN_ABI_VERSION;
	setenv("PEERLANE_NVIDIA_UVM", "1", 1);
	cuFileDriverOpen();
	mock.nvidia = "580.95.05";
	mock.kernel = "6.14.11-generic";
	mock.vmm = true;
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "with the devices of all drivers");
	for (i = 3, n = 0; i < 1024; i++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", i);
		memset(target, 0, sizeof(target));
		if (readlink(link, target, sizeof(target) - 1) < 0 ||
		    (strcmp(target, "/dev/null") && strncmp(target, "/memfd:mock-nvidia", 18)))
			continue;
		n = open(link, O_RDWR);
		if (dup2(n, i) != i)
			abort();
		close(n);
		if (taken < 8)
			own[taken++] = i;
	}
	check(taken >= 3, "the program has opened %d of them anew", taken);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	for (i = 0, n = 0; i < taken; i++)
		n += fcntl(own[i], F_GETFD) >= 0 && !close(own[i]);
	is(n, taken, "which are not closed with the library");
	unsetenv("PEERLANE_NVIDIA_UVM");
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}

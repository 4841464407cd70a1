// SPDX-License-Identifier: MIT
/* Of the unit test: pln_file_stats_json(); json-c says what is JSON. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#define SIZE	KIB(64)

/* The object, which is JSON and nothing behind it */
static struct json_object *object_of(CUfileHandle_t fh)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o = NULL;
	char text[16384];
	int n;

	memset(text, 0x5a, sizeof(text));
	n = pln_file_stats_json(fh, text, sizeof(text));
	if (check(n > 0 && n < (int)sizeof(text) && strlen(text) == (size_t)n,
		  "an object of %d bytes", n)) {
		json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
		o = json_tokener_parse_ex(tok, text, n + 1);
		check(o && json_tokener_get_error(tok) == json_tokener_success,
		      "is JSON: %s", json_tokener_error_desc(json_tokener_get_error(tok)));
	}
	json_tokener_free(tok);
	return o;
}

/* What is at a.b.c, or NULL */
static struct json_object *at(struct json_object *o, const char *where)
{
	char names[64], *name, *rest = names;

	snprintf(names, sizeof(names), "%s", where);
	while (o && (name = strsep(&rest, ".")))
		o = json_object_object_get(o, name);
	return o;
}

static void has(struct json_object *o, const char *where, unsigned long long want)
{
	struct json_object *v = at(o, where);

	check(v && json_object_get_type(v) == json_type_int, "%s is a number", where);
	is((long long)json_object_get_uint64(v), (long long)want, where);
}

static void says(struct json_object *o, const char *where, const char *want)
{
	struct json_object *v = at(o, where);
	const char *got = v ? json_object_get_string(v) : "nothing";

	check(v && json_object_get_type(v) == json_type_string && !strcmp(got, want),
	      "%s is %s: %s", where, want, got);
}

static void test_tallies(void)
{
	struct json_object *o, *totals;
	struct pln_file_stats s;
	char *data = malloc(SIZE), *g = gpu(SIZE);
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	is(cuFileRead(fh, g, 4096 + 100, 0, 0), 4096 + 100, "a block, and a part of one");
	is(cuFileWrite(fh, g, SIZE, 0, 0), SIZE, "a write");
	is(cuFileRead(fh, g, 2 * SIZE, 0, 0), -CU_FILE_CUDA_POINTER_RANGE_ERROR, "a failure");
	o = object_of(fh);
	has(o, "paths.p2p.reads", 1);
	has(o, "paths.p2p.bytes_read", 4096);
	has(o, "paths.p2p.writes", 1);
	has(o, "paths.p2p.bytes_written", SIZE);
	has(o, "paths.bounce.bytes_read", 100);
	has(o, "paths.bounce.writes", 0);
	check(!at(o, "paths.posix"), "no path that has moved nothing");
	has(o, "errors", 1);
	has(o, "fallbacks", 1);
	s = stats_of(fh);
	says(o, "last_path", "p2p");
	says(o, "reason", s.reason);
	has(o, "last_errno", 0);
	is(json_object_get_int(at(o, "last_error")), -CU_FILE_CUDA_POINTER_RANGE_ERROR,
	   "the error of the failure");
	check(!at(o, "windows") && !at(o, "level"), "nothing that is no file's");
	json_object_put(o);
	totals = object_of(NULL);
	s = stats_of(NULL);
	has(totals, "level", 0);
	has(totals, "paths.p2p.bytes_read", s.path[PLN_PATH_P2P].bytes_read);
	has(totals, "windows.mapped", s.windows);
	has(totals, "windows.bytes", s.window_bytes);
	has(totals, "windows.hits", s.window_hits);
	has(totals, "windows.maps", s.window_maps);
	has(totals, "windows.evictions", s.window_evictions);
	has(totals, "windows.nospace", s.window_nospace);
	has(totals, "lanes", s.lanes);
	has(totals, "page_cache.windows", s.cache_windows);
	has(totals, "page_cache.bytes", s.cache_bytes);
	has(totals, "page_cache.leases", s.leases);
	has(totals, "page_cache.leases_broken", s.leases_broken);
	check(s.windows && s.lanes, "some of which are not 0");
	check(!at(totals, "calls"), "of level 0, no calls");
	json_object_put(totals);
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

static void test_levels(void)
{
	char *data = calloc(1, SIZE), *g = gpu(SIZE), json[64];
	struct json_object *o;
	CUfileHandle_t fh;
	int fd, level;

	fd = make(path, 0, data, SIZE);
	for (level = 1; level <= 3; level++) {
		snprintf(json, sizeof(json), "{\"profile\":{\"cufile_stats\":%d}}", level);
		fresh(json);
		fh = reg(fd);
		is(cuFileBufRegister(g, SIZE, 0).err, 0, "a buffer");
		is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "a read");
		o = object_of(NULL);
		has(o, "level", (unsigned int)level);
		has(o, "calls.read.ok", 1);
		has(o, "calls.read.bytes", SIZE);
		has(o, "calls.write.ok", 0);
		has(o, "calls.file_register.ok", 1);
		has(o, "calls.readv.ok", 0);
		has(o, "calls.batches.submits", 0);
		has(o, "calls.batches.bytes_read", 0);
		if (level >= 2)
			has(o, "sizes.read.131072", 1);
		else
			check(!at(o, "sizes"), "no sizes");
		if (level >= 3) {
			has(o, "gpus.0.read.p2p", 1);
			has(o, "gpus.0.buffers.bytes", SIZE);
		} else {
			check(!at(o, "gpus"), "no GPUs");
		}
		json_object_put(o);
		cuFileBufDeregister(g);
		cuFileHandleDeregister(fh);
	}
	close(fd);
	gpu_free(g);
	free(data);
}

static void test_arguments(void)
{
	char all[16384], some[16];
	int n, r;

	fresh(NULL);
	is(pln_file_stats_json(NULL, NULL, 1), -EINVAL, "to nowhere");
	is(pln_file_stats_json((void *)0x1234, all, sizeof(all)), -EBADF, "of no handle");
	n = pln_file_stats_json(NULL, NULL, 0);
	is(pln_file_stats_json(NULL, all, sizeof(all)), n, "the length, without a place");
	is((long long)strlen(all), n, "that it has");
	memset(some, 0x5a, sizeof(some));
	r = pln_file_stats_json(NULL, some, 10);
	is(r, n, "and with one that is too small");
	check(!memcmp(some, all, 9) && !some[9] && some[10] == 0x5a, "which has the beginning");
	memset(all, 0x5a, sizeof(all));
	is(pln_file_stats_json(NULL, all, (size_t)n), n, "one byte too small");
	check(strlen(all) == (size_t)n - 1 && all[n] == 0x5a, "no byte behind it");
	is(pln_file_stats_json(NULL, all, (size_t)n + 1), n, "as large as it must be");
	check(all[n - 1] == '}' && !all[n], "all of it");
}

void test_stats_json(void)
{
	struct json_object *o;
	const char *why;
	char data[8192] = "";
	int fd = make(path, 0, data, sizeof(data));

	test_tallies();
	test_levels();
	test_arguments();
	/* what the kernel says may have any characters */
	why = refused(fd, "", "4,1,2345,-;nvme: cannot be used for peer-to-peer DMA: "
		      "0000:42:00.0 \"a\\b\" \xff\x01\n");
	check(strstr(why, "\"a"), "odd words: %s", why);
	o = object_of(NULL);
	why = json_object_get_string(at(o, "reason"));
	check(why && strstr(why, "0000:42:00.0 \"a\\b\" ??"), "the same in JSON: %s", why);
	json_object_put(o);
	close(fd);
}

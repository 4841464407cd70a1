// SPDX-License-Identifier: MIT
/* What the commands that move files have in common: paths, results, CRCs. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cufile.h>

#include "tool.h"
#include "transfer.h"

static uint64_t bytes_of(const struct pln_path_count *path, enum flow flow)
{
	return (flow & READS ? path->bytes_read : 0) +
	       (flow & WRITES ? path->bytes_written : 0);
}

const char *flow_path(const struct pln_file_stats *st, enum flow flow)
{
	unsigned int i, path = PLN_PATH_NONE;

	for (i = 1; i < PLN_PATH_COUNT; i++) {
		if (!bytes_of(&st->path[i], flow))
			continue;
		if (path != PLN_PATH_NONE)
			return "mixed";
		path = i;
	}
	return pln_path_name(path);
}

struct json_object *flow_by_path(const struct pln_file_stats *st, enum flow flow)
{
	struct json_object *by = json_object_new_object();
	unsigned int i;

	for (i = 1; i < PLN_PATH_COUNT; i++) {
		uint64_t n = bytes_of(&st->path[i], flow);

		if (n)
			json_object_object_add(by, pln_path_name(i),
					       json_object_new_uint64(n));
	}
	return by;
}

void print_path(struct json_object *transfer)
{
	struct json_object *by = json_object_object_get(transfer,
							"bytes_by_path");
	const char *sep = " (";

	printf("%s", json_object_get_string(json_object_object_get(transfer,
								   "path")));
	if (!by || json_object_object_length(by) < 2)
		return;
	json_object_object_foreach(by, path, bytes) {
		printf("%s%s %s", sep, path, json_object_get_string(bytes));
		sep = ", ";
	}
	printf(")");
}

struct json_object *json_seconds(double s)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", s);
	return json_object_new_double_s(s, text);
}

const char *result_words(ssize_t r, char *buf, size_t size)
{
	if (r == -1)
		snprintf(buf, size, "%s (errno %d)", strerror(errno), errno);
	else
		snprintf(buf, size, "%s (%zd)",
			 cufileop_status_error((CUfileOpError)-r), r);
	return buf;
}

bool file_crc(const char *name, uint64_t offset, uint64_t size, uint32_t *crc,
	      uint64_t *bytes)
{
	const size_t step = 4 << 20;
	int fd = offset % 4096 ? -1 : open(name, O_RDONLY | O_CLOEXEC |
					   O_DIRECT);
	bool direct = fd >= 0;
	void *buf = NULL;
	ssize_t r = 0;

	*crc = 0;
	*bytes = 0;
	if (fd < 0)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || posix_memalign(&buf, 4096, step)) {
		complain("%s: %s", name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (*bytes < size) {
		uint64_t left = size - *bytes;
		size_t n = left < step ? (size_t)left : step;

		r = pread(fd, buf, direct ? (n + 4095) / 4096 * 4096 : n,
			  (off_t)(offset + *bytes));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EINVAL && direct) {
			close(fd);
			fd = open(name, O_RDONLY | O_CLOEXEC);
			direct = false;
			continue;
		}
		if (r <= 0)
			break;
		if ((uint64_t)r > left)
			r = (ssize_t)left;
		*crc = crc32c_of(*crc, buf, (size_t)r);
		*bytes += (uint64_t)r;
		/* an odd rest is the end of the file */
		if (direct && r % 512)
			break;
	}
	free(buf);
	if (r < 0) {
		complain("%s: reading: %s", name, strerror(errno));
		close(fd);
		return false;
	}
	close(fd);
	return true;
}

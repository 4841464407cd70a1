/* SPDX-License-Identifier: MIT */
/*
 * A reader of JSON text, for cufile.json.  It is here so that libcufile.so.0
 * needs nothing but the C library and can be dropped into any container.
 * Takes // and block comments, as NVIDIA's example file has them.
 */
#ifndef PLN_CUFILE_JSON_H
#define PLN_CUFILE_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_type {
	JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT
};

struct json {
	enum json_type type;
	bool boolean;
	double number;
	char *key;		/* in an object */
	char *string;
	struct json *child;	/* first member or element */
	struct json *next;
};

/* NULL with "line N: words" in @err. */
struct json *json_parse(const char *text, size_t len, char *err, size_t size);
void json_free(struct json *j);
/* "a.b.c"; NULL when absent.  Of several with one key the last, as other readers. */
const struct json *json_find(const struct json *root, const char *path);
const char *json_type_name(enum json_type type);

#endif

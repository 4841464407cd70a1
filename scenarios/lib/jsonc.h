/* SPDX-License-Identifier: MIT */
/*
 * What C programs of scenarios report: json-c, with a word for each kind of value.
 */
#ifndef SCENARIO_JSONC_H
#define SCENARIO_JSONC_H

#include <json-c/json.h>
#include <stdio.h>

static inline struct json_object *json_itself(struct json_object *o)
{
	return o;
}

/* To three decimals */
static inline struct json_object *json_decimal(double d)
{
	char text[64];

	snprintf(text, sizeof(text), "%.3f", d);
	return json_object_new_double_s(d, text);
}

/*
 * KEY of the object O is @value: an object or array, which it takes over, a text, a
 * double, a truth value, or a whole number.
 */
#define json_set(o, key, value) json_object_object_add(o, key, _Generic((value), \
	struct json_object *: json_itself, \
	char *: json_object_new_string, \
	const char *: json_object_new_string, \
	double: json_decimal, \
	_Bool: json_object_new_boolean, \
	int: json_object_new_int64, \
	long: json_object_new_int64, \
	long long: json_object_new_int64, \
	default: json_object_new_uint64)(value))

/* One line; @o is the caller's no more */
static inline void print_json(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	fflush(stdout);
}

#endif /* SCENARIO_JSONC_H */

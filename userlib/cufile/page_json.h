/* SPDX-License-Identifier: MIT */
/* What is counted, as JSON: page_json.c, also for the tool. */
#ifndef PLN_CUFILE_PAGE_JSON_H
#define PLN_CUFILE_PAGE_JSON_H

#include <stdio.h>

#include "page.h"

extern const char *const path_names[PLN_PATH_COUNT];
extern const char *const flow_names[2];

/* "key": "text"; what is not ASCII stays as it is */
void json_text(FILE *f, const char *key, const char *text);
/* Control characters, and what is not ASCII, become question marks. */
void make_plain(char *text);
/* What a tally has under its lock */
struct told {
	int last_errno, last_error;
	char reason[PLN_FILE_REASON_MAX];
};

/*
 * An object: of the transfers of one file, or of all with @page.  @told: of @t, as the
 * caller has read it.
 */
void json_stats(FILE *f, const struct tally *t, const struct told *told,
		const struct stats_page *page);

#endif

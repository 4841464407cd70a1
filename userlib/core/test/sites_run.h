/* SPDX-License-Identifier: MIT */
/* Has each site of sites.h fail, one by one, in whatever is run */
#ifndef PLN_CORE_TEST_SITES_RUN_H
#define PLN_CORE_TEST_SITES_RUN_H

#include <dirent.h>
#include <stdio.h>

#include "../../cuda/test/ktap.h"
#include "site.h"

extern struct site *__start_sites[], *__stop_sites[];

/* Sites count for the thread that says so */
static __thread bool sites_on;
static unsigned int site_in;	/* this many sites from now */
static struct site *site_hit;

/* What is called by a pointer must fail: set in the test */
static void site_due(void);

bool site_reached(struct site *site)
{
	if (!sites_on || !site_in || --site_in)
		return false;
	site_hit = site;
	site_due();
	return true;
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The errno that a site's failure has to become; negative */
static int site_error(const struct site *site);

/*
 * @run, with one site after the other failing, until none is left.  It returns
 * what its user would get; that must be the site's errno, or what it is without
 * a failure where the caller can go on.  False: something was wrong.
 */
static bool sites_run(const char *name, int (*run)(void))
{
	unsigned int n, files = open_files(), bad = 0;
	int plain, r;

	site_in = 0;
	plain = run();
	for (n = 1; n < 10000; n++) {
		site_in = n;
		site_hit = NULL;
		r = run();
		site_in = 0;
		if (!site_hit)
			break;
		site_hit->failed++;
		if (r == site_error(site_hit)) {
			/* unless it is the same without the failure */
			site_hit->told |= r != plain;
		} else if (r == plain) {
			site_hit->harmless = true;
		} else {
			printf("# %s: %s at %s:%d: %d, not %d\n", name,
			       site_hit->what, site_hit->file, site_hit->line,
			       r, site_error(site_hit));
			bad++;
		}
		if (open_files() != files) {
			printf("# %s: %s at %s:%d: a file is left open\n", name,
			       site_hit->what, site_hit->file, site_hit->line);
			files = open_files();
			bad++;
		}
	}
	ktap(!bad && n > 1 && n < 10000, "%s: %u calls fail one by one", name,
	     n - 1);
	return !bad;
}

/* Sites that have not failed yet */
__attribute__((unused))
static unsigned int sites_left(void)
{
	unsigned int left = 0;
	struct site **s;

	for (s = __start_sites; s < __stop_sites; s++)
		left += !(*s)->failed;
	return left;
}

/*
 * All sites have failed; at so many the caller always goes on, and at @least to
 * @most now and then, if whether it does depends on what another thread is at
 */
static void sites_all(unsigned int harmless, unsigned int least,
		      unsigned int most)
{
	unsigned int all = 0, fell = 0, always = 0, now_and_then = 0;
	struct site **s;

	for (s = __start_sites; s < __stop_sites; s++, all++) {
		fell += (*s)->failed > 0;
		always += (*s)->harmless && !(*s)->told;
		now_and_then += (*s)->harmless && (*s)->told;
		if (!(*s)->failed)
			printf("# %s at %s:%d has not failed\n", (*s)->what,
			       (*s)->file, (*s)->line);
		if ((*s)->harmless)
			printf("# %s at %s:%d: the caller goes on%s\n",
			       (*s)->what, (*s)->file, (*s)->line,
			       (*s)->told ? ", sometimes" : "");
	}
	ktap(all && fell == all, "%u of %u places that call have failed",
	     fell, all);
	ktap(always == harmless && now_and_then >= least &&
	     now_and_then <= most,
	     "%u of them do no harm, and %u not always", always, now_and_then);
}

#endif

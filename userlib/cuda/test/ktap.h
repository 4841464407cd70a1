/* SPDX-License-Identifier: MIT */
/* The least of KTAP for the test programs of this folder */
#ifndef PEERLANE_TEST_KTAP_H
#define PEERLANE_TEST_KTAP_H

#include <stdio.h>

static unsigned int ktap_count, ktap_bad;

__attribute__((format(printf, 2, 3), unused))
static void ktap(int good, const char *fmt, ...)
{
	__builtin_va_list args;

	printf("%sok %u - ", good ? "" : "not ", ++ktap_count);
	__builtin_va_start(args, fmt);
	vprintf(fmt, args);
	__builtin_va_end(args);
	putchar('\n');
	fflush(stdout);
	ktap_bad += !good;
}

__attribute__((unused))
static void ktap_skip(const char *what, const char *why)
{
	printf("ok %u - %s # SKIP %s\n", ++ktap_count, what, why);
	fflush(stdout);
}

__attribute__((unused))
static int ktap_end(void)
{
	printf("1..%u\n", ktap_count);
	return ktap_bad || !ktap_count;
}

#endif /* PEERLANE_TEST_KTAP_H */

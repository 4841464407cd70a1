/* SPDX-License-Identifier: MIT */
/* What a descriptor leads to: node.c. */
#ifndef PLN_CUFILE_NODE_H
#define PLN_CUFILE_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct node {
	uint64_t dev, ino;
	bool known;
	bool marked;	/* by its signal */
	bool placed;	/* by its position */
};

/*
 * What @fd leads to, by a number that is no standard stream's, if the program has not all of
 * those: it may write there, or open what it wants there.  @fd is closed then; -1 as from open().
 */
int no_stream(int fd);
/* Of one that was just opened */
struct node node_of(int fd);
/*
 * The same, of an open that nobody else has: another open of the same file is told apart,
 * as this one gets a mark.  @lent: a lease may be taken on it.
 */
struct node node_of_own(int fd, bool lent);
/* What has no mark is believed. */
bool has_mark(int fd, const struct node *n);
/* -1 leads nowhere; what is not known is believed. */
bool leads_to(int fd, const struct node *n);
/*
 * And *@size is that of a file: no server is asked, so it may be of a moment ago.  0: not
 * known; INT64_MAX: a device does not say its own here.
 */
bool leads_to_size(int fd, const struct node *n, uint64_t *size);
/* Closes it, unless it leads elsewhere by now. */
void close_own(int fd, const struct node *n);

#endif

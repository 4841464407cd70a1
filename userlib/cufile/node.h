/* SPDX-License-Identifier: MIT */
/* What a descriptor leads to: node.c. */
#ifndef PLN_CUFILE_NODE_H
#define PLN_CUFILE_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct node {
	uint64_t dev, ino;
	bool known;
	bool marked;
};

/* Of one that was just opened */
struct node node_of(int fd);
/* The same, of a device: another open of it is told apart, as this one gets a mark. */
struct node node_of_device(int fd);
/* -1 leads nowhere; what is not known is believed. */
bool leads_to(int fd, const struct node *n);
/*
 * And *@size is that of a file: no server is asked, so it may be of a moment ago.  0: not
 * known; INT64_MAX: a device does not say its own here.
 */
bool leads_to_size(int fd, const struct node *n, uint64_t *size);
/* Closes it, unless it leads elsewhere by now; another open of the same file is not told apart. */
void close_own(int fd, const struct node *n);

#endif

/* SPDX-License-Identifier: MIT */
/* Public structures that begin with their size and may grow: see peerlane.h. */
#ifndef PLN_CORE_SIZED_H
#define PLN_CORE_SIZED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What they had in version 0.1, the first: no later one may ask for more */
#define TOPO_DEVICE_LEAST	176u
#define TOPO_PAIR_LEAST		560u
#define LINK_OPTIONS_LEAST	80u
#define LINK_BUFFER_LEAST	48u
#define LINK_REQUEST_LEAST	80u
#define LINK_ARRIVAL_LEAST	64u
#define LINK_STATS_LEAST	200u
#define MR_INFO_LEAST		2176u
#define FILE_STATS_LEAST	912u
#define FILE_RESULT_LEAST	632u

/* Far more than any will have: a size that was never set */
#define SIZED_MOST		65536u

static inline bool sized_ok(uint32_t size, uint32_t least)
{
	return size >= least && size <= SIZED_MOST;
}

/*
 * @to is the program's, @from the library's: what both have is filled in, what
 * only the program has is 0.
 */
static inline void sized_out(void *to, const void *from, size_t known)
{
	uint32_t size;

	memcpy(&size, to, sizeof(size));
	memset(to, 0, size);
	memcpy(to, from, size < known ? size : known);
	memcpy(to, &size, sizeof(size));
}

#define SIZED_OUT(to, from)	sized_out(to, from, sizeof(*(from)))

/* The other way: false when the program asks for something unknown */
static inline bool sized_in(void *to, size_t known, const void *from)
{
	const char *more = from;
	uint32_t size, i;

	memcpy(&size, from, sizeof(size));
	for (i = (uint32_t)known; i < size; i++)
		if (more[i])
			return false;
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	return true;
}

#define SIZED_IN(to, from)	sized_in(to, sizeof(*(to)), from)

#endif

// SPDX-License-Identifier: MIT
/* CRC32C on the CPU: a check of the GPU engine that is independent of it. */
#include <isa-l.h>

#include "tool.h"

/* Starts with 0, as the GPU's engine does; may go on with a result. */
uint32_t crc32c_of(uint32_t crc, const void *p, size_t n)
{
	const unsigned char *at = p;

	crc = ~crc;
	while (n) {
		int part = n > 1 << 30 ? 1 << 30 : (int)n;

		crc = crc32_iscsi((unsigned char *)at, part, crc);
		at += part;
		n -= (size_t)part;
	}
	return ~crc;
}

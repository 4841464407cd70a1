// SPDX-License-Identifier: MIT
/*
 * For a test of peerlane perf: preloaded, it spoils the first byte of what a
 * CRC is computed of, as a bad transfer would have.
 */
#include <dlfcn.h>
#include <stdlib.h>

unsigned int crc32_iscsi(unsigned char *buffer, int len, unsigned int crc);

unsigned int crc32_iscsi(unsigned char *buffer, int len, unsigned int crc)
{
	unsigned int (*real)(unsigned char *, int, unsigned int);

	*(void **)&real = dlsym(RTLD_NEXT, "crc32_iscsi");
	if (!real)
		abort();
	if (len)
		buffer[0] ^= 1;
	return real(buffer, len, crc);
}

// SPDX-License-Identifier: MIT
/*
 * mkdata gen SEED BYTES > FILE	pseudo-random data, the same for each seed
 * mkdata crc FILE		CRC-32C of a file, by the processor
 *
 * The checksum is an implementation of its own: it shares nothing with the
 * GPU model's, which it is compared with.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t buffer[1 << 15];

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x9e3779b97f4a7c15u;
}

static int gen(uint64_t seed, uint64_t bytes)
{
	uint64_t state = seed * 2 + 1;

	while (bytes) {
		size_t len = bytes < sizeof(buffer) ? bytes : sizeof(buffer);

		for (size_t i = 0; i < sizeof(buffer) / 8; i++)
			buffer[i] = next(&state);
		if (fwrite(buffer, 1, len, stdout) != len) {
			perror("mkdata");
			return 1;
		}
		bytes -= len;
	}
	return fflush(stdout) ? 1 : 0;
}

static uint32_t table[4][256];

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
		table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int t = 1; t < 4; t++)
			table[t][i] = table[t - 1][i] >> 8 ^
				      table[0][table[t - 1][i] & 0xff];
}

static uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t n)
{
	for (; n >= 4; n -= 4, p += 4) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 |
		       (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		crc = table[3][crc & 0xff] ^ table[2][crc >> 8 & 0xff] ^
		      table[1][crc >> 16 & 0xff] ^ table[0][crc >> 24];
	}
	for (; n; n--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}

static int checksum(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint32_t crc = ~0u;
	size_t n;

	if (!f) {
		perror(path);
		return 1;
	}
	make_table();
	while ((n = fread(buffer, 1, sizeof(buffer), f)) > 0)
		crc = crc32c(crc, (const uint8_t *)buffer, n);
	if (ferror(f)) {
		perror(path);
		fclose(f);
		return 1;
	}
	fclose(f);
	printf("0x%08" PRIx32 "\n", ~crc);
	return 0;
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && end != text && !*end;
}

int main(int argc, char **argv)
{
	uint64_t seed, bytes;

	if (argc == 4 && !strcmp(argv[1], "gen") && number(argv[2], &seed) &&
	    number(argv[3], &bytes))
		return gen(seed, bytes);
	if (argc == 3 && !strcmp(argv[1], "crc"))
		return checksum(argv[2]);
	fprintf(stderr, "usage: mkdata gen SEED BYTES | mkdata crc FILE\n");
	return 2;
}

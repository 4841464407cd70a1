/* SPDX-License-Identifier: MIT */
/*
 * Data that can be recognised wherever it lies.
 *
 * Word i of the pattern of a seed is pattern_word(seed + i).  The mixing can be
 * undone, so eight bytes found anywhere tell whether they are of a pattern and
 * which word of it: a search needs no copy of the data and no alignment.
 */
#ifndef SCENARIO_PATTERN_H
#define SCENARIO_PATTERN_H

#include <stdint.h>

static inline uint64_t pattern_word(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* pattern_where(pattern_word(x)) is x. */
static inline uint64_t pattern_where(uint64_t x)
{
	x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3u;
	x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089u;
	return (x ^ x >> 30 ^ x >> 60) - 0x9e3779b97f4a7c15u;
}

#endif /* SCENARIO_PATTERN_H */

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the checksum of frames, CRC-32 as of Ethernet.
 *
 * It was a third of the engine's time by table.  A message is a polynomial, and
 * 16 bytes of it can be multiplied to where others are, modulo that of the CRC:
 * with x^(n + 32) and x^(n - 32), reflected, for a distance of n bits, as each half has
 * 64.  What is left is 16 bytes with the same remainder.
 */
#include "qemu/osdep.h"
#include <zlib.h>
#include "peerlane-cx-packet.h"

#ifdef __x86_64__
#include <immintrin.h>

#define PLC_CRC_LANE    16
#define PLC_CRC_LANES   4

__attribute__((target("pclmul,sse2")))
static __m128i plc_crc_fold(__m128i x, __m128i by, __m128i onto)
{
    return _mm_clmulepi64_si128(x, by, 0x00) ^
           _mm_clmulepi64_si128(x, by, 0x11) ^ onto;
}

/* @len is at least that of all lanes */
__attribute__((target("pclmul,sse2")))
static uint32_t plc_crc_clmul(uint32_t crc, const uint8_t *p, size_t len)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i lane[PLC_CRC_LANES], x;
    uint8_t rest[PLC_CRC_LANE];

    for (unsigned i = 0; i < PLC_CRC_LANES; i++) {
        lane[i] = _mm_loadu_si128((const __m128i *)p + i);
    }
    /* What came before is added to the first bits */
    lane[0] ^= _mm_cvtsi32_si128(~crc);
    p += sizeof(lane);
    len -= sizeof(lane);
    for (; len >= sizeof(lane); p += sizeof(lane), len -= sizeof(lane)) {
        for (unsigned i = 0; i < PLC_CRC_LANES; i++) {
            lane[i] = plc_crc_fold(lane[i], by_512,
                                   _mm_loadu_si128((const __m128i *)p + i));
        }
    }
    x = lane[0];
    for (unsigned i = 1; i < PLC_CRC_LANES; i++) {
        x = plc_crc_fold(x, by_128, lane[i]);
    }
    for (; len >= sizeof(x); p += sizeof(x), len -= sizeof(x)) {
        x = plc_crc_fold(x, by_128, _mm_loadu_si128((const __m128i *)p));
    }
    _mm_storeu_si128((__m128i *)rest, x);
    /* From a register of zeros on, which zlib takes inverted */
    return crc32(crc32(~0u, rest, sizeof(rest)), p, len);
}
#endif


uint32_t plc_crc(uint32_t crc, const uint8_t *p, size_t len)
{
#ifdef __x86_64__
    if (len >= PLC_CRC_LANES * PLC_CRC_LANE &&
        __builtin_cpu_supports("pclmul")) {
        return plc_crc_clmul(crc, p, len);
    }
#endif
    return crc32(crc, p, len);
}

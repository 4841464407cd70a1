/* SPDX-License-Identifier: MIT */
/*
 * The compiler includes this in front of each source: the C library checks the sizes of
 * buffers that the compiler knows.  Sanitizers have checks of their own, which those of
 * the C library would hide calls from.
 */
#if defined(__OPTIMIZE__) && !defined(_FORTIFY_SOURCE) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define _FORTIFY_SOURCE 2
#endif

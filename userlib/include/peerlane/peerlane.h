/* SPDX-License-Identifier: MIT */
/*
 * Peerlane's base library, libpeerlane.so.0: version and errors.
 *
 * One error convention for all of Peerlane's own functions: 0 or a positive
 * value is success, a negative errno is failure.  Functions that stand in for
 * another library's (cu*, cuFile*) keep that library's convention.
 *
 * Every function here may be called from any thread at any time.
 */
#ifndef PEERLANE_PEERLANE_H
#define PEERLANE_PEERLANE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The version that a program was compiled with */
#define PLN_VERSION_MAJOR	0
#define PLN_VERSION_MINOR	1
#define PLN_VERSION_PATCH	0

/**
 * pln_version - version of the library that the program runs with
 * @major: out, may be NULL: a change of it breaks programs
 * @minor: out, may be NULL: grows with new functions
 * @patch: out, may be NULL: grows with corrections
 *
 * Returns the three as text, "0.1.0".  The text belongs to the library and
 * lives as long as it.  Since 0.1.
 */
const char *pln_version(unsigned int *major, unsigned int *minor,
			unsigned int *patch);

/**
 * pln_strerror - what a return value means, in words
 * @err: a return value of a Peerlane function: negative errno, or success
 *
 * Returns a text that belongs to the library, in English whatever the locale;
 * never NULL: "Success" for 0 and above, "Unknown error" for a number that is
 * no errno.  Since 0.1.
 */
const char *pln_strerror(int err);

/**
 * pln_errname - the name of an errno, as in errno.h
 * @err: a return value of a Peerlane function: negative errno, or success
 *
 * Returns "EINVAL" for -EINVAL; "OK" for 0 and above; "?" for a number that is
 * no errno.  The text belongs to the library.  Since 0.1.
 */
const char *pln_errname(int err);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_PEERLANE_H */

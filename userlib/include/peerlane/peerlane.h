/* SPDX-License-Identifier: MIT */
/*
 * Peerlane's base library, libpeerlane.so.0: version and errors.
 *
 * One error convention for all of Peerlane's own functions: 0 or a positive
 * value is success, a negative errno is failure.  Functions that stand in for
 * another library's (cu*, cuFile*) keep that library's convention.
 *
 * Structures that may grow begin with @size, which the program sets to what it was
 * compiled with.  A library takes every size from that of version 0.1 on.  Of what
 * it gives, both know what lies in both sizes; what the program alone has room for
 * becomes 0.  What the program gives beyond the library's size must be 0, or the
 * call fails with -EINVAL.  Later versions only append; @reserved is 0 until then.
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
 * pln_version - version of the Peerlane library
 * @major: out, may be NULL: a change of it breaks programs
 * @minor: out, may be NULL: grows with new functions
 * @patch: out, may be NULL: grows with corrections
 *
 * Gives the version of libpeerlane.so.0 that the program runs with. Any of the
 * places may be NULL. The version that the program was compiled with is in
 * PLN_VERSION_MAJOR, PLN_VERSION_MINOR and PLN_VERSION_PATCH. May be called in
 * any thread.
 *
 * Return: The three numbers as text, as in "0.1.0". The text belongs to the library.
 *
 * Example:
 *
 *	printf("libpeerlane %s\n", pln_version(NULL, NULL, NULL));
 *
 * Since 0.1.
 *
 * See also: pln_strerror()
 */
const char *pln_version(unsigned int *major, unsigned int *minor,
			unsigned int *patch);

/**
 * pln_strerror - the meaning of a return value of Peerlane as text
 * @err: a return value of a Peerlane function: negative errno, or success
 *
 * Peerlane's own functions return a negative errno for failure, and 0 or a
 * positive value for success. pln_strerror puts such a value, @err, into
 * English words, whatever the locale. May be called in any thread.
 *
 * Return: A text that belongs to the library, never NULL: "Success" for 0 and above,
 * "Unknown error" for a number that is no errno.
 *
 * Example:
 *
 *	int err = pln_file_stats(handle, &stats);
 *
 *	if (err)
 *	        fprintf(stderr, "statistics: %s\n", pln_strerror(err));
 *
 * Since 0.1.
 *
 * See also: pln_errname(), pln_version()
 */
const char *pln_strerror(int err);

/**
 * pln_errname - the name of an errno
 * @err: a return value of a Peerlane function: negative errno, or success
 *
 * Gives the name that errno.h has for a return value of a Peerlane function,
 * for logs and machines: "EINVAL" for -EINVAL. May be called in any thread.
 *
 * Return: A text that belongs to the library, never NULL: "OK" for 0 and above, "?"
 * for a number that is no errno.
 *
 * Example:
 *
 *	fprintf(stderr, "pln_mr_reg: %s\n", pln_errname(err));
 *
 * Since 0.1.
 *
 * See also: pln_strerror()
 */
const char *pln_errname(int err);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_PEERLANE_H */

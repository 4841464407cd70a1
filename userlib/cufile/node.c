// SPDX-License-Identifier: MIT
/*
 * Does a descriptor of the library's still lead to what it opened?  A program may
 * close all descriptors, as daemons do, and get their numbers for files of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "node.h"

int no_stream(int fd)
{
	int other, saved;

	if (fd < 0 || fd > 2)
		return fd;
	other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	saved = errno;
	close(fd);
	errno = saved;
	return other;
}

/* No server is asked.  Overlayfs may give a file that is written to another number. */
struct node node_of(int fd)
{
	struct node n = { .dev = 0 };
	struct statfs fs;
	struct statx sx;

	if (!fstatfs(fd, &fs) && fs.f_type != OVERLAYFS_SUPER_MAGIC &&
	    !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &sx))
		n = (struct node){ .dev = makedev(sx.stx_dev_major, sx.stx_dev_minor),
				   .ino = sx.stx_ino, .known = true };
	return n;
}

/*
 * The mark is the signal of SIGIO, which a file or device that nobody has asked for signals
 * never sends.  The kernel sets it back when a lease ends: then it is the position, of a
 * file that is read and written at offsets only.  Any file system has files so long.
 * To be told a position takes a lock that all threads have in common, so it is not for
 * everything.
 */
#define MARK	SIGURG
#define PLACE	0x5e17a3b1

struct node node_of_own(int fd, bool lent)
{
	struct node n = node_of(fd);

	n.marked = !lent && !fcntl(fd, F_SETSIG, MARK);
	n.placed = lent && lseek(fd, PLACE, SEEK_SET) == PLACE;
	return n;
}

bool has_mark(int fd, const struct node *n)
{
	return (!n->marked || fcntl(fd, F_GETSIG) == MARK) &&
	       (!n->placed || lseek(fd, 0, SEEK_CUR) == PLACE);
}

bool leads_to_size(int fd, const struct node *n, uint64_t *size)
{
	struct statx sx;

	*size = 0;
	if (fd >= 0 && !has_mark(fd, n))
		return false;
	if (fd < 0 || !n->known)
		return fd >= 0;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_INO | STATX_TYPE | STATX_SIZE, &sx))
		return errno != EBADF;
	if (sx.stx_mask & STATX_TYPE && !S_ISREG(sx.stx_mode))
		*size = INT64_MAX;
	else if (sx.stx_mask & STATX_SIZE)
		*size = sx.stx_size;
	return makedev(sx.stx_dev_major, sx.stx_dev_minor) == n->dev &&
	       sx.stx_ino == n->ino;
}

bool leads_to(int fd, const struct node *n)
{
	uint64_t size;

	return leads_to_size(fd, n, &size);
}

void close_own(int fd, const struct node *n)
{
	if (leads_to(fd, n))
		close(fd);
}

// SPDX-License-Identifier: MIT
/*
 * Why a way was refused, for people: what happened, why, what to do about it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "mr_inside.h"
#include "peerlane/peerlane.h"

static const char *const way_name[PLN_MR_WAYS] = {
	"none", "dmabuf", "plain", "staged",
};

const char *pln_mr_way_name(unsigned int way)
{
	return way < PLN_MR_WAYS ? way_name[way] : "?";
}

void mr_refuse(struct pln_mr_attempt *why, int error, const char *format, ...)
{
	va_list args;

	why->error = error;
	va_start(args, format);
	vsnprintf(why->words, sizeof(why->words), format, args);
	va_end(args);
}

int mr_errno(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_INVALID_VALUE:
		return -EINVAL;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case CUDA_ERROR_NOT_PERMITTED:
		return -EPERM;
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_DEINITIALIZED:
		return -ENODEV;
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
		return -EFAULT;		/* memory goes with its context */
	default:
		return -EIO;
	}
}

void mr_refuse_cuda(struct pln_mr_attempt *why, const struct mr_cuda *cu,
		    CUresult result, const char *call, const char *hint)
{
	const char *name = NULL;

	if (!cu->error_name || cu->error_name(result, &name) || !name)
		name = "an error without a name";
	mr_refuse(why, mr_errno(result), "%s: %s (%d): %s", call, name,
		  (int)result, hint);
}

static bool over_memlock(uint64_t length, uint64_t *limit)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) || lim.rlim_cur == RLIM_INFINITY)
		return false;
	*limit = lim.rlim_cur;
	/* What else the process has locked counts too, and is not known */
	return length > lim.rlim_cur / 2;
}

static void words_nomem(struct pln_mr_attempt *why, const char *what,
			const char *device, uint64_t length)
{
	uint64_t limit = 0;

	if (over_memlock(length, &limit))
		mr_refuse(why, -ENOMEM,
			  "%llu bytes of %s are more than may be locked: RLIMIT_MEMLOCK is %llu bytes; raise it (ulimit -l, LimitMEMLOCK= of the service)",
			  (unsigned long long)length, what,
			  (unsigned long long)limit);
	else
		mr_refuse(why, -ENOMEM,
			  "no memory for %llu bytes of %s: the kernel's, or the room for regions of %s, is used up",
			  (unsigned long long)length, what, device);
}

static void words_other(struct pln_mr_attempt *why, const char *call,
			const char *device, int error)
{
	mr_refuse(why, -error, "%s on %s: %s%s", call, device,
		  pln_strerror(-error),
		  error == EINVAL ?
		  "; are the access flags right? REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE" :
		  error == EIO || error == ENODEV ?
		  "; has the device gone?" : "");
}

void mr_words_dmabuf(struct pln_mr_attempt *why, const char *device, int error)
{
	const char *words;

	switch (error) {
	case EOPNOTSUPP:
		words = "%s takes dma-bufs, but not this one: it cannot map "
		  "another device's memory, or cannot unmap it when the GPU "
		  "revokes it";
		break;
	case EREMOTEIO:
		words = "no peer-to-peer route from %s to the GPU that the kernel allows: peerlane topo and peerlane doctor say why";
		break;
	case EINVAL:
		/* What Linux says where it finds no route, too */
		words = "no peer-to-peer route from %s to the GPU that the kernel allows (peerlane topo and peerlane doctor say why), or access flags that are wrong: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE";
		break;
	case ENOSPC:
		words = "for %s the memory must be in the GPU's BAR1, which "
		  "has no space left: unmap other exports, or use a larger "
		  "BAR1";
		break;
	case ENOMEM:
		words = "%s: no kernel memory, or no room for regions on the device";
		break;
	default:
		words_other(why, "ibv_reg_dmabuf_mr()", device, error);
		return;
	}
	mr_refuse(why, -error, words, device);
}

void mr_words_plain(struct pln_mr_attempt *why, const char *device, int error,
		    const struct mr_memory *mem)
{
	if (error == ENOMEM)
		words_nomem(why, mem->cu ? "GPU memory" : "host memory", device,
			    mem->length);
	else if (error == EFAULT && mem->cu)
		mr_refuse(why, -EFAULT,
			  "the kernel has no peer-memory client that knows GPU "
			  "%d's memory (nvidia-peermem), and it has no pages "
			  "that the CPU accesses coherently",
			  mem->gpu);
	else if (error == EFAULT)
		mr_refuse(why, -EFAULT,
			  "not all of the range is mapped (and writable, if "
			  "access requires it), nor is it memory of a GPU: "
			  "freed, or never allocated?");
	else if (error == EREMOTEIO)
		mr_refuse(why, -EREMOTEIO,
			  "the pages behind the pointer are for peer-to-peer DMA, and the kernel allows none from %s: it has no DMA of its own, or no route to the GPU",
			  device);
	else if (error == EOPNOTSUPP)
		mr_refuse(why, -EOPNOTSUPP,
			  "%s does not pin memory of this kind, a file's or another device's",
			  device);
	else
		words_other(why, "ibv_reg_mr()", device, error);
}

void mr_words_staged(struct pln_mr_attempt *why, const char *device, int error,
		     uint64_t length)
{
	if (error == ENOMEM)
		words_nomem(why, "host memory for staging", device, length);
	else
		words_other(why, "ibv_reg_mr() of host memory for staging",
			    device, error);
}

static void reasons(char *to, size_t size,
		    const struct pln_mr_attempt *tried)
{
	size_t used = strlen(to);
	unsigned int way;
	int n;

	for (way = 0; way < PLN_MR_WAYS; way++) {
		if (!tried[way].words[0] || used >= size)
			continue;
		if (!way)
			n = snprintf(to + used, size - used, ": %s",
				     tried[way].words);
		else if (!tried[way].error)
			n = snprintf(to + used, size - used, "; %s %s",
				     way_name[way], tried[way].words);
		else
			n = snprintf(to + used, size - used,
				     "; %s refused: %s: %s", way_name[way],
				     pln_errname(tried[way].error),
				     tried[way].words);
		if (n > 0)
			used += (size_t)n;
	}
}

/* What went before the way that was taken, and nothing of what came after */
void mr_conclude(struct pln_mr_info *info, const char *device)
{
	struct pln_mr_attempt shown[PLN_MR_WAYS];
	unsigned int way;

	memcpy(shown, info->tried, sizeof(shown));
	for (way = info->way; info->way && way < PLN_MR_WAYS; way++)
		shown[way].words[0] = 0;
	if (info->gpu < 0 && info->way)
		memset(shown, 0, sizeof(shown));	/* no other way to regret */
	switch (info->way) {
	case PLN_MR_DMABUF:
		snprintf(info->reason, sizeof(info->reason),
			 "dmabuf: %s maps the memory of GPU %d itself", device,
			 info->gpu);
		break;
	case PLN_MR_PLAIN:
		snprintf(info->reason, sizeof(info->reason),
			 info->gpu < 0 ? "plain: host memory, on %s" :
			 "plain: %s took the pointer to memory of GPU %d",
			 device, info->gpu);
		break;
	case PLN_MR_STAGED:
		snprintf(info->reason, sizeof(info->reason),
			 "staged: %s sees host memory, and the copy engine of GPU %d moves the data",
			 device, info->gpu);
		break;
	default:
		snprintf(info->reason, sizeof(info->reason),
			 "registration failed: %s", pln_errname(info->error));
	}
	reasons(info->reason, sizeof(info->reason), shown);
}

int mr_ways_allowed(struct pln_mr_attempt *why)
{
	const char *list = secure_getenv("PEERLANE_MR_WAYS"), *end;
	unsigned int way;
	int ways = 0;
	size_t n;

	if (!list)
		return 1 << PLN_MR_DMABUF | 1 << PLN_MR_PLAIN |
		       1 << PLN_MR_STAGED;
	for (;; list = end + 1) {
		end = strchrnul(list, ',');
		n = (size_t)(end - list);
		for (way = 1; way < PLN_MR_WAYS; way++)
			if (n == strlen(way_name[way]) &&
			    !memcmp(list, way_name[way], n))
				break;
		if (way == PLN_MR_WAYS) {
			mr_refuse(why, -EINVAL,
				  "PEERLANE_MR_WAYS: there is no way \"%.*s\"; there are dmabuf, plain and staged",
				  (int)(n > 32 ? 32 : n), list);
			return -EINVAL;
		}
		ways |= 1 << way;
		if (!*end)
			return ways;
	}
}

// SPDX-License-Identifier: MIT
/*
 * Drives of other hosts, by NVMe over Fabrics with RDMA: can the RDMA device of each
 * reach the GPU?  The kernel takes GPU memory for such a drive in any case.  Where the
 * device cannot reach it, the memory cannot be mapped below the block device, and the
 * kernel tries the command again for ever, so that no error tells.  Hence the question
 * before the first transfer.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "../core/nvmeof.h"
#include "io.h"

struct look {
	struct facts *f;
	const char *gpu;	/* its PCI address */
	bool stops;
	int err;		/* -errno: files or memory have run out */
	char *why;
	size_t size;
};

static void PRINTF_LIKE(2, 3) stop(struct look *l, const char *fmt, ...)
{
	va_list ap;

	l->stops = true;
	va_start(ap, fmt);
	vsnprintf(l->why, l->size, fmt, ap);
	va_end(ap);
}

static void look_at_card(struct look *l, const char *controller, const char *card)
{
	char path[128], device[PATH_MAX], why[PLN_TOPO_REASON_MAX];
	const char *pci;
	int r;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", card);
	r = facts_link(l->f, path, device, sizeof(device));
	if (facts_ran_out(r)) {
		l->err = r;
		return;
	}
	if (r)
		device[0] = '\0';
	pci = strrchr(device, '/') ? strrchr(device, '/') + 1 : "";
	r = topo_is_address(pci) ? topology_p2pdma(pci, l->gpu, why, sizeof(why)) : 0;
	if (r < 0)
		l->err = r;
	else if (!topo_is_address(pci))
		stop(l, "the drive is another host's, and the RDMA device of %s, %s, is no "
		     "PCI device", controller, card);
	else if (!r)
		stop(l, "the drive is another host's, and P2PDMA between the RDMA device of "
		     "%s, %s (%s), and the GPU (%s) is %s", controller, card, pci,
		     l->gpu, why);
}

static void look_at(void *arg, const struct topo_block *b)
{
	struct look *l = arg;
	struct nvmeof *x;
	unsigned int i;
	int r;

	if (l->stops || l->err || strcmp(b->kind, "nvme-fabric"))
		return;
	x = calloc(1, sizeof(*x));
	r = x ? nvmeof_cards(l->f, b, x) : -ENOMEM;
	if (facts_ran_out(r))
		l->err = r;
	else if (r)
		stop(l, "the drive is another host's, and which RDMA device %s has is not "
		     "to be found: %s", b->name, nvmeof_error(r));
	/* with another transport, the block device takes no such memory */
	for (i = 0; !r && i < x->n && !l->stops && !l->err; i++)
		look_at_card(l, b->name, x->card[i]);
	free(x);
}

int fabric_stops(const struct io *io, char *why, size_t size)
{
	char folder[64], disk[PATH_MAX], gpu[32];
	struct look l = { .gpu = gpu, .why = why, .size = size };
	int r;

	snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(io->f->dev),
		 minor(io->f->dev));
	if (!cu_pci_address(io->mem.gpu, gpu, sizeof(gpu)))
		snprintf(gpu, sizeof(gpu), "?");
	r = facts_open_live(&l.f);
	if (!r) {
		r = facts_link(l.f, folder, disk, sizeof(disk));
		/* what cannot be read is no such drive, or not to be known as one */
		if (!r)
			r = topo_blocks(l.f, disk, look_at, &l);
		facts_close(l.f);
	}
	if (l.stops)
		return 1;
	if (facts_ran_out(r))
		l.err = r;
	if (l.err)
		snprintf(why, size, "the drives of the file cannot be looked for: %s",
			 strerror(-l.err));
	return l.err;
}

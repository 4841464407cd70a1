// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: plays an RDMA core that has the peer-memory interface.
 *
 * debugfs, peerlane_peercore_test/:
 *   cmd    a command; the errno of the write is that of the client.  S is one
 *          of 8 slots, each for one memory region:
 *	reg S VA LEN PCI-ADDRESS	register
 *	dma S write|read PAGE	the peer of peerlane_p2p_test moves its buffer
 *				there, or from there; not after invalidation
 *	dereg S
 *   state  the client, and a line for each slot
 *
 * The order of calls, the states and the locks are those of ib_peer_mem.c in
 * MLNX_OFED 5:
 *  - get_pages and dma_map run under the region's lock, and an invalidation
 *    waits for it;
 *  - a client with PEER_MEM_INVALIDATE_UNMAPS is called without any lock when the
 *    region ends: dma_unmap, put_pages, release may run while the client
 *    invalidates.  After an invalidation only release is called;
 *  - without the flag the invalidation itself unmaps and puts, under the lock;
 *  - a client that goes finds no new region, and waits for those that it has.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "p2p_test.h"
#include "peer-mem.h"
#include "test_cmd.h"

#define TEST_SLOTS	8
#define TEST_CLIENTS	2

static bool old;
module_param(old, bool, 0444);
MODULE_PARM_DESC(old, "Be a core that does not know the flags of clients");

static bool persistent;
module_param(persistent, bool, 0444);
MODULE_PARM_DESC(persistent, "Ask only clients that take no invalidations");

struct test_client {
	const struct peer_memory_client *ops;	/* NULL: not in use */
	u32 flags;
	bool invalidates;
	bool listed;		/* new regions may find it */
	refcount_t users;	/* regions, and while it is listed */
	struct completion unused;
};

enum test_mapped {
	TEST_UNMAPPED,
	TEST_MAPPED,
	TEST_INVALIDATED,
};

struct test_region {
	struct mutex lock;	/* ticket, mapped */
	struct mutex device;	/* reachable, and the DMA under way */
	u64 ticket;		/* 0: nothing to invalidate */
	enum test_mapped mapped;
	bool reachable;		/* the device may do DMA */
	struct test_client *client;	/* NULL: no region */
	void *context;
	struct device *dev;
	struct sg_table sgt;
	int nmap;
	atomic_t invalidated;
};

static struct test_region test_regions[TEST_SLOTS];
static struct test_client test_clients[TEST_CLIENTS];
static DEFINE_MUTEX(test_clients_lock);
static atomic64_t test_ticket;
static struct dentry *test_dir;

static void test_put_client(struct test_client *c)
{
	if (refcount_dec_and_test(&c->users))
		complete(&c->unused);
}

static void test_unmap(struct test_region *r)
{
	r->client->ops->dma_unmap(&r->sgt, r->context, r->dev);
	r->client->ops->put_pages(&r->sgt, r->context);
}

static int test_invalidate(void *handle, u64 ticket)
{
	struct test_region *r = &test_regions[ticket % TEST_SLOTS];

	mutex_lock(&r->lock);
	if (r->ticket != ticket || r->client != handle)
		goto out;
	if (r->mapped == TEST_MAPPED) {
		mutex_lock(&r->device);
		r->reachable = false;
		mutex_unlock(&r->device);
		atomic_inc(&r->invalidated);
		if (r->client->flags & PEER_MEM_INVALIDATE_UNMAPS) {
			r->mapped = TEST_INVALIDATED;
		} else {
			r->mapped = TEST_UNMAPPED;
			test_unmap(r);
		}
	}
out:
	mutex_unlock(&r->lock);
	return 0;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate)
{
	const struct peer_memory_client_ex *ex;
	struct test_client *c = test_clients;

	mutex_lock(&test_clients_lock);
	while (c < test_clients + TEST_CLIENTS && c->ops)
		c++;
	if (c == test_clients + TEST_CLIENTS) {
		c = NULL;
		goto out;
	}
	c->flags = 0;
	ex = container_of(client, struct peer_memory_client_ex, client);
	if (!old && client->version[IB_PEER_MEMORY_VER_MAX - 1] == 1 &&
	    ex->ex_size == sizeof(*ex))
		c->flags = ex->flags;
	c->invalidates = invalidate;
	if (invalidate)
		*invalidate = test_invalidate;
	c->ops = client;
	refcount_set(&c->users, 1);
	init_completion(&c->unused);
	c->listed = true;
out:
	mutex_unlock(&test_clients_lock);
	return c;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *handle)
{
	struct test_client *c = handle;

	mutex_lock(&test_clients_lock);
	WARN_ON(!c->listed);
	c->listed = false;
	mutex_unlock(&test_clients_lock);
	test_put_client(c);
	wait_for_completion(&c->unused);
	mutex_lock(&test_clients_lock);
	c->ops = NULL;
	mutex_unlock(&test_clients_lock);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

static int test_acquire(struct test_region *r, unsigned long addr, size_t size)
{
	struct test_client *c;
	int ret = 0;

	mutex_lock(&test_clients_lock);
	for (c = test_clients; c < test_clients + TEST_CLIENTS; c++) {
		if (!c->listed || (persistent && c->invalidates))
			continue;
		ret = c->ops->acquire(addr, size, NULL, NULL, &r->context);
		if (ret != 1)
			continue;
		refcount_inc(&c->users);
		r->client = c;
		break;
	}
	mutex_unlock(&test_clients_lock);
	if (ret == 1)
		return 0;
	return ret ? ret : -ENXIO;	/* nobody's */
}

static void test_release(struct test_region *r)
{
	struct test_client *c = r->client;

	mutex_lock(&r->lock);
	r->ticket = 0;
	mutex_unlock(&r->lock);
	c->ops->release(r->context);
	pci_dev_put(to_pci_dev(r->dev));
	r->client = NULL;
	test_put_client(c);
}

static int test_reg(struct test_region *r, const char *arg)
{
	unsigned int domain, bus, dev, func;
	struct pci_dev *pdev;
	unsigned long addr;
	size_t size;
	int ret;

	if (r->client)
		return -EBUSY;
	if (sscanf(arg, "%lu %zu %x:%x:%x.%x", &addr, &size, &domain, &bus,
		   &dev, &func) != 6)
		return -EBADMSG;
	pdev = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(dev, func));
	if (!pdev)
		return -ENODEV;
	r->dev = &pdev->dev;
	memset(&r->sgt, 0, sizeof(r->sgt));
	atomic_set(&r->invalidated, 0);
	r->nmap = 0;
	ret = test_acquire(r, addr, size);
	if (ret) {
		pci_dev_put(pdev);
		return ret;
	}

	mutex_lock(&r->lock);
	r->ticket = atomic64_add_return(TEST_SLOTS, &test_ticket) +
		    (r - test_regions);
	ret = r->client->ops->get_pages(addr, size, 1, 0, NULL, r->context,
					r->ticket);
	if (ret)
		goto err;
	ret = r->client->ops->dma_map(&r->sgt, r->context, r->dev, 0, &r->nmap);
	if (ret) {
		r->client->ops->put_pages(&r->sgt, r->context);
		goto err;
	}
	r->mapped = TEST_MAPPED;
	r->reachable = true;
	mutex_unlock(&r->lock);
	return 0;

err:
	mutex_unlock(&r->lock);
	test_release(r);
	return ret;
}

static int test_dereg(struct test_region *r)
{
	bool was_mapped, unlocked;

	if (!r->client)
		return -ENXIO;
	mutex_lock(&r->device);
	r->reachable = false;
	mutex_unlock(&r->device);
	unlocked = r->client->flags & PEER_MEM_INVALIDATE_UNMAPS;
	mutex_lock(&r->lock);
	was_mapped = r->mapped == TEST_MAPPED;
	r->mapped = TEST_UNMAPPED;
	if (was_mapped && !unlocked)
		test_unmap(r);
	mutex_unlock(&r->lock);
	if (was_mapped && unlocked)
		test_unmap(r);
	test_release(r);
	return 0;
}

static int test_dma(struct test_region *r, const char *arg)
{
	typeof(peer_do_dma) *dma;
	struct scatterlist *sg;
	unsigned int page, i;
	char dir[8];
	int ret = -ERANGE;

	if (sscanf(arg, "%7s %u", dir, &page) != 2)
		return -EBADMSG;
	dma = symbol_get(peer_do_dma);
	if (!dma)
		return -ENXIO;
	mutex_lock(&r->device);
	if (!r->reachable)
		ret = -ENODEV;
	else
		for_each_sg(r->sgt.sgl, sg, r->nmap, i)
			if (i == page)
				ret = dma(sg_dma_address(sg),
					  !strcmp(dir, "write"));
	mutex_unlock(&r->device);
	symbol_put(peer_do_dma);
	return ret;
}

static int test_run(char *cmd)
{
	char verb[TEST_VERB_MAX];
	struct test_region *r;
	unsigned int n;

	cmd = test_cmd_parse(cmd, verb, &n, TEST_SLOTS);
	if (!cmd)
		return -EBADMSG;
	r = &test_regions[n];
	if (!strcmp(verb, "reg"))
		return test_reg(r, cmd);
	if (!strcmp(verb, "dma"))
		return test_dma(r, cmd);
	if (!strcmp(verb, "dereg"))
		return test_dereg(r);
	return -EBADMSG;
}

DEFINE_TEST_CMD(test_cmd, test_run);

static int state_show(struct seq_file *m, void *unused)
{
	struct test_region *r;
	struct scatterlist *sg;
	unsigned int i, j, bad;

	mutex_lock(&test_clients_lock);
	for (i = 0; i < TEST_CLIENTS; i++)
		if (test_clients[i].listed)
			seq_printf(m, "client %s version %s flags %u\n",
				   test_clients[i].ops->name,
				   test_clients[i].ops->version,
				   test_clients[i].flags);
	mutex_unlock(&test_clients_lock);
	for (i = 0; i < TEST_SLOTS; i++) {
		r = &test_regions[i];
		mutex_lock(&r->device);
		seq_printf(m, "region %u registered %d reachable %d invalidated %d",
			   i, !!r->client, r->reachable,
			   atomic_read(&r->invalidated));
		if (r->reachable) {
			bad = r->nmap != r->sgt.nents;
			for_each_sg(r->sgt.sgl, sg, r->nmap, j)
				bad += sg_dma_len(sg) != SZ_64K ||
				       sg_dma_address(sg) !=
				       sg_dma_address(r->sgt.sgl) + j * SZ_64K;
			seq_printf(m, " entries %d addr %#llx bad %u size %lu",
				   r->nmap,
				   (u64)sg_dma_address(r->sgt.sgl), bad,
				   r->client->ops->get_page_size(r->context));
		}
		seq_puts(m, "\n");
		mutex_unlock(&r->device);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int __init test_init(void)
{
	unsigned int i;

	for (i = 0; i < TEST_SLOTS; i++) {
		mutex_init(&test_regions[i].lock);
		mutex_init(&test_regions[i].device);
	}
	test_dir = debugfs_create_dir("peerlane_peercore_test", NULL);
	debugfs_create_file("cmd", 0200, test_dir, NULL, &test_cmd_fops);
	debugfs_create_file("state", 0400, test_dir, NULL, &state_fops);
	return 0;
}

static void __exit test_exit(void)
{
	debugfs_remove_recursive(test_dir);
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("Peerlane RDMA core with peer memory, for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");

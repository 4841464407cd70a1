// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: plays an RDMA core that has the peer-memory interface.
 *
 * debugfs, peerlane_peercore_test/:
 *   cmd    a command; the errno of the write is that of the client.  S is one
 *          of 8 slots, each for one memory region:
 *	acquire S VA LEN	get S		map S PCI-ADDRESS|none
 *	dma S write|read PAGE	the peer of peerlane_p2p_test moves its buffer
 *				there, or from there; not after invalidation
 *	unmap S			put S		release S
 *	end S			all that is left to undo
 *   state  the client, and a line for each slot in use
 *
 * As in the real one a lock for each region is held while the client's
 * functions for it run, and taken by invalidation.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/peer-mem.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "p2p_test.h"
#include "test_cmd.h"

#define TEST_SLOTS	8
#define TEST_CLIENTS	2

static bool refuse;
module_param(refuse, bool, 0444);
MODULE_PARM_DESC(refuse, "Take no client");

static bool old;
module_param(old, bool, 0444);
MODULE_PARM_DESC(old, "Be a core that does not know the flags of clients");

struct test_client {
	const struct peer_memory_client *ops;	/* NULL: not in use */
	u32 flags;
};

struct test_region {
	struct mutex lock;	/* all below */
	u64 ticket;		/* 0: nothing to invalidate */
	const struct test_client *client;
	void *context;
	unsigned long addr;
	size_t size;
	bool acquired;
	bool pinned;
	bool mapped;
	struct device *dev;
	struct sg_table sgt;
	int nmap;
	int invalidated;
};

static struct test_region test_regions[TEST_SLOTS];
static struct test_client test_clients[TEST_CLIENTS];
static u64 test_ticket;
static struct device *test_root;
static struct dentry *test_dir;

static void test_unmap(struct test_region *r)
{
	if (!r->mapped)
		return;
	r->client->ops->dma_unmap(&r->sgt, r->context, r->dev);
	r->mapped = false;
	put_device(r->dev);
}

static void test_put(struct test_region *r)
{
	if (!r->pinned)
		return;
	r->client->ops->put_pages(&r->sgt, r->context);
	r->pinned = false;
	r->ticket = 0;
}

static void test_release(struct test_region *r)
{
	if (!r->acquired)
		return;
	r->client->ops->release(r->context);
	r->acquired = false;
}

static int test_invalidate(void *handle, u64 ticket)
{
	struct test_region *r = &test_regions[ticket % TEST_SLOTS];

	mutex_lock(&r->lock);
	if (r->ticket == ticket && r->client == handle) {
		r->invalidated++;
		r->ticket = 0;
		/* Here the real one tells its device; then: */
		if (!(r->client->flags & PEER_MEM_INVALIDATE_UNMAPS)) {
			test_unmap(r);
			test_put(r);
			test_release(r);
		}
	}
	mutex_unlock(&r->lock);
	return 0;
}

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate)
{
	const struct peer_memory_client_ex *ex;
	struct test_client *c = test_clients;

	while (c < test_clients + TEST_CLIENTS && c->ops)
		c++;
	if (refuse || c == test_clients + TEST_CLIENTS)
		return NULL;
	c->flags = 0;
	ex = container_of(client, struct peer_memory_client_ex, client);
	if (!old && client->version[IB_PEER_MEMORY_VER_MAX - 1] == 1 &&
	    ex->ex_size == sizeof(*ex))
		c->flags = ex->flags;
	if (invalidate)
		*invalidate = test_invalidate;
	c->ops = client;
	return c;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *handle)
{
	struct test_client *c = handle;
	unsigned int i;

	for (i = 0; i < TEST_SLOTS; i++)
		WARN_ON(test_regions[i].acquired && test_regions[i].client == c);
	WARN_ON(!c->ops);
	c->ops = NULL;
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

static int test_acquire(struct test_region *r, const char *arg)
{
	const struct test_client *c;
	int ret = 0;

	if (r->acquired)
		return -EBUSY;
	if (sscanf(arg, "%lu %zu", &r->addr, &r->size) != 2)
		return -EBADMSG;
	memset(&r->sgt, 0, sizeof(r->sgt));
	for (c = test_clients; c < test_clients + TEST_CLIENTS; c++) {
		if (!c->ops)
			continue;
		ret = c->ops->acquire(r->addr, r->size, NULL, NULL, &r->context);
		if (ret != 1)
			continue;
		r->client = c;
		r->acquired = true;
		r->invalidated = 0;
		r->nmap = 0;
		return 0;
	}
	return ret ? ret : -ENXIO;	/* nobody's */
}

static int test_get(struct test_region *r)
{
	int ret;

	if (!r->acquired || r->pinned)
		return -EBUSY;
	test_ticket += TEST_SLOTS;
	r->ticket = test_ticket + (r - test_regions);
	ret = r->client->ops->get_pages(r->addr, r->size, 1, 0, NULL,
					r->context, r->ticket);
	if (ret)
		r->ticket = 0;
	else
		r->pinned = true;
	return ret;
}

static int test_map(struct test_region *r, const char *arg)
{
	unsigned int domain, bus, dev, func;
	struct pci_dev *pdev;
	int ret;

	if (!r->pinned || r->mapped)
		return -EBUSY;
	if (!strcmp(arg, "none")) {
		r->dev = get_device(test_root);
	} else {
		if (sscanf(arg, "%x:%x:%x.%x", &domain, &bus, &dev, &func) != 4)
			return -EBADMSG;
		pdev = pci_get_domain_bus_and_slot(domain, bus,
						   PCI_DEVFN(dev, func));
		if (!pdev)
			return -ENXIO;
		r->dev = &pdev->dev;
	}
	ret = r->client->ops->dma_map(&r->sgt, r->context, r->dev, 0, &r->nmap);
	if (ret)
		put_device(r->dev);
	else
		r->mapped = true;
	return ret;
}

/* The region's lock makes invalidation wait for the DMA under way */
static int test_dma(struct test_region *r, const char *arg)
{
	typeof(peer_do_dma) *dma;
	struct scatterlist *sg;
	unsigned int page, i;
	char dir[8];
	int ret = -ERANGE;

	if (sscanf(arg, "%7s %u", dir, &page) != 2)
		return -EBADMSG;
	if (!r->mapped || !r->ticket)
		return -ENODEV;
	dma = symbol_get(peer_do_dma);
	if (!dma)
		return -ENXIO;
	for_each_sg(r->sgt.sgl, sg, r->nmap, i)
		if (i == page)
			ret = dma(sg_dma_address(sg), !strcmp(dir, "write"));
	symbol_put(peer_do_dma);
	return ret;
}

static int test_do(struct test_region *r, const char *verb, const char *arg)
{
	if (!strcmp(verb, "acquire"))
		return test_acquire(r, arg);
	if (!strcmp(verb, "get"))
		return test_get(r);
	if (!strcmp(verb, "map"))
		return test_map(r, arg);
	if (!strcmp(verb, "dma"))
		return test_dma(r, arg);

	if (!strcmp(verb, "unmap")) {
		test_unmap(r);
	} else if (!strcmp(verb, "put")) {
		test_put(r);
	} else if (!strcmp(verb, "release")) {
		test_release(r);
	} else if (!strcmp(verb, "end")) {
		test_unmap(r);
		test_put(r);
		test_release(r);
	} else {
		return -EBADMSG;
	}
	return 0;
}

static int test_run(char *cmd)
{
	char verb[TEST_VERB_MAX];
	unsigned int n;
	int ret;

	cmd = test_cmd_parse(cmd, verb, &n, TEST_SLOTS);
	if (!cmd)
		return -EBADMSG;
	mutex_lock(&test_regions[n].lock);
	ret = test_do(&test_regions[n], verb, cmd);
	mutex_unlock(&test_regions[n].lock);
	return ret;
}

DEFINE_TEST_CMD(test_cmd, test_run);

static int state_show(struct seq_file *m, void *unused)
{
	struct test_region *r;
	struct scatterlist *sg;
	unsigned int i, j, bad;

	for (i = 0; i < TEST_CLIENTS; i++)
		if (test_clients[i].ops)
			seq_printf(m, "client %s version %s flags %u\n",
				   test_clients[i].ops->name,
				   test_clients[i].ops->version,
				   test_clients[i].flags);
	for (i = 0; i < TEST_SLOTS; i++) {
		r = &test_regions[i];
		mutex_lock(&r->lock);
		seq_printf(m, "region %u acquired %d pinned %d mapped %d invalidated %d",
			   i, r->acquired, r->pinned, r->mapped,
			   r->invalidated);
		if (r->mapped) {
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
		mutex_unlock(&r->lock);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int __init test_init(void)
{
	unsigned int i;

	test_root = root_device_register("peerlane_peercore_test");
	if (IS_ERR(test_root))
		return PTR_ERR(test_root);
	for (i = 0; i < TEST_SLOTS; i++)
		mutex_init(&test_regions[i].lock);
	test_dir = debugfs_create_dir("peerlane_peercore_test", NULL);
	debugfs_create_file("cmd", 0200, test_dir, NULL, &test_cmd_fops);
	debugfs_create_file("state", 0400, test_dir, NULL, &state_fops);
	return 0;
}

static void __exit test_exit(void)
{
	debugfs_remove_recursive(test_dir);
	root_device_unregister(test_root);
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("Peerlane RDMA core with peer memory, for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: a driver that uses nvidia_p2p_* as a test tells it.
 *
 * debugfs, peerlane_p2p_test/:
 *   cmd    a command; the errno of the write is that of the call.  S is one of
 *          16 slots, each for one page table and one DMA mapping
 *	get S VA LEN HOW	HOW of the callback: plain; calls: it unmaps, and
 *				gets, maps and puts inside; hold: it waits for
 *				"go S"
 *	getp S VA LEN FLAGS	the persistent flavour
 *	bad WHAT VA LEN		get_pages with one bad argument: nocb, notable,
 *				token, space
 *	put S [TOKEN]		putp S FLAGS	go S
 *	map S PCI-ADDRESS	unmap S [PCI-ADDRESS]
 *	dma S write|read PAGE	the peer moves "buf" to that page, or from it
 *	free S			forget the slot
 *	old			what is not supported, or does nothing
 *	rsync register|version|function|unregister|registers
 *   state  a line for each slot in use
 *   buf    64 KiB in host memory, which the peer's engine reaches
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/nv-p2p.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "p2p_test.h"
#include "test_cmd.h"

#define TEST_SLOTS	16
#define TEST_HOLD_MS	20000

struct test_slot {
	bool used;
	bool persistent;
	bool calls;
	bool hold;
	bool stale;		/* put: the table is not ours to look at */
	u64 va;
	struct nvidia_p2p_page_table *table;
	struct nvidia_p2p_dma_mapping *mapping;
	struct pci_dev *pdev;
	struct completion go;
	atomic_t begun;		/* callbacks */
	atomic_t ended;
	u32 entries;		/* what the callback still sees of the table */
	int inner;		/* errors of its calls */
	unsigned int refused;	/* of its calls, since it is the callback */
	int put_after;		/* callbacks that had returned when put did */
};

static struct test_slot test_slots[TEST_SLOTS];
static struct dentry *test_dir;

static void test_nothing_cb(void *data)
{
}

static void test_call_inside(struct test_slot *slot)
{
	struct nvidia_p2p_dma_mapping *mapping;
	struct nvidia_p2p_page_table *table;

	slot->inner = nvidia_p2p_free_page_table(slot->table);
	if (slot->mapping) {
		slot->inner |= nvidia_p2p_free_dma_mapping(slot->mapping) |
			nvidia_p2p_dma_unmap_pages(slot->pdev, slot->table,
						   slot->mapping);
		slot->refused += nvidia_p2p_dma_map_pages(slot->pdev,
							  slot->table,
							  &mapping) == -EDEADLK;
	}
	slot->refused += nvidia_p2p_get_pages(0, 0, slot->va, SZ_64K, &table,
					      test_nothing_cb, NULL) == -EDEADLK;
	slot->refused += nvidia_p2p_get_pages_persistent(slot->va, SZ_64K,
							 &table, 0) == -EDEADLK;
	slot->refused += nvidia_p2p_put_pages(0, 0, slot->va, slot->table) ==
			 -EDEADLK;
}

static void test_free_cb(void *data)
{
	struct test_slot *slot = data;

	atomic_inc(&slot->begun);
	if (slot->calls)
		test_call_inside(slot);
	if (slot->hold &&
	    !wait_for_completion_timeout(&slot->go,
					 msecs_to_jiffies(TEST_HOLD_MS)))
		slot->inner = -ETIMEDOUT;
	slot->entries = slot->table->entries;
	atomic_inc(&slot->ended);
}

static void test_slot_init(struct test_slot *slot, u64 va)
{
	memset(slot, 0, sizeof(*slot));
	init_completion(&slot->go);
	slot->va = va;
}

static int test_get(struct test_slot *slot, const char *arg)
{
	char how[8];
	u64 va, len;
	int ret;

	if (slot->used)
		return -EBUSY;
	if (sscanf(arg, "%lli %lli %7s", &va, &len, how) != 3)
		return -EBADMSG;
	test_slot_init(slot, va);
	slot->calls = !strcmp(how, "calls");
	slot->hold = !strcmp(how, "hold");
	if (!slot->calls && !slot->hold && strcmp(how, "plain"))
		return -EBADMSG;
	ret = nvidia_p2p_get_pages(0, 0, va, len, &slot->table, test_free_cb,
				   slot);
	slot->used = !ret;
	return ret;
}

static int test_getp(struct test_slot *slot, const char *arg)
{
	u64 va, len;
	u32 flags;
	int ret;

	if (slot->used)
		return -EBUSY;
	if (sscanf(arg, "%lli %lli %u", &va, &len, &flags) != 3)
		return -EBADMSG;
	test_slot_init(slot, va);
	slot->persistent = true;
	ret = nvidia_p2p_get_pages_persistent(va, len, &slot->table, flags);
	slot->used = !ret;
	return ret;
}

/* Must fail: there is nothing to put */
static int test_bad(const char *arg)
{
	static struct nvidia_p2p_page_table *table;
	static struct test_slot slot;
	char what[8];
	u64 va, len;

	if (sscanf(arg, "%7s %lli %lli", what, &va, &len) != 3)
		return -EBADMSG;
	if (!strcmp(what, "nocb"))
		return nvidia_p2p_get_pages(0, 0, va, len, &table, NULL, &slot);
	if (!strcmp(what, "notable"))
		return nvidia_p2p_get_pages(0, 0, va, len, NULL, test_free_cb,
					    &slot);
	if (!strcmp(what, "token"))
		return nvidia_p2p_get_pages(1, 0, va, len, &table, test_free_cb,
					    &slot);
	if (!strcmp(what, "space"))
		return nvidia_p2p_get_pages(0, 1, va, len, &table, test_free_cb,
					    &slot);
	if (!strcmp(what, "map"))
		return nvidia_p2p_dma_map_pages(NULL, NULL, NULL);
	if (!strcmp(what, "unmap"))
		return nvidia_p2p_dma_unmap_pages(NULL, NULL, NULL);
	if (!strcmp(what, "putnull"))
		return nvidia_p2p_put_pages(0, 0, va, NULL) ?:
		       nvidia_p2p_put_pages_persistent(va, NULL, 0);
	return -EBADMSG;
}

static struct pci_dev *test_pdev(const char *arg)
{
	unsigned int domain, bus, dev, func;

	if (sscanf(arg, "%x:%x:%x.%x", &domain, &bus, &dev, &func) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(dev, func));
}

static int test_map(struct test_slot *slot, const char *arg)
{
	struct pci_dev *pdev = test_pdev(arg);
	int ret;

	if (!pdev)
		return -EBADMSG;
	if (slot->mapping) {
		pci_dev_put(pdev);
		return -EBUSY;
	}
	ret = nvidia_p2p_dma_map_pages(pdev, slot->table, &slot->mapping);
	if (ret)
		pci_dev_put(pdev);
	else
		slot->pdev = pdev;
	return ret;
}

static int test_unmap(struct test_slot *slot, const char *arg)
{
	struct pci_dev *pdev = test_pdev(arg);
	int ret;

	ret = nvidia_p2p_dma_unmap_pages(pdev ? pdev : slot->pdev, slot->table,
					 slot->mapping);
	if (!ret)
		slot->mapping = NULL;
	pci_dev_put(pdev);
	return ret;
}

static int test_dma(struct test_slot *slot, const char *arg)
{
	char dir[8];
	u32 page;

	if (sscanf(arg, "%7s %u", dir, &page) != 2 || !slot->mapping ||
	    page >= slot->mapping->entries)
		return -EBADMSG;
	return peer_do_dma(slot->mapping->dma_addresses[page],
			   !strcmp(dir, "write"));
}

static int test_old(void)
{
	struct nvidia_p2p_params params = { };

	if (nvidia_p2p_init_mapping(1, &params, test_free_cb, NULL) !=
	    -ENOTSUPP || nvidia_p2p_destroy_mapping(1) != -ENOTSUPP)
		return -EPROTO;
	return nvidia_p2p_free_page_table(NULL) ?:
	       nvidia_p2p_free_dma_mapping(NULL);
}

static int test_get_mode(int *mode, void *data)
{
	return 0;
}

static void test_put_mode(int mode, void *data)
{
}

static void test_wait(struct pci_dev *gpu, void *data)
{
}

static int test_rsync(const char *what)
{
	nvidia_p2p_rsync_reg_info_t *info = NULL;
	nvidia_p2p_rsync_driver_t driver = {
		.version = NVIDIA_P2P_RSYNC_DRIVER_VERSION,
		.get_relaxed_ordering_mode = test_get_mode,
		.put_relaxed_ordering_mode = test_put_mode,
		.wait_for_rsync = test_wait,
	};
	int ret;

	if (!strcmp(what, "version"))
		driver.version = 0x00020001;
	else if (!strcmp(what, "function"))
		driver.wait_for_rsync = NULL;
	if (!strcmp(what, "unregister")) {
		nvidia_p2p_unregister_rsync_driver(&driver, test_slots);
		return 0;
	}
	if (!strcmp(what, "registers")) {
		ret = nvidia_p2p_get_rsync_registers(&info);
		nvidia_p2p_put_rsync_registers(info);
		return ret;
	}
	return nvidia_p2p_register_rsync_driver(&driver, test_slots);
}

/* Slots are the test's to share out: two threads may put the same one */
static int test_do(char *cmd)
{
	struct test_slot *slot;
	unsigned int n, token = 0;
	char verb[TEST_VERB_MAX];
	int ret;

	if (!strncmp(cmd, "bad ", 4))
		return test_bad(cmd + 4);
	if (!strncmp(cmd, "rsync ", 6))
		return test_rsync(cmd + 6);
	if (!strcmp(cmd, "old"))
		return test_old();
	cmd = test_cmd_parse(cmd, verb, &n, TEST_SLOTS);
	if (!cmd)
		return -EBADMSG;
	slot = &test_slots[n];

	if (!strcmp(verb, "get"))
		return test_get(slot, cmd);
	if (!strcmp(verb, "getp"))
		return test_getp(slot, cmd);
	if (!slot->used)
		return -ENOENT;
	if (!strcmp(verb, "put")) {
		if (*cmd && kstrtouint(cmd, 0, &token))
			return -EBADMSG;
		if (!token && !slot->persistent)
			WRITE_ONCE(slot->stale, true);
		ret = nvidia_p2p_put_pages(token, 0, slot->va, slot->table);
		slot->put_after = atomic_read(&slot->ended);
		return ret;
	}
	if (!strcmp(verb, "putp")) {
		if (kstrtouint(cmd, 0, &token))
			return -EBADMSG;
		ret = nvidia_p2p_put_pages_persistent(slot->va, slot->table,
						      token);
		if (!ret)
			WRITE_ONCE(slot->stale, true);
		return ret;
	}
	if (!strcmp(verb, "map"))
		return test_map(slot, cmd);
	if (!strcmp(verb, "unmap"))
		return test_unmap(slot, cmd);
	if (!strcmp(verb, "dma"))
		return test_dma(slot, cmd);
	if (!strcmp(verb, "go")) {
		complete(&slot->go);
		return 0;
	}
	if (!strcmp(verb, "free")) {
		pci_dev_put(slot->pdev);
		memset(slot, 0, sizeof(*slot));
		return 0;
	}
	return -EBADMSG;
}

DEFINE_TEST_CMD(test_cmd, test_do);

/* A table is looked at only before its callback and its put */
static int state_show(struct seq_file *m, void *unused)
{
	struct nvidia_p2p_dma_mapping *map;
	struct nvidia_p2p_page_table *pt;
	struct test_slot *slot;
	unsigned int i, j, gaps;

	for (i = 0; i < TEST_SLOTS; i++) {
		slot = &test_slots[i];
		if (!slot->used)
			continue;
		seq_printf(m, "slot %u begun %d ended %d put-after %d entries %u inner %d refused %u",
			   i, atomic_read(&slot->begun),
			   atomic_read(&slot->ended), slot->put_after,
			   slot->entries, slot->inner, slot->refused);
		if (atomic_read(&slot->begun) || READ_ONCE(slot->stale)) {
			seq_puts(m, " gone\n");
			continue;
		}
		pt = slot->table;
		for (j = 1, gaps = 0; j < pt->entries; j++)
			gaps += pt->pages[j]->physical_address !=
				pt->pages[0]->physical_address + j * SZ_64K;
		seq_printf(m, " version %#x size %u pages %u phys %#llx gaps %u flags %u uuid %16phN",
			   pt->version, pt->page_size, pt->entries,
			   pt->pages[0]->physical_address, gaps,
			   NVIDIA_P2P_MAJOR_VERSION(pt->version) < 2 ? 0 :
			   pt->flags, pt->gpu_uuid);
		map = slot->mapping;
		if (map) {
			for (j = 1, gaps = 0; j < map->entries; j++)
				gaps += map->dma_addresses[j] !=
					map->dma_addresses[0] + j * SZ_64K;
			seq_printf(m, " mapped version %#x size %u pages %u dma %#llx gaps %u peer %d",
				   map->version, map->page_size_type,
				   map->entries, map->dma_addresses[0], gaps,
				   map->pci_dev == slot->pdev);
		}
		seq_puts(m, "\n");
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

/* User memory is not copied under the peer's lock, which is taken under resv locks */
static ssize_t test_buf_read(struct file *file, char __user *to, size_t count,
			     loff_t *pos)
{
	void *copy = kvmalloc(PEER_BUF_SIZE, GFP_KERNEL), *buf;
	ssize_t ret = -ENXIO;

	if (!copy)
		return -ENOMEM;
	if (peer_get(&buf)) {
		memcpy(copy, buf, PEER_BUF_SIZE);
		peer_put();
		ret = simple_read_from_buffer(to, count, pos, copy,
					      PEER_BUF_SIZE);
	}
	kvfree(copy);
	return ret;
}

static ssize_t test_buf_write(struct file *file, const char __user *from,
			      size_t count, loff_t *pos)
{
	void *copy = kvmalloc(PEER_BUF_SIZE, GFP_KERNEL), *buf;
	loff_t start = *pos;
	ssize_t ret;

	if (!copy)
		return -ENOMEM;
	ret = simple_write_to_buffer(copy, PEER_BUF_SIZE, pos, from, count);
	if (ret > 0 && !peer_get(&buf)) {
		ret = -ENXIO;
	} else if (ret > 0) {
		memcpy(buf + start, copy + start, ret);
		peer_put();
	}
	kvfree(copy);
	return ret;
}

static const struct file_operations test_buf_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = test_buf_read,
	.write = test_buf_write,
};

static int __init test_init(void)
{
	int ret;

	ret = peer_setup();
	if (ret)
		return ret;
	test_dir = debugfs_create_dir("peerlane_p2p_test", NULL);
	debugfs_create_file("cmd", 0200, test_dir, NULL, &test_cmd_fops);
	debugfs_create_file("state", 0400, test_dir, NULL, &state_fops);
	debugfs_create_file("buf", 0600, test_dir, NULL, &test_buf_fops);
	return 0;
}

/* What the test left behind is given back */
static void __exit test_exit(void)
{
	struct test_slot *slot;

	debugfs_remove_recursive(test_dir);
	for (slot = test_slots; slot < test_slots + TEST_SLOTS; slot++) {
		if (!slot->used)
			continue;
		if (slot->persistent && !slot->stale)
			nvidia_p2p_put_pages_persistent(slot->va, slot->table, 0);
		else if (!slot->persistent)
			nvidia_p2p_put_pages(0, 0, slot->va, slot->table);
		pci_dev_put(slot->pdev);
	}
	peer_cleanup();
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("Peerlane nvidia_p2p_* user for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: what can be seen from outside.
 *
 * sysfs, under the PCI device: what a program may rely on.
 * debugfs, peerlane_gpu/<PCI address>/: for people and tests.
 */
#include <linux/debugfs.h>
#include <linux/pid.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "queue.h"

static const char * const pln_counter_names[PLN_NUM_COUNTERS] = {
	[PLN_CNT_ENGINE_VRAM_READ] = "engine-vram-read",
	[PLN_CNT_ENGINE_VRAM_WRITE] = "engine-vram-write",
	[PLN_CNT_ENGINE_HOST_READ] = "engine-host-read",
	[PLN_CNT_ENGINE_HOST_WRITE] = "engine-host-write",
	[PLN_CNT_ENGINE_PEER_READ] = "engine-peer-read",
	[PLN_CNT_ENGINE_PEER_WRITE] = "engine-peer-write",
	[PLN_CNT_BAR1_DMA_READ] = "bar1-dma-read",
	[PLN_CNT_BAR1_DMA_WRITE] = "bar1-dma-write",
	[PLN_CNT_COHERENT_DMA_READ] = "coherent-dma-read",
	[PLN_CNT_COHERENT_DMA_WRITE] = "coherent-dma-write",
	[PLN_CNT_BAR1_UNMAPPED] = "bar1-unmapped",
	[PLN_CNT_DOORBELLS] = "doorbells",
	[PLN_CNT_DESCRIPTORS] = "descriptors",
	[PLN_CNT_ERRORS] = "errors",
	[PLN_CNT_INTERRUPTS] = "interrupts",
	[PLN_CNT_FAULTS_INJECTED] = "faults-injected",
};

static const char * const pln_state_names[] = {
	[PLN_LIVE] = "live",
	[PLN_RESETTING] = "resetting",
	[PLN_DEAD] = "dead",
	[PLN_GONE] = "gone",
	[PLN_REMOVED] = "removed",
};

static struct dentry *pln_debugfs;

#define PLN_ATTR_U64(name, expr)					\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	struct pln_gpu *gpu = dev_get_drvdata(dev);			\
	u64 val;							\
									\
	down_read(&gpu->mem_lock);					\
	val = (expr);							\
	up_read(&gpu->mem_lock);					\
	return sysfs_emit(buf, "%llu\n", val);				\
}									\
static DEVICE_ATTR_RO(name)

PLN_ATTR_U64(vram_size, gpu->vram_size);
PLN_ATTR_U64(vram_free, gpu->vram_size - gpu->vram_used);
PLN_ATTR_U64(vram_quarantined, gpu->quarantined);
PLN_ATTR_U64(bar1_size, gpu->bar1_size);
PLN_ATTR_U64(bar1_free, gpu->bar1_size - gpu->bar1_used);
PLN_ATTR_U64(coherent_size, gpu->coherent_pgmap ? gpu->coherent_size : 0);
PLN_ATTR_U64(reset_count, gpu->reset_count);

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct pln_gpu *gpu = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%pUb\n", gpu->uuid);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t p2pdma_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	struct pln_gpu *gpu = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", gpu->bar1_p2pmem ? "yes" : "no");
}
static DEVICE_ATTR_RO(p2pdma);

/* Each has a line of up to PLN_PROCESS_LINE bytes; those with no room share one */
#define PLN_PROCESS_LINE	32
#define PLN_MAX_PROCESSES	(PAGE_SIZE / PLN_PROCESS_LINE - 1)

struct pln_process {
	struct pid *pid;
	u64 size;
};

/*
 * Memory in use by the processes that have allocated it.  The reader's process
 * namespace may lack one of them, and one that has ended may have given its
 * memory to others: that is process 0.
 */
static ssize_t processes_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	struct pln_gpu *gpu = dev_get_drvdata(dev);
	struct pln_process *all, *p;
	unsigned int n = 0;
	struct pln_buf *mem;
	u64 others = 0;
	int at = 0;

	all = kcalloc(PLN_MAX_PROCESSES, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	p = all;
	down_read(&gpu->mem_lock);
	list_for_each_entry(mem, &gpu->bufs, node) {
		/* Mostly it is the one of the memory before */
		if (p == all + n || p->pid != mem->pid)
			for (p = all; p < all + n && p->pid != mem->pid; p++)
				;
		if (p == all + PLN_MAX_PROCESSES || !pid_vnr(mem->pid) ||
		    !pid_has_task(mem->pid, PIDTYPE_TGID)) {
			others += mem->size;
			p = all + n;
			continue;
		}
		if (p == all + n) {
			p->pid = get_pid(mem->pid);
			n++;
		}
		p->size += mem->size;
	}
	up_read(&gpu->mem_lock);

	for (p = all; p < all + n; p++) {
		at += sysfs_emit_at(buf, at, "%d %llu\n", pid_vnr(p->pid),
				    p->size);
		put_pid(p->pid);
	}
	if (others)
		at += sysfs_emit_at(buf, at, "0 %llu\n", others);
	kfree(all);
	return at;
}
static DEVICE_ATTR_RO(processes);

static ssize_t features_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	struct pln_gpu *gpu = dev_get_drvdata(dev);

	return sysfs_emit(buf, "dmabuf%s%s\n",
			  gpu->coherent_pgmap ? " coherent" : "",
			  gpu->bar1_p2pmem ? " p2pdma" : "");
}
static DEVICE_ATTR_RO(features);

static struct attribute *pln_attrs[] = {
	&dev_attr_vram_size.attr,
	&dev_attr_vram_free.attr,
	&dev_attr_vram_quarantined.attr,
	&dev_attr_bar1_size.attr,
	&dev_attr_bar1_free.attr,
	&dev_attr_coherent_size.attr,
	&dev_attr_reset_count.attr,
	&dev_attr_uuid.attr,
	&dev_attr_p2pdma.attr,
	&dev_attr_features.attr,
	&dev_attr_processes.attr,
	NULL,
};

static const struct attribute_group pln_group = {
	.attrs = pln_attrs,
};

const struct attribute_group *pln_dev_groups[] = {
	&pln_group,
	NULL,
};

/* Registers may be read now; mem_lock is held for reading if so */
static bool pln_debugfs_begin(struct seq_file *m, struct pln_gpu *gpu)
{
	down_read(&gpu->mem_lock);
	if (gpu->state == PLN_LIVE)
		return true;
	seq_printf(m, "state %s\n", pln_state_names[gpu->state]);
	up_read(&gpu->mem_lock);
	return false;
}

static int counters_show(struct seq_file *m, void *unused)
{
	struct pln_gpu *gpu = m->private;
	unsigned int i;

	if (!pln_debugfs_begin(m, gpu))
		return 0;
	for (i = 0; i < PLN_NUM_COUNTERS; i++)
		seq_printf(m, "%s %llu\n", pln_counter_names[i],
			   pln_rd64(gpu, PLN_REG_COUNTER(i)));
	up_read(&gpu->mem_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* One line per device that did DMA into BAR1 or the coherent window */
static int initiators_show(struct seq_file *m, void *unused)
{
	struct pln_gpu *gpu = m->private;
	unsigned int i;

	if (!pln_debugfs_begin(m, gpu))
		return 0;
	for (i = 0; i < PLN_NUM_INITIATORS; i++) {
		u32 base = PLN_REG_INITIATOR(i);
		u32 id = pln_rd(gpu, base + PLN_INITIATOR_ID);

		if (!(id & PLN_INITIATOR_VALID))
			continue;
		if (id & PLN_INITIATOR_UNKNOWN)
			seq_puts(m, "unknown");
		else
			seq_printf(m, "%02x:%02x.%u", (id >> 8) & 0xff,
				   PCI_SLOT(id & 0xff), PCI_FUNC(id & 0xff));
		seq_printf(m, " read %llu write %llu\n",
			   pln_rd64(gpu, base + PLN_INITIATOR_READ),
			   pln_rd64(gpu, base + PLN_INITIATOR_WRITE));
	}
	up_read(&gpu->mem_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(initiators);

/* What the driver holds: after the last close all but sizes must be 0 */
static int memory_show(struct seq_file *m, void *unused)
{
	struct pln_gpu *gpu = m->private;
	u64 jobs = 0, recovered = 0;
	unsigned int i;

	for (i = 0; i < gpu->num_queues; i++) {
		jobs += READ_ONCE(gpu->queues[i].nr_jobs);
		recovered += READ_ONCE(gpu->queues[i].nr_recovered);
	}
	down_read(&gpu->mem_lock);
	seq_printf(m, "state %s\n", pln_state_names[gpu->state]);
	seq_printf(m, "vram-size %llu\n", gpu->vram_size);
	seq_printf(m, "vram-used %llu\n", gpu->vram_used);
	seq_printf(m, "vram-quarantined %llu\n", gpu->quarantined);
	seq_printf(m, "bar1-size %llu\n", gpu->bar1_size);
	seq_printf(m, "bar1-used %llu\n", gpu->bar1_used);
	up_read(&gpu->mem_lock);
	seq_printf(m, "files %lld\n", atomic64_read(&gpu->nr_files));
	seq_printf(m, "buffers %lld\n", atomic64_read(&gpu->nr_bufs));
	seq_printf(m, "exports %lld\n", atomic64_read(&gpu->nr_exports));
	seq_printf(m, "p2p-tables %lld\n", atomic64_read(&gpu->nr_pins));
	seq_printf(m, "jobs %lld\n", atomic64_read(&gpu->nr_jobs));
	seq_printf(m, "pinned %lld\n", atomic64_read(&gpu->pinned));
	seq_printf(m, "jobs-ended %llu\n", jobs);
	seq_printf(m, "queues-recovered %llu\n", recovered);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

/* Retired memory, a line each */
static int quarantine_show(struct seq_file *m, void *unused)
{
	struct pln_gpu *gpu = m->private;
	struct pln_buf *buf;
	size_t size, n;
	char *text;

	down_read(&gpu->mem_lock);
	list_for_each_entry(buf, &gpu->graveyard, node) {
		/* Any user may put a line break into a name */
		seq_printf(m, "vram %#llx size %llu process %d (%*pE) jobs %d held-by",
			   buf->vram, buf->size, pid_nr(buf->pid),
			   (int)strlen(buf->comm), buf->comm,
			   atomic_read(&buf->users));
		size = seq_get_buf(m, &text);
		n = size ? pln_held_by(buf, text, size) : 0;
		/* Cut off: the core comes again with more room */
		seq_commit(m, n + 1 < size ? n : -1);
		seq_puts(m, "\n");
	}
	up_read(&gpu->mem_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(quarantine);

void pln_debugfs_add(struct pln_gpu *gpu)
{
	gpu->debugfs = debugfs_create_dir(pci_name(gpu->pdev), pln_debugfs);
	debugfs_create_file("counters", 0444, gpu->debugfs, gpu,
			    &counters_fops);
	debugfs_create_file("initiators", 0444, gpu->debugfs, gpu,
			    &initiators_fops);
	debugfs_create_file("memory", 0444, gpu->debugfs, gpu, &memory_fops);
	debugfs_create_file("quarantine", 0444, gpu->debugfs, gpu,
			    &quarantine_fops);
}

void pln_debugfs_del(struct pln_gpu *gpu)
{
	debugfs_remove_recursive(gpu->debugfs);
	gpu->debugfs = NULL;
}

void pln_debugfs_setup(void)
{
	pln_debugfs = debugfs_create_dir(PLN_NAME, NULL);
}

void pln_debugfs_cleanup(void)
{
	debugfs_remove_recursive(pln_debugfs);
	pln_debugfs = NULL;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: a disk whose driver has the hooks that nvidia-fs asks for.
 *
 * No driver of Debian's has any, so that their names are free: nvidia-fs takes this
 * one for a SCSI driver.  For NVMe's, it takes the task's plug away while it maps
 * GPU memory, and Linux 6.12, which writes to the plug of a task with PF_BLOCK_TS
 * when it runs again, dies if the task sleeps meanwhile.
 *
 * The data is in memory.  Where nvidia-fs knows the pages of a request, the engine
 * of peerlane_p2p_test does DMA to the addresses that it gives, a whole unit of the
 * engine at a time.
 */
#include <linux/blk-mq.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>

#include "nvfs-dma.h"
#include "nvfs_disk.h"
#include "p2p_test.h"

#define DISK_SIZE	SZ_1M
#define DISK_SEGMENTS	(PEER_BUF_SIZE / PAGE_SIZE)

static void *disk_data;
static struct pci_dev *disk_peer;	/* bound as long as the disk is there */
static struct nvfs_dma_rw_ops *disk_ops;
static atomic_t disk_ops_users;
static struct blk_mq_tag_set disk_tags;
static struct gendisk *disk;

static void disk_put_ops(void)
{
	if (atomic_dec_and_test(&disk_ops_users))
		wake_up_var(&disk_ops_users);
}

/* NULL: nvidia-fs is not there; else it stays until disk_put_ops() */
static struct nvfs_dma_rw_ops *disk_get_ops(void)
{
	struct nvfs_dma_rw_ops *ops;

	atomic_inc(&disk_ops_users);
	/* Before the look: who takes them away does so first, and looks for users then */
	smp_mb__after_atomic();
	ops = READ_ONCE(disk_ops);
	if (!ops)
		disk_put_ops();
	return ops;
}

int scsi_v1_register_dma_scsi_ops(struct nvfs_dma_rw_ops *ops)
{
	return cmpxchg(&disk_ops, NULL, ops) ? -EBUSY : 0;
}
EXPORT_SYMBOL_GPL(scsi_v1_register_dma_scsi_ops);

void scsi_v1_unregister_dma_scsi_ops(void)
{
	xchg(&disk_ops, NULL);
	wait_var_event(&disk_ops_users, !atomic_read(&disk_ops_users));
}
EXPORT_SYMBOL_GPL(scsi_v1_unregister_dma_scsi_ops);

static blk_status_t disk_dma(void *data, dma_addr_t addr, bool read)
{
	void *buf;
	int ret;

	if (!peer_get(&buf))
		return BLK_STS_IOERR;
	if (read)
		memcpy(buf, data, PEER_BUF_SIZE);
	ret = peer_dma(addr, read);
	if (!ret && !read)
		memcpy(data, buf, PEER_BUF_SIZE);
	peer_put();
	return errno_to_blk_status(ret);
}

/* false: nvidia-fs does not know the pages */
static bool disk_gpu(struct nvfs_dma_rw_ops *ops, struct request *rq,
		     void *data, blk_status_t *status)
{
	enum dma_data_direction dir = rq_dma_dir(rq);
	struct scatterlist *sgl = blk_mq_rq_to_pdu(rq);
	int nents;

	sg_init_table(sgl, blk_rq_nr_phys_segments(rq));
	nents = ops->nvfs_blk_rq_map_sg(rq->q, rq, sgl);
	if (!nents)
		return false;
	*status = BLK_STS_IOERR;
	if (nents == NVFS_IO_ERR ||
	    ops->nvfs_dma_map_sg_attrs(&disk_peer->dev, sgl, nents, dir,
				       DMA_ATTR_NO_WARN) != nents)
		return true;
	if (nents == 1 && sg_dma_len(sgl) == PEER_BUF_SIZE)
		*status = disk_dma(data, sg_dma_address(sgl),
				   rq_data_dir(rq) == READ);
	ops->nvfs_dma_unmap_sg(&disk_peer->dev, sgl, nents, dir);
	return true;
}

static void disk_cpu(struct request *rq, void *data)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_segment(bv, rq, iter) {
		if (rq_data_dir(rq) == READ)
			memcpy_to_bvec(&bv, data);
		else
			memcpy_from_bvec(data, &bv);
		data += bv.bv_len;
	}
}

static blk_status_t disk_queue_rq(struct blk_mq_hw_ctx *hctx,
				  const struct blk_mq_queue_data *bd)
{
	struct request *rq = bd->rq;
	void *data = disk_data + (blk_rq_pos(rq) << SECTOR_SHIFT);
	struct nvfs_dma_rw_ops *ops;
	blk_status_t status = BLK_STS_OK;
	bool done = false;

	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return BLK_STS_NOTSUPP;
	blk_mq_start_request(rq);
	ops = disk_get_ops();
	if (ops) {
		done = disk_gpu(ops, rq, data, &status);
		disk_put_ops();
	}
	if (!done)
		disk_cpu(rq, data);
	blk_mq_end_request(rq, status);
	return BLK_STS_OK;
}

/* nvidia-fs maps GPU memory where the request is queued, and its caller may sleep */
static const struct blk_mq_ops disk_mq_ops = {
	.queue_rq = disk_queue_rq,
};

static const struct block_device_operations disk_fops = {
	.owner = THIS_MODULE,
};

static int __init disk_init(void)
{
	struct queue_limits limits = {
		.logical_block_size = SZ_4K,
		.max_hw_sectors = PEER_BUF_SIZE >> SECTOR_SHIFT,
		.max_segments = DISK_SEGMENTS,
		.max_segment_size = PEER_BUF_SIZE,
	};
	struct pci_dev *peer;
	int ret = -ENOMEM;
	void *buf;

	peer = peer_get(&buf);
	if (!peer)
		return -ENODEV;
	disk_peer = pci_dev_get(peer);
	peer_put();
	disk_data = vzalloc(DISK_SIZE);
	if (!disk_data)
		goto err_peer;
	disk_tags.ops = &disk_mq_ops;
	disk_tags.nr_hw_queues = 1;
	disk_tags.queue_depth = 8;
	disk_tags.numa_node = NUMA_NO_NODE;
	disk_tags.cmd_size = DISK_SEGMENTS * sizeof(struct scatterlist);
	disk_tags.flags = BLK_MQ_F_BLOCKING | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	ret = blk_mq_alloc_tag_set(&disk_tags);
	if (ret)
		goto err_data;
	disk = blk_mq_alloc_disk(&disk_tags, &limits, NULL);
	if (IS_ERR(disk)) {
		ret = PTR_ERR(disk);
		goto err_tags;
	}
	disk->fops = &disk_fops;
	disk->flags |= GENHD_FL_NO_PART;
	strscpy(disk->disk_name, "nvfs_disk");
	set_capacity(disk, DISK_SIZE >> SECTOR_SHIFT);
	ret = add_disk(disk);
	if (ret)
		goto err_disk;
	return 0;

err_disk:
	put_disk(disk);
err_tags:
	blk_mq_free_tag_set(&disk_tags);
err_data:
	vfree(disk_data);
err_peer:
	pci_dev_put(disk_peer);
	return ret;
}

/* nvidia-fs holds this module by its symbols, as long as it has the hooks */
static void __exit disk_exit(void)
{
	del_gendisk(disk);
	put_disk(disk);
	blk_mq_free_tag_set(&disk_tags);
	vfree(disk_data);
	pci_dev_put(disk_peer);
}

module_init(disk_init);
module_exit(disk_exit);

MODULE_DESCRIPTION("Peerlane disk with hooks for nvidia-fs, for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");

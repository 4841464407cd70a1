// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: driver.
 *
 * Binds to the peerlane-gpu PCI device.  Resets and suspend: memory of before is
 * lost, files stay open and their handles answer EIO until they are freed.
 */
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pm.h>

#include "aperture.h"
#include "job.h"
#include "queue.h"

#define PLN_REMOVE_LINES	4	/* of who holds it up, each time, at most */

static int pln_wait_ms_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 100, 600000);
}

static const struct kernel_param_ops pln_wait_ms_ops = {
	.set = pln_wait_ms_set,
	.get = param_get_uint,
};

static unsigned int pln_remove_report_ms = 5000;
module_param_cb(remove_report_ms, &pln_wait_ms_ops, &pln_remove_report_ms, 0644);
MODULE_PARM_DESC(remove_report_ms,
		 "A removal that waits logs who holds GPU memory each so many ms (100 to 600000, default 5000)");

static unsigned int pln_drain_ms = 2000;
module_param_cb(drain_ms, &pln_wait_ms_ops, &pln_drain_ms, 0644);
MODULE_PARM_DESC(drain_ms,
		 "Time that a reset waits for other devices to end their DMA to GPU memory, in ms (100 to 600000, default 2000)");

static DEFINE_IDA(pln_ids);

static void pln_die_work(struct work_struct *work)
{
	struct pln_gpu *gpu = container_of(work, struct pln_gpu, die_work);
	enum pln_state state = pln_state_unusable(gpu);

	down_write(&gpu->mem_lock);
	if (gpu->state == PLN_LIVE)
		gpu->state = state;
	up_write(&gpu->mem_lock);
	wake_up_all(&gpu->state_wait);
	pln_pins_wake();
	pln_queues_stop(gpu, state == PLN_GONE ? -ENODEV : -EIO);
	pln_bufs_lose_all(gpu);
}

static void pln_gpu_release(struct device *dev)
{
	struct pln_gpu *gpu = container_of(dev, struct pln_gpu, dev);

	WARN_ON(atomic64_read(&gpu->nr_files) || atomic64_read(&gpu->nr_bufs) ||
		atomic64_read(&gpu->nr_jobs) || atomic64_read(&gpu->pinned) ||
		atomic64_read(&gpu->nr_exports) ||
		atomic64_read(&gpu->nr_pins));
	cleanup_srcu_struct(&gpu->calls);
	ida_free(&pln_ids, gpu->id);
	pci_dev_put(gpu->pdev);
	kfree(gpu->queues);
	kfree(gpu);
}

static struct pln_gpu *pln_gpu_create(struct pci_dev *pdev)
{
	struct pln_gpu *gpu;
	int ret;

	gpu = kzalloc_obj(*gpu, GFP_KERNEL);
	if (!gpu)
		return ERR_PTR(-ENOMEM);
	ret = init_srcu_struct(&gpu->calls);
	if (ret)
		goto err_free;
	gpu->id = ida_alloc(&pln_ids, GFP_KERNEL);
	if (gpu->id < 0) {
		ret = gpu->id;
		goto err_srcu;
	}
	gpu->pdev = pci_dev_get(pdev);
	init_rwsem(&gpu->mem_lock);
	init_waitqueue_head(&gpu->state_wait);
	init_waitqueue_head(&gpu->reaped);
	INIT_WORK(&gpu->die_work, pln_die_work);
	INIT_LIST_HEAD(&gpu->bufs);
	INIT_LIST_HEAD(&gpu->graveyard);
	INIT_LIST_HEAD(&gpu->runs);
	INIT_LIST_HEAD(&gpu->dying_runs);

	/* From here on put_device() frees it */
	device_initialize(&gpu->dev);
	gpu->dev.parent = &pdev->dev;
	gpu->dev.release = pln_gpu_release;
	ret = dev_set_name(&gpu->dev, "peerlane-gpu%d", gpu->id);
	if (ret) {
		put_device(&gpu->dev);
		return ERR_PTR(ret);
	}
	return gpu;

err_srcu:
	cleanup_srcu_struct(&gpu->calls);
err_free:
	kfree(gpu);
	return ERR_PTR(ret);
}

/* Is this a device that we know, and does what it says make sense? */
static int pln_identify(struct pln_gpu *gpu)
{
	struct device *dev = &gpu->pdev->dev;
	u32 version = pln_rd(gpu, PLN_REG_VERSION);
	unsigned int i;
	u32 features;

	if (pln_rd(gpu, PLN_REG_ID) != PLN_ID_VALUE) {
		dev_err(dev,
			"not a peerlane-gpu (identification %#x); if you bound the driver by new_id, choose another device\n",
			pln_rd(gpu, PLN_REG_ID));
		return -ENODEV;
	}
	if (version >> 16 != PLN_VERSION_VALUE >> 16) {
		dev_err(dev,
			"device has register layout %u.%u, driver knows %u.x; take both from the same release\n",
			version >> 16, version & 0xffff,
			PLN_VERSION_VALUE >> 16);
		return -ENODEV;
	}

	gpu->vram_size = pln_rd64(gpu, PLN_REG_VRAM_SIZE);
	gpu->bar1_size = pln_rd64(gpu, PLN_REG_BAR1_SIZE);
	gpu->num_queues = pln_rd(gpu, PLN_REG_NUM_QUEUES);
	features = pln_rd(gpu, PLN_REG_FEATURES);
	gpu->late_writes = features & PLN_FEAT_LATE_WRITES;
	gpu->has_time = features & PLN_FEAT_TIME;
	for (i = 0; i < sizeof(gpu->uuid); i += 4) {
		__le32 word = cpu_to_le32(pln_rd(gpu, PLN_REG_UUID + i));

		memcpy(gpu->uuid + i, &word, sizeof(word));
	}
	if (gpu->bar1_size > pci_resource_len(gpu->pdev, PLN_BAR_APERTURE)) {
		dev_err(dev,
			"BAR1 of %#llx bytes was given no address space; boot with pci=realloc, or take a smaller BAR1\n",
			gpu->bar1_size);
		return -ENODEV;
	}
	if (!gpu->vram_size || gpu->vram_size % PLN_PAGE_SIZE ||
	    !gpu->bar1_size || gpu->bar1_size % PLN_PAGE_SIZE ||
	    pln_rd(gpu, PLN_REG_BAR1_UNIT) != PLN_BAR1_UNIT_SIZE ||
	    !gpu->num_queues || gpu->num_queues > PLN_MAX_QUEUES) {
		dev_err(dev,
			"unusable: VRAM %#llx, BAR1 %#llx bytes, %u queues; the sizes must be multiples of 64 KiB, and 1 to 16 queues\n",
			gpu->vram_size, gpu->bar1_size, gpu->num_queues);
		return -ENODEV;
	}
	return 0;
}

static int pln_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct pln_gpu *gpu;
	int ret;

	gpu = pln_gpu_create(pdev);
	if (IS_ERR(gpu))
		return PTR_ERR(gpu);

	ret = pci_enable_device_mem(pdev);
	if (ret)
		goto err_put;
	ret = pci_request_mem_regions(pdev, PLN_NAME);
	if (ret)
		goto err_disable;
	gpu->regs = pci_iomap(pdev, PLN_BAR_REGS, PLN_REGS_SIZE);
	if (!gpu->regs) {
		ret = -ENOMEM;
		goto err_regions;
	}
	ret = pln_identify(gpu);
	if (ret)
		goto err_iounmap;

	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto err_iounmap;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	gpu->queues = kcalloc(gpu->num_queues, sizeof(*gpu->queues),
			      GFP_KERNEL);
	gpu->wq = alloc_workqueue("%s", WQ_UNBOUND, 0, dev_name(&gpu->dev));
	gpu->p2p_wq = alloc_workqueue("%s-p2p", WQ_UNBOUND, WQ_MAX_ACTIVE,
				      dev_name(&gpu->dev));
	gpu->drain_wq = alloc_workqueue("%s-drain", WQ_UNBOUND | WQ_SYSFS,
					WQ_MAX_ACTIVE, dev_name(&gpu->dev));
	if (!gpu->queues || !gpu->wq || !gpu->p2p_wq || !gpu->drain_wq) {
		ret = -ENOMEM;
		goto err_wq;
	}

	pci_set_drvdata(pdev, gpu);
	pln_memory_init(gpu);
	ret = pln_vram_init(gpu);
	if (ret)
		goto err_wq;
	ret = pln_queues_init(gpu);
	if (ret)
		goto err_master;
	ret = pln_aperture_init(gpu);
	if (ret)
		goto err_queues;
	ret = pln_cdev_add(gpu);
	if (ret)
		goto err_aperture;
	pln_debugfs_add(gpu);
	/* The link may be reset, which empties configuration space */
	pci_save_state(pdev);

	pci_info(pdev,
		 "%s: %llu MiB VRAM, %llu MiB BAR1%s, %s coherent window, %u queues\n",
		 dev_name(&gpu->dev), gpu->vram_size >> 20,
		 gpu->bar1_size >> 20,
		 gpu->bar1_p2pmem ? " with P2PDMA" : " without P2PDMA",
		 gpu->coherent_pgmap ? "with" : "without", gpu->num_queues);
	return 0;

err_aperture:
	pln_aperture_fini(gpu);
err_queues:
	pln_queues_stop(gpu, -ENODEV);
	cancel_work_sync(&gpu->die_work);
	pln_queues_fini(gpu);
err_master:
	pci_clear_master(pdev);
	cancel_work_sync(&gpu->die_work);
	pln_memory_fini(gpu);
	pln_vram_fini(gpu);
err_wq:
	if (gpu->drain_wq)
		destroy_workqueue(gpu->drain_wq);
	if (gpu->p2p_wq)
		destroy_workqueue(gpu->p2p_wq);
	if (gpu->wq)
		destroy_workqueue(gpu->wq);
err_iounmap:
	pci_iounmap(pdev, gpu->regs);
err_regions:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
err_put:
	put_device(&gpu->dev);
	return ret;
}

/* Who keeps the driver from going? */
static void pln_log_held(struct pln_gpu *gpu)
{
	unsigned int left = PLN_REMOVE_LINES;
	struct pln_buf *buf;
	char text[200];

	down_read(&gpu->mem_lock);
	list_for_each_entry(buf, &gpu->graveyard, node) {
		if (!left--)
			break;
		pln_held_by(buf, text, sizeof(text));
		dev_warn(&gpu->pdev->dev,
			 "removal waits for %llu bytes of GPU memory of process %d (%s), held by%s; end the programs that registered it\n",
			 buf->size, pid_nr(buf->pid), buf->comm, text);
	}
	up_read(&gpu->mem_lock);
}

static void pln_remove(struct pci_dev *pdev)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);

	/* Nothing new begins */
	down_write(&gpu->mem_lock);
	gpu->state = PLN_REMOVED;
	up_write(&gpu->mem_lock);
	wake_up_all(&gpu->state_wait);
	pln_pins_wake();
	pln_debugfs_del(gpu);
	pln_cdev_del(gpu);

	/* What runs ends */
	pln_queues_stop(gpu, -ENODEV);
	pln_bufs_lose_all(gpu);

	/*
	 * User mappings are gone.  The pages go away with the driver, so there
	 * is no choice but to wait for those who have them pinned, or mapped
	 * for DMA; the core would do the same.
	 */
	while (!pln_reap_wait(gpu, READ_ONCE(pln_remove_report_ms)))
		pln_log_held(gpu);
	/* Calls, and files that were closed meanwhile, may still be about to wake the reaper */
	synchronize_srcu(&gpu->calls);
	cancel_work_sync(&gpu->die_work);
	/* Also importers without mappings have been told */
	flush_workqueue(gpu->wq);
	destroy_workqueue(gpu->drain_wq);
	destroy_workqueue(gpu->p2p_wq);

	pln_queues_fini(gpu);
	pln_aperture_fini(gpu);
	pln_memory_fini(gpu);
	pln_vram_fini(gpu);
	destroy_workqueue(gpu->wq);
	pci_clear_master(pdev);
	pci_iounmap(pdev, gpu->regs);
	gpu->regs = NULL;
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
	put_device(&gpu->dev);
}

/* Reset, asked for or as a cure */
static void pln_reset_prepare(struct pci_dev *pdev)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);

	down_write(&gpu->mem_lock);
	gpu->state = PLN_RESETTING;
	up_write(&gpu->mem_lock);

	pln_queues_stop(gpu, -EIO);
	pln_bufs_lose_all(gpu);
	if (!pln_reap_wait(gpu, READ_ONCE(pln_drain_ms)))
		dev_warn(&pdev->dev,
			 "reset while %llu bytes of GPU memory are still in use by other devices; the data that they write is lost\n",
			 gpu->quarantined);
}

static void pln_reset_done(struct pci_dev *pdev)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);
	enum pln_state state = pln_state_unusable(gpu);

	/* In this order: a failure from here on is seen below */
	WRITE_ONCE(gpu->broken, false);
	flush_work(&gpu->die_work);
	if (pln_rd(gpu, PLN_REG_ID) != PLN_ID_VALUE) {
		dev_err(&pdev->dev,
			"does not answer after the reset; remove it and rescan the bus\n");
	} else {
		if (!pln_queues_start(gpu))
			state = PLN_LIVE;
		else
			dev_err(&pdev->dev,
				"the engine queues do not start after the reset\n");
		/* Before Linux 6.19, restoring uses up what was saved */
		pci_save_state(pdev);
	}

	down_write(&gpu->mem_lock);
	/* A failure during the reset has left the change of state to this function */
	if (state == PLN_LIVE && READ_ONCE(gpu->broken))
		state = pln_state_unusable(gpu);
	if (state == PLN_LIVE)
		pln_aperture_was_reset(gpu);
	gpu->reset_count++;
	gpu->state = state;
	up_write(&gpu->mem_lock);
	wake_up_all(&gpu->state_wait);
	if (state == PLN_LIVE)
		pci_info(pdev, "reset done; memory of before is lost\n");
	else
		pln_queues_stop(gpu, state == PLN_GONE ? -ENODEV : -EIO);
}

static pci_ers_result_t pln_error_detected(struct pci_dev *pdev,
					   pci_channel_state_t state)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	pln_reset_prepare(pdev);
	if (state != pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_NEED_RESET;
	/* No reset follows, so nobody should wait for one */
	down_write(&gpu->mem_lock);
	gpu->state = pln_state_unusable(gpu);
	up_write(&gpu->mem_lock);
	wake_up_all(&gpu->state_wait);
	return PCI_ERS_RESULT_DISCONNECT;
}

/*
 * May come to a GPU in use: where another device below the same bridge wants the
 * reset.  The GPU gets the bus back in pln_resume().
 */
static pci_ers_result_t pln_slot_reset(struct pci_dev *pdev)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);

	if (READ_ONCE(gpu->state) != PLN_RESETTING)
		pln_reset_prepare(pdev);
	pci_restore_state(pdev);
	pci_clear_master(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void pln_resume(struct pci_dev *pdev)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);

	if (READ_ONCE(gpu->state) != PLN_LIVE)
		pln_reset_done(pdev);
}

/* Memory does not outlast a suspend: it is a reset */
static int pln_pm_suspend(struct device *dev)
{
	pln_reset_prepare(to_pci_dev(dev));
	return 0;
}

static int pln_pm_resume(struct device *dev)
{
	pln_reset_done(to_pci_dev(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(pln_pm_ops, pln_pm_suspend, pln_pm_resume);

static void pln_shutdown(struct pci_dev *pdev)
{
	struct pln_gpu *gpu = pci_get_drvdata(pdev);

	pln_queues_stop(gpu, -EIO);
	pci_clear_master(pdev);
}

static const struct pci_error_handlers pln_error_handlers = {
	.error_detected = pln_error_detected,
	.slot_reset = pln_slot_reset,
	.resume = pln_resume,
	.reset_prepare = pln_reset_prepare,
	.reset_done = pln_reset_done,
};

static const struct pci_device_id pln_pci_ids[] = {
	{ PCI_DEVICE(PLN_PCI_VENDOR_ID, PLN_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, pln_pci_ids);

static struct pci_driver pln_pci_driver = {
	.name = PLN_NAME,
	.id_table = pln_pci_ids,
	.probe = pln_probe,
	.remove = pln_remove,
	.shutdown = pln_shutdown,
	.err_handler = &pln_error_handlers,
	.dev_groups = pln_dev_groups,
	.driver.pm = pm_sleep_ptr(&pln_pm_ops),
};

static int __init pln_init(void)
{
	int ret;

	ret = pln_job_setup();
	if (ret)
		return ret;
	ret = pln_file_setup();
	if (ret)
		goto err_job;
	pln_debugfs_setup();
	ret = pci_register_driver(&pln_pci_driver);
	if (ret)
		goto err_file;
	return 0;

err_file:
	pln_debugfs_cleanup();
	pln_file_cleanup();
err_job:
	pln_job_cleanup();
	return ret;
}

static void __exit pln_exit(void)
{
	pci_unregister_driver(&pln_pci_driver);
	pln_job_cleanup();
	pln_debugfs_cleanup();
	pln_file_cleanup();
	ida_destroy(&pln_ids);
}

module_init(pln_init);
module_exit(pln_exit);

MODULE_DESCRIPTION("Peerlane emulated GPU");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(PLN_MODULE_VERSION);

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: what all files of the driver may call, and what calls none
 * of them: the state of a GPU, and how its workers are woken.
 */
#include "pln_gpu.h"

const char * const pln_error_names[PLN_NUM_ERRORS] = {
	[PLN_ERR_NONE] = "none",
	[PLN_ERR_OPCODE] = "no such operation",
	[PLN_ERR_FLAGS] = "bad flags",
	[PLN_ERR_RESERVED] = "reserved field set",
	[PLN_ERR_ARG] = "bad argument",
	[PLN_ERR_LENGTH] = "bad length",
	[PLN_ERR_ALIGN] = "bad alignment",
	[PLN_ERR_RANGE] = "out of range",
	[PLN_ERR_BUS] = "DMA refused",
	[PLN_ERR_RING] = "bad ring",
	[PLN_ERR_TAIL] = "bad tail",
	[PLN_ERR_TIMEOUT] = "semaphore timeout",
	[PLN_ERR_OVERLAP] = "BAR1 overlap",
	[PLN_ERR_NOT_MAPPED] = "not mapped in BAR1",
	[PLN_ERR_NO_SPACE] = "no BAR1 run left",
	[PLN_ERR_COMMAND] = "no such BAR1 command",
	[PLN_ERR_INJECTED] = "injected fault",
};

int pln_state_errno(struct pln_gpu *gpu)
{
	switch (READ_ONCE(gpu->state)) {
	case PLN_LIVE:
		return 0;
	case PLN_GONE:
	case PLN_REMOVED:
		return -ENODEV;
	default:
		return -EIO;
	}
}

/* The state of a GPU that cannot be used: is it still on the bus? */
enum pln_state pln_state_unusable(struct pln_gpu *gpu)
{
	return pci_device_is_present(gpu->pdev) ? PLN_DEAD : PLN_GONE;
}

/*
 * The device does not answer or does not obey, or it was pulled out.  May be
 * called under any lock of ours, so the work is done elsewhere.  Returns the
 * errno for who wanted something of it.
 */
int pln_gpu_die(struct pln_gpu *gpu, const char *why)
{
	int err = pci_device_is_present(gpu->pdev) ? -EIO : -ENODEV;

	if (xchg(&gpu->broken, true))
		return err;
	if (err == -ENODEV)
		dev_err(&gpu->pdev->dev,
			"not on the bus any more; its memory is lost\n");
	else
		dev_err(&gpu->pdev->dev,
			"out of service: %s; its memory is lost, reset it (echo 1 > /sys/bus/pci/devices/%s/reset) or bind the driver again\n",
			why, pci_name(gpu->pdev));
	queue_work(gpu->wq, &gpu->die_work);
	return err;
}

/* Something was retired or let go: the reaper looks soon, and backs off from there */
void pln_reap_soon(struct pln_gpu *gpu)
{
	WRITE_ONCE(gpu->reaper_delay, PLN_REAP_MIN_MS);
	mod_delayed_work(gpu->wq, &gpu->reaper, 0);
}

void pln_file_free(struct kref *kref)
{
	struct pln_file *file = container_of(kref, struct pln_file, kref);
	struct pln_gpu *gpu = file->gpu;

	xa_destroy(&file->bufs);
	xa_destroy(&file->jobs);
	kfree(file);
	atomic64_dec(&gpu->nr_files);
	put_device(&gpu->dev);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: a device that does DMA to the addresses that it is given.
 *
 * It is another emulated GPU, which stands for a NIC or a capture card: its
 * engine copies between a buffer in host memory and any address.  Bound by
 * driver_override alone.
 */
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include <peerlane-gpu-regs.h>

#include "p2p_test.h"

#define PEER_RING		2
#define PEER_TIMEOUT_US		5000000

static DEFINE_MUTEX(peer_lock);
static struct pci_dev *peer_pdev;
static void __iomem *peer_regs;
static u8 *peer_ring;		/* and behind it nothing */
static dma_addr_t peer_ring_dma;
static void *peer_buf;
static dma_addr_t peer_buf_dma;

/* The device stays until peer_put(); NULL: there is none */
struct pci_dev *peer_get(void **buf)
{
	mutex_lock(&peer_lock);
	if (!peer_pdev)
		mutex_unlock(&peer_lock);
	else
		*buf = peer_buf;
	return peer_pdev;
}
EXPORT_SYMBOL_GPL(peer_get);

void peer_put(void)
{
	mutex_unlock(&peer_lock);
}
EXPORT_SYMBOL_GPL(peer_put);

static void peer_wr64(void *p, u64 val)
{
	*(__le64 *)p = cpu_to_le64(val);
}

static void peer_wr32(void *p, u32 val)
{
	*(__le32 *)p = cpu_to_le32(val);
}

/* Move the buffer to @addr, or from there; between peer_get() and peer_put() */
int peer_dma(u64 addr, bool write)
{
	void __iomem *q = peer_regs + PLN_REG_QUEUE(0);
	u32 status;
	int ret;

	writel(PLN_Q_CTRL_RESET, q + PLN_Q_CTRL);
	ret = readl_poll_timeout(q + PLN_Q_STATUS, status,
				 status == PLN_Q_DISABLED, 10, PEER_TIMEOUT_US);
	if (ret)
		return ret;
	memset(peer_ring, 0, PEER_RING * PLN_DESC_SIZE);
	peer_wr32(peer_ring + PLN_DESC_OPCODE, PLN_OP_COPY);
	peer_wr32(peer_ring + PLN_DESC_FLAGS,
		  PLN_DESC_F_SRC_BUS | PLN_DESC_F_DST_BUS);
	peer_wr64(peer_ring + PLN_DESC_SRC, write ? peer_buf_dma : addr);
	peer_wr64(peer_ring + PLN_DESC_DST, write ? addr : peer_buf_dma);
	peer_wr64(peer_ring + PLN_DESC_LEN, PEER_BUF_SIZE);
	writel(lower_32_bits(peer_ring_dma), q + PLN_Q_BASE);
	writel(upper_32_bits(peer_ring_dma), q + PLN_Q_BASE + 4);
	writel(PEER_RING, q + PLN_Q_SIZE);
	writel(PLN_Q_CTRL_ENABLE, q + PLN_Q_CTRL);
	writel(1, q + PLN_Q_TAIL);
	ret = readl_poll_timeout(q + PLN_Q_STATUS, status,
				 status == PLN_Q_ERROR ||
				 (status == PLN_Q_IDLE &&
				  readl(q + PLN_Q_HEAD) == 1),
				 10, PEER_TIMEOUT_US);
	if (ret)
		return ret;
	if (status != PLN_Q_ERROR)
		return 0;
	pci_info(peer_pdev, "engine error %u\n", readl(q + PLN_Q_ERROR_CODE));
	return -EREMOTEIO;
}
EXPORT_SYMBOL_GPL(peer_dma);

/* The same, all in one */
int peer_do_dma(u64 addr, bool write)
{
	int ret = -ENXIO;
	void *buf;

	if (peer_get(&buf)) {
		ret = peer_dma(addr, write);
		peer_put();
	}
	return ret;
}
EXPORT_SYMBOL_GPL(peer_do_dma);

static int peer_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int ret;

	if (peer_pdev)
		return -EBUSY;
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	peer_regs = pcim_iomap(pdev, PLN_BAR_REGS, PLN_REGS_SIZE);
	peer_ring = dmam_alloc_coherent(&pdev->dev, PEER_RING * PLN_DESC_SIZE,
					&peer_ring_dma, GFP_KERNEL);
	peer_buf = dmam_alloc_coherent(&pdev->dev, PEER_BUF_SIZE, &peer_buf_dma,
				       GFP_KERNEL);
	if (!peer_regs || !peer_ring || !peer_buf)
		return -ENOMEM;
	if (readl(peer_regs + PLN_REG_ID) != PLN_ID_VALUE)
		return -ENODEV;
	pci_set_master(pdev);
	mutex_lock(&peer_lock);
	peer_pdev = pdev;
	mutex_unlock(&peer_lock);
	return 0;
}

static void peer_remove(struct pci_dev *pdev)
{
	mutex_lock(&peer_lock);
	writel(PLN_Q_CTRL_RESET, peer_regs + PLN_REG_QUEUE(0) + PLN_Q_CTRL);
	pci_clear_master(pdev);
	peer_pdev = NULL;
	mutex_unlock(&peer_lock);
}

static struct pci_driver peer_driver = {
	.name = "peerlane_p2p_test",
	.probe = peer_probe,
	.remove = peer_remove,
};

int peer_setup(void)
{
	return pci_register_driver(&peer_driver);
}

void peer_cleanup(void)
{
	pci_unregister_driver(&peer_driver);
}

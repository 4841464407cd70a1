// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: the rsync part of nvidia_p2p_*.
 *
 * It is for machines whose CPU and GPU are coupled by NVLink 2 (POWER9).  Here
 * as there, one driver may register.  On PCIe nobody ever calls it.
 */
#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/nv-p2p.h>
#include <linux/printk.h>

static DEFINE_MUTEX(pln_rsync_lock);
static nvidia_p2p_rsync_driver_t pln_rsync;
static void *pln_rsync_data;

static bool pln_rsync_valid(const nvidia_p2p_rsync_driver_t *driver)
{
	return driver && NVIDIA_P2P_RSYNC_DRIVER_VERSION_COMPATIBLE(driver) &&
	       driver->get_relaxed_ordering_mode &&
	       driver->put_relaxed_ordering_mode && driver->wait_for_rsync;
}

/**
 * nvidia_p2p_register_rsync_driver - take part in ordering
 * @driver: its functions; the structure is not kept
 * @data: for them
 *
 * Return: 0; -EINVAL: @driver has another version, or lacks a function; -EBUSY:
 * there is one.
 */
int nvidia_p2p_register_rsync_driver(nvidia_p2p_rsync_driver_t *driver,
				     void *data)
{
	int ret = -EBUSY;

	if (!pln_rsync_valid(driver))
		return -EINVAL;
	mutex_lock(&pln_rsync_lock);
	if (!pln_rsync.version) {
		pln_rsync = *driver;
		pln_rsync_data = data;
		ret = 0;
	}
	mutex_unlock(&pln_rsync_lock);
	return ret;
}
EXPORT_SYMBOL(nvidia_p2p_register_rsync_driver);

/**
 * nvidia_p2p_unregister_rsync_driver - and no more
 * @driver: as registered
 * @data: as registered
 */
void nvidia_p2p_unregister_rsync_driver(nvidia_p2p_rsync_driver_t *driver,
					void *data)
{
	mutex_lock(&pln_rsync_lock);
	if (!pln_rsync_valid(driver) ||
	    driver->get_relaxed_ordering_mode !=
	    pln_rsync.get_relaxed_ordering_mode ||
	    driver->put_relaxed_ordering_mode !=
	    pln_rsync.put_relaxed_ordering_mode ||
	    driver->wait_for_rsync != pln_rsync.wait_for_rsync ||
	    data != pln_rsync_data)
		pr_warn("%s: not the driver that is registered\n", __func__);
	else
		pln_rsync = (nvidia_p2p_rsync_driver_t){ };
	mutex_unlock(&pln_rsync_lock);
}
EXPORT_SYMBOL(nvidia_p2p_unregister_rsync_driver);

/* There are no such registers outside of those machines */
int nvidia_p2p_get_rsync_registers(nvidia_p2p_rsync_reg_info_t **reg_info)
{
	return reg_info ? -ENODEV : -EINVAL;
}
EXPORT_SYMBOL(nvidia_p2p_get_rsync_registers);

void nvidia_p2p_put_rsync_registers(nvidia_p2p_rsync_reg_info_t *reg_info)
{
}
EXPORT_SYMBOL(nvidia_p2p_put_rsync_registers);

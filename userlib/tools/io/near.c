// SPDX-License-Identifier: MIT
/* The GPU that is nearest to a file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <peerlane/topo.h>

#include "tool.h"

bool gpu_near(const char *file, int *ordinal, char *why, size_t size)
{
	struct pln_topo_device gpu = { .size = sizeof(gpu) };
	char path[4096], reason[PLN_TOPO_REASON_MAX] = "";
	struct pln_topo *topo;
	int r, index;

	/* without a slash it would be a device's name */
	snprintf(path, sizeof(path), "%s%s", strchr(file, '/') ? "" : "./",
		 file);
	/* what is not there yet will be where its folder is */
	if (access(path, F_OK))
		strrchr(path, '/')[strrchr(path, '/') == path] = '\0';
	r = pln_topo_open(&topo, NULL);
	if (r) {
		complain("--gpu near: the PCI devices of this machine cannot "
			 "be read: %s", strerror(-r));
		return false;
	}
	index = pln_topo_nearest(topo, path, reason, sizeof(reason));
	if (index >= 0)
		index = pln_topo_info(topo, (unsigned int)index, &gpu);
	pln_topo_close(topo);
	if (index) {
		complain("--gpu near: %s", reason[0] ? reason :
			 strerror(-index));
		return false;
	}
	if (!gpu_at(gpu.address, ordinal)) {
		complain("--gpu near: CUDA does not show the nearest GPU, at %s: "
			 "check CUDA_VISIBLE_DEVICES",
			 gpu.address);
		return false;
	}
	snprintf(why, size, "%s", reason);
	return true;
}

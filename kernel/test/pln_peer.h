/* SPDX-License-Identifier: GPL-2.0-only */
/* A GPU, and another one whose engine peerlane_p2p_test drives. */
#ifndef PLN_PEER_H
#define PLN_PEER_H

#include "pln_test.h"

static const char *gpu_pci, *peer_pci, *far_pci;
__attribute__((unused)) static const char *way;

__attribute__((unused))
static unsigned long long bar1_start(void)
{
	unsigned long long start = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource",
		 gpu_pci);
	f = fopen(path, "r");
	need(f && fscanf(f, "%*x %*x %*x %llx", &start) == 1, "BAR1");
	fclose(f);
	return start;
}

/* The peer's buffer in host memory */
static void buffer(void *data, bool write_it)
{
	int fd = open("/sys/kernel/debug/peerlane_p2p_test/buf", O_RDWR);
	ssize_t n;

	need(fd >= 0, "open the peer's buffer");
	n = write_it ? write(fd, data, UNIT) : read(fd, data, UNIT);
	need(n == UNIT, "the peer's buffer");
	close(fd);
}

#endif /* PLN_PEER_H */

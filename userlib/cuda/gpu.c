// SPDX-License-Identifier: MIT
/*
 * What the driver says about a GPU, and names of GPUs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

int drv_call(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = drv_io_ioctl(fd, request, arg);
	} while (ret && errno == EINTR);
	return ret;
}

int drv_gpu_query(unsigned int minor, struct pln_gpu_query *info)
{
	int fd, err = 0;

	memset(info, 0, sizeof(*info));
	fd = drv_io_open(minor);
	if (fd < 0)
		return errno;
	if (drv_call(fd, PLN_GPU_IOC_QUERY, info))
		err = errno;
	else if (info->abi_version != PLN_GPU_ABI_VERSION ||
		 !info->num_queues || !info->page_size)
		err = EPROTO;
	drv_io_close(fd);
	return err;
}

void drv_uuid_text(const uint8_t *uuid, char out[DRV_UUID_TEXT])
{
	size_t n = 0;

	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(out + n, DRV_UUID_TEXT - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ?
				      "-" : "", uuid[i]);
}

void drv_bus_id_text(const struct pln_gpu_query *info,
		     char out[DRV_BUS_ID_TEXT])
{
	snprintf(out, DRV_BUS_ID_TEXT, "%04x:%02x:%02x.%x", info->pci_domain,
		 info->pci_bus & 0xff, info->pci_devfn >> 3 & 0x1f,
		 info->pci_devfn & 7);
}

/*
 * A number as NVIDIA's libraries take it: with a sign or blanks in front and of any
 * length; above 32 bits the low 32 count, above 64 bits it is all ones.  A prefix
 * without digits is 0.
 */
static bool parse_part(const char **s, unsigned int *out)
{
	const char *first = *s + strspn(*s, " \t\n\v\f\r");
	char *end;
	bool some;

	*out = (unsigned int)strtoul(*s, &end, 16);
	some = end != *s;
	if (*first == '+' || *first == '-')
		first++;
	/* strtoul() ends before the x of such a prefix */
	if (some && end == first + 1 && *first == '0' &&
	    (*end == 'x' || *end == 'X'))
		end++;
	*s = end;
	return some;
}

bool drv_bus_id_parse(const char *id, unsigned int out[4])
{
	unsigned int part[3], fn = 0;
	const char *s = id;
	int n = 0;

	for (;;) {
		if (n == 3 || !parse_part(&s, &part[n++]))
			return false;
		if (*s != ':')
			break;
		s++;
	}
	if (n < 2)
		return false;
	if (*s == '.') {
		s++;
		if (!parse_part(&s, &fn))
			return false;
	} else if (n == 2) {
		return false;
	}
	if (*s || fn > 7)
		return false;
	out[0] = n == 3 ? part[0] : 0;
	out[1] = part[n - 2];
	out[2] = part[n - 1];
	out[3] = fn;
	return true;
}

bool drv_bus_id_is(const unsigned int id[4], const struct pln_gpu_query *info)
{
	return info->pci_domain == id[0] && info->pci_bus == id[1] &&
	       info->pci_devfn >> 3 == id[2] && (info->pci_devfn & 7) == id[3];
}

// SPDX-License-Identifier: MIT
/* Reading the tree. */
#include "topo.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES	"/sys/bus/pci/devices"

enum {
	VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de, VENDOR_MELLANOX = 0x15b3,
};

/* ---- small things ---- */

/* @old with room for one more element than @n, that one zeroed; or NULL. */
static void *grown(void *old, int n, size_t size)
{
	char *new = realloc(old, ((size_t)n + 1) * size);

	if (new)
		memset(new + (size_t)n * size, 0, size);
	return new;
}

/* Memory or files that ran out are no fact about the machine: it all fails. */
static int note(struct topo *t, int r)
{
	if (facts_ran_out(r))
		t->failed = r;
	return r;
}

/* Appends a string to a list with NULL at its end. */
static int append(char ***list, const char *text)
{
	size_t n = 0;
	char **new;

	while (*list && (*list)[n])
		n++;
	new = realloc(*list, (n + 2) * sizeof(*new));
	if (!new)
		return -ENOMEM;
	*list = new;
	new[n + 1] = NULL;
	new[n] = strdup(text);
	return new[n] ? 0 : -ENOMEM;
}

static int __attribute__((format(printf, 2, 3)))
missing(struct topo *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return append(&t->missing, text);
}

/* pci0000:00 */
static bool is_host(const char *s)
{
	size_t n;

	if (strncmp(s, "pci", 3))
		return false;
	s += 3;
	n = strspn(s, "0123456789abcdef");
	return n >= 4 && n <= 8 && s[n] == ':' && isxdigit(s[n + 1]) &&
	       isxdigit(s[n + 2]) && !s[n + 3];
}

static void attribute(const char *address, const char *name, char *path,
		      size_t size)
{
	snprintf(path, size, DEVICES "/%s/%s", address, name);
}

static int text_of(struct topo *t, const char *address, const char *name,
		   char *buf, size_t size)
{
	char path[PATH_MAX];
	int r;

	attribute(address, name, path, sizeof(path));
	r = note(t, facts_text(t->facts, path, buf, size));
	if (r)
		buf[0] = '\0';
	return r;
}

static int number_of(struct topo *t, const char *address, const char *name,
		     int base, long *out)
{
	char buf[64], *end;
	int r = text_of(t, address, name, buf, sizeof(buf));

	if (r)
		return r;
	errno = 0;
	*out = strtol(buf, &end, base);
	return end == buf || *end || errno ? -EPROTO : 0;
}

/* The last component of where a link leads to. */
static int link_name(struct topo *t, const char *address, const char *name,
		     char *buf, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	int r;

	attribute(address, name, path, sizeof(path));
	r = note(t, facts_link(t->facts, path, target, sizeof(target)));
	if (r)
		return r;
	if (strlen(strrchr(target, '/') + 1) >= size)
		return -EOVERFLOW;
	strcpy(buf, strrchr(target, '/') + 1);
	return 0;
}

/* ---- nodes ---- */

static int find_host(struct topo *t, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char **names = NULL, file[PATH_MAX];
	struct topo_host *h;
	struct topo_node first = { .port = TOPO_ENDPOINT };
	unsigned char config[4096];
	long vendor, device;
	ssize_t len;
	int i, n;

	for (i = 0; i < t->hosts; i++)
		if (!strcmp(t->host[i].name, name))
			return i;
	h = grown(t->host, t->hosts, sizeof(*h));
	if (!h)
		return -ENOMEM;
	t->host = h;
	h += t->hosts++;
	snprintf(h->name, sizeof(h->name), "%s", name);
	n = note(t, facts_list(t->facts, path, &names));
	for (i = 0; i < n; i++)
		if (topo_is_address(names[i]))
			break;
	if (i < n && !number_of(t, names[i], "vendor", 16, &vendor) &&
	    !number_of(t, names[i], "device", 16, &device)) {
		h->vendor = (uint16_t)vendor;
		h->device = (uint16_t)device;
		/* slot 00.0, else a root port; unprivileged: a bridge */
		h->known = !strcmp(strchr(strchr(names[i], ':') + 1, ':'),
				   ":00.0");
		if (!h->known) {
			attribute(names[i], "config", file, sizeof(file));
			len = facts_read(t->facts, file, config,
					 sizeof(config));
			note(t, (int)len);
			if (len > 0 && topo_config(&first, config,
						    (size_t)len) == -EACCES)
				first.port = config[11] == 0x06 &&
					     config[10] == 0x04 ?
					TOPO_ROOT_PORT : TOPO_ENDPOINT;
			h->known = first.port == TOPO_ROOT_PORT;
		}
	}
	if (n >= 0)
		facts_list_free(names);
	return t->hosts - 1;
}

static enum pln_iommu iommu_of(struct topo *t, struct topo_node *n)
{
	char buf[1024], path[PATH_MAX];
	int r = link_name(t, n->address, "iommu_group", buf, sizeof(buf));

	n->group = -1;
	if (r == -ENOENT)
		return PLN_IOMMU_OFF;
	if (r || sscanf(buf, "%d", &n->group) != 1)
		return PLN_IOMMU_UNKNOWN;
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/type",
		 n->group);
	r = note(t, facts_text(t->facts, path, buf, sizeof(buf)));
	if (!r)
		return !strcmp(buf, "identity") ? PLN_IOMMU_PASSTHROUGH :
		       !strncmp(buf, "DMA", 3) ? PLN_IOMMU_TRANSLATED :
		       PLN_IOMMU_UNKNOWN;
	/* kernels before 5.11 do not say: what were they told? */
	if (r != -ENOENT ||
	    facts_text(t->facts, "/proc/cmdline", buf, sizeof(buf)))
		return PLN_IOMMU_UNKNOWN;
	return strstr(buf, "iommu=pt") || strstr(buf, "iommu.passthrough=1") ?
	       PLN_IOMMU_PASSTHROUGH : PLN_IOMMU_UNKNOWN;
}

static void fill_node(struct topo *t, struct topo_node *n)
{
	unsigned char config[4096];
	char path[PATH_MAX];
	long v;
	ssize_t len;

	if (!number_of(t, n->address, "vendor", 16, &v))
		n->vendor = (uint16_t)v;
	if (!number_of(t, n->address, "device", 16, &v))
		n->device = (uint16_t)v;
	if (!number_of(t, n->address, "class", 16, &v))
		n->class = (uint32_t)v;
	n->numa = number_of(t, n->address, "numa_node", 10, &v) ? -1 : (int)v;
	if (link_name(t, n->address, "driver", n->driver, sizeof(n->driver)))
		n->driver[0] = '\0';
	text_of(t, n->address, "current_link_speed", n->speed,
		sizeof(n->speed));
	text_of(t, n->address, "max_link_speed", n->max_speed,
		sizeof(n->max_speed));
	if (!number_of(t, n->address, "current_link_width", 10, &v))
		n->width = (int)v;
	if (!number_of(t, n->address, "max_link_width", 10, &v))
		n->max_width = (int)v;
	n->iommu = iommu_of(t, n);

	/* until the config space says more: by the place in the tree */
	n->port_guessed = true;
	n->port = n->class >> 8 != 0x0604 ? TOPO_ENDPOINT :
		  n->parent < 0 ? TOPO_ROOT_PORT :
		  t->node[n->parent].port == TOPO_UPSTREAM ? TOPO_DOWNSTREAM :
		  TOPO_UPSTREAM;
	attribute(n->address, "config", path, sizeof(path));
	len = facts_read(t->facts, path, config, sizeof(config));
	note(t, (int)len);
	n->acs_error = len < 0 ? (int)len :
		       topo_config(n, config, (size_t)len);
}

/* The node of a device and of all bridges above it; its index. */
static int add_node(struct topo *t, const char *address)
{
	char link[PATH_MAX], path[PATH_MAX], *part, *rest = path;
	int i, r, parent = -1, host = -1;
	struct topo_node *n;

	for (i = 0; i < t->nodes; i++)
		if (!strcmp(t->node[i].address, address))
			return i;
	snprintf(link, sizeof(link), DEVICES "/%s", address);
	r = facts_link(t->facts, link, path, sizeof(path));
	if (r)
		return r;
	strcpy(link, path);
	while ((part = strsep(&rest, "/"))) {
		if (is_host(part)) {	/* the last one counts: VMD */
			link[part - path + (ptrdiff_t)strlen(part)] = '\0';
			host = find_host(t, link);
			if (host < 0)
				return host;
			if (rest)
				link[rest - path - 1] = '/';
			parent = -1;
		}
		if (!topo_is_address(part) || host < 0)
			continue;
		for (i = 0; i < t->nodes; i++)
			if (!strcmp(t->node[i].address, part))
				break;
		if (i == t->nodes) {
			n = grown(t->node, t->nodes, sizeof(*n));
			if (!n)
				return -ENOMEM;
			t->node = n;
			n += t->nodes++;
			snprintf(n->address, sizeof(n->address), "%s", part);
			n->parent = parent;
			n->host = host;
			fill_node(t, n);
		}
		parent = i;
	}
	return parent >= 0 && !strcmp(t->node[parent].address, address) ?
	       parent : -EPROTO;
}

/* ---- devices ---- */

/* nvme0n1, and nvme0c1n1 of a multipath one: the drive is nvme0n1. */
static bool drive_name(const char *name, char *buf, size_t size)
{
	unsigned int subsystem, controller, space;
	int end = 0;

	if (sscanf(name, "nvme%un%u%n", &subsystem, &space, &end) != 2 ||
	    name[end]) {
		end = 0;
		if (sscanf(name, "nvme%uc%un%u%n", &subsystem, &controller,
			   &space, &end) != 3 || name[end])
			return false;
	}
	snprintf(buf, size, "nvme%un%u", subsystem, space);
	return true;
}

/* What the kernel calls it: the one name in a folder of the device. */
static int name_in(struct topo *t, const char *address, const char *folder,
		   char *buf, size_t size)
{
	char path[PATH_MAX], **names;
	int n;

	attribute(address, folder, path, sizeof(path));
	n = note(t, facts_list(t->facts, path, &names));
	if (n < 0)
		return n;
	if (n)
		snprintf(buf, size, "%s", names[0]);
	facts_list_free(names);
	return n;
}

static int add_drives(struct topo *t, struct topo_dev *d)
{
	char path[PATH_MAX], drive[64], **names;
	int i, n, r = 0;

	if (!d->name[0])
		return 0;
	snprintf(path, sizeof(path), DEVICES "/%s/nvme/%s",
		 t->node[d->node].address, d->name);
	n = note(t, facts_list(t->facts, path, &names));
	if (n < 0)
		return 0;
	for (i = 0; i < n && !r; i++)
		if (drive_name(names[i], drive, sizeof(drive)))
			r = append(&d->drives, drive);
	facts_list_free(names);
	return r;
}

/* 0: none of ours. */
static enum pln_topo_kind kind_of(struct topo *t, const char *address)
{
	long class, vendor = 0, device = 0;
	char name[64] = "";

	if (number_of(t, address, "class", 16, &class))
		return 0;
	if (class == 0x010802)
		return PLN_TOPO_NVME;
	if (class >> 16 != 0x02 && class >> 16 != 0x03 && class >> 8 != 0x1200)
		return 0;
	if (number_of(t, address, "vendor", 16, &vendor) ||
	    number_of(t, address, "device", 16, &device))
		return 0;
	if (class >> 16 == 0x02) {
		if (class >> 8 != 0x0200 && class >> 8 != 0x0207)
			return 0;
		if (!link_name(t, address, "physfn", name, sizeof(name)))
			return 0;	/* a virtual function */
		return class >> 8 == 0x0207 || vendor == VENDOR_MELLANOX ||
		       name_in(t, address, "infiniband", name,
			       sizeof(name)) > 0 ? PLN_TOPO_NIC : 0;
	}
	if (!link_name(t, address, "physfn", name, sizeof(name)))
		return 0;
	if (vendor == VENDOR_AMD || (class >> 16 == 0x03 &&
				     vendor == VENDOR_NVIDIA))
		return PLN_TOPO_GPU;
	if (vendor == TOPO_OURS && device == TOPO_OUR_GPU)
		return PLN_TOPO_GPU;
	link_name(t, address, "driver", name, sizeof(name));
	return strcmp(name, "peerlane_gpu") ? 0 : PLN_TOPO_GPU;
}

static int add_devices(struct topo *t, char **addresses)
{
	static const char *const labels[] = {
		[PLN_TOPO_GPU] = "GPU", [PLN_TOPO_NIC] = "NIC",
		[PLN_TOPO_NVME] = "NVME",
	};
	int kind, number, i, r;
	struct topo_dev *d;

	for (kind = PLN_TOPO_GPU; kind <= PLN_TOPO_NVME; kind++) {
		for (i = number = 0; addresses[i]; i++) {
			if (!topo_is_address(addresses[i]) ||
			    (int)kind_of(t, addresses[i]) != kind)
				continue;
			r = add_node(t, addresses[i]);
			if (r < 0)
				return r;
			d = grown(t->dev, t->devs, sizeof(*d));
			if (!d)
				return -ENOMEM;
			t->dev = d;
			d += t->devs++;
			d->kind = (enum pln_topo_kind)kind;
			d->node = r;
			snprintf(d->label, sizeof(d->label), "%s%d",
				 labels[kind], number++);
			if (kind == PLN_TOPO_NIC)
				name_in(t, addresses[i], "infiniband",
					d->name, sizeof(d->name));
			if (kind != PLN_TOPO_NVME)
				continue;
			name_in(t, addresses[i], "nvme", d->name,
				sizeof(d->name));
			r = add_drives(t, d);
			if (r)
				return r;
		}
	}
	return 0;
}

/* ---- the machine ---- */

/* Before 6.2 drivers alone could use it, but some distributions have the newer
 * one in an older kernel. */
static void read_p2pdma_age(struct topo *t)
{
	int major, minor;
	char value[64];

	if (t->p2pdma != 1 ||
	    sscanf(t->kernel, "%d.%d", &major, &minor) != 2 ||
	    major > 6 || (major == 6 && minor >= 2) ||
	    note(t, facts_value(t->facts, "/proc/kallsyms", "p2pdma_pgmap_ops",
				value, sizeof(value))) != -ENOKEY)
		return;
	t->p2pdma = 0;
	t->p2pdma_old = true;
}

static int read_kernel(struct topo *t)
{
	int r;

	if (facts_text(t->facts, "/proc/sys/kernel/osrelease", t->kernel,
		       sizeof(t->kernel)))
		t->kernel[0] = '\0';
	r = note(t, facts_kconfig(t->facts, "CONFIG_PCI_P2PDMA",
				  "pci_p2pdma_add_resource", t->p2pdma_source,
				  sizeof(t->p2pdma_source)));
	t->p2pdma = r < 0 ? -1 : r;
	if (r >= 0)
		return 0;
	t->p2pdma_source[0] = '\0';
	return missing(t, "kernel configuration: no file with the kernel's "
		       "configuration can be read, and /proc/kallsyms does not "
		       "show it");
}

static int read_cpu(struct topo *t)
{
	char vendor[32], family[16];
	int r = facts_value(t->facts, "/proc/cpuinfo", "vendor_id", vendor,
			    sizeof(vendor));

	t->zen = -1;
	if (r == -ENOKEY) {	/* another architecture */
		t->zen = 0;
		return 0;
	}
	if (!r)
		r = facts_value(t->facts, "/proc/cpuinfo", "cpu family",
				family, sizeof(family));
	if (r)
		return missing(t, "CPU: /proc/cpuinfo: %s", strerror(-r));
	snprintf(t->cpu, sizeof(t->cpu), "%s family %s", vendor, family);
	t->zen = !strcmp(vendor, "AuthenticAMD") && atoi(family) >= 0x17;
	return 0;
}

static int note_missing(struct topo *t)
{
	int i, closed = 0, broken = -1, iommu = 0, r = 0;

	for (i = 0; i < t->nodes; i++) {
		struct topo_node *n = &t->node[i];

		closed += n->acs_error == -EACCES || n->acs_error == -EPERM;
		if (n->acs_error && n->acs_error != -EACCES &&
		    n->acs_error != -EPERM)
			broken = i;
		iommu += n->iommu == PLN_IOMMU_UNKNOWN;
	}
	if (closed)
		r = missing(t, "ACS: the config spaces of %d PCI functions "
			    "cannot be read whole: needs root", closed);
	if (!r && broken >= 0)
		r = missing(t, "ACS: the config space of %s cannot be read: "
			    "%s", t->node[broken].address,
			    strerror(-t->node[broken].acs_error));
	if (!r && iommu)
		r = missing(t, "IOMMU: the mode of %d PCI functions is not "
			    "known", iommu);
	return r;
}

int topo_build(struct topo **out, struct facts *f)
{
	struct topo *t = calloc(1, sizeof(*t));
	char **addresses = NULL, **names;
	int r;

	if (!t)
		return -ENOMEM;
	t->facts = f;
	r = facts_list(f, DEVICES, &addresses);
	if (r == -ENOENT)
		r = -ENODEV;
	if (r >= 0)
		r = add_devices(t, addresses);
	facts_list_free(addresses);
	if (!r)
		r = read_kernel(t);
	if (!r)
		read_p2pdma_age(t);
	if (!r)
		r = read_cpu(t);
	if (!r)
		r = note_missing(t);
	if (!r) {
		t->nvidia_fs = note(t, facts_list(f, "/sys/module/nvidia_fs",
						  &names)) >= 0;
		if (t->nvidia_fs)
			facts_list_free(names);
		r = t->failed;
	}
	if (r < 0) {
		topo_free(t);
		return r;
	}
	*out = t;
	return 0;
}

static void free_list(char **list)
{
	size_t i;

	for (i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void topo_free(struct topo *t)
{
	int i;

	if (!t)
		return;
	for (i = 0; i < t->devs; i++)
		free_list(t->dev[i].drives);
	free_list(t->missing);
	free(t->host);
	free(t->node);
	free(t->dev);
	free(t);
}

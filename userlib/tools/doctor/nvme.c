// SPDX-License-Identifier: MIT
/* peerlane doctor: NVMe drives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* Is it part of what lies below the file of the question? */
static bool asked_for(struct doctor *d, const char *name)
{
	int i;

	if (!d->path)
		return true;
	for (i = 0; d->mount && i < d->mount->n_blocks; i++)
		if (!strcmp(d->mount->block[i].name, name))
			return true;
	return false;
}

static bool is_namespace(const char *name)
{
	unsigned int a, b;
	int n = 0;

	return sscanf(name, "nvme%un%u%n", &a, &b, &n) == 2 && n && !name[n];
}

/* Calls @each with the name of each NVMe disk and its folder in sysfs. */
static void for_each_disk(struct doctor *d,
			  void (*each)(struct doctor *d, const char *name,
				       const char *sysfs, void *arg), void *arg)
{
	char **names, path[128], link[512];
	int i, n = facts_list(d->f, "/sys/class/block", &names);

	for (i = 0; i < n; i++) {
		if (!is_namespace(names[i]) || !asked_for(d, names[i]))
			continue;
		snprintf(path, sizeof(path), "/sys/class/block/%.64s",
			 names[i]);
		if (!facts_link(d->f, path, link, sizeof(link)))
			each(d, names[i], link, arg);
	}
	if (n >= 0)
		facts_list_free(names);
}

static void note_disk(struct doctor *d, const char *name, const char *sysfs,
		      void *arg)
{
	char scheduler[128];

	(void)arg;
	doc_text(d, NULL, scheduler, sizeof(scheduler), "%s/queue/scheduler",
		 sysfs);
	doc_note(d, name, "max_hw_sectors_kb %lld, scheduler %s%s",
		 doc_number(d, "%s/queue/max_hw_sectors_kb", sysfs),
		 scheduler[0] ? scheduler : "not known",
		 strstr(sysfs, "/nvme-subsystem/") ? ", multipath head" : "");
}

static void look_nvme(struct doctor *d)
{
	char text[16];

	d->multipath = UNKNOWN;
	if (!doc_text(d, NULL, text, sizeof(text),
		      "/sys/module/nvme_core/parameters/multipath")) {
		d->multipath = text[0] == 'Y' ? YES : NO;
		doc_note(d, "multipath", "%s", text);
	}
	for_each_disk(d, note_disk, NULL);
	doc_look_rdma_drives(d);
}

static void check_none(struct doctor *d, const struct rule *r)
{
	if (!d->path && !doc_drives(d))
		doc_say(d, r, r->severity, "no NVMe drive was found on the PCI "
			"bus");
}

static void check_no_driver(struct doctor *d, const struct rule *r)
{
	const struct topo_node *v;
	struct finding *f;
	int i;

	if (d->path)
		return;
	for (i = 0; i < doc_drives(d); i++) {
		v = doc_drive_at(d, i);
		if (!strcmp(v->driver, "nvme"))
			continue;
		f = doc_say(d, r, r->severity, "%s has a drive",
			    v->driver[0] ? v->driver : "no driver");
		doc_where(f, v->address);
		if (v->driver[0])
			doc_cure(f, "echo BDF > /sys/bus/pci/drivers/%s/unbind; "
				 "echo > /sys/bus/pci/devices/BDF/"
				 "driver_override; modprobe nvme; echo BDF > "
				 "/sys/bus/pci/drivers/nvme/bind", v->driver);
	}
}

struct heads {
	int all, heads;
	const struct rule *r;
	struct finding *o;
};

static void count_head(struct doctor *d, const char *name, const char *sysfs,
		       void *arg)
{
	struct heads *h = arg;

	(void)d;
	(void)name;
	h->all++;
	h->heads += !!strstr(sysfs, "/nvme-subsystem/");
}

static void say_head(struct doctor *d, const char *name, const char *sysfs,
		     void *arg)
{
	struct heads *h = arg;

	if (!strstr(sysfs, "/nvme-subsystem/"))
		return;
	if (!h->o)
		h->o = doc_say(d, h->r, d->nvidia_fs || h->heads < h->all ?
			       SEV_WARNING : h->r->severity,
			       "%d of %d NVMe disk%s multipath head%s, and "
			       "kernel %s lets no peer memory through these",
			       h->heads, h->all,
			       h->all == 1 ? " is a" : "s are",
			       h->all == 1 ? "" : "s", d->release);
	doc_where(h->o, name);
}

static void check_multipath(struct doctor *d, const struct rule *r)
{
	struct heads h = { .r = r };

	if (d->version >= 702)
		return;
	for_each_disk(d, count_head, &h);
	for_each_disk(d, say_head, &h);
}

static void say_scheduler(struct doctor *d, const char *name,
			  const char *sysfs, void *arg)
{
	const struct rule *r = arg;
	char text[128];

	if (!doc_text(d, NULL, text, sizeof(text), "%s/queue/scheduler",
		      sysfs) && !strstr(text, "[none]") && strchr(text, '['))
		doc_where(doc_say(d, r, r->severity, "the scheduler is %s",
				  text), name);
}

static void check_scheduler(struct doctor *d, const struct rule *r)
{
	for_each_disk(d, say_scheduler, (void *)r);
}

#define SMALL_REQUEST	128

static void say_small(struct doctor *d, const char *name, const char *sysfs,
		      void *arg)
{
	long long kb = doc_number(d, "%s/queue/max_sectors_kb", sysfs);
	const struct rule *r = arg;
	struct finding *o;

	if (kb <= 0 || kb >= SMALL_REQUEST)
		return;
	o = doc_say(d, r, r->severity, "requests have at most %lld KiB", kb);
	doc_where(o, name);
	if (doc_number(d, "%s/queue/max_hw_sectors_kb", sysfs) > kb)
		doc_cure(o, "echo %lld > /sys/block/NAME/queue/max_sectors_kb",
			 doc_number(d, "%s/queue/max_hw_sectors_kb", sysfs));
}

static void check_small(struct doctor *d, const struct rule *r)
{
	for_each_disk(d, say_small, (void *)r);
}

static const struct rule nvme_rules[] = {
	{ "nvme-none", SEV_INFO, "there is no NVMe drive",
	  "Files come from other storage, and then through host memory.",
	  "add an NVMe drive below the same PCIe switch as a GPU",
	  "the drive", check_none },
	{ "nvme-no-driver", SEV_WARNING, "a drive is not bound to the nvme driver",
	  "Nothing on it can be read here; vfio-pci or SPDK may have it on "
	  "purpose.",
	  "modprobe nvme; echo BDF > /sys/bus/pci/drivers/nvme/bind",
	  "the program or machine that uses it loses it", check_no_driver },
	{ "nvme-multipath", SEV_ERROR,
	  "NVMe multipath is between file and drive",
	  "Before Linux 7.2 the multipath disk does not tell the block layer "
	  "that its drive takes peer memory, so the kernel refuses it, also "
	  "with one path.",
	  "echo options nvme_core multipath=N > /etc/modprobe.d/nvme.conf; "
	  "update-initramfs -u (dracut -f); reboot. Or boot Linux 7.2 or newer",
	  "a reboot; no failover between two paths to one drive; disks may get "
	  "other names", check_multipath },
	{ "nvme-rdma-old", SEV_ERROR,
	  "the driver of another host's drive does not support device memory",
	  "Before Linux 7.2 nvme-rdma, the driver of drives by NVMe over Fabrics "
	  "with RDMA, does not tell the block layer that its RDMA device could "
	  "reach peer memory, so the kernel refuses it.",
	  "boot Linux 7.2 or newer", "a reboot", doc_check_rdma_old },
	{ "nvme-rdma-apart", SEV_ERROR,
	  "the RDMA device of a drive of another host does not reach the GPU",
	  "The data of such a drive is moved by the RDMA device. Linux takes "
	  "GPU memory for it in any case, cannot map it for the device, and "
	  "retries for ever: there is no error, and no signal ends the "
	  "program. Peerlane's cuFile checks first, and stages the data in "
	  "host memory.",
	  "use a GPU and an RDMA device below one PCIe switch, without ACS "
	  "redirect (peerlane topo shows them), and connect the drive by that "
	  "device (nvme connect --host-traddr)",
	  "the drive is unavailable until it is connected again",
	  doc_check_rdma_apart },
	{ "nvme-scheduler", SEV_INFO, "an IO scheduler sorts requests",
	  "NVMe drives do that themselves; the scheduler costs CPU time and "
	  "latency for each request.",
	  "echo none > /sys/block/NAME/queue/scheduler",
	  "no fairness between control groups by bfq or mq-deadline",
	  check_scheduler },
	{ "nvme-small-requests", SEV_INFO, "requests to a drive are small",
	  "A large read is cut into many commands, each with its own cost.",
	  "nothing: the drive's limit (max_hw_sectors_kb) is equally low",
	  "somewhat longer waits for other small requests", check_small },
};

const struct section doc_nvme = {
	"nvme", "NVMe drives and their queues", look_nvme,
	nvme_rules, sizeof(nvme_rules) / sizeof(struct rule), true
};

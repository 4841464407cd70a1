// SPDX-License-Identifier: MIT
/* peerlane doctor: GPUs and their drivers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* The first word like 580.159.03 */
static void find_version(const char *text, char *buf, size_t size)
{
	const char *p = text, *end;

	for (; *p; p = end + !!*end) {
		end = p + strcspn(p, " \t\n");
		if (*p >= '0' && *p <= '9' &&
		    memchr(p, '.', (size_t)(end - p))) {
			snprintf(buf, size, "%.*s", (int)(end - p), p);
			return;
		}
	}
}

static void look_gpu(struct doctor *d)
{
	const struct topo_node *g;
	char text[512], key[32];
	int i;

	d->nvidia_open = UNKNOWN;
	if (!doc_value(d, "/proc/driver/nvidia/version", "NVRM version", text,
		       sizeof(text))) {
		find_version(text, d->nvidia, sizeof(d->nvidia));
		d->nvidia_open = strstr(text, "Open Kernel Module") ? YES : NO;
	} else {
		doc_text(d, NULL, d->nvidia, sizeof(d->nvidia),
			 "/sys/module/nvidia/version");
	}
	if (d->nvidia[0])
		doc_note(d, "nvidia", "%s%s", d->nvidia,
			 d->nvidia_open == YES ? ", open modules" :
			 d->nvidia_open == NO ? ", closed modules" : "");
	d->nvidia_fs = !doc_text(d, NULL, text, sizeof(text),
				 "/proc/driver/nvidia-fs/modules") &&
		       strstr(text, "nvme");
	for_each_gpu(d, g, i) {
		snprintf(key, sizeof(key), "gpu%d", i);
		doc_note(d, key, "%s %04x:%04x, driver %s", g->address,
			 g->vendor, g->device,
			 g->driver[0] ? g->driver : "none");
	}
}

static void check_none(struct doctor *d, const struct rule *r)
{
	if (!doc_gpus(d))
		doc_say(d, r, r->severity, "no GPU was found on the PCI bus");
}

static void check_off_bus(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	unsigned char config[4];
	char path[96];
	int i;

	for_each_gpu(d, g, i) {
		/* at least 64 bytes are there, and everyone may read them */
		unsigned char all[4096];
		ssize_t n;

		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config",
			 g->address);
		n = facts_read(d->f, path, all, sizeof(all));
		if (n < (ssize_t)sizeof(config))
			continue;
		memcpy(config, all, sizeof(config));
		if (!memcmp(config, "\xff\xff\xff\xff", 4))
			doc_where(doc_say(d, r, r->severity,
					  "the GPU does not answer"),
				  g->address);
	}
}

static void check_no_driver(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	struct finding *o;
	int i;

	for_each_gpu(d, g, i) {
		if (g->driver[0])
			continue;
		o = doc_say(d, r, r->severity, "no driver is bound to the GPU");
		doc_where(o, g->address);
		if (g->vendor == 0x1234)
			doc_cure(o, "modprobe peerlane_gpu");
	}
}

static void check_nouveau(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	int i;

	for_each_gpu(d, g, i)
		if (doc_has_driver(g, "nouveau") ||
		    doc_has_driver(g, "nova_core"))
			doc_where(doc_say(d, r, r->severity,
					  "%s is bound to the GPU", g->driver),
				  g->address);
}

static void check_vfio(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	int i, kept = 0, all = 0;
	struct finding *f;

	for_each_gpu(d, g, i) {
		all++;
		kept += doc_has_driver(g, "vfio-pci");
	}
	for_each_gpu(d, g, i) {
		if (!doc_has_driver(g, "vfio-pci"))
			continue;
		f = doc_say(d, r, d->path && kept == all ? r->severity :
			    SEV_INFO, "the GPU is kept for a virtual machine");
		doc_where(f, g->address);
		f->stops = true;	/* be it on purpose */
	}
}

static bool has_nvidia(struct doctor *d)
{
	const struct topo_node *g;
	int i;

	for_each_gpu(d, g, i)
		if (doc_has_driver(g, "nvidia"))
			return true;
	return false;
}

static void check_closed(struct doctor *d, const struct rule *r)
{
	if (has_nvidia(d) && d->nvidia_open == NO)
		doc_say(d, r, d->nvidia_fs ? SEV_WARNING : r->severity,
			"driver %s is the closed one", d->nvidia);
}

static void check_old_driver(struct doctor *d, const struct rule *r)
{
	int major = atoi(d->nvidia);

	if (has_nvidia(d) && major && major < 570)
		doc_say(d, r, r->severity, "NVIDIA's driver is %s", d->nvidia);
}

static void check_driver_for_kernel(struct doctor *d, const struct rule *r)
{
	double v = atof(d->nvidia);

	if (has_nvidia(d) && v >= 570 && v < 595.71 && d->version >= 615)
		doc_say(d, r, d->p2pdma == NO ? SEV_INFO : r->severity,
			"NVIDIA's driver is %s, the kernel %s", d->nvidia,
			d->release);
}

static void check_uvm(struct doctor *d, const struct rule *r)
{
	if (has_nvidia(d) && doc_there(d, "/sys/module/nvidia_uvm") == NO)
		doc_say(d, r, r->severity, "nvidia_uvm is not loaded");
}

static void check_geforce(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	char path[96], model[128];
	int i;

	for_each_gpu(d, g, i) {
		if (!doc_has_driver(g, "nvidia"))
			continue;
		snprintf(path, sizeof(path),
			 "/proc/driver/nvidia/gpus/%s/information", g->address);
		if (!doc_value(d, path, "Model", model, sizeof(model)) &&
		    strstr(model, "GeForce"))
			doc_where(doc_say(d, r, r->severity, "the GPU is of model %s",
					  model), g->address);
	}
}

static const struct rule gpu_rules[] = {
	{ "gpu-none", SEV_ERROR, "there is no GPU",
	  "GPUDirect needs a GPU that is visible on the PCI bus.",
	  "lspci -nn -d ::0302 and ::0300; in a virtual machine pass the GPU "
	  "through; on a host check power and seating, then echo 1 > "
	  "/sys/bus/pci/rescan", "none", check_none },
	{ "gpu-off-bus", SEV_ERROR, "a GPU does not answer on the bus",
	  "Its configuration space reads all ones: it lost power, overheated "
	  "or its link went down. Every access to it fails.",
	  "dmesg | grep -i xid; then a cold restart of the machine",
	  "a restart", check_off_bus },
	{ "gpu-no-driver", SEV_ERROR, "no driver is bound to a GPU",
	  "No program can allocate or export its memory.",
	  "install NVIDIA's open kernel modules and modprobe nvidia",
	  "none", check_no_driver },
	{ "gpu-geforce", SEV_WARNING, "NVIDIA does not support GPUDirect here",
	  "NVIDIA supports GPUDirect on data-centre and professional GPUs only. "
	  "With a GeForce its driver may refuse to export the memory, and "
	  "then data is staged in host memory.",
	  "use a data-centre or professional GPU (RTX PRO, RTX A, Quadro)",
	  "that GPU", check_geforce },
	{ "gpu-nouveau", SEV_ERROR, "nouveau is bound to a GPU",
	  "CUDA needs NVIDIA's driver, and nouveau provides no peer-to-peer pages "
	  "of GPU memory.",
	  "echo blacklist nouveau > /etc/modprobe.d/nouveau.conf; "
	  "update-initramfs -u (dracut -f); install NVIDIA's open kernel "
	  "modules; reboot", "a reboot; the console may change its resolution",
	  check_nouveau },
	{ "gpu-vfio", SEV_ERROR, "a GPU is kept for a virtual machine",
	  "It can be used in that machine only; run peerlane doctor there.",
	  "driverctl unset-override BDF, or take it out of vfio-pci.ids=",
	  "the virtual machine loses it", check_vfio },
	{ "gpu-closed-modules", SEV_ERROR,
	  "NVIDIA's closed kernel modules are in use",
	  "They export no dma-buf and no peer-to-peer pages: the kernel's own "
	  "direct path does not work. nvidia-fs and nvidia_peermem do.",
	  "install the open modules: apt install nvidia-open (or "
	  "nvidia-driver-595-server-open); reboot",
	  "GPUs before Turing are not supported by them", check_closed },
	{ "gpu-driver-old", SEV_WARNING, "NVIDIA's driver is older than 570",
	  "Peer-to-peer pages for NVMe came with the open modules of 570.",
	  "install driver 570 or newer, open modules",
	  "a new driver; CUDA programs keep working", check_old_driver },
	{ "gpu-driver-for-kernel", SEV_WARNING,
	  "NVIDIA's driver is too old for this kernel's P2PDMA",
	  "From Linux 6.15 on the driver's peer-to-peer pages need version "
	  "595.71.05 or newer.",
	  "install driver 595.71.05 or newer, or boot a kernel before 6.15",
	  "a new driver, or another kernel", check_driver_for_kernel },
	{ "gpu-no-uvm", SEV_WARNING, "nvidia_uvm is not loaded",
	  "CUDA cannot start without it, and it is the module that makes the "
	  "peer-to-peer pages.",
	  "nvidia-modprobe -u -c 0 (or modprobe nvidia_uvm)", "none",
	  check_uvm },
};

const struct section doc_gpu = {
	"gpu", "GPUs and their drivers", look_gpu,
	gpu_rules, sizeof(gpu_rules) / sizeof(struct rule), true
};

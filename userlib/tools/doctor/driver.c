// SPDX-License-Identifier: MIT
/* peerlane doctor: parameters of NVIDIA's driver, pages of GPU memory, nvidia-fs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define PARAMS	"/proc/driver/nvidia/params"

static bool used(struct doctor *d)
{
	int i;

	for (i = 0; i < doc_gpus(d); i++)
		if (!strcmp(doc_gpu_at(d, i)->driver, "nvidia") &&
		    (d->gpu < 0 || d->gpu == i))
			return true;
	return false;
}

/* The value of KEY in NVreg_RegistryDwords, or -1.  Its case does not matter. */
static int registry(struct doctor *d, const char *key)
{
	char text[4096], want[64];
	const char *at;

	snprintf(want, sizeof(want), "%s=", key);
	if (doc_value(d, PARAMS, "RegistryDwords", text, sizeof(text)))
		return -1;
	at = strcasestr(text, want);
	return at ? (int)strtol(at + strlen(want), NULL, 0) : -1;
}

/*
 * Is BAR1 not made static?  Drivers before 580 do not do it on their own;
 * later ones do where BAR1 is large enough.  kbusIsStaticBar1Supported_TU102() of the
 * open modules, and NV_REG_STR_RM_FORCE_STATIC_BAR1_DEFAULT.
 */
static bool static_off(struct doctor *d)
{
	int v = registry(d, "RMForceStaticBar1");

	return v == 0 || (v != 1 && v != 2 && atoi(d->nvidia) < 580);
}

static bool combined(struct doctor *d)
{
	return registry(d, "RmForceDisableIomapWC") != 1;
}

static void look_driver(struct doctor *d)
{
	static const char *const keys[] = {
		"RegistryDwords", "EnableStreamMemOPs", "EnableResizableBar",
		"OpenRmEnableUnsupportedGpus", "DmaRemapPeerMmio",
		"EnableGpuFirmware",
	};
	char text[4096];
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!doc_value(d, PARAMS, keys[i], text, sizeof(text)))
			doc_note(d, keys[i], "%s", text);
	if (!doc_text(d, NULL, text, 64, "/sys/module/nvidia_fs/version"))
		doc_note(d, "nvidia_fs", "%.63s%s", text,
			 d->nvidia_fs ? ", hooked to NVMe" : "");
}

static bool params_known(struct doctor *d)
{
	char text[4096];

	return used(d) &&
	       !doc_value(d, PARAMS, "RegistryDwords", text, sizeof(text));
}

/* Has one of NVIDIA's GPUs in question a BAR1 that can be static? */
static bool any_large(struct doctor *d)
{
	const struct topo_node *g;
	int i;

	for_each_gpu(d, g, i)
		if (doc_has_driver(g, "nvidia") && !doc_bar1_small(d, g))
			return true;
	return false;
}

/* All that is there, and what P2PDMA needs besides, for /etc/modprobe.d */
static void cure_registry(struct doctor *d, struct finding *f)
{
	static const char *const needs[] = { "RMForceStaticBar1",
					     "RmForceDisableIomapWC" };
	char text[4096] = "", *is = text;
	char more[128] = "";
	size_t i, n;

	doc_value(d, PARAMS, "RegistryDwords", text, sizeof(text));
	is += strspn(is, "\" ");
	n = strcspn(is, "\"");
	while (n && strchr("; ", is[n - 1]))
		n--;
	for (i = !static_off(d); i < 2; i++)
		if (registry(d, needs[i]) < 0)
			sprintf(more + strlen(more), "%s=1;", needs[i]);
	doc_cure(f, "%secho 'options nvidia NVreg_RegistryDwords=\"%.*s%s%s\"' "
		 "> /etc/modprobe.d/nvidia-p2pdma.conf; update-initramfs -u "
		 "(dracut -f); reboot", any_large(d) ? "" : "first make BAR1 "
		 "large (bar1-small), else this has no effect; then ",
		 (int)n, is, n ? ";" : "", more);
}

/* A small BAR1 has to become large first, which is the error then. */
static void say_bar1(struct doctor *d, const struct rule *r, const char *key)
{
	bool none = registry(d, key) < 0;
	struct finding *f;

	f = doc_say(d, r, d->p2pdma == NO || !any_large(d) ? SEV_INFO :
		    d->nvidia_fs ? SEV_WARNING : r->severity,
		    "NVreg_RegistryDwords has %s%s%s",
		    none ? "no " : "another ", key, none ? "=1" : " than 1");
	if (none)	/* else something is to be taken out: the general cure */
		cure_registry(d, f);
}

static void check_static_bar1(struct doctor *d, const struct rule *r)
{
	if (params_known(d) && d->nvidia_open != NO && static_off(d))
		say_bar1(d, r, "RMForceStaticBar1");
}

static void check_write_combined(struct doctor *d, const struct rule *r)
{
	if (params_known(d) && d->nvidia_open != NO && combined(d))
		say_bar1(d, r, "RmForceDisableIomapWC");
}

static void check_p2p_pages(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	struct finding *f;
	long long size;
	bool nvidia;
	int i;

	if (d->p2pdma != YES)
		return;
	for_each_gpu(d, g, i) {
		nvidia = doc_has_driver(g, "nvidia");
		if (!doc_has_driver(g, "peerlane_gpu") && !nvidia)
			continue;
		/* then that is why, and has been said */
		if (nvidia && (doc_bar1_small(d, g) || d->nvidia_open == NO ||
			       (params_known(d) &&
				(static_off(d) || combined(d)))))
			continue;
		size = doc_number(d, "/sys/bus/pci/devices/%s/p2pmem/size",
				  g->address);
		if (size > 0 || (size && size != -ENOENT))
			continue;
		/* NVIDIA's driver adds them when CUDA first uses the GPU */
		f = doc_say(d, r, nvidia ? SEV_WARNING : r->severity,
			    "the GPU has no peer-to-peer pages");
		doc_where(f, g->address);
		if (!nvidia)
			doc_cure(f, "modprobe -r peerlane_gpu; modprobe "
				 "peerlane_gpu; dmesg | grep -i p2pdma");
	}
}

static void check_peer_mapping(struct doctor *d, const struct rule *r)
{
	if (params_known(d) && registry(d, "PeerMappingOverride") != 1 &&
	    doc_has_rdma(d))
		doc_say(d, r, r->severity,
			"NVreg_RegistryDwords has no PeerMappingOverride=1");
}

static void check_stream_memops(struct doctor *d, const struct rule *r)
{
	char text[16];

	if (used(d) && atoi(d->nvidia) < 535 &&
	    !doc_value(d, PARAMS, "EnableStreamMemOPs", text, sizeof(text)) &&
	    !strcmp(text, "0"))
		doc_say(d, r, r->severity, "NVreg_EnableStreamMemOPs is 0");
}

static void check_unsupported(struct doctor *d, const struct rule *r)
{
	char text[16];

	if (used(d) && d->nvidia_open == YES && atoi(d->nvidia) < 560 &&
	    !doc_value(d, PARAMS, "OpenRmEnableUnsupportedGpus", text,
		       sizeof(text)) && !strcmp(text, "0"))
		doc_say(d, r, r->severity,
			"NVreg_OpenRmEnableUnsupportedGpus is 0");
}

static void check_nvidia_fs(struct doctor *d, const struct rule *r)
{
	if (used(d) && d->p2pdma == NO &&
	    doc_there(d, "/sys/module/nvidia_fs") == NO)
		doc_say(d, r, r->severity,
			"nvidia_fs is not loaded, and the kernel %s",
			d->p2pdma_is_old ? "is too old for P2PDMA from programs" :
			"has no P2PDMA");
}

static void check_nvidia_fs_nvme(struct doctor *d, const struct rule *r)
{
	if (used(d) && !d->nvidia_fs &&
	    doc_there(d, "/sys/module/nvidia_fs") == YES)
		doc_say(d, r, d->p2pdma == YES ? SEV_INFO : r->severity,
			"nvidia_fs is loaded, but no NVMe driver is hooked to "
			"it");
}

static const struct rule driver_rules[] = {
	{ "nvidia-static-bar1", SEV_ERROR, "BAR1 of NVIDIA's GPUs is not static",
	  "NVIDIA's driver creates peer-to-peer pages only for a BAR1 that "
	  "maps all memory at fixed addresses; without them, cuFile's P2PDMA "
	  "mode fails (CUDA error 801) and data is staged. From 580 on the "
	  "driver makes BAR1 static by itself if it is large enough.",
	  "set RMForceStaticBar1=1 in NVreg_RegistryDwords, in /etc/modprobe.d; "
	  "update-initramfs -u (dracut -f); reboot",
	  "a reboot; BAR1 must be as large as the GPU's memory",
	  check_static_bar1 },
	{ "nvidia-bar1-write-combined", SEV_ERROR,
	  "BAR1 of NVIDIA's GPUs is mapped write-combined",
	  "The kernel cannot create peer-to-peer pages for a BAR that is "
	  "mapped write-combined, and NVIDIA's driver maps BAR1 write-combined "
	  "by default. Without those pages data is staged.",
	  "set RmForceDisableIomapWC=1 in NVreg_RegistryDwords, in "
	  "/etc/modprobe.d; update-initramfs -u (dracut -f); reboot",
	  "a reboot; CPU writes to BAR1 (GDRCopy) are no longer combined and "
	  "get slower", check_write_combined },
	{ "gpu-no-p2p-pages", SEV_ERROR,
	  "the GPU's driver has made no peer-to-peer pages",
	  "The kernel lets a drive write to a BAR only where the driver has "
	  "given it pages there (/sys/bus/pci/devices/BDF/p2pmem). NVIDIA's "
	  "driver makes them when BAR1 is static and a CUDA program has used "
	  "the GPU.",
	  "run a CUDA program (nvidia-smi is not one) and run doctor again; dmesg "
	  "| grep -i p2pdma shows what the kernel answered", "none",
	  check_p2p_pages },
	{ "nvidia-peer-mapping", SEV_INFO,
	  "only root may map other devices' registers into a GPU",
	  "GPU-initiated networking (IBGDA, GDAKI) rings a NIC's doorbell from "
	  "the GPU; cudaHostRegister of it fails with error 800 for others "
	  "than root.",
	  "add PeerMappingOverride=1; to NVreg_RegistryDwords in "
	  "/etc/modprobe.d and load the driver again",
	  "every user can then map device registers into a GPU "
	  "(CVE-2015-5053)", check_peer_mapping },
	{ "nvidia-stream-memops", SEV_INFO,
	  "stream memory operations are off",
	  "libgdsync and NVSHMEM wait for and write flags from a stream with "
	  "them. Drivers from 535 on need no parameter.",
	  "options nvidia NVreg_EnableStreamMemOPs=1 in /etc/modprobe.d, and "
	  "load the driver again", "none known", check_stream_memops },
	{ "nvidia-unsupported-gpus", SEV_INFO,
	  "the open modules refuse workstation and GeForce GPUs",
	  "By default, open modules before 560 support only data-centre GPUs.",
	  "options nvidia NVreg_OpenRmEnableUnsupportedGpus=1 in "
	  "/etc/modprobe.d, and load the driver again",
	  "NVIDIA calls these GPUs untested with it", check_unsupported },
	{ "nvidia-fs-missing", SEV_WARNING,
	  "NVIDIA's cuFile has no direct path",
	  "It goes direct by the kernel's P2PDMA or by nvidia-fs. With neither "
	  "it stages all data and says so only in cufile.log.",
	  "boot a kernel with P2PDMA, 6.2 or newer, or install "
	  "nvidia-fs-dkms and DOCA's NVMe driver and modprobe nvidia-fs",
	  "modules from outside of the kernel, to be built for each one",
	  check_nvidia_fs },
	{ "nvidia-fs-no-nvme", SEV_WARNING,
	  "nvidia-fs is loaded, the NVMe driver does not know it",
	  "nvidia-fs needs an NVMe driver with its hooks, and the stock one has "
	  "none: gdscheck says \"NVMe: Unsupported\", and data is staged.",
	  "install the NVMe driver of DOCA or MLNX_OFED (--with-nvmf "
	  "--enable-gds), or use P2PDMA instead",
	  "an NVMe driver from outside of the kernel", check_nvidia_fs_nvme },
};

const struct section doc_driver = {
	"driver", "parameters and pages of the GPU's driver", look_driver,
	driver_rules, sizeof(driver_rules) / sizeof(struct rule), true
};

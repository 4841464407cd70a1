// SPDX-License-Identifier: MIT
/* peerlane doctor: environment, kernel, limits, containers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* ---- environment ---- */

static void find_container(struct doctor *d)
{
	char text[4096];
	size_t i;
	static const struct { const char *file, *kind; } marks[] = {
		{ "/.dockerenv", "docker" },
		{ "/run/.containerenv", "podman" },
	};
	static const char *const words[] = { "docker", "kubepods", "libpod",
					     "lxc", "containerd" };

	if (!doc_text(d, NULL, text, sizeof(text), "/run/systemd/container")) {
		snprintf(d->container, sizeof(d->container), "%.31s", text);
		return;
	}
	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (doc_text(d, NULL, text, sizeof(text), "%s",
			     marks[i].file))
			continue;
		strcpy(d->container, marks[i].kind);
		return;
	}
	if (doc_text(d, NULL, text, sizeof(text), "/proc/1/cgroup"))
		return;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			strcpy(d->container, words[i]);
}

static void look_environment(struct doctor *d)
{
	char text[8192], vendor[128], product[128];

	doc_text(d, "the kernel's release", d->release, sizeof(d->release),
		 "/proc/sys/kernel/osrelease");
	d->version = doc_version(d->release);
	doc_note(d, "kernel", "%s", d->release);
	if (!doc_value(d, "/etc/os-release", "PRETTY_NAME", text, 128)) {
		size_t n = strlen(text);

		if (n > 1 && text[0] == '"' && text[n - 1] == '"')
			text[n - 1] = '\0';
		doc_note(d, "distribution", "%s",
			 text[0] == '"' ? text + 1 : text);
	}
	doc_text(d, NULL, vendor, sizeof(vendor),
		 "/sys/class/dmi/id/sys_vendor");
	doc_text(d, NULL, product, sizeof(product),
		 "/sys/class/dmi/id/product_name");
	if (vendor[0] || product[0])
		doc_note(d, "machine", "%s %s", vendor, product);
	if (!doc_value(d, "/proc/cpuinfo", "model name", text, 128))
		doc_note(d, "processor", "%s", text);
	if (!doc_value(d, "/proc/cpuinfo", "flags", text, sizeof(text)))
		d->virtual = strstr(text, "hypervisor");
	doc_note(d, "virtual", "%s", d->virtual ? "yes" : "no");
	find_container(d);
	doc_note(d, "container", "%s", d->container[0] ? d->container : "no");
}

static void check_wsl(struct doctor *d, const struct rule *r)
{
	if (strcasestr(d->release, "microsoft"))
		doc_say(d, r, r->severity, "kernel %s is that of WSL",
			d->release);
}

static void check_emulated(struct doctor *d, const struct rule *r)
{
	int i, n = doc_gpus(d);

	for (i = 0; i < n; i++)
		if (!strcmp(doc_gpu_at(d, i)->driver, "peerlane_gpu"))
			break;
	if (i < n)
		doc_where(doc_say(d, r, r->severity,
				  "the GPU is Peerlane's emulated one"),
			  doc_gpu_at(d, i)->address);
}

static void check_virtual(struct doctor *d, const struct rule *r)
{
	int i, n = doc_gpus(d);

	/* Peerlane's own machine is no surprise */
	for (i = 0; i < n; i++)
		if (!strcmp(doc_gpu_at(d, i)->driver, "peerlane_gpu"))
			return;
	if (d->virtual && n)
		doc_say(d, r, r->severity,
			"this is a virtual machine with %d GPU%s", n,
			n == 1 ? "" : "s");
}

static const struct rule environment_rules[] = {
	{ "env-wsl", SEV_ERROR, "the kernel is that of WSL",
	  "In WSL the GPU is behind a paravirtual device: it has no BAR that a "
	  "drive or NIC could reach, and no kernel driver that exports its "
	  "memory.",
	  "run on Linux itself, or in a virtual machine that has the GPU passed "
	  "through",
	  "another machine, or a reboot", check_wsl },
	{ "env-emulated", SEV_INFO, "the GPU is Peerlane's emulated one",
	  "The paths of data are valid here; time and bandwidth say nothing "
	  "about hardware.",
	  "measure on a machine with a real GPU", "that machine",
	  check_emulated },
	{ "env-virtual", SEV_INFO, "a virtual machine with GPUs passed through",
	  "The guest sees the bridges that the hypervisor shows. The real ones, "
	  "their ACS bits and the IOMMU are the host's and decide how peer "
	  "traffic goes.",
	  "run peerlane doctor on the host as well; give GPU and drive the same "
	  "virtual switch only if they share a real one",
	  "access to the host", check_virtual },
};

const struct section doc_environment = {
	"environment", "what kind of machine this is", look_environment,
	environment_rules, sizeof(environment_rules) / sizeof(struct rule),
	true
};

/* ---- kernel ---- */

static void look_kernel(struct doctor *d)
{
	static const char *const words[] = { "no", "yes", "not known" };
	char value[64];

	d->p2pdma = doc_kconfig(d, "CONFIG_PCI_P2PDMA",
				"pci_p2pdma_add_resource");
	if (d->p2pdma == YES && d->t->p2pdma_old) {
		d->p2pdma_is_old = true;
		d->p2pdma = NO;
	}
	d->dmabuf = doc_kconfig(d, "CONFIG_DMA_SHARED_BUFFER",
				"dma_buf_export");
	doc_note(d, "p2pdma", "%s", words[d->p2pdma]);
	doc_note(d, "dma_buf", "%s", words[d->dmabuf]);
	if (!doc_text(d, NULL, value, sizeof(value),
		      "/sys/kernel/security/lockdown"))
		doc_note(d, "lockdown", "%s", value);
}

/* nvidia-fs brings its own way past all of this, with NVIDIA's library. */
static enum severity unless_nvidia_fs(const struct doctor *d,
				      enum severity s)
{
	return d->nvidia_fs ? SEV_WARNING : s;
}

static void check_p2pdma(struct doctor *d, const struct rule *r)
{
	if (d->p2pdma == NO && !d->p2pdma_is_old)
		doc_say(d, r, unless_nvidia_fs(d, r->severity),
			"kernel %s has no CONFIG_PCI_P2PDMA", d->release);
}

static void check_p2pdma_user(struct doctor *d, const struct rule *r)
{
	if (d->p2pdma_is_old)
		doc_say(d, r, unless_nvidia_fs(d, r->severity),
			"kernel %s is older than 6.2, and p2pdma_pgmap_ops is "
			"not in it", d->release);
}

static void check_dmabuf(struct doctor *d, const struct rule *r)
{
	if (d->dmabuf == NO)
		doc_say(d, r, r->severity,
			"kernel %s has no CONFIG_DMA_SHARED_BUFFER",
			d->release);
}

static const struct rule kernel_rules[] = {
	{ "kernel-no-p2pdma", SEV_ERROR, "the kernel has no PCI P2PDMA",
	  "Without it the kernel has no way to give a drive the address of GPU "
	  "memory: every transfer is staged in host memory.",
	  "boot a kernel with CONFIG_PCI_P2PDMA=y, 6.2 or newer (Ubuntu 24.04 "
	  "has it; Debian from 7.2 on, in backports)",
	  "a reboot into another kernel, and modules built for it",
	  check_p2pdma },
	{ "kernel-no-user-p2pdma", SEV_ERROR,
	  "the kernel's P2PDMA is for kernel users only",
	  "O_DIRECT IO on mapped GPU memory came with Linux 6.2. An older "
	  "kernel refuses such memory in read() and write().",
	  "boot Linux 6.2 or newer, or a distribution's kernel that has it "
	  "ported back",
	  "a reboot into another kernel, and modules built for it",
	  check_p2pdma_user },
	{ "kernel-no-dmabuf", SEV_ERROR, "the kernel has no dma-buf",
	  "A GPU driver shares its memory with other drivers and with "
	  "libraries through a dma-buf.",
	  "boot a kernel with CONFIG_DMA_SHARED_BUFFER=y (all distributions' "
	  "kernels have it)",
	  "a reboot into another kernel", check_dmabuf },
};

const struct section doc_kernel = {
	"kernel", "the kernel's configuration", look_kernel,
	kernel_rules, sizeof(kernel_rules) / sizeof(struct rule), true
};

/* ---- limits ---- */

#define ENOUGH_LOCKED	(64LL << 20)
#define CAP_IPC_LOCK	14

/* RLIMIT_MEMLOCK in bytes, -1 unlimited, -2 not known */
static long long locked_limit(struct doctor *d)
{
	char text[4096], *line;
	long long v;

	if (doc_text(d, "resource limits", text, sizeof(text),
		     "/proc/self/limits"))
		return -2;
	line = strstr(text, "Max locked memory");
	if (!line)
		return -2;
	line += strlen("Max locked memory");
	line += strspn(line, " ");
	if (!strncmp(line, "unlimited", 9))
		return -1;
	return sscanf(line, "%lld", &v) == 1 && v >= 0 ? v : -2;
}

static bool may_lock_all(struct doctor *d)
{
	char text[32];

	return !doc_value(d, "/proc/self/status", "CapEff", text,
			  sizeof(text)) &&
	       strtoull(text, NULL, 16) >> CAP_IPC_LOCK & 1;
}

static void look_limits(struct doctor *d)
{
	long long v = locked_limit(d);

	if (v == -1)
		doc_note(d, "memlock", "unlimited");
	else if (v >= 0)
		doc_note(d, "memlock", "%lld", v);
	doc_note(d, "cap_ipc_lock", "%s", may_lock_all(d) ? "yes" : "no");
}

static void check_memlock(struct doctor *d, const struct rule *r)
{
	long long v = locked_limit(d);

	if (v < 0 || v >= ENOUGH_LOCKED || may_lock_all(d))
		return;
	doc_say(d, r, doc_has_rdma(d) ? SEV_WARNING : SEV_INFO,
		"a process may lock %lld KiB of memory", v >> 10);
}

static const struct rule limits_rules[] = {
	{ "limit-memlock", SEV_WARNING, "little memory may be locked",
	  "RDMA memory registration and pinned staging buffers count against "
	  "this limit; beyond it they fail with ENOMEM or EPERM.",
	  "ulimit -l unlimited; for good: \"* - memlock unlimited\" in "
	  "/etc/security/limits.conf, LimitMEMLOCK=infinity in a systemd unit, "
	  "--ulimit memlock=-1 for a container",
	  "a program can then take all memory and none of it can be swapped",
	  check_memlock },
};

const struct section doc_limits = {
	"limits", "resource limits of this process", look_limits,
	limits_rules, sizeof(limits_rules) / sizeof(struct rule), false
};

/* ---- containers ---- */

static long long memory_limit(struct doctor *d)
{
	long long v = doc_number(d, "/sys/fs/cgroup/memory.max");

	if (v < 0)
		v = doc_number(d, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
	return v;
}

static void look_containers(struct doctor *d)
{
	long long v = memory_limit(d);

	doc_note(d, "container", "%s", d->container[0] ? d->container : "no");
	if (v >= 0 && v < 1LL << 60)
		doc_note(d, "memory_limit", "%lld", v);
}

static void check_gpu_nodes(struct doctor *d, const struct rule *r)
{
	struct finding *o = NULL;
	const char *driver;
	int i, n = doc_gpus(d), nvidia = 0, peerlane = 0;
	char node[32];

	for (i = 0; i < n; i++) {
		driver = doc_gpu_at(d, i)->driver;
		if (!strcmp(driver, "nvidia"))
			snprintf(node, sizeof(node), "nvidia%d", nvidia++);
		else if (!strcmp(driver, "peerlane_gpu"))
			snprintf(node, sizeof(node), "peerlane-gpu%d",
				 peerlane++);
		else
			continue;
		if (!doc_gpu_asked(d, i))
			continue;
		if (doc_has(d, "/dev", node) != NO)
			continue;
		if (!o)
			o = doc_say(d, r, r->severity,
				    "the device node of a GPU is not here");
		doc_where(o, node);
	}
	if (!nvidia || doc_has(d, "/dev", "nvidiactl") != NO)
		return;
	if (!o)
		o = doc_say(d, r, r->severity,
			    "a device node of NVIDIA's driver is not here");
	doc_where(o, "nvidiactl");
}

static void check_verbs_nodes(struct doctor *d, const struct rule *r)
{
	char **names;
	int i, n = facts_list(d->f, "/sys/class/infiniband_verbs", &names);
	struct finding *o = NULL;

	for (i = 0; i < n; i++) {
		if (strncmp(names[i], "uverbs", 6) ||
		    doc_has(d, "/dev/infiniband", names[i]) != NO)
			continue;
		if (!o)
			o = doc_say(d, r, r->severity,
				    "an RDMA device's node is not here");
		doc_where(o, names[i]);
	}
	if (n >= 0)
		facts_list_free(names);
}

static void check_memory_limit(struct doctor *d, const struct rule *r)
{
	long long v = memory_limit(d);

	if (v >= 0 && v < 1LL << 30)
		doc_say(d, r, r->severity,
			"the control group may use %lld MiB of memory",
			v >> 20);
}

static const struct rule containers_rules[] = {
	{ "container-no-gpu-node", SEV_ERROR,
	  "a GPU is there, but its device node is not",
	  "/sys shows the host's GPUs in every container; programs need the "
	  "nodes in /dev, and without them CUDA finds no device. One GPU of "
	  "several may be held back on purpose.",
	  "docker run --gpus all (or --device nvidia.com/gpu=all); for an "
	  "emulated GPU --device /dev/peerlane-gpu0; on a host run "
	  "nvidia-modprobe -c 0",
	  "the container can use those GPUs", check_gpu_nodes },
	{ "container-no-verbs-node", SEV_WARNING,
	  "an RDMA device is there, but its device node is not",
	  "Without /dev/infiniband/uverbs* no verbs program can open it, and "
	  "NCCL falls back to sockets without an error.",
	  "docker run --device /dev/infiniband/uverbs0 --device "
	  "/dev/infiniband/rdma_cm --cap-add IPC_LOCK; on a host: modprobe "
	  "ib_uverbs",
	  "the container can use that RDMA device", check_verbs_nodes },
	{ "container-memory", SEV_INFO, "little memory for this control group",
	  "Staging buffers and the page cache of staged transfers count "
	  "against it.",
	  "raise the limit: docker run --memory 8g, or MemoryMax= of the unit",
	  "other programs have that much less memory", check_memory_limit },
};

const struct section doc_containers = {
	"containers", "device nodes and control groups", look_containers,
	containers_rules, sizeof(containers_rules) / sizeof(struct rule), false
};

// SPDX-License-Identifier: MIT
/* peerlane doctor: RDMA devices and their ways to GPU memory. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "rdma.h"

#define CLASS	RDMA_CLASS

struct nic {
	char name[64];
	char driver[32];	/* empty: a software device */
	/* by trial, else empty: ok or an errno; see try.c */
	char open[32], host[32], dmabuf[32];
};

static void read_trial(struct doctor *d, struct nic *nic)
{
	const char *path = "/peerlane/trial/%s";

	doc_trial(d, nic->open, sizeof(nic->open), "open", path, nic->name);
	doc_trial(d, nic->host, sizeof(nic->host), "host", path, nic->name);
	doc_trial(d, nic->dmabuf, sizeof(nic->dmabuf), "dmabuf", path,
		  nic->name);
}

static bool read_nic(struct doctor *d, const char *name, struct nic *nic)
{
	memset(nic, 0, sizeof(*nic));
	snprintf(nic->name, sizeof(nic->name), "%.63s", name);
	doc_link_name(d, nic->driver, sizeof(nic->driver),
		      CLASS "/%s/device/driver", name);
	read_trial(d, nic);
	return true;
}

#define for_each_nic(d, nic, names, i, n) \
	for (n = facts_list((d)->f, CLASS, &names), i = 0; \
	     i < n && read_nic(d, names[i], &nic); i++)

static void done(char **names, int n)
{
	if (n >= 0)
		facts_list_free(names);
}

/* The client module that is loaded, or NULL. */
static const char *peer_module(struct doctor *d)
{
	static const char *const modules[] = { "nvidia_peermem", "nv_peer_mem" };
	size_t i;

	for (i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (doc_there(d, "/sys/module/%s", modules[i]) == YES)
			return modules[i];
	return NULL;
}

static bool has_gpu_of(struct doctor *d, const char *driver)
{
	const struct topo_node *g;
	int i;

	for_each_gpu(d, g, i)
		if (doc_has_driver(g, driver))
			return true;
	return false;
}

/* Does the RDMA core have the interface for them? */
static enum tri peer_memory(struct doctor *d)
{
	char type[8];
	int r = doc_value(d, "/proc/kallsyms", "ib_register_peer_memory_client",
			  type, sizeof(type));

	return !r ? YES : r == -ENOKEY ? NO : UNKNOWN;
}

/* Does it take a dma-buf as a memory region?  Untried, by its driver. */
static bool takes_dmabuf(struct doctor *d, const struct nic *nic)
{
	static const struct { const char *name; int since; } drivers[] = {
		{ "mlx5_core", 512 }, { "irdma", 602 }, { "ice", 602 },
		{ "efa", 517 }, { "bnxt_en", 606 }, { "bnxt_re", 606 },
		{ "mana", 700 }, { "ionic", 700 },
	};
	size_t i;

	if (nic->dmabuf[0])
		return strcmp(nic->dmabuf, "EOPNOTSUPP") &&
		       strcmp(nic->dmabuf, "EPROTONOSUPPORT");
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i].name, nic->driver))
			return d->version >= drivers[i].since;
	return false;
}

/* What became of one way for the memory of a GPU: "ok", "ERRNO: words" */
static int trial_of(struct doctor *d, const struct nic *nic,
		    const struct topo_node *gpu, const char *way, char *buf,
		    size_t size)
{
	return doc_trial(d, buf, size, way, "/peerlane/trial/%s/%s", nic->name,
			 gpu->address);
}

/* Has memory of a GPU been tried with it? */
static bool tried(struct doctor *d, const struct nic *nic)
{
	const struct topo_node *g;
	char text[512];
	int i;

	for_each_gpu(d, g, i)
		if (!trial_of(d, nic, g, "staged", text, sizeof(text)))
			return true;
	return false;
}

/* What a registration of GPU memory does, and why nothing better. */
static void look_gpus(struct doctor *d, const struct nic *nic)
{
	static const char *const ways[] = { "dmabuf", "plain", "staged" };
	char key[128], text[512], all[1600];
	const struct topo_node *g;
	int i, at;
	size_t w;

	for_each_gpu(d, g, i) {
		for (w = 0, at = 0; w < 3; w++) {
			if (trial_of(d, nic, g, ways[w], text, sizeof(text)))
				break;
			at += snprintf(all + at, sizeof(all) - (size_t)at,
				       "%s%s %s", at ? "; " : "", ways[w], text);
			if (!strcmp(text, "ok"))
				break;
		}
		if (!at)
			continue;
		snprintf(key, sizeof(key), "%s, memory of %s", nic->name,
			 doc_label(d, g));
		doc_note(d, key, "%s", all);
	}
}

static void look_rdma(struct doctor *d)
{
	struct nic nic;
	char **names, end[64];
	int i, n;

	for_each_nic(d, nic, names, i, n) {
		doc_note(d, nic.name, "%s%s%s",
			 nic.driver[0] ? nic.driver : "software",
			 takes_dmabuf(d, &nic) ? ", takes dma-bufs" :
			 ", takes no dma-bufs",
			 nic.dmabuf[0] ? "" : " (not tried)");
		doc_look_ports(d, nic.name);
		look_gpus(d, &nic);
	}
	done(names, n);
	if (n <= 0) {
		doc_note(d, "devices", "none");
		return;
	}
	doc_note(d, "peer_memory", "%s%s%s",
		 peer_memory(d) == YES ? "in ib_core" :
		 peer_memory(d) == NO ? "not in ib_core" : "not known",
		 peer_module(d) ? ", client " : "",
		 peer_module(d) ? peer_module(d) : "");
	if (doc_gpus(d) && doc_trial(d, end, sizeof(end), "end",
				     "/peerlane/trial") == -ENODATA)
		doc_missing(d, "what a registration of GPU memory does here",
			    "/peerlane/trial", -ENODATA);
}

/* Does a GPU's driver export dma-bufs? */
static enum tri gpu_exports(struct doctor *d)
{
	enum tri any = NO;
	int i;

	for (i = 0; i < doc_gpus(d); i++) {
		const char *driver = doc_gpu_at(d, i)->driver;

		if (d->dmabuf == NO)
			return NO;
		if (!strcmp(driver, "peerlane_gpu") ||
		    (!strcmp(driver, "nvidia") && d->nvidia_open == YES))
			return YES;
		if (!strcmp(driver, "nvidia") && d->nvidia_open == UNKNOWN)
			any = UNKNOWN;
	}
	return any;
}

/* The core has the interface, and of its clients only the module is missing */
static void cure_client(struct doctor *d, struct finding *f)
{
	if (peer_memory(d) != YES || peer_module(d) ||
	    !has_gpu_of(d, "nvidia"))
		return;
	doc_cure(f, "modprobe nvidia_peermem");
	doc_cost(f, "none");
}

static void check_no_way(struct doctor *d, const struct rule *r)
{
	struct finding *o = NULL;
	struct nic nic;
	char **names;
	int i, n;

	if (!doc_gpus(d) || peer_memory(d) == UNKNOWN ||
	    (peer_memory(d) == YES && peer_module(d)))
		return;
	for_each_nic(d, nic, names, i, n) {
		if (tried(d, &nic))
			continue;	/* check_staged() knows better */
		if (!nic.driver[0] ||
		    (takes_dmabuf(d, &nic) && gpu_exports(d) != NO))
			continue;
		if (!o) {
			o = doc_say(d, r, r->severity,
				    "no dma-buf (%s) and no peer memory (%s)",
				    gpu_exports(d) == NO ?
				    "the GPU's driver exports "
				    "none" : "the RDMA driver takes none",
				    peer_memory(d) == NO ?
				    "ib_core does not know it" :
				    "no client is loaded");
			cure_client(d, o);
		}
		doc_where(o, nic.name);
	}
	done(names, n);
}

static void check_idle_client(struct doctor *d, const struct rule *r)
{
	if (peer_module(d) && peer_memory(d) == NO)
		doc_say(d, r, r->severity,
			"%s is loaded, and ib_core has no "
			"ib_register_peer_memory_client", peer_module(d));
}

static void check_soft(struct doctor *d, const struct rule *r)
{
	struct finding *o = NULL;
	struct nic nic;
	char **names;
	int i, n;

	for_each_nic(d, nic, names, i, n) {
		if (nic.driver[0])
			continue;
		if (!o)
			o = doc_say(d, r, r->severity,
				    "an RDMA device is software");
		doc_where(o, nic.name);
	}
	done(names, n);
}

static void check_rxe_odp(struct doctor *d, const struct rule *r)
{
	struct finding *o = NULL;
	struct nic nic;
	char **names;
	int i, n;

	if (doc_there(d, "/sys/module/rdma_rxe") != YES || d->version < 615)
		return;
	for_each_nic(d, nic, names, i, n) {
		if (nic.driver[0])
			continue;
		if (!o)
			o = doc_say(d, r, r->severity,
				    "rdma_rxe of kernel %s offers on-demand "
				    "paging", d->release);
		doc_where(o, nic.name);
	}
	done(names, n);
}

/* ---- by trial ---- */

static void check_trial(struct doctor *d, const struct rule *r)
{
	char text[256];

	if (!doc_trial(d, text, sizeof(text), "end", "/peerlane/trial") &&
	    strcmp(text, "ok"))
		doc_say(d, r, r->severity, "the process that tried: %s", text);
}

static void check_verbs(struct doctor *d, const struct rule *r)
{
	char text[512];

	if (doc_has_rdma(d) &&
	    !doc_trial(d, text, sizeof(text), "verbs", "/peerlane/trial") &&
	    strcmp(text, "ok"))
		doc_say(d, r, r->severity, "%s", text);
}

static void check_cuda(struct doctor *d, const struct rule *r)
{
	char text[512];

	if (doc_has_rdma(d) && doc_gpus(d) &&
	    !doc_trial(d, text, sizeof(text), "cuda", "/peerlane/trial") &&
	    strcmp(text, "ok"))
		doc_say(d, r, r->severity, "%s", text);
}

static void check_open(struct doctor *d, const struct rule *r)
{
	char verbs[512], end[64];
	struct nic nic;
	char **names;
	int i, n;

	if (doc_trial(d, verbs, sizeof(verbs), "verbs", "/peerlane/trial") ||
	    strcmp(verbs, "ok") ||
	    doc_trial(d, end, sizeof(end), "end", "/peerlane/trial") ||
	    strcmp(end, "ok"))
		return;
	for_each_nic(d, nic, names, i, n) {
		if (!strcmp(nic.open, "ok"))
			continue;
		if (nic.open[0])
			doc_where(doc_say(d, r, r->severity,
					  "an RDMA device cannot be opened: %s",
					  nic.open), nic.name);
		else
			doc_where(doc_say(d, r, r->severity,
					  "libibverbs does not know an RDMA "
					  "device of the kernel"), nic.name);
	}
	done(names, n);
}

static void check_host(struct doctor *d, const struct rule *r)
{
	struct nic nic;
	char **names;
	int i, n;

	for_each_nic(d, nic, names, i, n)
		if (nic.host[0] && strcmp(nic.host, "ok"))
			doc_where(doc_say(d, r, r->severity,
					  "64 KiB of host memory cannot be "
					  "registered: %s", nic.host),
				  nic.name);
	done(names, n);
}

/* Memory of one GPU with one NIC */
static void check_pair(struct doctor *d, const struct rule *r, bool staged,
		       const struct nic *nic, const struct topo_node *g)
{
	char dmabuf[512], plain[512], last[512], where[128];
	struct finding *o;

	if (trial_of(d, nic, g, "dmabuf", dmabuf, sizeof(dmabuf)) ||
	    trial_of(d, nic, g, "plain", plain, sizeof(plain)) ||
	    trial_of(d, nic, g, "staged", last, sizeof(last)) ||
	    !strcmp(dmabuf, "ok") || !strcmp(plain, "ok") ||
	    staged != !strcmp(last, "ok"))
		return;
	dmabuf[strcspn(dmabuf, ":")] = '\0';
	plain[strcspn(plain, ":")] = '\0';
	o = doc_say(d, r, r->severity, "as dma-buf: %s; by its pointer: %s%s%s",
		    dmabuf, plain, staged ? "" : "; staged: ",
		    staged ? "" : last);
	snprintf(where, sizeof(where), "%s with %s", doc_label(d, g),
		 nic->name);
	doc_where(o, where);
	if (staged && nic->driver[0])
		cure_client(d, o);
	if (staged && !nic->driver[0])
		doc_cure(o, doc_has_driver(g, "peerlane_gpu") ?
			 "give the GPU its coherent window in the topology "
			 "file: coherent=on" :
			 "use a NIC: software devices copy with the processor, "
			 "which does not reach this GPU's memory");
}

static void check_pairs(struct doctor *d, const struct rule *r, bool staged)
{
	const struct topo_node *g;
	struct nic nic;
	char **names;
	int i, k, n;

	for_each_nic(d, nic, names, i, n)
		for_each_gpu(d, g, k)
			check_pair(d, r, staged, &nic, g);
	done(names, n);
}

static void check_staged(struct doctor *d, const struct rule *r)
{
	check_pairs(d, r, true);
}

static void check_nothing(struct doctor *d, const struct rule *r)
{
	check_pairs(d, r, false);
}

static const struct rule rdma_rules[] = {
	{ "rdma-trial", SEV_WARNING, "trying RDMA registrations failed",
	  "A driver or library crashed or hung, and will do the same to other "
	  "programs.",
	  "dmesg | tail; nvidia-smi; rdma resource show; try one device after "
	  "the other (ibv_devinfo -d NAME)", "none", check_trial },
	{ "rdma-no-verbs", SEV_WARNING, "libibverbs cannot be used",
	  "All programs for RDMA need it, to talk to the kernel's devices.",
	  "apt install libibverbs1 ibverbs-providers (dnf install libibverbs)",
	  "none", check_verbs },
	{ "rdma-no-cuda", SEV_WARNING, "CUDA cannot be used",
	  "Without it doctor cannot allocate GPU memory and register it with a "
	  "NIC.",
	  "nvidia-smi shows the driver's error; start a container with --gpus "
	  "all", "none", check_cuda },
	{ "rdma-open", SEV_WARNING, "an RDMA device cannot be used",
	  "Programs do not find it, or get EACCES, and use TCP instead.",
	  "EACCES: usermod -aG rdma USER, or a udev rule for "
	  "/dev/infiniband/uverbs*; in a container --device=/dev/infiniband; "
	  "not known to libibverbs: apt install ibverbs-providers, modprobe "
	  "ib_uverbs", "none", check_open },
	{ "rdma-host-memory", SEV_WARNING,
	  "not even host memory can be registered",
	  "Registered memory is locked, and this process may lock too little, "
	  "or the device is out of memory regions.",
	  "ulimit -l unlimited (see limit-memlock); rdma resource show mr",
	  "as limit-memlock", check_host },
	{ "rdma-gpu-staged", SEV_WARNING,
	  "GPU memory is staged for RDMA",
	  "By trial: the RDMA device can register this GPU's memory neither as "
	  "a dma-buf nor by its pointer. Libraries then copy it through host "
	  "memory, or fail. peerlane doctor --try -v has the reasons.",
	  "install NVIDIA's open kernel modules and an RDMA driver that takes "
	  "dma-bufs; or DOCA or MLNX_OFED, and modprobe nvidia_peermem",
	  "another GPU driver, or RDMA modules from outside of the kernel",
	  check_staged },
	{ "rdma-gpu-nothing", SEV_ERROR,
	  "GPU memory cannot be sent at all",
	  "By trial: neither the GPU's memory nor a staging buffer in host "
	  "memory can be registered.",
	  "see rdma-host-memory and the words of the errors", "none",
	  check_nothing },
	{ "rdma-no-gid", SEV_WARNING, "a RoCE port has no address",
	  "A GID of RoCE v2 comes from an address of the network device. "
	  "Without a GID the port cannot send; with a link-local one it "
	  "reaches only the same segment, and programs that expect IPv4 use a "
	  "wrong GID.",
	  "ip addr add ADDRESS/24 dev NETDEV; then choose the GID: NCCL_IB_GID_"
	  "INDEX, UCX_IB_GID_INDEX, ib_write_bw -x (show_gids or rdma link)",
	  "none", doc_check_gids },
	{ "rdma-no-gpu-path", SEV_WARNING,
	  "RDMA devices cannot reach GPU memory",
	  "A memory region on GPU memory needs either a dma-buf (open GPU "
	  "driver, and mlx5, irdma, bnxt_re, efa, mana or ionic) or a peer "
	  "memory client. Without, NCCL, UCX and NVSHMEM stage in host memory.",
	  "install NVIDIA's open kernel modules; or install DOCA or MLNX_OFED "
	  "and modprobe nvidia_peermem",
	  "another GPU driver, or RDMA modules from outside of the kernel",
	  check_no_way },
	{ "rdma-idle-client", SEV_WARNING,
	  "a peer memory client is loaded and does nothing",
	  "The RDMA core of this kernel has no peer memory interface. NCCL and "
	  "UCX look only at /sys/module/nvidia_peermem, believe that GPUDirect "
	  "works, and fail when they register memory.",
	  "modprobe -r nvidia_peermem, so that they use dma-bufs; or install "
	  "DOCA or MLNX_OFED, which have the interface",
	  "none", check_idle_client },
	{ "rdma-soft", SEV_INFO, "an RDMA device is software",
	  "rxe and siw copy with the processor: they support neither dma-bufs "
	  "nor peer-to-peer pages. They access GPU memory only if the "
	  "processor can, such as the emulated GPU's coherent window.",
	  "use a real NIC where the path matters", "the NIC", check_soft },
	{ "rdma-rxe-odp", SEV_WARNING,
	  "on-demand paging of rxe corrupts data",
	  "From Linux 6.15 to at least 7.3 rxe puts data of an on-demand "
	  "region at wrong places: it ignores the offset within a page. The "
	  "completion reports success.",
	  "never register with IBV_ACCESS_ON_DEMAND on rxe (UCX: "
	  "UCX_REG_NONBLOCK_MEM_TYPES=)",
	  "memory stays pinned", check_rxe_odp },
	{ "rdma-port-down", SEV_INFO, "a port is not active",
	  "Nothing can be sent through it.",
	  "ip link set NETDEV up; for InfiniBand look at the cable and the "
	  "subnet manager (ibstat, sminfo)", "none", doc_check_ports },
	{ "rdma-mtu", SEV_INFO, "RoCE goes in small packets",
	  "The path MTU is a power of two that fits: 1024 with the usual MTU of "
	  "1500, while 4096 needs 4200 or more.",
	  "ip link set NAME mtu 9000, and the same on its switch port and on "
	  "the other hosts",
	  "all hosts of the network must agree; others drop large packets",
	  doc_check_mtus },
};

const struct section doc_rdma = {
	"rdma", "RDMA devices and their ways to GPU memory", look_rdma,
	rdma_rules, sizeof(rdma_rules) / sizeof(struct rule), false
};

// SPDX-License-Identifier: MIT
/* peerlane doctor: RDMA devices and their ways to GPU memory. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CLASS	"/sys/class/infiniband"

struct nic {
	char name[64];
	char driver[32];	/* empty: a software device */
	char state[32];		/* of port 1 */
	char netdev[32];	/* of port 1's first GID: RoCE */
};

static bool read_nic(struct doctor *d, const char *name, struct nic *nic)
{
	memset(nic, 0, sizeof(*nic));
	snprintf(nic->name, sizeof(nic->name), "%.63s", name);
	doc_link_name(d, nic->driver, sizeof(nic->driver),
		      CLASS "/%s/device/driver", name);
	doc_text(d, NULL, nic->state, sizeof(nic->state),
		 CLASS "/%s/ports/1/state", name);
	doc_text(d, NULL, nic->netdev, sizeof(nic->netdev),
		 CLASS "/%s/ports/1/gid_attrs/ndevs/0", name);
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
	static const char *const modules[] = { "nvidia_peermem", "nv_peer_mem",
					       "peerlane_peermem" };
	size_t i;

	for (i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (doc_there(d, "/sys/module/%s", modules[i]) == YES)
			return modules[i];
	return NULL;
}

/* Does the RDMA core have the interface for them? */
static enum tri peer_memory(struct doctor *d)
{
	char type[8];
	int r = doc_value(d, "/proc/kallsyms", "ib_register_peer_memory_client",
			  type, sizeof(type));

	return !r ? YES : r == -ENOKEY ? NO : UNKNOWN;
}

/* Which drivers take a dma-buf as a memory region, and since when. */
static bool takes_dmabuf(struct doctor *d, const char *driver)
{
	static const struct { const char *name; int since; } drivers[] = {
		{ "mlx5_core", 512 }, { "irdma", 602 }, { "ice", 602 },
		{ "efa", 517 }, { "bnxt_en", 606 }, { "bnxt_re", 606 },
		{ "mana", 700 }, { "ionic", 700 },
	};
	size_t i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i].name, driver))
			return d->version >= drivers[i].since;
	return false;
}

static void look_rdma(struct doctor *d)
{
	struct nic nic;
	char **names;
	int i, n;

	for_each_nic(d, nic, names, i, n)
		doc_note(d, nic.name, "%s, port 1 %s%s%s%s",
			 nic.driver[0] ? nic.driver : "software",
			 nic.state[0] ? nic.state : "not known",
			 nic.netdev[0] ? ", " : "", nic.netdev,
			 takes_dmabuf(d, nic.driver) ? ", takes dma-bufs" : "");
	done(names, n);
	if (n <= 0)
		doc_note(d, "devices", "none");
	else
		doc_note(d, "peer_memory", "%s%s%s",
			 peer_memory(d) == YES ? "in ib_core" :
			 peer_memory(d) == NO ? "not in ib_core" : "not known",
			 peer_module(d) ? ", client " : "",
			 peer_module(d) ? peer_module(d) : "");
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

static void check_no_way(struct doctor *d, const struct rule *r)
{
	struct json_object *o = NULL;
	struct nic nic;
	char **names;
	int i, n;

	if (!doc_gpus(d) || peer_memory(d) == UNKNOWN ||
	    (peer_memory(d) == YES && peer_module(d)))
		return;
	for_each_nic(d, nic, names, i, n) {
		if (!nic.driver[0] ||
		    (takes_dmabuf(d, nic.driver) && gpu_exports(d) != NO))
			continue;
		if (!o)
			o = doc_say(d, r, r->severity,
				    "no dma-buf (%s) and no peer memory (%s)",
				    gpu_exports(d) == NO ?
				    "the GPU's driver exports "
				    "none" : "the RDMA driver takes none",
				    peer_memory(d) == NO ?
				    "ib_core does not know it" :
				    "no client is loaded");
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
	struct json_object *o = NULL;
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
	struct json_object *o = NULL;
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

static void check_port(struct doctor *d, const struct rule *r)
{
	struct nic nic;
	char **names;
	int i, n;

	for_each_nic(d, nic, names, i, n)
		if (nic.state[0] && !strstr(nic.state, "ACTIVE"))
			doc_where(doc_say(d, r, r->severity,
					  "port 1 is in state %s", nic.state),
				  nic.name);
	done(names, n);
}

#define ROCE_MTU	4200	/* path MTU 4096 and the headers */

static void check_mtu(struct doctor *d, const struct rule *r)
{
	long long mtu;
	struct nic nic;
	char **names;
	int i, n;

	for_each_nic(d, nic, names, i, n) {
		if (!nic.netdev[0])
			continue;
		mtu = doc_number(d, "/sys/class/net/%s/mtu", nic.netdev);
		if (mtu <= 0 || mtu >= ROCE_MTU)
			continue;
		doc_where(doc_say(d, r, r->severity,
				  "the network device has MTU %lld", mtu),
			  nic.netdev);
	}
	done(names, n);
}

static const struct rule rdma_rules[] = {
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
	  "rxe and siw copy with the processor: they take no dma-buf and no "
	  "peer-to-peer pages. They reach GPU memory only where the processor "
	  "does, such as the emulated GPU's coherent window.",
	  "use a real NIC where the path matters", "the NIC", check_soft },
	{ "rdma-rxe-odp", SEV_WARNING,
	  "on-demand paging of rxe corrupts data",
	  "From Linux 6.15 to at least 7.3 rxe puts data of an on-demand "
	  "region at wrong places: it ignores the offset within a page. The "
	  "completion says success.",
	  "never register with IBV_ACCESS_ON_DEMAND on rxe (UCX: "
	  "UCX_REG_NONBLOCK_MEM_TYPES=)",
	  "memory stays pinned", check_rxe_odp },
	{ "rdma-port-down", SEV_INFO, "a port is not active",
	  "Nothing can be sent through it.",
	  "ip link set NETDEV up; for InfiniBand look at the cable and the "
	  "subnet manager (ibstat, sminfo)", "none", check_port },
	{ "rdma-mtu", SEV_INFO, "RoCE goes in small packets",
	  "The path MTU is a power of two that fits: 1024 with the usual MTU of "
	  "1500, while 4096 needs 4200 or more.",
	  "ip link set NETDEV mtu 9000, and the same on its switch port and on "
	  "the other hosts",
	  "all hosts of the network must agree; others drop large packets",
	  check_mtu },
};

const struct section doc_rdma = {
	"rdma", "RDMA devices and their ways to GPU memory", look_rdma,
	rdma_rules, sizeof(rdma_rules) / sizeof(struct rule), false
};

// SPDX-License-Identifier: MIT
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "load.h"
#include "verbs.h"

struct verbs_lib verbs_lib;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(char *why, size_t size)
{
	static const struct load_function functions[] = {
#define PLN_X(required, member, symbol, result, args) \
		{ &verbs_lib.member, symbol, NULL, required },
		VERBS_FUNCTIONS(PLN_X)
#undef PLN_X
	};
	char said[256];
	int err = load_library("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL,
			       functions, LOAD_COUNT(functions), said,
			       sizeof(said));

	if (err)
		snprintf(why, size, "%s; install %srdma-core", said,
			 err == -ENOSYS ? "a newer " : "");
	verbs_lib.loaded = !err;
	return err;
}

int verbs_errno(int result)
{
	if (result > 0)
		return -result;
	return errno ? -errno : -EIO;
}

int verbs_load(char *why, size_t size)
{
	int err = 0;

	pthread_mutex_lock(&load_lock);
	if (!verbs_lib.loaded)
		err = load(why, size);
	pthread_mutex_unlock(&load_lock);
	return err;
}

static bool is_ethernet(const struct ibv_port_attr *attr)
{
	return attr->link_layer == IBV_LINK_LAYER_ETHERNET;
}

void verbs_address(struct ibv_ah_attr *ah, uint8_t port,
		   const struct ibv_port_attr *attr, uint32_t gid_index,
		   uint32_t peer_lid, const uint8_t peer_gid[16])
{
	*ah = (struct ibv_ah_attr){
		.dlid = is_ethernet(attr) ? 0 : (uint16_t)peer_lid,
		.port_num = port,
		.is_global = is_ethernet(attr) ||
			     attr->flags & IBV_QPF_GRH_REQUIRED,
	};
	/* a header that is not sent must not matter */
	if (!ah->is_global)
		return;
	ah->grh.sgid_index = (uint8_t)gid_index;
	ah->grh.hop_limit = 64;
	memcpy(ah->grh.dgid.raw, peer_gid, sizeof(ah->grh.dgid.raw));
}

const char *verbs_apart(const struct ibv_port_attr *attr,
			const union ibv_gid *gid, bool peer_ethernet,
			const uint8_t peer_gid[16])
{
	if (is_ethernet(attr) != peer_ethernet)
		return "one end is on InfiniBand and the other on Ethernet";
	/* the first half of a GID is its subnet; a LID is known within it only */
	if (!peer_ethernet && memcmp(gid->raw, peer_gid, 8))
		return "the ends are in two subnets of InfiniBand, and the way "
		       "through the router between them is not looked up";
	return NULL;
}

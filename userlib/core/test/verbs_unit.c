// SPDX-License-Identifier: MIT
/* The choice of an RDMA device, its port and its GID, on a device of the test's */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../cuda/test/ktap.h"
#include "fake_nic.h"

static char why[512];
static struct verbs_port p;

static bool opens_of(const char *device, unsigned int port, int gid)
{
	why[0] = '\0';
	if (verbs_open(&p, device, port, why, sizeof(why)))
		return false;
	if (!verbs_choose_gid(&p, gid, true, why, sizeof(why)))
		return true;
	verbs_close(&p);
	return false;
}

static bool opens(unsigned int port, int gid)
{
	return opens_of("fake0", port, gid);
}

static void t_ports(void)
{
	fake_ports = 2;
	ktap(opens(0, -1) && p.port == 1, "the first port is active: it is taken");
	verbs_close(&p);
	ktap(opens(2, -1) && p.port == 2, "unless the other is wanted");
	verbs_close(&p);
	fake_port.state = IBV_PORT_DOWN;
	ktap(opens(0, -1) && p.port == 2, "the first is down: the second");
	verbs_close(&p);
	ktap(opens_of(NULL, 0, -1) && p.port == 2,
	     "of an unnamed device, too");
	verbs_close(&p);
	ktap(!opens(1, -1) && strstr(why, "port 1 of fake0 is not active: ip"),
	     "one that is wanted and down: %s", why);
	ktap(!opens(3, -1) && strstr(why, "fake0 has no port 3: it has 2"),
	     "one beyond the last: %s", why);
	ktap(!opens_of("fake1", 0, -1) &&
	     strstr(why, "no RDMA device fake1"), "no such device: %s", why);
	fake_port2.state = IBV_PORT_INIT;
	ktap(!opens(0, -1) && strstr(why, "no port of fake0 is active: ip"),
	     "none is active: %s", why);
	fake_install();
	ktap(!opens(2, -1) && strstr(why, "no port 2: it has 1"),
	     "a device of one port: %s", why);
	for (unsigned int i = 1; i <= 4; i++) {
		fake_fail_at = i;
		ktap(!opens(0, -1) && why[0], "call %u fails: %s", i, why);
		fake_fail_at = 0;
	}
	ktap(!fake_objects, "nothing is left of all these");
}

static void t_gids(void)
{
	int index;

	ktap(opens(0, -1) && p.gid_index == 1 && p.gid.raw[12] == 10,
	     "of an IPv4 address, if there is one");
	ktap(!strcmp(verbs_gid_kind(p.ctx, 1, &p.attr, &index), "ipv4") && index == 1,
	     "... and it is called so");
	verbs_close(&p);
	ktap(opens(0, 0) && p.gid_index == 0 && p.gid.raw[0] == 0xfe,
	     "unless another is wanted");
	p.attr.gid_tbl_len = 1;
	ktap(!strcmp(verbs_gid_kind(p.ctx, 1, &p.attr, &index), "link-local") &&
	     index == 0, "a link-local one is called so");
	verbs_close(&p);
	ktap(!opens(0, 2) && strstr(why, "no GID with index 2"),
	     "one that there is not: %s", why);
	fake_ipv4_gid = 0xff;
	ktap(!opens(0, -1) && strstr(why, "no RoCE v2 GID: give"),
	     "none at all: %s", why);
	fake_ipv4_gid = 1;
	ktap(!fake_objects, "nothing is left of all these");
}

/* As some NICs have it: each address once for RoCE v1 and once for v2 */
static int table_gid(struct ibv_context *ctx, uint8_t port, int i,
		     union ibv_gid *gid)
{
	(void)ctx;
	(void)port;
	*gid = (union ibv_gid){ .raw = { [15] = 1 } };
	if (i >= 100)
		gid->raw[10] = gid->raw[11] = 0xff;
	else
		gid->raw[0] = i < 2 ? 0xfe : 0x20;
	return i < 4 || i >= 100 ? 0 : ENODATA;
}

static int table_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t i,
			struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	(void)flags;
	(void)size;
	e->gid_type = i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return table_gid(ctx, (uint8_t)port, (int)i, &e->gid);
}

static void t_table(void)
{
	static const struct { int length; uint32_t best; const char *kind; } t[] = {
		{ 1024, 101, "ipv4" }, { 101, 3, "ipv6" }, { 3, 1, "link-local" },
		{ 1, 0, "other" },
	};
	const char *kind;
	int index, r;

	verbs_lib.query_gid = table_gid;
	verbs_lib.query_gid_ex = table_gid_ex;
	for (unsigned int i = 0; i < 4; i++) {
		fake_port.gid_tbl_len = t[i].length;
		r = verbs_open(&p, NULL, 0, why, sizeof(why));
		r = r ? r : verbs_choose_gid(&p, -1, false, why, sizeof(why));
		kind = verbs_gid_kind(p.ctx, p.port, &p.attr, &index);
		ktap(!r && p.gid_index == t[i].best && !strcmp(kind, t[i].kind),
		     "of %d places the best is %u: %s", t[i].length, p.gid_index,
		     kind);
		verbs_close(&p);
	}
	ktap(!opens(0, -1) && strstr(why, "fake0 port 1 has no RoCE v2 GID: give"),
	     "who wants RoCE v2 gets no v1: %s", why);
	ktap(opens(0, 0), "unless it is named");
	verbs_close(&p);
	fake_port.gid_tbl_len = 1024;
	verbs_lib.query_gid_ex = NULL;
	ktap(!opens(0, -1) && strstr(why, "does not report which GID"),
	     "nor what may be v1, with an old libibverbs: %s", why);
	ktap(opens(0, 3) && !strcmp(verbs_gid_kind(p.ctx, 1, &p.attr, &index), "other"),
	     "all there are of one kind then");
	verbs_close(&p);
	fake_install();
}

static void t_devices(void)
{
	int r;

	fake_devices = 2;
	fake_open_errno = EACCES;
	ktap(opens_of(NULL, 0, -1) && !strcmp(p.device, "fake1"),
	     "of two the one that can be opened");
	verbs_close(&p);
	fake_port.state = IBV_PORT_DOWN;
	r = verbs_open(&p, NULL, 0, why, sizeof(why));
	ktap(r == -EACCES && strstr(why, "fake0 cannot be opened"),
	     "one cannot be opened, the other's port is down: %s", why);
	fake_open_errno = 0;
	r = verbs_open(&p, NULL, 0, why, sizeof(why));
	ktap(r == -ENETDOWN && strstr(why, "none of the 2 RDMA devices has an active port:"),
	     "both are down: %s", why);
	r = verbs_open(&p, NULL, 2, why, sizeof(why));
	ktap(r == -ENETDOWN && strstr(why, "has an active port 2:"),
	     "no such port: %s", why);
	fake_install();
	fake_fail_at = 1;
	r = verbs_open(&p, NULL, 0, why, sizeof(why));
	ktap(r == -ENOSPC && strstr(why, "cannot be listed: ") &&
	     strstr(why, "; load ib_uverbs; for soft-RoCE: rdma link add"),
	     "no list: %s", why);
	fake_fail_at = 0;
	ktap(!fake_objects, "nothing is left of all these");
}

int main(void)
{
	fake_install();
	t_ports();
	t_gids();
	t_table();
	t_devices();
	return ktap_end();
}

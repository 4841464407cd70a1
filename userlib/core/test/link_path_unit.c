// SPDX-License-Identifier: MIT
/* By which port and which address a link goes: RoCE, InfiniBand. */
#include "link_pair.h"

static bool pair_by(struct pln_link_options o)
{
	o.size = sizeof(o);
	pair_options = o;
	memset(&fake_path, 0xff, sizeof(fake_path));
	return pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);
}

#define PAIR(...) pair_by((struct pln_link_options){ __VA_ARGS__ })

static int open_by(struct pln_link_options o)
{
	int err;

	o.size = sizeof(o);
	err = pln_link_open(&a, &o);
	if (!err)
		pln_link_close(a);
	return err;
}

#define OPEN(...) open_by((struct pln_link_options){ __VA_ARGS__ })

/* As when it was installed, with ports of InfiniBand */
static void infiniband(void)
{
	fake_install();
	fake_port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_port.lid = 0x1234;
}

static void t_gid(void)
{
	fake_install();
	pln_link_open(&a, NULL);
	ktap(a->gid_index == 1, "the GID of an IPv4 address is chosen");
	pln_link_close(a);
	pln_link_open(&a, &(struct pln_link_options){
		      .size = sizeof(struct pln_link_options), .gid = 1 });
	ktap(a->gid_index == 0, "unless another is asked for");
	pln_link_close(a);
}

static void t_roce(void)
{
	bool good;

	fake_install();
	fake_port.lid = 7;	/* no such thing on Ethernet */
	good = PAIR(.sl = 5);
	ktap(good && fake_path.is_global == 1 && fake_path.sl == 5 &&
	     fake_path.port_num == 1 && fake_path.dlid == 0,
	     "RoCE: packets carry GIDs, and no LID");
	ktap(fake_path.grh.sgid_index == 1 && fake_path.grh.hop_limit > 1 &&
	     fake_path.grh.dgid.raw[10] == 0xff &&
	     fake_path.grh.dgid.raw[12] == 10,
	     "RoCE: from the chosen GID to the peer's");
	pair_down();
}

static void t_lid(void)
{
	static const struct ibv_global_route none;
	bool good;

	infiniband();
	good = PAIR(.sl = 3);
	ktap(good && fake_path.dlid == 0x1234 && fake_path.sl == 3 &&
	     fake_path.is_global == 0 &&
	     !memcmp(&fake_path.grh, &none, sizeof(none)),
	     "InfiniBand: the peer's LID and the service level, no GID");
	ktap(pln_link_put(a, &from, 0, 9, 0, 0, 1) == 1 &&
	     pln_link_wait(a, 1, 1000) == 0, "and bytes go");
	pair_down();
	good = PAIR(.gid = 2);
	ktap(good && fake_path.dlid == 0x1234 && fake_path.is_global == 1 &&
	     fake_path.grh.sgid_index == 1, "with a GID when one is given");
	pair_down();
	fake_port.flags = IBV_QPF_GRH_REQUIRED;
	good = PAIR(.gid = 0);
	ktap(good && fake_path.dlid == 0x1234 && fake_path.is_global == 1 &&
	     fake_path.grh.sgid_index == 0, "and when the port demands it");
	pair_down();
	fake_port.lid = 0;
	ktap(OPEN(.port = 1) == -EADDRNOTAVAIL &&
	     strstr(pln_link_reason(NULL), "subnet manager"),
	     "a port without a LID: %s", pln_link_reason(NULL));
	ktap(fake_objects == 0, "nothing is left behind");
}

/* What an end on InfiniBand says to a hello with this instead of its own */
static int meet_lid(uint32_t lid, uint8_t subnet, uint32_t ethernet)
{
	struct hello h = { .qpn = 77, .mtu = IBV_MTU_4096, .lid = lid,
			   .ethernet = ethernet };
	uint8_t wire[HELLO_SIZE + 8] = { 0 };
	int err;

	pln_link_open(&a, NULL);
	memcpy(h.gid, a->gid.raw, 16);
	h.gid[7] ^= subnet;
	h.gid[15]++;
	pln_hello_encode(&h, wire);
	memcpy(wire + HELLO_SIZE, "PLNK", 4);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	    write(ends[1], wire, sizeof(wire)) != sizeof(wire))
		return 1;
	err = pln_link_connect(a, ends[0], 5000);
	close(ends[0]);
	close(ends[1]);
	return err;
}

static void peer(const char *what, uint32_t lid, uint8_t subnet,
		 uint32_t ethernet, int want, const char *words)
{
	int err = meet_lid(lid, subnet, ethernet);

	ktap(err == want && strstr(pln_link_reason(a), words), "%s: %s", what,
	     err ? pln_link_reason(a) : "fine");
	pln_link_close(a);
}

static void t_peers(void)
{
	infiniband();
	peer("the last LID", 0xbfff, 0, 0, 0, "");
	peer("a group's LID", 0xc000, 0, 0, -EPROTO, "a LID");
	peer("everybody's LID", 0xffff, 0, 0, -EPROTO, "a LID");
	peer("no LID", 0, 0, 0, -EPROTO, "a LID");
	peer("another subnet", 5, 1, 0, -ENETUNREACH, "another InfiniBand");
	peer("Ethernet", 5, 0, 1, -EPROTO, "the other on Ethernet");
	ktap(fake_objects == 0, "nothing is left behind");
}

static void t_ports(void)
{
	struct pln_link_options o = { .size = sizeof(o) };
	struct pln_link *other = NULL;
	bool good;

	infiniband();
	fake_ports = 3;
	good = PAIR(.port = 3);
	ktap(good && fake_path.port_num == 3 && a->port == 3,
	     "the port that is asked for");
	pair_down();
	good = PAIR(.port = 0);
	ktap(good && fake_path.port_num == 3, "the first active one otherwise");
	/* The domain of another link says which device, not which port */
	o.pd = pln_link_pd(a);
	ktap(!pln_link_open(&other, &o) && other->ctx == a->ctx && other->port == 3,
	     "also with a protection domain of the program's");
	pln_link_close(other);
	pair_down();
	ktap(OPEN(.port = 2) == -ENODEV && strstr(pln_link_reason(NULL),
	     "active port 2"), "one that is down: %s", pln_link_reason(NULL));
	ktap(OPEN(.port = 2, .device = "fake0") == -ENETDOWN &&
	     strstr(pln_link_reason(NULL), "port 2 is not active"),
	     "of a named device: %s", pln_link_reason(NULL));
	ktap(OPEN(.port = 4, .device = "fake0") == -EINVAL &&
	     strstr(pln_link_reason(NULL), "port 4 cannot be asked"),
	     "one that there is not: %s", pln_link_reason(NULL));
	fake_port.state = IBV_PORT_DOWN;
	ktap(OPEN(.device = "fake0") == -ENETDOWN &&
	     strstr(pln_link_reason(NULL), "no active port"),
	     "none is active: %s", pln_link_reason(NULL));
	fake_ports = 0;
	ktap(OPEN(.device = "fake0") == -ENETDOWN, "there is none");
	ktap(fake_objects == 0, "nothing is left behind");
}

int main(void)
{
	t_gid();
	t_roce();
	t_lid();
	t_peers();
	t_ports();
	return ktap_end();
}

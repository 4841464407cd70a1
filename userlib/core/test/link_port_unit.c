// SPDX-License-Identifier: MIT
/* Which port a link takes, and how it addresses the peer's. */
#include "link_pair.h"

static uint32_t sl, gid;	/* that are asked for */

static int open_port(struct pln_link **link, uint32_t port, const char *device)
{
	struct pln_link_options o = { .size = sizeof(o), .port = port,
				      .device = device, .sl = sl, .gid = gid };

	return pln_link_open(link, &o);
}

static void t_choice(void)
{
	const char *why;

	fake_ports = 2;
	fake_port.state = IBV_PORT_DOWN;
	ktap(!open_port(&a, 0, NULL) && a->at.port == 2,
	     "port 1 is down: the second one is taken");
	pln_link_close(a);
	ktap(!open_port(&a, 0, "fake0") && a->at.port == 2,
	     "of a named device, too");
	pln_link_close(a);
	ktap(!open_port(&a, 2, NULL) && a->at.port == 2, "or when it is wanted");
	pln_link_close(a);
	why = pln_link_reason(NULL);
	ktap(open_port(&a, 1, "fake0") == -ENETDOWN &&
	     strstr(why, "port 1 of fake0 is not active"),
	     "one that is wanted and down: %s", why);
	ktap(open_port(&a, 1, NULL) == -ENODEV &&
	     strstr(why, "port 1 of fake0 is not active"), "without a device: %s", why);
	ktap(open_port(&a, 3, "fake0") == -EINVAL &&
	     strstr(why, "no port 3"), "one beyond the last: %s", why);
	fake_port2.state = IBV_PORT_DOWN;
	ktap(open_port(&a, 0, "fake0") == -ENETDOWN &&
	     strstr(why, "no port of fake0 is active"), "both are down: %s", why);
	ktap(open_port(&a, 0, NULL) == -ENODEV &&
	     strstr(why, "no port of fake0 is active"), "without a device: %s", why);
	fake_port.state = IBV_PORT_ACTIVE;
	ktap(!open_port(&a, 0, NULL) && a->at.port == 1, "the first one is back");
	pln_link_close(a);
	ktap(fake_objects == 0, "nothing is left of all these");
}

static void t_gid(void)
{
	pln_link_open(&a, NULL);
	ktap(a->at.gid_index == 1, "the GID of an IPv4 address is chosen");
	pln_link_close(a);
	gid = 1;
	open_port(&a, 1, NULL);
	gid = 0;
	ktap(a->at.gid_index == 0, "unless another is asked for");
	pln_link_close(a);
}

/* The program's domain says which device, not which port */
static void t_own_domain(void)
{
	struct pln_link_options o = { .size = sizeof(o) };

	fake_ports = 2;
	fake_port.state = IBV_PORT_DOWN;
	open_port(&a, 2, "fake0");
	o.pd = pln_link_pd(a);
	ktap(!pln_link_open(&b, &o) && b->at.ctx == a->at.ctx && b->at.port == 2,
	     "the first active port of a domain of the program's");
	pln_link_close(b);
	pln_link_close(a);
	fake_install();
}

/* a on port 1, b on port 2 of one device; what each told its queue pair */
static const struct ibv_qp_attr *rtr_a, *rtr_b;

static int ports_meet(int *other)
{
	int err;

	fake_ports = 2;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ||
	    open_port(&a, 1, NULL) || open_port(&b, 2, NULL))
		return -EBADFD;
	err = meet_both(other);
	rtr_a = fake_rtr(a->qp);
	rtr_b = fake_rtr(b->qp);
	return err;
}

static void ports_part(void)
{
	pln_link_close(a);
	pln_link_close(b);
	close(ends[0]);
	close(ends[1]);
	fake_install();
}

static void infiniband(void)
{
	fake_port.link_layer = fake_port2.link_layer =
		IBV_LINK_LAYER_INFINIBAND;
	fake_port.lid = 7;
	fake_port2.lid = 0xbeef;
}

static void t_ethernet(void)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, [12] = 10,
					[15] = 1 };
	int other;

	fake_port2.active_mtu = IBV_MTU_1024;
	fake_port2.lid = 7;	/* no such thing on Ethernet */
	sl = 5;
	ktap(!ports_meet(&other) && !other, "Ethernet: they meet");
	ktap(rtr_a->ah_attr.is_global && rtr_b->ah_attr.is_global &&
	     !memcmp(rtr_a->ah_attr.grh.dgid.raw, v4, 16) &&
	     rtr_a->ah_attr.grh.sgid_index == 1 &&
	     rtr_a->ah_attr.grh.hop_limit > 1,
	     "... by the GID of the other port, from the GID of this one");
	ktap(rtr_a->ah_attr.port_num == 1 && rtr_b->ah_attr.port_num == 2 &&
	     a->qp != b->qp, "... each through its port");
	ktap(rtr_a->ah_attr.sl == 5 && rtr_a->ah_attr.dlid == 0,
	     "... at the service level that is asked for, to no LID");
	ktap(rtr_a->min_rnr_timer == 12 && fake_rts(a->qp)->timeout == VERBS_TIMEOUT,
	     "... with a link's timers");
	sl = 0;
	ktap(rtr_a->path_mtu == IBV_MTU_1024 &&
	     rtr_b->path_mtu == IBV_MTU_1024,
	     "... in packets that both ports take");
	ktap(rtr_a->dest_qp_num == b->qp->qp_num &&
	     rtr_a->rq_psn == fake_rts(b->qp)->sq_psn &&
	     rtr_b->rq_psn == fake_rts(a->qp)->sq_psn,
	     "... and expects the packets that the other sends first");
	ports_part();
}

static void t_infiniband(void)
{
	static const struct ibv_global_route none;
	int other;

	infiniband();
	fake_port.active_mtu = IBV_MTU_2048;
	ktap(!ports_meet(&other) && !other, "InfiniBand: they meet");
	ktap(rtr_a->ah_attr.dlid == 0xbeef && rtr_b->ah_attr.dlid == 7,
	     "... by the LID of the other port");
	ktap(!rtr_a->ah_attr.is_global && !rtr_b->ah_attr.is_global &&
	     !memcmp(&rtr_a->ah_attr.grh, &none, sizeof(none)),
	     "... without a global header");
	ktap(rtr_a->ah_attr.sl == 0 && rtr_a->ah_attr.src_path_bits == 0 &&
	     rtr_a->ah_attr.static_rate == 0, "... at service level 0");
	ktap(rtr_a->path_mtu == IBV_MTU_2048 &&
	     rtr_b->path_mtu == IBV_MTU_2048,
	     "... in packets that both ports take");
	ports_part();

	infiniband();
	fake_port.flags = IBV_QPF_GRH_REQUIRED;
	ktap(!ports_meet(&other) && !other &&
	     rtr_a->ah_attr.is_global && rtr_a->ah_attr.dlid == 0xbeef &&
	     rtr_a->ah_attr.grh.dgid.raw[0] == 0xfe &&
	     !rtr_b->ah_attr.is_global,
	     "a port that wants the global header has it, and the LID");
	ports_part();

	infiniband();
	gid = 2;
	sl = 3;
	ktap(!ports_meet(&other) && !other && rtr_a->ah_attr.is_global &&
	     rtr_a->ah_attr.grh.sgid_index == 1 &&
	     rtr_a->ah_attr.dlid == 0xbeef && rtr_a->ah_attr.sl == 3,
	     "so has one whose GID is asked for");
	gid = 0;
	sl = 0;
	ports_part();

	infiniband();
	fake_port.lid = 0;
	ktap(open_port(&a, 1, NULL) == -EADDRNOTAVAIL &&
	     strstr(pln_link_reason(NULL), "subnet manager"),
	     "a port without a LID: %s", pln_link_reason(NULL));
	fake_install();
}

/* What an end says to a peer with this LID */
static void t_lid(uint32_t lid, int want)
{
	struct hello h = { .qpn = 77, .mtu = IBV_MTU_4096, .lid = lid };
	uint8_t wire[HELLO_SIZE + 8] = { 0 };
	int err = -EBADFD;

	infiniband();
	open_port(&a, 1, NULL);
	memcpy(h.gid, a->at.gid.raw, 16);
	hello_encode(&h, wire);
	memcpy(wire + HELLO_SIZE, "PLNK", 4);
	if (!socketpair(AF_UNIX, SOCK_STREAM, 0, ends) &&
	    write(ends[1], wire, sizeof(wire)) == sizeof(wire))
		err = pln_link_connect(a, ends[0], 5000);
	ktap(err == want && (!want || strstr(pln_link_reason(a), "a LID")),
	     "a peer at LID %#x: %s", lid, err ? pln_link_reason(a) : "fine");
	pln_link_close(a);
	close(ends[0]);
	close(ends[1]);
	fake_install();
}

static void t_apart(void)
{
	int other, err;

	infiniband();
	fake_subnet2 = 9;
	err = ports_meet(&other);
	ktap(err == -EPROTO && other < 0 && strstr(pln_link_reason(a), "two subnets"),
	     "another subnet: %s", pln_link_reason(a));
	ports_part();
	fake_port2.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_port2.lid = 9;
	err = ports_meet(&other);
	ktap(err == -EPROTO && other < 0 && strstr(pln_link_reason(a), "InfiniBand and the other on Ethernet"),
	     "another link layer: %s", pln_link_reason(a));
	ports_part();
	ktap(fake_objects == 0, "nothing is left of all these");
}

int main(void)
{
	fake_install();
	t_choice();
	fake_install();
	t_gid();
	t_own_domain();
	t_ethernet();
	t_infiniband();
	t_lid(0xbfff, 0);
	t_lid(0xc000, -EPROTO);	/* a group's */
	t_lid(0xffff, -EPROTO);	/* everybody's */
	t_lid(0, -EPROTO);
	t_apart();
	return ktap_end();
}

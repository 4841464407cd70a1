// SPDX-License-Identifier: MIT
/* The choice of an RDMA device, its port and its GID, on a device of the test's */
#include <stdio.h>
#include <string.h>

#include "../../core/test/fake_nic.h"
#include "../../cuda/test/ktap.h"
#include "nic.h"

static char why[512];
static struct nic_port p;

static bool opens(unsigned int port, int gid)
{
	why[0] = '\0';
	return nic_open(&p, "fake0", port, gid, why, sizeof(why));
}

static void t_ports(void)
{
	fake_ports = 2;
	ktap(opens(0, -1) && p.port == 1, "the first port is active: it is taken");
	nic_close(&p);
	ktap(opens(2, -1) && p.port == 2, "unless the other is wanted");
	nic_close(&p);
	fake_port.state = IBV_PORT_DOWN;
	ktap(opens(0, -1) && p.port == 2, "the first is down: the second");
	nic_close(&p);
	ktap(nic_open(&p, NULL, 0, -1, why, sizeof(why)) && p.port == 2,
	     "of an unnamed device, too");
	nic_close(&p);
	ktap(!opens(1, -1) && strstr(why, "port 1 of fake0 is not active: ip"),
	     "one that is wanted and down: %s", why);
	ktap(!opens(3, -1) && strstr(why, "fake0 has no port 3: rdma link"),
	     "one beyond the last: %s", why);
	ktap(!nic_open(&p, "fake1", 0, -1, why, sizeof(why)) &&
	     strstr(why, "no RDMA device fake1"), "no such device: %s", why);
	fake_port2.state = IBV_PORT_INIT;
	ktap(!opens(0, -1) && strstr(why, "no port of fake0 is active: ip"),
	     "none is active: %s", why);
	fake_install();
	ktap(!opens(2, -1) && strstr(why, "no port 2: its only one is 1"),
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
	ktap(!strcmp(nic_gid_kind(p.ctx, 1, 4, &index), "ipv4") && index == 1,
	     "... and it is called so");
	nic_close(&p);
	ktap(opens(0, 0) && p.gid_index == 0 && p.gid.raw[0] == 0xfe,
	     "unless another is wanted");
	ktap(!strcmp(nic_gid_kind(p.ctx, 1, 1, &index), "link-local") &&
	     index == 0, "a link-local one is called so");
	nic_close(&p);
	ktap(!opens(0, 2) && strstr(why, "no GID with index 2"),
	     "one that there is not: %s", why);
	fake_ipv4_gid = 0xff;
	ktap(!opens(0, -1) && strstr(why, "no RoCE v2 GID: give"),
	     "none at all: %s", why);
	fake_ipv4_gid = 1;
	ktap(!fake_objects, "nothing is left of all these");
}

int main(void)
{
	fake_install();
	t_ports();
	t_gids();
	return ktap_end();
}

// SPDX-License-Identifier: MIT
/*
 * The tree from records: what a config space says, broken ones, the public
 * functions and each check of theirs, the nearest GPU, each allocation failing.
 * Works in the current folder.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../cuda/test/ktap.h"
#include "../topo.h"
#include "faults.h"

/* ---- config spaces ---- */

static unsigned char space[4096];

/* A switch's downstream port, its ACS capability behind another one. */
static void make_port(void)
{
	memset(space, 0, sizeof(space));
	memcpy(space, "\x34\x12\x73\x9e\x07\x00\x10\x00", 8);
	space[0x34] = 0x70;
	memcpy(space + 0x70, "\x05\x90", 2);
	memcpy(space + 0x90, "\x10\x00\x62\x00", 4);
	memcpy(space + 0x100, "\x01\x00\x81\x14", 4);	/* next 148 */
	memcpy(space + 0x148, "\x0d\x00\x01\x16\x7f\x40\x1d\x00", 8);
	memcpy(space + 0x160, "\x0b\x00\x01\x00\x4c\x50\x01\x06", 8);
}

static int parse(struct topo_node *n, size_t len)
{
	*n = (struct topo_node){
		.port = TOPO_BRIDGE, .port_guessed = true, .vendor = 0x1234,
		.device = 0x9e73,
	};
	return topo_config(n, space, len);
}

static void t_config(void)
{
	struct topo_node n;
	char text[32];

	make_port();
	ktap(!parse(&n, 4096) && n.port == TOPO_DOWNSTREAM &&
	     !n.port_guessed, "a downstream port");
	ktap(n.acs_cap == 0x407f && n.acs_ctrl == 0x001d, "its ACS");
	ktap(n.vsec == 0x160, "our switch's counters");
	ktap(!strcmp(topo_acs_text(n.acs_ctrl, text, sizeof(text)),
		     "SV+ TB- RR+ CR+ UF+ EC- DT-"), "ACS in words");
	space[0x102] = 0xb1;		/* the low bits of next are reserved */
	ktap(!parse(&n, 4096) && n.acs_ctrl == 0x001d, "reserved bits");
	ktap(!strcmp(topo_acs_text(0x62, text, sizeof(text)),
		     "SV- TB+ RR- CR- UF- EC+ DT+"), "and the others");
	ktap(parse(&n, 64) == -EACCES && n.port == TOPO_BRIDGE &&
	     n.port_guessed, "64 bytes are what everybody gets");
	ktap(parse(&n, 256) == -EOPNOTSUPP && n.port == TOPO_DOWNSTREAM,
	     "256 bytes tell the port, not ACS");
	ktap(parse(&n, 63) == -EPROTO, "less than 64 bytes");
	space[6] = 0;
	ktap(!parse(&n, 64) && !n.acs_cap && !n.port_guessed,
	     "no capabilities at all: 64 bytes are enough");
	make_port();
	memset(space, 0xff, 4096);
	ktap(parse(&n, 4096) == -EIO, "a device that is gone");
	make_port();
	space[0x34] = 0x20;
	ktap(parse(&n, 4096) == -EPROTO, "a capability in the header");
	make_port();
	space[0x71] = 0x70;
	ktap(parse(&n, 4096) == -EPROTO, "capabilities in a circle");
	make_port();
	memcpy(space + 0x100, "\x01\x00\x01\x10", 4);	/* next 100 */
	ktap(parse(&n, 4096) == -EPROTO, "extended ones in a circle");
	make_port();
	memcpy(space + 0x100, "\x01\x00\x01\x04", 4);	/* next 040 */
	ktap(parse(&n, 4096) == -EPROTO, "an extended one in the header");
	make_port();
	memcpy(space + 0x100, "\x01\x00\xc1\xff", 4);	/* next ffc */
	ktap(parse(&n, 4096) == -EPROTO, "one that does not fit");
	make_port();
	memset(space + 0x100, 0, 4);
	ktap(!parse(&n, 4096) && !n.acs_cap, "no extended capabilities");
	make_port();
	memset(space + 0x100, 0xff, 4);
	ktap(!parse(&n, 4096) && !n.acs_cap, "nobody answers there");
	make_port();
	space[0x70] = 0x10;
	memcpy(space + 0x70, "\x10\x00\x42\x00", 4);
	ktap(!parse(&n, 4096) && n.port == TOPO_ROOT_PORT, "a root port");
	memcpy(space + 0x70, "\x10\x00\x52\x00", 4);
	ktap(!parse(&n, 4096) && n.port == TOPO_UPSTREAM, "an upstream port");
	memcpy(space + 0x70, "\x10\x00\x02\x00", 4);
	ktap(!parse(&n, 4096) && n.port == TOPO_ENDPOINT, "an endpoint");
}

static void t_hosts(void)
{
	ktap(topo_host_allowed(0x8086, 0x09a2, false), "a host bridge allowed");
	ktap(!topo_host_allowed(0x8086, 0x29c0, true), "one that is not");
	ktap(topo_host_allowed(0x8086, 0x3c00, true) &&
	     !topo_host_allowed(0x8086, 0x3c00, false),
	     "one for its own devices only");
	ktap(topo_host_allowed(0x1ae0, 0x4242, false), "any of a vendor");
}

/* ---- a machine ---- */

/*
 * GPU0 and nvme0 below one switch, GPU1 and nvme1 on root ports of a second
 * host bridge and NUMA node; nvme1 has a head and two more names in its folder;
 * one VMD domain with nvme2; a VGA of another vendor, a virtual NIC function.
 */
static const char *const lines[] = {
	"V 1",
	"F /proc/sys/kernel/osrelease 7.2.0\\n",
	"F /proc/config.gz#CONFIG_PCI_P2PDMA y",
	"F /proc/cpuinfo#vendor_id GenuineIntel",
	"F /proc/cpuinfo#cpu\\x20family 6",
	"E /sys/module/nvidia_fs ENOENT",
	"D /sys/devices/pci0000:00 0000:00:00.0 0000:00:01.0 power",
	"D /sys/devices/pci0000:80 0000:80:01.0 0000:80:02.0",
	"D /sys/devices/pci0000:80/0000:80:05.5/pci10000:00 10000:00:02.0",
	NULL,
};

static const struct function {
	const char *address, *path, *class, *vendor, *device;
	int numa;
	unsigned int type;	/* of PCI Express */
	int acs;		/* control word, -1: none */
} functions[] = {
	{ "0000:00:00.0", "pci0000:00/0000:00:00.0", "060000", "8086", "29c0",
	  0, 0, -1 },
	{ "0000:00:01.0", "pci0000:00/0000:00:01.0", "060400", "1b36", "000c",
	  0, 4, 0 },
	{ "0000:01:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0", "060400",
	  "10b5", "8796", 0, 5, -1 },
	{ "0000:02:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0",
	  "060400", "10b5", "8796", 0, 6, 0 },
	{ "0000:02:01.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0",
	  "060400", "10b5", "8796", 0, 6, 0 },
	{ "0000:03:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/"
	  "0000:03:00.0", "030200", "1002", "740f", 0, 0, -1 },
	{ "0000:04:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/"
	  "0000:04:00.0", "010802", "144d", "a824", 0, 0, -1 },
	{ "0000:05:00.0", "pci0000:00/0000:00:01.0/0000:05:00.0", "030000",
	  "1a03", "2000", 0, 0, -1 },
	{ "0000:05:00.1", "pci0000:00/0000:00:01.0/0000:05:00.1", "020000",
	  "15b3", "101e", 0, 0, -1 },
	{ "0000:80:01.0", "pci0000:80/0000:80:01.0", "060400", "8086", "2030",
	  1, 4, 0 },
	{ "0000:80:02.0", "pci0000:80/0000:80:02.0", "060400", "8086", "2031",
	  1, 4, 0 },
	{ "0000:80:05.5", "pci0000:80/0000:80:05.5", "010400", "8086", "201d",
	  1, 0, -1 },
	{ "0000:81:00.0", "pci0000:80/0000:80:01.0/0000:81:00.0", "120000",
	  "1002", "74a1", 1, 0, -1 },
	{ "0000:82:00.0", "pci0000:80/0000:80:02.0/0000:82:00.0", "010802",
	  "144d", "a824", 1, 0, -1 },
	{ "10000:00:02.0", "pci0000:80/0000:80:05.5/pci10000:00/10000:00:02.0",
	  "060400", "8086", "2032", 1, 4, 0 },
	{ "10000:01:00.0", "pci0000:80/0000:80:05.5/pci10000:00/10000:00:02.0/"
	  "10000:01:00.0", "010802", "144d", "a824", 1, 0, -1 },
};
#define NR_FUNCTIONS (sizeof(functions) / sizeof(*functions))

static const char *in_group;		/* address of the one in an IOMMU group */
static const char *closed;		/* of the one with 64 bytes of config for us */
static const char *of_nvidia;
static bool zen;			/* the processor is one */

static void write_function(FILE *o, const struct function *f)
{
	const char *vendor = of_nvidia && !strcmp(f->address, of_nvidia) ? "10de" :
			     f->vendor;
	char acs[64] = "(4028)";

	fprintf(o, "L /sys/bus/pci/devices/%s /sys/devices/%s\n", f->address,
		f->path);
	fprintf(o, "F /sys/bus/pci/devices/%s/class 0x%s\\n\n", f->address,
		f->class);
	fprintf(o, "F /sys/bus/pci/devices/%s/vendor 0x%s\\n\n", f->address,
		vendor);
	fprintf(o, "F /sys/bus/pci/devices/%s/device 0x%s\\n\n", f->address,
		f->device);
	fprintf(o, "F /sys/bus/pci/devices/%s/numa_node %d\\n\n", f->address,
		f->numa);
	if (in_group && !strcmp(f->address, in_group))
		fprintf(o, "L /sys/bus/pci/devices/%s/iommu_group "
			"/sys/kernel/iommu_groups/17\n"
			"F /sys/kernel/iommu_groups/17/type identity\n\n",
			f->address);
	else
		fprintf(o, "E /sys/bus/pci/devices/%s/iommu_group ENOENT\n",
			f->address);
	if (f->acs >= 0)
		snprintf(acs, sizeof(acs), "(188)0d0001005f00%02x00(3832)",
			 f->acs & 0xff);
	fprintf(o, "X /sys/bus/pci/devices/%s/config %.2s%.2s%.2s%.2s000010"
		"00(44)40(11)", f->address, vendor + 2, vendor,
		f->device + 2, f->device);
	if (closed && !strcmp(f->address, closed))
		fprintf(o, "\n");
	else
		fprintf(o, "1000%x200%s\n", f->type, acs);
}

/* Of GPU0, and of the port that it is below; the others' are not said */
static const char *const links[][2] = {
	{ "0000:03:00.0/current", "speed 8.0\\x20GT/s\\x20PCIe" },
	{ "0000:03:00.0/current", "width 8" },
	{ "0000:03:00.0/max", "speed 16.0\\x20GT/s\\x20PCIe" },
	{ "0000:03:00.0/max", "width 16" },
	{ "0000:02:00.0/current", "speed 2.5\\x20GT/s" },
	{ "0000:02:00.0/max", "speed Unknown" },
};

static void make_record(const char *name, size_t skip)
{
	FILE *o = fopen(name, "w");
	size_t i;

	for (i = 0; lines[i]; i++)
		fprintf(o, "%s\n", zen && strstr(lines[i], "vendor_id") ?
			"F /proc/cpuinfo#vendor_id AuthenticAMD" :
			zen && strstr(lines[i], "family") ?
			"F /proc/cpuinfo#cpu\\x20family 25" : lines[i]);
	fputs("D /sys/bus/pci/devices", o);
	for (i = 0; i < NR_FUNCTIONS; i++)
		fprintf(o, " %s", functions[i].address);
	fputs("\n", o);
	for (i = 0; i < NR_FUNCTIONS; i++)
		if (i != skip)
			write_function(o, &functions[i]);
	fputs("D /sys/bus/pci/devices/0000:04:00.0/nvme nvme0\n"
	      "D /sys/bus/pci/devices/0000:04:00.0/nvme/nvme0 hwmon1 nvme0n1 "
	      "nvme0n2\n"
	      "D /sys/bus/pci/devices/0000:82:00.0/nvme nvme1\n"
	      "D /sys/bus/pci/devices/0000:82:00.0/nvme/nvme1 ng1n1 nvme1c1n1 "
	      "nvme1c1n1p1\n"
	      "D /sys/bus/pci/devices/10000:01:00.0/nvme nvme2\n"
	      "D /sys/bus/pci/devices/10000:01:00.0/nvme/nvme2 nvme2n1\n"
	      "L /sys/bus/pci/devices/0000:05:00.1/physfn "
	      "/sys/devices/pci0000:00/0000:00:01.0/0000:05:00.0\n", o);
	for (i = 0; i < sizeof(links) / sizeof(*links); i++)
		fprintf(o, "F /sys/bus/pci/devices/%s_link_%s\\n\n",
			links[i][0], links[i][1]);
	fclose(o);
}

static const char *label(struct pln_topo *t, int i)
{
	static struct pln_topo_device d;

	d.size = sizeof(d);
	return i >= 0 && !pln_topo_info(t, (unsigned int)i, &d) ? d.label : "";
}

static void t_machine(void)
{
	struct pln_topo_device d = { .size = sizeof(d) };
	struct pln_topo_pair p = { .size = sizeof(p) }, q = p;
	struct pln_topo *t = NULL;

	make_record("m.rec", NR_FUNCTIONS);
	ktap(!pln_topo_open(&t, "m.rec"), "a machine is opened");
	if (!t)
		return;
	ktap(pln_topo_count(t) == 5, "two GPUs, three drives, nothing else: %d",
	     pln_topo_count(t));
	ktap(!pln_topo_info(t, 1, &d) && d.kind == PLN_TOPO_GPU &&
	     !strcmp(d.label, "GPU1") && !strcmp(d.address, "0000:81:00.0") &&
	     d.vendor == 0x1002 && d.device == 0x74a1 && d.numa_node == 1 &&
	     !d.driver[0] && !d.name[0], "a GPU");
	ktap(!pln_topo_info(t, 2, &d) && d.kind == PLN_TOPO_NVME &&
	     !strcmp(d.label, "NVME0") && !strcmp(d.name, "nvme0"), "a drive");
	ktap(!pln_topo_between(t, 0, 2, &p) && p.relation == PLN_RELATION_PIX &&
	     p.verdict == PLN_VERDICT_DIRECT && p.distance == 4,
	     "one switch: %s", p.reason);
	ktap(!pln_topo_between(t, 2, 0, &q) && q.relation == p.relation &&
	     q.verdict == p.verdict && q.distance == p.distance,
	     "the order does not matter");
	ktap(!pln_topo_between(t, 1, 3, &p) && p.relation == PLN_RELATION_PHB &&
	     p.verdict == PLN_VERDICT_ROOT_COMPLEX && p.distance == 4,
	     "a host bridge told by its first root port: %s", p.reason);
	ktap(!pln_topo_between(t, 1, 4, &p) &&
	     p.relation == PLN_RELATION_NODE && p.distance == 4 &&
	     p.verdict == PLN_VERDICT_ROOT_COMPLEX,
	     "behind VMD: another host bridge of the node: %s", p.reason);
	ktap(!pln_topo_between(t, 0, 3, &p) && p.relation == PLN_RELATION_SYS &&
	     p.verdict == PLN_VERDICT_STAGED && p.distance == 6 &&
	     strstr(p.reason, "8086:29c0 of pci0000:00 is not on the list"),
	     "nodes, and a host bridge that is not on the list: %s", p.reason);
	ktap(!pln_topo_between(t, 3, 3, &p) && p.relation == PLN_RELATION_SELF,
	     "the device itself");
	pln_topo_close(t);
}

/* Who does not ask the kernel, and what the kernel would say */
static void t_p2pdma(void)
{
	struct pln_topo_pair p = { .size = sizeof(p) }, q = p;
	struct pln_topo *t = NULL;

	of_nvidia = "0000:03:00.0";
	make_record("n.rec", NR_FUNCTIONS);
	of_nvidia = NULL;
	ktap(!pln_topo_open(&t, "n.rec"), "a machine with a GPU of NVIDIA's is opened");
	if (!t)
		return;
	ktap(!pln_topo_between(t, 0, 1, &p) && !pln_topo_p2pdma(t, 0, 1, &q) &&
	     p.verdict == PLN_VERDICT_ROOT_COMPLEX && q.verdict == PLN_VERDICT_STAGED &&
	     q.relation == p.relation && q.distance == p.distance,
	     "NVIDIA's driver and another device: %s; P2PDMA: %s", p.reason, q.reason);
	ktap(!pln_topo_between(t, 0, 2, &p) && !pln_topo_p2pdma(t, 2, 0, &q) &&
	     q.verdict == PLN_VERDICT_DIRECT && !strcmp(p.reason, q.reason),
	     "a drive: it is the same question: %s", q.reason);
	ktap(!pln_topo_p2pdma(t, 0, 0, &q) && q.relation == PLN_RELATION_SELF,
	     "P2PDMA: the device itself");
	pln_topo_close(t);

	/* a port between the two, as others than root see it */
	closed = "0000:02:00.0";
	make_record("c.rec", NR_FUNCTIONS);
	zen = true;
	make_record("z.rec", NR_FUNCTIONS);
	zen = false;
	closed = NULL;
	if (!pln_topo_open(&t, "c.rec")) {
		ktap(!pln_topo_p2pdma(t, 0, 2, &q) && q.verdict == PLN_VERDICT_UNKNOWN,
		     "ACS is not known, and matters: %s", q.reason);
		pln_topo_close(t);
	}
	if (!pln_topo_open(&t, "z.rec")) {
		ktap(!pln_topo_between(t, 0, 2, &p) && p.verdict == PLN_VERDICT_UNKNOWN &&
		     !pln_topo_p2pdma(t, 0, 2, &q) &&
		     q.verdict == PLN_VERDICT_ROOT_COMPLEX &&
		     strstr(q.reason, "if they redirect, the kernel trusts"),
		     "it does not matter: %s", q.reason);
		pln_topo_close(t);
	}
}

/* Links, the IOMMU and ACS: what root sees of a device and of the bridges above */
static void t_facts(void)
{
	static const struct {
		const char *address;
		uint32_t kind, acs;
	} above[] = {
		{ "0000:02:00.0", PLN_TOPO_DOWNSTREAM, PLN_ACS_PRESENT },
		{ "0000:01:00.0", PLN_TOPO_UPSTREAM, PLN_ACS_NONE },
		{ "0000:00:01.0", PLN_TOPO_ROOT_PORT, PLN_ACS_UNKNOWN },
	};
	struct pln_topo_device d = { .size = sizeof(d) };
	struct pln_topo *t = NULL;
	unsigned int i, good = 0;

	in_group = "0000:03:00.0";
	closed = "0000:00:01.0";
	make_record("f.rec", NR_FUNCTIONS);
	in_group = closed = NULL;
	if (pln_topo_open(&t, "f.rec")) {
		ktap(0, "a machine is opened");
		return;
	}
	ktap(!pln_topo_info(t, 0, &d) && d.link_speed == 8000 &&
	     d.link_width == 8 && d.max_link_speed == 16000 &&
	     d.max_link_width == 16, "a link that could be faster and wider");
	ktap(d.iommu == PLN_IOMMU_PASSTHROUGH && d.iommu_group == 17,
	     "its IOMMU group, and the mode");
	ktap(!pln_topo_info(t, 1, &d) && !d.link_speed && !d.link_width &&
	     !d.max_link_speed && !d.max_link_width &&
	     d.iommu == PLN_IOMMU_OFF && d.iommu_group == -1,
	     "what is not said");
	for (i = 0; i < 3; i++)
		good += !pln_topo_above(t, 0, i, &d) &&
			!strcmp(d.address, above[i].address) && !d.label[0] &&
			d.kind == above[i].kind && d.acs == above[i].acs;
	ktap(good == 3, "three bridges above a GPU: %u", good);
	ktap(!pln_topo_above(t, 0, 0, &d) && d.link_speed == 2500 &&
	     !d.max_link_speed && d.vendor == 0x10b5,
	     "the link of one of them, of another kernel");
	ktap(pln_topo_above(t, 0, 3, &d) == -ERANGE &&
	     pln_topo_above(t, 0, UINT_MAX, &d) == -ERANGE &&
	     pln_topo_above(t, 5, 0, &d) == -ERANGE,
	     "no further bridge, no such device");
	pln_topo_close(t);
}

/* A file on two drives: neither GPU is near both, the worse way counts. */
static void t_striped(void)
{
	int both[2] = { 2, 3 }, far[2] = { 3, 4 };
	char why[PLN_TOPO_REASON_MAX];
	struct topo *t;
	struct facts *f;

	if (facts_open(&f, "m.rec") || topo_build(&t, f)) {
		ktap(0, "a machine is opened");
		return;
	}
	ktap(topo_nearest(t, both, 2, why, sizeof(why)) == 0 &&
	     strstr(why, "GPU0 to nvme1 0000:82:00.0: SYS, staged"),
	     "of two drives, the worse counts: %s", why);
	ktap(topo_nearest(t, far, 2, why, sizeof(why)) == 1 &&
	     strstr(why, "GPU1 to nvme2 10000:01:00.0: NODE, root-complex"),
	     "of two far ones: %s", why);
	topo_free(t);
	facts_close(f);
}

static void t_nearest(void)
{
	char why[PLN_TOPO_REASON_MAX];
	struct pln_topo *t = NULL;
	int r;

	pln_topo_open(&t, "m.rec");
	r = pln_topo_nearest(t, "nvme0n1", why, sizeof(why));
	ktap(!strcmp(label(t, r), "GPU0") && strstr(why, "PIX, direct"),
	     "of a drive: %s", why);
	r = pln_topo_nearest(t, "nvme1n1", why, sizeof(why));
	ktap(!strcmp(label(t, r), "GPU1") && strstr(why, "PHB, root-complex"),
	     "of a multipath drive: %s", why);
	r = pln_topo_nearest(t, "0000:04:00.0", NULL, 0);
	ktap(!strcmp(label(t, r), "GPU0"), "of a PCI address");
	r = pln_topo_nearest(t, "NVME1", why, 4);
	ktap(!strcmp(label(t, r), "GPU1") && strlen(why) == 3,
	     "of a label, the reason cut to its place");
	ktap(pln_topo_nearest(t, "nvme0n3", why, sizeof(why)) == -ENOENT &&
	     strstr(why, "nvme0n3: No such"), "of no device: %s", why);
	ktap(pln_topo_nearest(t, "ng1n1", why, sizeof(why)) == -ENOENT,
	     "of a character device");
	ktap(pln_topo_nearest(t, "/tmp", why, sizeof(why)) == -EOPNOTSUPP,
	     "of a path, in a record: %s", why);
	ktap(pln_topo_nearest(t, "", why, sizeof(why)) == -EINVAL &&
	     pln_topo_nearest(t, NULL, why, sizeof(why)) == -EINVAL &&
	     pln_topo_nearest(NULL, "x", why, sizeof(why)) == -EINVAL &&
	     pln_topo_nearest(t, "nvme0", NULL, 9) == -EINVAL,
	     "wrong arguments");
	pln_topo_close(t);
	/* live: neither folder nor file is on a drive here, or it is */
	if (!pln_topo_open(&t, NULL)) {
		r = pln_topo_nearest(t, "/proc/self", why, sizeof(why));
		ktap(r == -ENOTBLK, "of a file on no drive: %s", why);
		r = pln_topo_nearest(t, "/none/x", why, sizeof(why));
		ktap(r == -ENOENT, "of a file in no folder: %s", why);
		pln_topo_close(t);
	}
}

/* ---- block devices ---- */

static const char stack[] =
	"V 1\n"
	"F /sys/devices/virtual/block/dm-0/dm/uuid LVM-abc\\n\n"
	"D /sys/devices/virtual/block/dm-0/slaves md0\n"
	"F /sys/devices/virtual/block/dm-2/dm/uuid CRYPT-LUKS2-0123456789abcdef"
	"0123456789abcdef-luks-01234567-89ab-cdef-0123-456789abcdef\\n\n"
	"D /sys/devices/virtual/block/dm-2/slaves\n"
	"L /sys/class/block/md0 /sys/devices/virtual/block/md0\n"
	"F /sys/devices/virtual/block/md0/md/level raid0\\n\n"
	"D /sys/devices/virtual/block/md0/slaves nvme1n1 nvme2n1p1 sda1\n"
	"L /sys/class/block/nvme1n1 /sys/devices/virtual/nvme-subsystem/"
	"nvme-subsys0/nvme1n1\n"
	"D /sys/devices/virtual/nvme-subsystem/nvme-subsys0 nvme1 nvme1n1 nvme3\n"
	"L /sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1 /sys/devices/"
	"pci0000:00/0000:00:01.0/0000:04:00.0/nvme/nvme1\n"
	"L /sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme3 /sys/devices/"
	"virtual/nvme-fabrics/ctl/nvme3\n"
	"L /sys/class/block/nvme2n1p1 /sys/devices/pci0000:80/0000:80:05.5/"
	"pci10000:00/10000:00:02.0/10000:01:00.0/nvme/nvme2/nvme2n1/nvme2n1p1\n"
	"F /sys/devices/pci0000:80/0000:80:05.5/pci10000:00/10000:00:02.0/"
	"10000:01:00.0/nvme/nvme2/nvme2n1/nvme2n1p1/partition 1\\n\n"
	"L /sys/class/block/sda1 /sys/devices/pci0000:00/0000:00:17.0/ata1/host0/"
	"block/sda/sda1\n"
	"F /sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1/"
	"partition 1\\n\n"
	"D /sys/devices/virtual/block/dm-1/slaves dm-1\n"
	"L /sys/class/block/dm-1 /sys/devices/virtual/block/dm-1\n"
	"F /x/partition 1\n"
	"D /sys/devices/virtual/block/md9/slaves md8 nvme1n1\n"
	"E /sys/class/block/md8 EACCES\n";

/* As @links says, each of @rows rows of @n RAIDs stands on all of the next row; the
 * last one on the first, or on nothing */
static void write_rows(FILE *o, int rows, int n, bool round)
{
	for (int i = 0; i < rows * n; i++) {
		int next = i / n + 1;

		fprintf(o, "L /sys/class/block/md%d /sys/devices/virtual/block/md%d\n"
			"D /sys/devices/virtual/block/md%d/slaves", 100 + i, 100 + i,
			100 + i);
		for (int j = 0; j < n && (next < rows || round); j++)
			fprintf(o, " md%d", 100 + next % rows * n + j);
		fputc('\n', o);
	}
}

static void count_block(void *arg, const struct topo_block *b)
{
	(void)b;
	++*(int *)arg;
}

static void t_rows(int rows, int n, bool round, int want, const char *what)
{
	FILE *o = fopen("rows.rec", "w");
	struct facts *f;
	int r, count = 0;

	fputs("V 1\n", o);
	write_rows(o, rows, n, round);
	fclose(o);
	if (facts_open(&f, "rows.rec")) {
		ktap(0, "a record of many: %s", facts_error());
		return;
	}
	r = topo_blocks(f, "/sys/devices/virtual/block/md100", count_block, &count);
	ktap(r == want && count <= 1024, "%s: %d blocks, %d", what, count, r);
	facts_close(f);
}

static void block_words(void *arg, const struct topo_block *b)
{
	char *words = arg;
	size_t n = strlen(words);

	snprintf(words + n, 512 - n, "%s %s %s%s; ", b->name, b->kind, b->detail,
		 b->address);
}

static void t_blocks(void)
{
	char words[512] = "";
	FILE *o = fopen("blocks.rec", "w");
	struct facts *f;
	int r;

	fputs(stack, o);
	fclose(o);
	if (facts_open(&f, "blocks.rec")) {
		ktap(0, "a record of block devices: %s", facts_error());
		return;
	}
	r = topo_blocks(f, "/sys/devices/virtual/block/dm-0", block_words, words);
	ktap(!r && !strcmp(words, "dm-0 dm LVM; md0 md raid0; "
			   "nvme1n1 nvme-head ; nvme1 nvme 0000:04:00.0; "
			   "nvme3 nvme-fabric ; nvme2n1 nvme 10000:01:00.0; "
			   "sda other ; "),
	     "what a logical volume stands on: %s", words);
	words[0] = '\0';
	r = topo_blocks(f, "/sys/devices/virtual/block/dm-2", block_words, words);
	ktap(!r && !strcmp(words, "dm-2 dm CRYPT; "),
	     "of an encrypted one whose UUID is long, the word: %s, %d", words, r);
	r = topo_blocks(f, "/sys/devices/virtual/block/dm-1", block_words, words);
	ktap(r == -ELOOP, "one that stands on itself");
	words[0] = '\0';
	r = topo_blocks(f, "/x", block_words, words);
	ktap(!strncmp(words, "x other ", 8), "a partition of nothing: %s", words);
	words[0] = '\0';
	r = topo_blocks(f, "/sys/devices/virtual/block/md9", block_words, words);
	ktap(r == -EACCES && strstr(words, "nvme3 nvme-fabric"),
	     "one that cannot be read is told, the rest is there: %s, %d", words, r);
	facts_close(f);
	t_rows(1, 20, true, -ELOOP, "20 that stand on each other");
	t_rows(6, 8, false, -E2BIG, "more than there can be");
}

static void t_arguments(void)
{
	struct pln_topo_device d = { .size = sizeof(d) };
	struct pln_topo_pair p = { .size = sizeof(p) };
	struct { struct pln_topo_device d; uint64_t more; } ld;
	struct { struct pln_topo_pair p; uint64_t more; } lp;
	struct pln_topo *t = NULL;

	ktap(pln_topo_open(NULL, NULL) == -EINVAL &&
	     pln_topo_count(NULL) == -EINVAL, "no handle");
	ktap(pln_topo_open(&t, "none.rec") == -ENOENT && !t, "no record");
	pln_topo_open(&t, "m.rec");
	ktap(pln_topo_info(NULL, 0, &d) == -EINVAL &&
	     pln_topo_info(t, 0, NULL) == -EINVAL &&
	     pln_topo_above(NULL, 0, 0, &d) == -EINVAL &&
	     pln_topo_above(t, 0, 0, NULL) == -EINVAL &&
	     pln_topo_between(NULL, 0, 0, &p) == -EINVAL &&
	     pln_topo_between(t, 0, 0, NULL) == -EINVAL &&
	     pln_topo_p2pdma(NULL, 0, 0, &p) == -EINVAL &&
	     pln_topo_p2pdma(t, 0, 0, NULL) == -EINVAL, "no structure");
	d.size = 1;
	p.size = 1;
	ktap(pln_topo_info(t, 0, &d) == -EINVAL &&
	     pln_topo_above(t, 0, 0, &d) == -EINVAL &&
	     pln_topo_between(t, 0, 0, &p) == -EINVAL, "another size");
	memset(&ld, 0xff, sizeof(ld));
	memset(&lp, 0xff, sizeof(lp));
	ktap(pln_topo_info(t, 0, &ld.d) == -EINVAL, "a size that was never set");
	ld.d.size = sizeof(ld);
	lp.p.size = sizeof(lp);
	ktap(!pln_topo_info(t, 0, &ld.d) && ld.d.size == sizeof(ld) &&
	     ld.d.label[0] && !ld.more &&
	     !pln_topo_between(t, 0, 0, &lp.p) && lp.p.size == sizeof(lp) &&
	     !lp.more, "a larger size: the rest is 0");
	d.size = sizeof(d);
	p.size = sizeof(p);
	ktap(pln_topo_info(t, 5, &d) == -ERANGE &&
	     pln_topo_between(t, 0, 5, &p) == -ERANGE &&
	     pln_topo_between(t, UINT_MAX, 0, &p) == -ERANGE &&
	     pln_topo_p2pdma(t, 5, 0, &p) == -ERANGE, "no such device");
	pln_topo_close(t);
	pln_topo_close(NULL);
	ktap(!strcmp(pln_relation_name(PLN_RELATION_NODE), "NODE") &&
	     !strcmp(pln_relation_name(6), "?") &&
	     !strcmp(pln_verdict_name(PLN_VERDICT_DIRECT), "direct") &&
	     !strcmp(pln_verdict_name(4), "?") &&
	     !strcmp(pln_iommu_name(PLN_IOMMU_TRANSLATED), "translated") &&
	     !strcmp(pln_iommu_name(4), "?"), "names");
}

/* A record that lacks one function at a time is never a crash, and says so. */
static void t_holes(void)
{
	unsigned int refused = 0, less = 0;
	struct pln_topo *t;
	struct facts *f;
	struct topo *tree;
	size_t i;

	for (i = 0; i < NR_FUNCTIONS; i++) {
		make_record("hole.rec", i);
		if (pln_topo_open(&t, "hole.rec")) {
			refused++;
			continue;
		}
		pln_topo_close(t);
		if (facts_open(&f, "hole.rec"))
			continue;
		if (!topo_build(&tree, f)) {
			less += tree->missing || tree->devs < 5;
			topo_free(tree);
		}
		facts_close(f);
	}
	ktap(!refused && less >= 10, "records with holes: %u know less", less);
}

/* All answers as one text. */
static void answers(struct pln_topo *t, char *out, size_t size)
{
	struct pln_topo_device d = { .size = sizeof(d) };
	struct pln_topo_pair p = { .size = sizeof(p) };
	int i, j, n = pln_topo_count(t);
	FILE *o = fmemopen(out, size, "w");

	for (i = 0; i < n; i++) {
		pln_topo_info(t, (unsigned int)i, &d);
		fprintf(o, "%s %s %s %d\n", d.label, d.address, d.name,
			d.numa_node);
		for (j = 0; j < n; j++) {
			pln_topo_between(t, (unsigned int)i, (unsigned int)j,
					 &p);
			fprintf(o, "%u %u %u %s\n", p.relation, p.verdict,
				p.distance, p.reason);
		}
	}
	fprintf(o, "%d\n", pln_topo_nearest(t, "nvme1n1", NULL, 0));
	fclose(o);
}

static void t_faults(const char *record, const char *name)
{
	static char before[16384], after[16384];
	unsigned int nth, refused = 0, wrong = 0;
	struct pln_topo *t;
	int r;

	if (pln_topo_open(&t, record)) {
		ktap_skip(name, "no PCI bus here");
		return;
	}
	answers(t, before, sizeof(before));
	pln_topo_close(t);
	for (nth = 1; nth < 5000; nth++) {
		faults_reset();
		fail_at[MALLOC] = nth;
		t = NULL;
		r = pln_topo_open(&t, record);
		fail_at[MALLOC] = 0;
		refused += r == -ENOMEM && !t;
		if (!r)
			answers(t, after, sizeof(after));
		wrong += r ? r != -ENOMEM || t : strcmp(before, after) != 0;
		pln_topo_close(t);
		if (calls[MALLOC] < nth)
			break;
	}
	ktap(nth < 5000 && refused > 20 && !wrong,
	     "%s, each allocation failing: %u tried, %u refused, %u wrong",
	     name, nth - 1, refused, wrong);
}

int main(void)
{
	t_config();
	t_hosts();
	t_machine();
	t_p2pdma();
	t_facts();
	t_nearest();
	t_blocks();
	t_striped();
	t_arguments();
	t_holes();
	t_faults("m.rec", "a record");
	t_faults(NULL, "this machine");
	return ktap_end();
}

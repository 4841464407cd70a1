// SPDX-License-Identifier: MIT
/* peerlane topo: where devices sit, and which way data goes between them. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "topo.h"

static const char usage[] =
"usage: peerlane topo [--matrix] [--tree] [--pairs] [--json] [--from RECORD]\n"
"       peerlane topo --near WHAT [--json] [--from RECORD]\n"
"       peerlane topo --record FILE\n"
"\n"
"Shows how GPUs, RDMA NICs and NVMe drives are connected, and how data moves\n"
"between two of them: direct, through the root complex, or staged in host\n"
"memory.  Without root it can read fewer facts, and lists the missing ones.\n"
"Without --matrix, --tree and --pairs it prints the matrix and the tree.\n";

static const char after[] =
"Exit status: 0 success, 64 wrong usage, 65 an error in the record, 66 the\n"
"input cannot be read, 73 the record cannot be written.\n";

enum { MATRIX = 1, TREE = 2, PAIRS = 4, JSON = 8, NEAR, FROM, RECORD };

static const struct opt options[] = {
	{ MATRIX, "matrix",
	  .help = "relations and paths of all pairs, with a legend" },
	{ TREE, "tree", .help = "bridges, ports and devices, with ACS and links",
	  .more = "A ? after a port means that its kind is guessed. A link "
	  "that could be faster or wider is marked." },
	{ PAIRS, "pairs",
	  .help = "one line for each pair with a GPU: the path, and what "
	  "decides it" },
	{ NEAR, "near", "WHAT", .words = "FILE",
	  .help = "only the GPU nearest to a file, a block device, or a device "
	  "given by its PCI address, label (NVME0) or name (nvme0n1)",
	  .more = "WHAT is a path if it has a slash in it, or if no device has that "
	  "name and a file has. With --json, an object of gpu, address and "
	  "reason. pln_topo_nearest(3) has the rules." },
	{ JSON, "json", .help = "print one JSON object with everything",
	  .more = "machine (kernel, cpu, p2pdma, p2pdma_source, p2pdma_old (for "
	  "kernel users only: off for drives), nvidia_fs, host_list), devices and bridges "
	  "(address, port, parent, ids, NUMA node, IOMMU mode and group, link, ACS; null is unknown), hosts "
	  "(name, ids, on_list), pairs (a, b, relation, verdict, distance, "
	  "reason, and the ports that redirect) and missing (a list of "
	  "lines)." },
	{ FROM, "from", "RECORD",
	  .help = "read a peerlane-record(5) instead of this machine" },
	{ RECORD, "record", "FILE",
	  .help = "write a record of this machine, and print nothing",
	  .more = "The record holds what this tool reads, without serial "
	  "numbers, names and addresses." },
	{ 0 }
};

const struct command topo_command = {
	.name = "topo",
	.what = "how GPUs, NICs and drives are connected, and the paths of data",
	.usage = usage, .options = options, .after = after,
};

static const char *const way_letters[] = { "?", "D", "R", "S" };

/* ---- matrix ---- */

static void matrix(const struct topo *t)
{
	struct pln_topo_pair p;
	char cell[16];
	int a, b;

	printf("%-8s", "");
	for (b = 0; b < t->devs; b++)
		printf("%-8s", t->dev[b].label);
	printf("NUMA\n");
	for (a = 0; a < t->devs; a++) {
		printf("%-8s", t->dev[a].label);
		for (b = 0; b < t->devs; b++) {
			topo_pair(t, a, b, &p);
			snprintf(cell, sizeof(cell), "%s%s%s",
				 pln_relation_name(p.relation),
				 a == b ? "" : " ",
				 a == b ? "" : way_letters[p.verdict]);
			printf("%-8s", cell);
		}
		if (t->node[t->dev[a].node].numa >= 0)
			printf("%d\n", t->node[t->dev[a].node].numa);
		else
			printf("-\n");
	}
	printf("\n"
	       "  X     the device itself\n"
	       "  PIX   one switch, or one slot, lies between\n"
	       "  PXB   more than one switch, but no host bridge\n"
	       "  PHB   one host bridge (a root complex of the CPU)\n"
	       "  NODE  two host bridges of one NUMA node\n"
	       "  SYS   the link between NUMA nodes\n"
	       "\n"
	       "  D     direct: below the root complex\n"
	       "  R     through the root complex: up, and down again\n"
	       "  S     staged: through host memory\n"
	       "  ?     a fact is missing\n"
	       "\n");
	for (a = 0; a < t->devs; a++) {
		const struct topo_dev *d = &t->dev[a];
		char **drive = d->drives;

		printf("  %-7s %s %04x:%04x", d->label,
		       t->node[d->node].address, t->node[d->node].vendor,
		       t->node[d->node].device);
		if (d->name[0])
			printf(" %s", d->name);
		for (; drive && *drive; drive++)
			printf(" %s", *drive);
		printf("\n");
	}
}

/* ---- tree ---- */

static const struct topo_dev *device_at(const struct topo *t, int node)
{
	int i;

	for (i = 0; i < t->devs; i++)
		if (t->dev[i].node == node)
			return &t->dev[i];
	return NULL;
}

static void print_node(const struct topo *t, int i)
{
	const struct topo_node *n = &t->node[i];
	const struct topo_dev *d = device_at(t, i);
	char **drive = d ? d->drives : NULL, acs[32];

	printf("%s ", n->address);
	if (d)
		printf("%s ", d->label);
	if (d && d->name[0])
		printf("%s ", d->name);
	for (; drive && *drive; drive++)
		printf("%s ", *drive);
	if (!d)
		printf("%s%s ", topo_port_name(n->port),
		       n->port_guessed ? "?" : "");
	printf("%04x:%04x", n->vendor, n->device);
	if (d && n->driver[0])
		printf(" %s", n->driver);
	if (n->width)
		printf(", %.*s GT/s x%d", (int)strcspn(n->speed, " "),
		       n->speed, n->width);
	if (n->width && n->max_width && (n->width < n->max_width ||
					 strcmp(n->speed, n->max_speed)))
		printf(" (can do %.*s GT/s x%d)",
		       (int)strcspn(n->max_speed, " "), n->max_speed,
		       n->max_width);
	if (d)
		printf(", IOMMU %s", pln_iommu_name(n->iommu));
	if (d && n->group >= 0)
		printf(" group %d", n->group);
	if (n->acs_error)
		printf(", ACS not known");
	else if (n->acs_cap && (n->acs_ctrl || !d))
		printf(", ACS %s%s", topo_acs_text(n->acs_ctrl, acs,
						   sizeof(acs)),
		       n->acs_ctrl & PLN_ACS_REDIRECT && n->parent >= 0 ?
		       ": redirects" : "");
	printf("\n");
}

static void branch(const struct topo *t, int host, int parent,
		   const char *indent)
{
	char deeper[256];
	int i, next;

	for (i = 0; i < t->nodes; i++)
		if (t->node[i].host == host && t->node[i].parent == parent)
			break;
	for (; i < t->nodes; i = next) {
		for (next = i + 1; next < t->nodes; next++)
			if (t->node[next].host == host &&
			    t->node[next].parent == parent)
				break;
		printf("%s%s ", indent, next < t->nodes ? "+-" : "\\-");
		print_node(t, i);
		snprintf(deeper, sizeof(deeper), "%s%s ", indent,
			 next < t->nodes ? "| " : "  ");
		branch(t, host, i, deeper);
	}
}

static void tree(const struct topo *t)
{
	int i;

	for (i = 0; i < t->hosts; i++) {
		const struct topo_host *h = &t->host[i];

		printf("%s", h->name);
		if (h->known)
			printf(" %04x:%04x, %s the list of %s", h->vendor,
			       h->device, topo_host_allowed(h->vendor,
							    h->device, true) ?
			       "on" : "not on", topo_host_list);
		printf("\n");
		branch(t, i, -1, " ");
	}
}

static void pairs(const struct topo *t)
{
	struct pln_topo_pair p;
	int a, b;

	for (a = 0; a < t->devs && t->dev[a].kind == PLN_TOPO_GPU; a++)
		for (b = a + 1; b < t->devs; b++) {
			topo_pair(t, a, b, &p);
			printf("%s %s: %s, %s: %s\n", t->dev[a].label,
			       t->dev[b].label, pln_relation_name(p.relation),
			       pln_verdict_name(p.verdict), p.reason);
		}
}

static void machine(const struct topo *t)
{
	int i;

	printf("kernel %s, P2PDMA %s%s%s%s, CPU %s\n",
	       t->kernel[0] ? t->kernel : "not known",
	       t->p2pdma < 0 ? "not known" : t->p2pdma ? "on" :
	       t->p2pdma_old ? "for kernel users only" : "off",
	       t->p2pdma < 0 ? "" : " (", t->p2pdma_source,
	       t->p2pdma < 0 ? "" : ")", t->cpu[0] ? t->cpu : "not known");
	for (i = 0; t->missing && t->missing[i]; i++)
		printf("missing: %s\n", t->missing[i]);
}

/* ---- JSON ---- */

#define ADD(o, key, type, value) \
	json_object_object_add(o, key, json_object_new_##type(value))

static void add_id(struct json_object *o, uint16_t vendor, uint16_t device)
{
	char text[8];

	snprintf(text, sizeof(text), "%04x", vendor);
	ADD(o, "vendor", string, text);
	snprintf(text, sizeof(text), "%04x", device);
	ADD(o, "device", string, text);
}

static struct json_object *json_node(const struct topo *t, int i)
{
	const struct topo_node *n = &t->node[i];
	struct json_object *o = json_object_new_object(), *acs = NULL;
	char text[32];

	ADD(o, "address", string, n->address);
	ADD(o, "port", string, topo_port_name(n->port));
	ADD(o, "port_guessed", boolean, n->port_guessed);
	json_object_object_add(o, "parent", n->parent < 0 ? NULL :
		json_object_new_string(t->node[n->parent].address));
	ADD(o, "host", string, t->host[n->host].name);
	add_id(o, n->vendor, n->device);
	ADD(o, "driver", string, n->driver);
	json_object_object_add(o, "numa_node", n->numa < 0 ? NULL :
			       json_object_new_int(n->numa));
	ADD(o, "iommu", string, pln_iommu_name(n->iommu));
	json_object_object_add(o, "iommu_group", n->group < 0 ? NULL :
			       json_object_new_int(n->group));
	if (n->width) {
		ADD(o, "speed", string, n->speed);
		ADD(o, "width", int, n->width);
		ADD(o, "max_speed", string, n->max_speed);
		ADD(o, "max_width", int, n->max_width);
	}
	if (!n->acs_error) {
		acs = json_object_new_object();
		ADD(acs, "present", boolean, n->acs_cap != 0);
		snprintf(text, sizeof(text), "%04x", n->acs_cap);
		ADD(acs, "capability", string, text);
		snprintf(text, sizeof(text), "%04x", n->acs_ctrl);
		ADD(acs, "control", string, text);
		ADD(acs, "redirect", boolean,
		    (n->acs_ctrl & PLN_ACS_REDIRECT) != 0);
	}
	json_object_object_add(o, "acs", acs);
	return o;
}

static struct json_object *json_devices(const struct topo *t)
{
	static const char *const kinds[] = {
		[PLN_TOPO_GPU] = "gpu", [PLN_TOPO_NIC] = "nic",
		[PLN_TOPO_NVME] = "nvme",
	};
	struct json_object *list = json_object_new_array(), *o, *drives;
	char **drive;
	int i;

	for (i = 0; i < t->devs; i++) {
		const struct topo_dev *d = &t->dev[i];

		o = json_node(t, d->node);
		ADD(o, "label", string, d->label);
		ADD(o, "kind", string, kinds[d->kind]);
		ADD(o, "name", string, d->name);
		if (d->kind == PLN_TOPO_NVME) {
			drives = json_object_new_array();
			for (drive = d->drives; drive && *drive; drive++)
				json_object_array_add(drives,
					json_object_new_string(*drive));
			json_object_object_add(o, "drives", drives);
		}
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_pairs(const struct topo *t)
{
	struct json_object *list = json_object_new_array(), *o, *ports;
	struct pln_topo_pair p;
	int a, b, i, n, nodes[32];

	for (a = 0; a < t->devs; a++)
		for (b = a + 1; b < t->devs; b++) {
			topo_pair(t, a, b, &p);
			o = json_object_new_object();
			ADD(o, "a", string, t->dev[a].label);
			ADD(o, "b", string, t->dev[b].label);
			ADD(o, "relation", string,
			    pln_relation_name(p.relation));
			ADD(o, "verdict", string, pln_verdict_name(p.verdict));
			ADD(o, "distance", int, (int)p.distance);
			ADD(o, "reason", string, p.reason);
			ports = json_object_new_array();
			n = topo_redirects(t, t->dev[a].node, t->dev[b].node,
					   nodes, 32);
			for (i = 0; i < n && i < 32; i++)
				json_object_array_add(ports,
					json_object_new_string(
						t->node[nodes[i]].address));
			json_object_object_add(o, "redirects", ports);
			json_object_array_add(list, o);
		}
	return list;
}

static void json(const struct topo *t)
{
	struct json_object *all = json_object_new_object(), *o, *list;
	int i;

	o = json_object_new_object();
	ADD(o, "kernel", string, t->kernel);
	ADD(o, "cpu", string, t->cpu);
	json_object_object_add(o, "p2pdma", t->p2pdma < 0 ? NULL :
			       json_object_new_boolean(t->p2pdma));
	ADD(o, "p2pdma_source", string, t->p2pdma_source);
	ADD(o, "p2pdma_old", boolean, t->p2pdma_old);
	ADD(o, "nvidia_fs", boolean, t->nvidia_fs);
	ADD(o, "host_list", string, topo_host_list);
	json_object_object_add(all, "machine", o);
	json_object_object_add(all, "devices", json_devices(t));
	list = json_object_new_array();
	for (i = 0; i < t->nodes; i++)
		if (!device_at(t, i))
			json_object_array_add(list, json_node(t, i));
	json_object_object_add(all, "bridges", list);
	list = json_object_new_array();
	for (i = 0; i < t->hosts; i++) {
		o = json_object_new_object();
		ADD(o, "name", string, t->host[i].name);
		if (t->host[i].known)
			add_id(o, t->host[i].vendor, t->host[i].device);
		ADD(o, "on_list", boolean, t->host[i].known &&
		    topo_host_allowed(t->host[i].vendor, t->host[i].device,
				      true));
		json_object_array_add(list, o);
	}
	json_object_object_add(all, "hosts", list);
	json_object_object_add(all, "pairs", json_pairs(t));
	list = json_object_new_array();
	for (i = 0; t->missing && t->missing[i]; i++)
		json_object_array_add(list,
				      json_object_new_string(t->missing[i]));
	json_object_object_add(all, "missing", list);
	print_json(all);
}

static int near(struct topo *t, const char *what, bool as_json)
{
	char reason[PLN_TOPO_REASON_MAX];
	struct json_object *o;
	int gpu = topo_near(t, what, reason, sizeof(reason));

	if (gpu < 0) {
		complain("%s", reason);
		return EXIT_NO_INPUT;
	}
	if (!as_json) {
		printf("%s %s: %s\n", t->dev[gpu].label,
		       t->node[t->dev[gpu].node].address, reason);
		return EXIT_OK;
	}
	o = json_object_new_object();
	ADD(o, "gpu", string, t->dev[gpu].label);
	ADD(o, "address", string, t->node[t->dev[gpu].node].address);
	ADD(o, "reason", string, reason);
	print_json(o);
	return EXIT_OK;
}

/* ---- command ---- */

static int wrong(void)
{
	say_usage(&topo_command);
	return EXIT_USAGE;
}

int facts_for(const char *from, struct facts **f)
{
	int r = facts_open(f, from);

	if (!r)
		return 0;
	complain("%s", facts_error());
	return r == -EBADMSG ? EXIT_BAD_RECORD : EXIT_NO_INPUT;
}

int cmd_topo(int argc, char **argv)
{
	const char *from = NULL, *record = NULL, *to = NULL;
	unsigned int what = 0;
	struct facts *f;
	struct topo *t;
	int c, r;

	while ((c = next_option(&topo_command, argc, argv, NULL)) != -1) {
		switch (c) {
		case MATRIX: case TREE: case PAIRS: case JSON:
			what |= (unsigned int)c;
			break;
		case NEAR: to = optarg; break;
		case FROM: from = optarg; break;
		case RECORD: record = optarg; break;
		default:
			return wrong();
		}
	}
	if (optind < argc) {
		complain("topo takes no \"%s\"", argv[optind]);
		return wrong();
	}
	if (record && (from || what || to)) {
		complain("--record writes a record of this machine and prints "
			 "nothing: no other option goes with it");
		return wrong();
	}
	if (what & JSON && what != JSON) {
		complain("--json prints all: not with --matrix, --tree or "
			 "--pairs");
		return wrong();
	}
	if (to && what & ~JSON) {
		complain("--near prints one GPU: not with --matrix, --tree or "
			 "--pairs");
		return wrong();
	}
	r = facts_for(from, &f);
	if (r)
		return r;
	r = topo_build(&t, f);
	if (r) {
		complain("%s: %s", from ? from : "this machine", r == -ENODEV ?
			 "it has no PCI bus" : strerror(-r));
		facts_close(f);
		return EXIT_NO_INPUT;
	}
	r = EXIT_OK;
	if (record) {
		c = facts_save(f, record);
		if (c) {
			complain("%s: %s", record, strerror(-c));
			r = EXIT_NO_OUTPUT;
		}
	} else if (to) {
		r = near(t, to, what & JSON);
	} else if (what & JSON) {
		json(t);
	} else {
		if (!what)
			what = MATRIX | TREE;
		if (!t->devs)
			printf("no GPU, no RDMA NIC and no NVMe drive on the "
			       "PCI bus\n");
		if (what & MATRIX && t->devs) {
			matrix(t);
			printf("\n");
		}
		if (what & TREE && t->devs) {
			tree(t);
			printf("\n");
		}
		if (what & PAIRS && t->devs) {
			pairs(t);
			printf("\n");
		}
		machine(t);
	}
	topo_free(t);
	facts_close(f);
	return r;
}

// SPDX-License-Identifier: MIT
/*
 * peerlane stats --fabric: what the ports of peerlane-switch counted, from
 * their vendor-specific capability (hw-model/docs/peerlane-switch.rst).
 */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "topo.h"

#define DEVICES		"/sys/bus/pci/devices"
#define MAGIC		0x534e4c50	/* "PLNS" */
#define AT_MAGIC	0x08
#define AT_COUNT	0x0c
#define AT_COUNTERS	0x10

static const char *const names[] = {
	"peer-read", "peer-write", "host-read", "host-write",
	"upstream-peer-read", "upstream-peer-write", "target-read",
	"target-write", "other", "refused",
};
#define COUNTERS (sizeof(names) / sizeof(*names))

static uint64_t number(const unsigned char *at, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | at[bytes];
	return v;
}

static bool id_is(struct facts *f, const char *address, const char *name,
		  long want, long or)
{
	char path[PATH_MAX], text[16];
	long v;

	snprintf(path, sizeof(path), DEVICES "/%s/%s", address, name);
	if (facts_text(f, path, text, sizeof(text)))
		return false;
	v = strtol(text, NULL, 16);
	return v == want || v == or;
}

/*
 * One port: EXIT_OK with its counters in @v.  Reading a counter's low half
 * latches the high half, and the kernel reads a config space upwards.
 */
static int read_port(struct facts *f, const char *address,
		     struct topo_node *n, uint64_t *v)
{
	unsigned char c[4096];
	char path[PATH_MAX];
	ssize_t len;
	size_t i;
	int r;

	snprintf(path, sizeof(path), DEVICES "/%s/config", address);
	len = facts_read(f, path, c, sizeof(c));
	if (len >= 64) {
		n->vendor = (uint16_t)number(c, 2);
		n->device = (uint16_t)number(c + 2, 2);
	}
	r = len < 0 ? (int)len : topo_config(n, c, (size_t)len);
	if (r) {
		complain("%s: its counters cannot be read: %s", address,
			 r == -EACCES ? "this needs root" : strerror(-r));
		return EXIT_NO_GPU;
	}
	if (!n->vsec || n->vsec + AT_COUNTERS + 8 * COUNTERS > (size_t)len ||
	    number(c + n->vsec + AT_MAGIC, 4) != MAGIC ||
	    number(c + n->vsec + AT_COUNT, 4) < COUNTERS) {
		complain("%s: no counters where peerlane-switch has them",
			 address);
		return EXIT_NO_GPU;
	}
	for (i = 0; i < COUNTERS; i++)
		v[i] = number(c + n->vsec + AT_COUNTERS + 8 * i, 8);
	return EXIT_OK;
}

static struct json_object *json_port(const char *address,
				     const struct topo_node *n,
				     const uint64_t *v)
{
	struct json_object *o = json_object_new_object();
	struct json_object *counters = json_object_new_object();
	size_t i;

	for (i = 0; i < COUNTERS; i++)
		json_object_object_add(counters, names[i],
				       json_object_new_uint64(v[i]));
	json_object_object_add(o, "address", json_object_new_string(address));
	json_object_object_add(o, "port", json_object_new_string(
				       topo_port_name(n->port)));
	json_object_object_add(o, "counters", counters);
	return o;
}

int fabric_stats(bool json, const char *from)
{
	struct json_object *ports = json_object_new_array(), *all;
	uint64_t v[COUNTERS];
	char **list = NULL;
	struct facts *f;
	int i, n, found = 0, r;
	size_t k;

	r = facts_for(from, &f);
	if (r) {
		json_object_put(ports);
		return r;
	}
	n = facts_list(f, DEVICES, &list);
	for (i = 0; i < n && !r; i++) {
		struct topo_node node = { .address = "" };

		if (!id_is(f, list[i], "vendor", TOPO_OURS, TOPO_OURS) ||
		    !id_is(f, list[i], "device", TOPO_OUR_UPSTREAM,
			   TOPO_OUR_DOWNSTREAM))
			continue;
		found++;
		r = read_port(f, list[i], &node, v);
		if (r)
			break;
		if (json) {
			json_object_array_add(ports, json_port(list[i], &node,
							       v));
			continue;
		}
		printf("%s %s\n", list[i], topo_port_name(node.port));
		for (k = 0; k < COUNTERS; k++)
			printf("  %-22s %llu\n", names[k],
			       (unsigned long long)v[k]);
	}
	facts_list_free(list);
	facts_close(f);
	if (!r && !found) {
		complain("this machine has no port of a peerlane-switch");
		r = EXIT_NO_GPU;
	}
	if (json && !r) {
		all = json_object_new_object();
		json_object_object_add(all, "ports", ports);
		print_json(all);
	} else {
		json_object_put(ports);
	}
	return r;
}

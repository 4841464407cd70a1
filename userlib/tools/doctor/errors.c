// SPDX-License-Identifier: MIT
/* peerlane doctor: what ports and devices have refused, as the kernel counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* How often did @n report that as a non-fatal error?  @text has lines of a name
 * and a number. */
static unsigned long long count_of(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *line = text;

	while (line) {
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
		line = strchr(line, '\n');
		line += line ? 1 : 0;
	}
	return 0;
}

static void check_refused(struct doctor *d, const struct rule *r)
{
	unsigned long long acs = 0, unsupported = 0, a, u;
	const struct topo_node *n, *where[16];
	char text[2048];
	struct finding *f;
	int i, k = 0;

	for (i = 0; i < d->t->nodes; i++) {
		n = &d->t->node[i];
		if (doc_text(d, "the errors that PCIe devices have reported",
			     text, sizeof(text),
			     "/sys/bus/pci/devices/%s/aer_dev_nonfatal",
			     n->address))
			continue;
		a = count_of(text, "ACSViol");
		u = count_of(text, "UnsupReq");
		doc_note(d, n->address,
			 "%llu ACS violations, %llu unsupported requests", a, u);
		if ((a || u) && k < (int)(sizeof(where) / sizeof(where[0])))
			where[k++] = n;
		acs += a;
		unsupported += u;
	}
	if (!k)
		return;
	f = doc_say(d, r, r->severity,
		    "PCIe has refused requests since the kernel started: "
		    "%llu ACS violation%s, %llu unsupported request%s",
		    acs, acs == 1 ? "" : "s", unsupported,
		    unsupported == 1 ? "" : "s");
	for (i = 0; i < k; i++)
		doc_where(f, where[i]->address);
	doc_cure(f, "dmesg has the header of the first one after \"AER:\", with "
		 "requester and address; look there for what was refused, and "
		 "compare the data that was moved since with its source%s",
		 acs ? "; the ACS control bits of the port, and its egress control "
		 "vector, say why: setpci -s BDF ECAP_ACS+6.w ECAP_ACS+8.l" : "");
}

static const struct rule errors_rules[] = {
	{ "pcie-refused", SEV_WARNING,
	  "ports of PCIe have refused requests: data may be lost",
	  "A PCIe write is posted: if a port refuses it, the device that sent "
	  "it gets no error. A drive completes a read with success, or a NIC a "
	  "transfer, but the data is not in the memory. The port that refused "
	  "reports an error, which the kernel counts in aer_dev_nonfatal; no "
	  "program is notified.",
	  "dmesg has the header of the first one after \"AER:\"; compare the "
	  "data that was moved since with its source",
	  "none; the counts start from zero when the kernel boots",
	  check_refused },
};

const struct section doc_errors = {
	"errors", "requests that PCIe refused", NULL,
	errors_rules, sizeof(errors_rules) / sizeof(struct rule), true
};

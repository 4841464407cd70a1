/* SPDX-License-Identifier: MIT */
/* nearest PATH: the GPU nearest to a file, and the way from each GPU to each other device */
#include <err.h>
#include <peerlane/peerlane.h>
#include <peerlane/topo.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct pln_topo_device one = { .size = sizeof(one) }, other = { .size = sizeof(other) };
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	char why[PLN_TOPO_REASON_MAX];
	struct pln_topo *topo;
	int a, b, r;

	if (argc != 2)
		errx(2, "usage: nearest PATH");
	r = pln_topo_open(&topo, NULL);
	if (r)
		errx(1, "pln_topo_open: %s", pln_strerror(r));

	r = pln_topo_nearest(topo, argv[1], why, sizeof(why));
	if (r < 0 || pln_topo_info(topo, r, &one))
		errx(1, "%s: %s", argv[1], why);
	printf("%s: %s: %s\n", argv[1], one.label, why);

	for (a = 0; !pln_topo_info(topo, a, &one) && one.kind == PLN_TOPO_GPU; a++)
		for (b = a + 1; !pln_topo_info(topo, b, &other); b++) {
			r = pln_topo_between(topo, a, b, &pair);
			if (r)
				errx(1, "pln_topo_between: %s", pln_strerror(r));
			printf("%s %s: %s, %s: %s\n", one.label, other.label,
			       pln_relation_name(pair.relation), pln_verdict_name(pair.verdict),
			       pair.reason);
		}
	pln_topo_close(topo);
	return 0;
}

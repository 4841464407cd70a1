/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: which PCI functions are ports of a switch.
 */
#include "qemu/osdep.h"
#include "peerlane-switch.h"

/* A cast by name would cost more than all else that is done for a page */
static ObjectClass *pls_downstream_class, *pls_upstream_class;

void pls_ports_init(void)
{
    pls_downstream_class =
        object_class_by_name(TYPE_PEERLANE_SWITCH_DOWNSTREAM);
    pls_upstream_class = object_class_by_name(TYPE_PEERLANE_SWITCH_UPSTREAM);
}

PlsDownstream *pls_as_downstream(PCIDevice *d)
{
    return object_get_class(OBJECT(d)) == pls_downstream_class ?
           (PlsDownstream *)d : NULL;
}

PlsUpstream *pls_as_upstream(PCIDevice *d)
{
    return object_get_class(OBJECT(d)) == pls_upstream_class ?
           (PlsUpstream *)d : NULL;
}

PlsCounters *pls_counters(PCIDevice *d)
{
    PlsDownstream *p = pls_as_downstream(d);
    PlsUpstream *up = p ? NULL : pls_as_upstream(d);

    return p ? &p->counters : up ? &up->counters : NULL;
}

PlsRefused *pls_refused(PCIDevice *d)
{
    PlsDownstream *p = pls_as_downstream(d);
    PlsUpstream *up = p ? NULL : pls_as_upstream(d);

    return p ? &p->refused : up ? &up->refused : NULL;
}

PlsLink *pls_link(PCIDevice *d)
{
    PlsDownstream *p = pls_as_downstream(d);
    PlsUpstream *up = p ? NULL : pls_as_upstream(d);

    return p ? &p->link : up ? &up->link : NULL;
}

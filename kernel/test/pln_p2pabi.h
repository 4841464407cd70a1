/* SPDX-License-Identifier: GPL-2.0-only */
/* The other driver of pln_p2pabi, peerlane_p2p_test: what it is told, and says. */
#ifndef PLN_P2PABI_H
#define PLN_P2PABI_H

#define DIR "/sys/kernel/debug/peerlane_p2p_test/"

#include "pln_debugfs.h"
#include "pln_peer.h"

struct state {
	int used, begun, ended, put_after, inner;
	unsigned int entries, refused;
	unsigned int version, size, pages, gaps, flags;
	unsigned long long phys;
	char uuid[33];
	unsigned int map_version, map_size, map_pages, map_gaps;
	unsigned long long dma;
	int mapped, map_peer;
};

static struct state state(unsigned int slot)
{
	struct state s = { 0 };
	FILE *f = fopen(DIR "state", "r");
	unsigned int n;
	char line[512];

	need(f, "state of the other driver");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "slot %u begun %d ended %d put-after %d entries %u inner %d refused %u version %x size %u pages %u phys %llx gaps %u flags %u uuid %32s mapped version %x size %u pages %u dma %llx gaps %u peer %d",
			   &n, &s.begun, &s.ended, &s.put_after, &s.entries,
			   &s.inner, &s.refused, &s.version, &s.size, &s.pages, &s.phys, &s.gaps,
			   &s.flags, s.uuid, &s.map_version, &s.map_size,
			   &s.map_pages, &s.dma, &s.map_gaps,
			   &s.map_peer) < 7 || n != slot) {
			memset(&s, 0, sizeof(s));
			continue;
		}
		s.used = 1;
		s.mapped = s.map_pages != 0;
		break;
	}
	fclose(f);
	return s;
}

static bool begun(unsigned int slot)
{
	int i;

	for (i = 0; i < 1000 && !state(slot).begun; i++)
		usleep(10000);
	return state(slot).begun == 1;
}

static int get(unsigned int slot, const void *va, size_t len, const char *how)
{
	return cmd("get %u %llu %zu %s", slot,
		   (unsigned long long)(uintptr_t)va, len, how);
}

static int getp(unsigned int slot, const void *va, size_t len, int flags)
{
	return cmd("getp %u %llu %zu %d", slot,
		   (unsigned long long)(uintptr_t)va, len, flags);
}

static int bad(const char *what, const void *va)
{
	return cmd("bad %s %llu %u", what, (unsigned long long)(uintptr_t)va,
		   UNIT);
}

#endif /* PLN_P2PABI_H */

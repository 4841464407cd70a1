// SPDX-License-Identifier: MIT
/*
 * Where the functions N(name) of names.inc lead: "name library place-in-it"; and
 * memory that is writable and executable, of which there should be none.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define N(name)	void name(void);
#include "names.inc"
#undef N

static const struct {
	const char *name;
	void (*at)(void);
} table[] = {
#define N(name)	{ #name, name },
#include "names.inc"
};

void lead_table(void);
void lead_table(void)
{
	static const unsigned char jump[6] = { 0xff, 0x25 };
	const char *lib;
	char line[4096];
	Dl_info info;
	FILE *maps;
	void *to;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const unsigned char *at = (const unsigned char *)table[i].at;

		if (memcmp(at, jump, sizeof(jump))) {
			printf("%s stays\n", table[i].name);
			continue;
		}
		memcpy(&to, at + sizeof(jump), sizeof(to));
		if (!dladdr(to, &info)) {
			printf("%s leads nowhere\n", table[i].name);
			continue;
		}
		lib = strrchr(info.dli_fname, '/');
		printf("%s %s %lx\n", table[i].name,
		       lib ? lib + 1 : info.dli_fname,
		       (unsigned long)((char *)to - (char *)info.dli_fbase));
	}
	maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, " rwx"))
			printf("rwx %s", line);
	if (maps)
		fclose(maps);
}

// SPDX-License-Identifier: MIT
/*
 * What lies between a file and its drives, and keeps DMA to peers from them.
 * core/topo_block.c looks so, too, but the tools' core and its records are no part of
 * this library.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_DEPTH	4	/* a level has 8 KiB of the caller's stack */
#define MAX_LAYERS	64	/* each as often as it is stood on */

/* The first line of DIR/FILE, or "" */
static void line_of(const char *dir, const char *file, char *line, int size)
{
	char path[PATH_MAX + 32];
	FILE *f;

	line[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(line, size, f))
		line[strcspn(line, "\n")] = '\0';
	fclose(f);
}

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* Why the block device of folder @disk itself passes no pages of a peer on */
static bool stops(const char *disk, const char *name, char *why, size_t size)
{
	char word[128], label[128];

	if (starts(name, "dm-")) {
		line_of(disk, "dm/name", label, sizeof(label));
		line_of(disk, "dm/uuid", word, sizeof(word));
		if (starts(word, "CRYPT-"))
			snprintf(why, size, "dm-crypt (%s, %s) is between file "
				 "and drive: the processor must decrypt all data",
				 name, label);
		else
			snprintf(why, size, "the device mapper (%s, %s) is between "
				 "file and drive: it does not pass memory of "
				 "devices on", name, label);
		return true;
	}
	if (starts(name, "loop")) {
		snprintf(why, size, "%s is between file and drive: it has buffers "
			 "of its own in host memory", name);
		return true;
	}
	if (!starts(name, "md"))
		return false;
	line_of(disk, "md/level", word, sizeof(word));
	if (!strcmp(word, "raid0") || !strcmp(word, "raid1") ||
	    !strcmp(word, "raid10"))
		return false;
	snprintf(why, size, "md (%s, %s) is between file and drives: only raid0, "
		 "raid1 and raid10 pass memory of devices on", name,
		 word[0] ? word : "of no level");
	return true;
}

static bool look(const char *folder, int depth, int *layers, char *md,
		 char *why, size_t size)
{
	char disk[PATH_MAX], path[PATH_MAX + 32], text[8], *name;
	struct dirent *e;
	bool found;
	DIR *d;

	if (depth > MAX_DEPTH || ++*layers > MAX_LAYERS ||
	    !realpath(folder, disk))
		return false;
	line_of(disk, "partition", text, sizeof(text));
	name = strrchr(disk, '/');
	if (text[0] && name) {
		*name = '\0';
		name = strrchr(disk, '/');
	}
	if (!name)
		return false;
	name++;
	if (stops(disk, name, why, size))
		return true;
	if (starts(name, "md"))
		snprintf(md, NAME_MAX + 1, "%s", name);
	snprintf(path, sizeof(path), "%s/slaves", disk);
	d = opendir(path);
	found = false;
	while (d && !found && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/slaves/%s", disk,
			     e->d_name) < (int)sizeof(path))
			found = look(path, depth + 1, layers, md, why, size);
	}
	if (d)
		closedir(d);
	return found;
}

bool layers_stop(const char *folder, bool passes, char *why, size_t size)
{
	char md[NAME_MAX + 1] = "";
	int layers = 0;

	if (look(folder, 0, &layers, md, why, size))
		return true;
	if (!md[0] || passes)
		return false;
	snprintf(why, size, "md (%s) is between file and drives: the drives refuse, or "
		 "it does not pass memory of devices on, as before Linux 7.2 or "
		 "where a drive is not NVMe", md);
	return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Errors that tests/qtest/sanitizers.sh makes in a QEMU with sanitizers, which must report them.  The case preloads this
 * library: it stands before GLib where qtest takes a command to pieces, and makes the error when that is "plant ERROR".
 * What is wrong is done by code of the models, which is compiled as it always is: its place comes from $PLANT_AT, by nm.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BYTES	65536

/* The first object is the program */
static int base_of(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

/* pln_queue_status_name(): what stands at the place that its queue's status names in an array */
static void ask(const void *queue)
{
    const char *(*name)(const void *);
    uintptr_t base = 0;

    dl_iterate_phdr(base_of, &base);
    name = (const char *(*)(const void *))(base + strtoull(getenv("PLANT_AT"), NULL, 16));
    name(queue);
}

static void plant(const char *what)
{
    char *volatile p = calloc(1, BYTES);

    if (!strcmp(what, "use-after-free")) {
        free(p);
        ask(p);
        p = NULL;
    } else if (!strcmp(what, "out-of-bounds")) {
        ask(p + BYTES);
    } else if (!strcmp(what, "misaligned")) {
        ask(p + 1);
    } else if (!strcmp(what, "index")) {
        memset(p, 0x7f, BYTES);
        ask(p);
    } else if (!strcmp(what, "leak")) {
        p = NULL;
    } else {
        ask(p);
    }
    free(p);
}

char **g_strsplit(const char *string, const char *delimiter, int max)
{
    char **(*split)(const char *, const char *, int) =
        (char **(*)(const char *, const char *, int))dlsym(RTLD_NEXT, "g_strsplit");

    if (!strncmp(string, "plant ", 6)) {
        plant(string + 6);
    }
    return split(string, delimiter, max);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data races as the thread sanitizer reports them of QEMU: on memory of the
 * guest, which is mapped, and on the state of a device, which is allocated or
 * static.  Functions and file have names as in the models; tests/qtest/races
 * sorts the reports by them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#line 1 "hw/peerlane/sample.c"
#define SAMPLE __attribute__((noinline))

static char *ram, *device;
static char data[64];
static volatile long of_all[2];

SAMPLE void pln_store(char *to)
{
    memmove(to, data, sizeof(data));
}

SAMPLE void pln_do_write(char *to)
{
    *(volatile long *)to = 3;
}

SAMPLE void sample_guest_copy(void) { pln_store(ram); }
SAMPLE void sample_guest_word(void) { pln_do_write(ram + 64); }
SAMPLE void sample_guest_else(void) { ((volatile char *)ram)[128] = 3; }
SAMPLE void sample_device_copy(void) { pln_store(device); }
SAMPLE void sample_device_word(void) { pln_do_write(device + 64); }
SAMPLE void sample_static_word(void) { pln_do_write((char *)of_all); }

static void *work(void *opaque)
{
    sample_guest_copy();
    sample_guest_word();
    sample_guest_else();
    sample_device_copy();
    sample_device_word();
    sample_static_word();
    return NULL;
}

int main(void)
{
    pthread_t thread[2];

    device = calloc(1, 128);
    ram = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
               -1, 0);
    if (!device || ram == MAP_FAILED) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&thread[i], NULL, work, NULL)) {
            return 1;
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: GDRCopy's driver, gdrdrv, gives a program a mapping of GPU memory.
 *
 *	pln_gdrdrv MAJOR PERSISTENT
 *
 * MAJOR is of the device gdrdrv; PERSISTENT 1 or 0, as its module parameter
 * use_persistent_mapping.
 */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pln_test.h"

#define NODE "/tmp/gdrdrv"

/* Its calls: magic number, number, and the size of what the caller gives */
struct gdr_pin {
	uint64_t addr, size, token;
	uint32_t va_space;
	uint64_t handle;
};

struct gdr_flag {
	uint64_t handle;
	uint32_t flag;
};

struct gdr_info {
	uint64_t handle, va, mapped_size;
	uint32_t page_size, tsc_khz;
	uint64_t tm_cycles;
	uint32_t mapping_type;
};

#define GDR_PIN		_IOWR(0xda, 1, struct gdr_pin)
#define GDR_UNPIN	_IOWR(0xda, 2, void *)
#define GDR_CB_FLAG	_IOWR(0xda, 3, void *)
#define GDR_INFO	_IOWR(0xda, 5, void *)

static int gdr_open(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	need(fd >= 0, "open gdrdrv");
	return fd;
}

static int gdr_pin(int gdr, const char *p, size_t len, uint64_t *handle)
{
	struct gdr_pin pin = { .addr = (uintptr_t)p, .size = len };
	int ret = ioctl(gdr, GDR_PIN, &pin);

	*handle = pin.handle;
	return ret;
}

static char *gdr_map(int gdr, uint64_t handle, size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, gdr,
		    handle);
}

static void test_use(int fd, bool persistent)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * UNIT);
	char *p = dev_map(fd, &a), *m, *host = malloc(UNIT);
	static char data[2 * UNIT];
	struct gdr_flag flag;
	struct pln_gpu_op op;
	struct gdr_info info;
	uint64_t handle, crc;
	int gdr = gdr_open();

	check(gdr_pin(gdr, host, UNIT, &handle) == -1,
	      "pin: memory that is no GPU's: %s", strerror(errno));
	check(!gdr_pin(gdr, p + UNIT, 2 * UNIT, &handle), "pin");
	check(gpu_query(fd).bar1_free == q0.bar1_free - 2 * UNIT,
	      "it takes BAR1");
	info.handle = handle;
	check(!ioctl(gdr, GDR_INFO, &info) &&
	      info.va == (uintptr_t)p + UNIT && info.mapped_size == 2 * UNIT &&
	      info.page_size == UNIT, "what it says of the pin");
	m = gdr_map(gdr, handle, 2 * UNIT);
	check(m != MAP_FAILED, "map");
	pattern(data, sizeof(data), 3);
	memcpy(m, data, sizeof(data));
	op = op_crc(a.handle, UNIT, 2 * UNIT);
	check(!gpu_run(fd, &op, 1, &crc) &&
	      crc == crc32c(0, data, sizeof(data)),
	      "the CPU writes, the GPU has it");
	op = op_fill(a.handle, 2 * UNIT, UNIT, 1, 0x5a);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	check(m[0] == data[0] && m[UNIT] == 0x5a && m[2 * UNIT - 1] == 0x5a,
	      "the GPU writes, the CPU has it");

	check(!gpu_free(fd, a.handle), "free under the pin");
	flag.handle = handle;
	check(!ioctl(gdr, GDR_CB_FLAG, &flag) && flag.flag == !persistent,
	      "gdrdrv was %stold", persistent ? "not " : "");
	if (persistent)
		check(m[UNIT] == 0x5a && gpu_query(fd).vram_free ==
		      q0.vram_free - 4 * UNIT, "the pin keeps the memory");
	else
		check(raises_sigbus(m), "SIGBUS behind the mapping");
	munmap(m, 2 * UNIT);
	check(!ioctl(gdr, GDR_UNPIN, &handle), "unpin");
	check(room_is(fd, &q0), "nothing is left");
	munmap(p, 4 * UNIT);
	free(host);
	close(gdr);
}

static bool hold_mapped(void)
{
	int own = gpu_open(), gdr = gdr_open();
	struct pln_gpu_alloc a = gpu_alloc(own, UNIT);
	uint64_t handle;
	char *m;

	if (gdr_pin(gdr, dev_map(own, &a), UNIT, &handle))
		return false;
	m = gdr_map(gdr, handle, UNIT);
	if (m == MAP_FAILED)
		return false;
	*m = 1;
	return true;
}

static void test_kill(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);

	end_holder(start_holder(hold_mapped));
	check(room_is(fd, &q0), "kill -9 gives all of it back");
}

int main(int argc, char **argv)
{
	int fd;

	need(argc == 3, "usage: pln_gdrdrv MAJOR PERSISTENT");
	unlink(NODE);
	need(!mknod(NODE, S_IFCHR | 0600, makedev(atoi(argv[1]), 0)), "mknod");
	fd = gpu_open();
	test_use(fd, atoi(argv[2]));
	test_kill(fd);
	close(fd);
	return test_end();
}

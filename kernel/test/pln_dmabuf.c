// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: other drivers import GPU memory, and it is taken away.
 *
 *	pln_dmabuf GPU-PCI-ADDRESS PEER-PCI-ADDRESS FAR-PCI-ADDRESS WAY
 *
 * The module peerlane_dmabuf_test plays the importers, PEER is their device.
 * WAY of its DMA: bus (addresses of the bus), iommu (of the IOMMU) or phys
 * (those of the CPU, through the host bridge).  FAR is a device whose DMA must
 * be refused, or "-".
 */
#include <pthread.h>

#include "pln_test.h"

#define DIR "/sys/kernel/debug/peerlane_dmabuf_test/"

#include "pln_debugfs.h"
#include "pln_peer.h"

struct state {
	int attached, mapped, valid, invalidated;
	unsigned int nents;
	unsigned long long addr, len;
};

static struct state state(unsigned int slot)
{
	struct state s = { 0 };
	FILE *f = fopen(DIR "state", "r");
	char line[256];
	unsigned int n;

	need(f, "state of the importers");
	while (!s.attached && fgets(line, sizeof(line), f))
		s.attached = sscanf(line, "slot %u mapped %d valid %d invalidated %d nents %u addr %llx len %llu",
				    &n, &s.mapped, &s.valid, &s.invalidated,
				    &s.nents, &s.addr, &s.len) == 7 &&
			     n == slot;
	fclose(f);
	return s;
}

static int attach(unsigned int slot, int buf, const char *pci, const char *kind)
{
	return cmd("attach %u %d %s %s", slot, buf, pci, kind);
}

static int export_parts(int fd, struct pln_gpu_part *parts, unsigned int n)
{
	struct pln_gpu_export_parts e = {
		.parts = (uintptr_t)parts, .nr_parts = n, .flags = O_CLOEXEC,
	};

	return ioctl(fd, PLN_GPU_IOC_EXPORT_PARTS, &e) ? -1 : e.fd;
}

static bool crc_is(int fd, uint32_t handle, uint64_t offset, uint64_t len,
		   uint32_t want)
{
	struct pln_gpu_op op = op_crc(handle, offset, len);
	uint64_t crc;

	return !gpu_run(fd, &op, 1, &crc) && crc == want;
}

static uint32_t crc_of_zeros(size_t len)
{
	void *zeros = calloc(1, len);
	uint32_t crc;

	need(zeros, "memory");
	crc = crc32c(0, zeros, len);
	free(zeros);
	return crc;
}

/* All VRAM that can be had is clean: what DMA wrote is nobody's */
static bool others_clean(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a[1024];
	uint32_t clean = crc_of_zeros(MIB);
	bool ok = true;
	int n = 0;

	while (n < 1024 && q.vram_free >= MIB) {
		a[n] = (struct pln_gpu_alloc){ .size = MIB };
		if (ioctl(fd, PLN_GPU_IOC_ALLOC, &a[n]))
			break;
		ok &= crc_is(fd, a[n].handle, 0, MIB, clean);
		n++;
	}
	ok &= n > 0;
	while (n)
		gpu_free(fd, a[--n].handle);
	return ok;
}

static void test_refusals(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);

	check_errno(attach(0, buf, peer_pci, "nop2p"), EOPNOTSUPP,
		    "attach: an importer without peer-to-peer");
	check_errno(attach(0, buf, peer_pci, "static"), EOPNOTSUPP,
		    "attach: an importer that cannot be told");
	if (strcmp(far_pci, "-")) {
		need(!attach(0, buf, far_pci, "p2p"), "attach");
		check_errno(cmd("map 0"), EINVAL,
			    "map: a device that has no way there");
		check(gpu_query(fd).bar1_free == q.bar1_free,
		      "a refused mapping takes no BAR1");
		cmd("detach 0");
	}
	gpu_free(fd, a.handle);
	check_errno(attach(0, buf, peer_pci, "p2p"), ENODEV,
		    "attach: after free");
	close(buf);
	check(room_is(fd, &q), "refusals leave nothing");
}

/* attach, map, use, unmap, detach */
static void test_order(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, UNIT, 2 * UNIT);
	unsigned long long bar1 = bar1_start();
	struct state s;

	check(!attach(0, buf, peer_pci, "p2p"), "attach");
	check(gpu_query(fd).bar1_free == q.bar1_free,
	      "an attachment alone takes no BAR1");
	check(!cmd("pin 0") && !cmd("map 0"), "pin and map");
	s = state(0);
	check(s.nents == 1 && s.len == 2 * UNIT, "one piece, the right size");
	if (strcmp(way, "iommu"))
		check(s.addr >= bar1 && s.addr + s.len <= bar1 + q.bar1_size,
		      "%s: its address is in BAR1 (%#llx)", way, s.addr);
	else
		check(s.addr < bar1 || s.addr >= bar1 + q.bar1_size,
		      "its address is the IOMMU's (%#llx)", s.addr);
	check(gpu_query(fd).bar1_free == q.bar1_free - 2 * UNIT,
	      "a mapping takes BAR1");
	check(!attach(1, buf, peer_pci, "p2p") && !cmd("map 1") &&
	      gpu_query(fd).bar1_free == q.bar1_free - 2 * UNIT,
	      "a second importer takes no more");
	close(buf);
	check(!cmd("unmap 0") && !cmd("unpin 0") && !cmd("detach 0") &&
	      gpu_query(fd).bar1_free == q.bar1_free - 2 * UNIT,
	      "the other one keeps the dma-buf");
	check(!cmd("unmap 1") && gpu_query(fd).bar1_free == q.bar1_free,
	      "the last unmap gives BAR1 back");
	check(!cmd("map 1") && !cmd("unmap 1"), "and again");
	check(!cmd("detach 1"), "detach");
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "nothing is left");
}

/* The peer's DMA through the mapping, of a piece in the middle of memory */
static void test_data(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 3 * UNIT, 4 * UNIT);
	uint32_t clean = crc_of_zeros(UNIT), crc;
	static char data[UNIT], back[UNIT];
	int i, bad = 0;

	need(!attach(0, buf, peer_pci, "p2p") && !cmd("map 0"), "map");
	pattern(data, UNIT, 1);
	crc = crc32c(0, data, UNIT);
	buffer(data, true);
	check(!cmd("dma 0 write %u", 2 * UNIT), "the peer writes");
	for (i = 0; i < 16; i++)
		bad += !crc_is(fd, a.handle, i * UNIT, UNIT,
			       i == 5 ? crc : clean);
	check(!bad, "the data is there, and nowhere else");
	memset(back, 0, UNIT);
	buffer(back, true);
	check(!cmd("dma 0 read %u", 2 * UNIT), "the peer reads");
	buffer(back, false);
	check(!memcmp(back, data, UNIT), "what it read is right");
	check_errno(cmd("dma 0 write %u", 4 * UNIT), ERANGE,
		    "past the end of the dma-buf");
	cmd("unmap 0");
	cmd("detach 0");
	close(buf);
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "nothing is left");
}

/* It may begin and end within pages of the GPU, of which it shows no more */
static void test_pages(int fd)
{
	const uint64_t start = 3 * UNIT + 4096, end = start + UNIT;
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, start, UNIT);
	static char data[UNIT];
	char *p;

	check(lseek(buf, 0, SEEK_END) == UNIT, "pages: its size");
	need(!attach(0, buf, peer_pci, "p2p") && !cmd("map 0"), "map");
	check(state(0).len == UNIT &&
	      gpu_query(fd).bar1_free == q.bar1_free - 2 * UNIT,
	      "what it shows is in two pages of the GPU");
	pattern(data, UNIT, 3);
	buffer(data, true);
	check(!cmd("dma 0 write 0"), "the peer writes all of it");
	check(crc_is(fd, a.handle, start, UNIT, crc32c(0, data, UNIT)),
	      "the data is there");
	check(crc_is(fd, a.handle, 0, start, crc_of_zeros(start)) &&
	      crc_is(fd, a.handle, end, MIB - end, crc_of_zeros(MIB - end)),
	      "and nowhere else");
	check_errno(cmd("dma 0 write 4096"), ERANGE, "past its end");
	p = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, buf, 0);
	check(p != MAP_FAILED && !memcmp(p, data, UNIT),
	      "a program sees the same");
	munmap(p, UNIT);
	p = mmap(NULL, UNIT + 4096, PROT_READ, MAP_SHARED, buf, 0);
	check(p == MAP_FAILED && errno == EINVAL, "mmap: past its end");
	cmd("unmap 0");
	cmd("detach 0");
	close(buf);
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "nothing is left");
}

/* Its pages need not be pinned one by one, with the lock of the page table */
static void test_fast(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);
	char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);

	need(p != MAP_FAILED, "mmap");
	check_errno(cmd("fast 0 %lx %u", (long)p, MIB), EAGAIN,
		    "fast pins: not of a page that nobody has used");
	memset(p, 1, MIB);
	if (q.features & PLN_GPU_FEAT_P2PDMA)
		check(!cmd("fast 0 %lx %u", (long)p, MIB),
		      "fast pins: of all that are there");
	else
		printf("ok %d - fast pins: of all that are there # SKIP this kernel has no P2PDMA\n",
		       ++test_count);
	check_errno(cmd("fast 0 %lx 0", (long)p), EINVAL, "fast pins: of nothing");
	check_errno(cmd("fast 0 %lx %lu", (long)p, ~0ul), EINVAL,
		    "fast pins: past the last address");
	munmap(p, MIB);
	close(buf);
	gpu_free(fd, a.handle);
	check(room_is(fd, &q), "nothing is left");
}

/* One dma-buf of several allocations */
static void test_parts(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b = gpu_alloc(fd, MIB);
	struct pln_gpu_part parts[] = {
		{ .handle = b.handle, .offset = 2 * UNIT, .size = 3 * UNIT },
		{ .handle = a.handle, .offset = 0, .size = UNIT },
		{ .handle = b.handle, .offset = 0, .size = 2 * UNIT },
	}, bad[3];
	struct pln_gpu_export_parts e = { .parts = (uintptr_t)parts };
	static char data[6][UNIT];
	struct pln_gpu_import im = { 0 };
	char *p;
	int buf, i;

	check_errno(export_parts(fd, parts, 0), EINVAL, "parts: none");
	check_errno(export_parts(fd, parts, PLN_GPU_MAX_PARTS + 1), EINVAL,
		    "parts: too many");
	check_errno(export_parts(fd, NULL, 3), EFAULT, "parts: a bad address");
	e.nr_parts = 1;
	e.flags = 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_EXPORT_PARTS, &e), EINVAL,
		    "parts: flags");
	e.flags = 0;
	e.reserved = 1;
	check_errno(ioctl(fd, PLN_GPU_IOC_EXPORT_PARTS, &e), EINVAL,
		    "parts: reserved");
	for (i = 0; i < 5; i++) {
		static const struct {
			const char *what;
			int err;
		} wrong[] = {
			{ "no handle", ENOENT }, { "past the end", EINVAL },
			{ "it ends within a page", EINVAL },
			{ "it begins within a page", EINVAL },
			{ "reserved", EINVAL },
		};

		memcpy(bad, parts, sizeof(bad));
		if (i == 0)
			bad[2].handle = 99;
		else if (i == 1)
			bad[2].offset = 15 * UNIT;
		else if (i == 2)
			bad[1].size = 4096;
		else if (i == 3)
			bad[2].offset = 4096;
		else
			bad[2].reserved = 1;
		check_errno(export_parts(fd, bad, 3), wrong[i].err,
			    wrong[i].what);
	}

	buf = export_parts(fd, parts, 3);
	need(buf >= 0, "export of parts");
	check(lseek(buf, 0, SEEK_END) == 6 * UNIT, "its size is that of all");
	im.fd = buf;
	check_errno(ioctl(fd, PLN_GPU_IOC_IMPORT, &im), EACCES,
		    "import of several parts");
	need(!attach(0, buf, peer_pci, "p2p"), "attach");
	check(!cmd("map 0"), "map");
	check(state(0).len == 6 * UNIT &&
	      gpu_query(fd).bar1_free == q.bar1_free - 6 * UNIT,
	      "all of it is mapped");
	for (i = 0; i < 6; i++) {
		pattern(data[i], UNIT, 10 + i);
		buffer(data[i], true);
		if (cmd("dma 0 write %u", i * UNIT))
			break;
	}
	check(i == 6, "the peer writes all of it");
	for (i = 0; i < 6; i++)
		if (!crc_is(fd, i == 3 ? a.handle : b.handle,
			    (i < 3 ? i + 2 : i == 3 ? 0 : i - 4) * UNIT, UNIT,
			    crc32c(0, data[i], UNIT)))
			break;
	check(i == 6, "every part has what is its");
	p = mmap(NULL, 6 * UNIT, PROT_READ, MAP_SHARED, buf, 0);
	check(p != MAP_FAILED && !memcmp(p, data, 6 * UNIT),
	      "a program sees the same");

	/* One of them goes */
	check(!gpu_free(fd, a.handle) && state(0).invalidated == 1,
	      "free of one allocation: the importer is told");
	check(raises_sigbus(p) && raises_sigbus(p + 3 * UNIT),
	      "SIGBUS behind all of the mapping");
	check_errno(cmd("dma 0 write 0"), ENODEV, "DMA after that");
	check(gpu_query(fd).vram_free == q.vram_free - 2 * MIB,
	      "the freed memory waits for the importer");
	check(!cmd("unmap 0"), "unmap");
	q.vram_free -= MIB;
	check(room_is(fd, &q), "then it and BAR1 are back");
	q.vram_free += MIB;
	check_errno(cmd("map 0"), ENODEV, "map again");
	check(crc_is(fd, b.handle, 0, UNIT, crc32c(0, data[4], UNIT)),
	      "the other allocation lives");
	cmd("detach 0");
	munmap(p, 6 * UNIT);
	close(buf);

	/* Another order: the dma-buf goes first, and one whose part has gone */
	parts[1] = parts[2];
	buf = export_parts(fd, parts, 3);
	check(buf >= 0 && !attach(0, buf, peer_pci, "p2p") && !cmd("map 0"),
	      "the same memory twice");
	close(buf);
	cmd("unmap 0");
	cmd("detach 0");
	check(!gpu_free(fd, b.handle), "free after the end of the dma-buf");
	check_errno(export_parts(fd, parts, 3), ENOENT, "parts: freed memory");
	check(room_is(fd, &q), "nothing is left");
}

/* It begins and ends within a page of the GPU; where two parts meet there is none */
static void test_parts_within(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b = gpu_alloc(fd, MIB);
	struct pln_gpu_part parts[] = {
		{ .handle = a.handle, .offset = UNIT + 8192, .size = 2 * UNIT - 8192 },
		{ .handle = b.handle, .offset = 4 * UNIT, .size = UNIT },
		{ .handle = a.handle, .offset = 8 * UNIT, .size = UNIT + 4096 },
	};
	/* The peer moves so much at a time, within one part */
	static const unsigned int at[] = {
		0, UNIT - 8192, 2 * UNIT - 8192, 3 * UNIT - 8192, 3 * UNIT - 4096,
	};
	const unsigned int len = 4 * UNIT - 4096, n = 2 * UNIT - 8192;
	static char data[4 * UNIT - 4096], part[UNIT];
	char *p;
	int buf, i;

	buf = export_parts(fd, parts, 3);
	need(buf >= 0, "export of parts within pages");
	check(lseek(buf, 0, SEEK_END) == len, "its size is that of all");
	need(!attach(0, buf, peer_pci, "p2p"), "attach");
	check(!cmd("map 0") && state(0).len == len, "all of it is mapped");
	pattern(data, len, 30);
	for (i = 0; i < 5; i++) {
		memcpy(part, data + at[i], UNIT);
		buffer(part, true);
		if (cmd("dma 0 write %u", at[i]))
			break;
	}
	check(i == 5, "the peer writes all of it");
	check(crc_is(fd, a.handle, UNIT + 8192, n, crc32c(0, data, n)) &&
	      crc_is(fd, b.handle, 4 * UNIT, UNIT, crc32c(0, data + n, UNIT)) &&
	      crc_is(fd, a.handle, 8 * UNIT, UNIT + 4096,
		     crc32c(0, data + n + UNIT, UNIT + 4096)),
	      "every part has what is its");
	check(crc_is(fd, a.handle, 0, UNIT + 8192, crc_of_zeros(UNIT + 8192)) &&
	      crc_is(fd, a.handle, 3 * UNIT, 5 * UNIT, crc_of_zeros(5 * UNIT)) &&
	      crc_is(fd, a.handle, 9 * UNIT + 4096, MIB - 9 * UNIT - 4096,
		     crc_of_zeros(MIB - 9 * UNIT - 4096)) &&
	      crc_is(fd, b.handle, 0, 4 * UNIT, crc_of_zeros(4 * UNIT)) &&
	      crc_is(fd, b.handle, 5 * UNIT, MIB - 5 * UNIT, crc_of_zeros(MIB - 5 * UNIT)),
	      "and what lies beside them has nothing");
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, buf, 0);
	check(p != MAP_FAILED && !memcmp(p, data, len), "a program sees the same");
	if (p != MAP_FAILED)
		munmap(p, len);
	cmd("unmap 0");
	cmd("detach 0");
	close(buf);
	gpu_free(fd, a.handle);
	gpu_free(fd, b.handle);
	check(room_is(fd, &q), "nothing is left");
}

/* Free while an importer has the memory mapped */
static void test_revoke(int fd)
{
	struct pln_gpu_query q = gpu_query(fd), now;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);

	need(!attach(0, buf, peer_pci, "p2p") && !cmd("pin 0") &&
	     !cmd("map 0"), "attach, pin and map");
	check(!gpu_free(fd, a.handle), "free while a peer has it mapped");
	check(state(0).invalidated == 1, "the importer is told");
	now = gpu_query(fd);
	check(now.vram_free == q.vram_free - MIB &&
	      now.bar1_free == q.bar1_free - MIB,
	      "the memory waits for the importer");
	check_errno(cmd("dma 0 write 0"), ENODEV, "its DMA: refused");
	check(!cmd("unmap 0"), "unmap");
	check(room_is(fd, &q), "now it is free");
	check_errno(cmd("map 0"), ENODEV, "map after revocation");
	check(!cmd("unpin 0"), "unpin");
	check_errno(cmd("pin 0"), ENODEV, "pin after revocation");
	check(!cmd("detach 0"), "detach");
	close(buf);

	/* It unmaps when it is told, as RDMA cores do */
	a = gpu_alloc(fd, MIB);
	buf = gpu_export(fd, a.handle, 0, MIB);
	need(!attach(0, buf, peer_pci, "auto") && !cmd("map 0"), "map");
	check(!gpu_free(fd, a.handle) && state(0).invalidated == 1 &&
	      !state(0).mapped, "told, it unmaps");
	now = gpu_query(fd);
	check(now.vram_free == q.vram_free && now.bar1_free == q.bar1_free,
	      "and the memory is back at once");
	cmd("detach 0");
	close(buf);

	/* Detached before it is freed: nobody to tell */
	a = gpu_alloc(fd, MIB);
	buf = gpu_export(fd, a.handle, 0, MIB);
	need(!attach(0, buf, peer_pci, "p2p"), "attach");
	check(!cmd("detach 0") && !gpu_free(fd, a.handle) &&
	      room_is(fd, &q), "detach, then free");
	close(buf);
}

/* An importer unmaps, and says by a fence that its work goes on */
static void test_fence(int fd)
{
	struct pln_gpu_query q = gpu_query(fd), now;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);

	need(!attach(0, buf, peer_pci, "p2p") && !cmd("map 0"), "map");
	check(!cmd("fence 0") && !cmd("unmap 0"), "a fence, unmap");
	check(!gpu_free(fd, a.handle), "free");
	now = gpu_query(fd);
	check(now.vram_free == q.vram_free - MIB &&
	      now.bar1_free == q.bar1_free - MIB,
	      "the memory waits for the fence");
	check(!cmd("signal 0") && room_is(fd, &q), "signaled: it is free");
	check(!cmd("detach 0"), "detach");
	close(buf);
}

static bool hold_mapped(void)
{
	int own = gpu_open();
	struct pln_gpu_alloc a = gpu_alloc(own, MIB);
	int buf = gpu_export(own, a.handle, 0, MIB);

	return !attach(0, buf, peer_pci, "p2p") && !cmd("map 0");
}

/* The memory's file is closed, by a kill, while it is mapped */
static void test_close(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);

	end_holder(start_holder(hold_mapped));
	check(state(0).invalidated == 1, "kill -9: the importer is told");
	check(gpu_query(fd).vram_free == q.vram_free - MIB,
	      "the memory waits for the importer");
	check(!cmd("unmap 0") && room_is(fd, &q), "unmap frees it");
	check(!cmd("detach 0"), "detach");
}

/* Unbinding waits until the importer lets go */
static void test_unbind(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB), status, out;
	struct pln_gpu_query q;
	pid_t pid;
	int i;

	need(!attach(0, buf, peer_pci, "p2p") && !cmd("map 0"), "map");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		out = open("/sys/bus/pci/drivers/peerlane_gpu/unbind",
			   O_WRONLY);
		_exit(write(out, gpu_pci, strlen(gpu_pci)) < 0);
	}
	for (i = 0; i < 1000 && !state(0).invalidated; i++)
		usleep(10000);
	check(state(0).invalidated == 1, "unbind: the importer is told");
	check(ioctl(fd, PLN_GPU_IOC_QUERY, &q) == -1, "unbind: calls fail");
	check(waitpid(pid, &status, WNOHANG) == 0,
	      "unbind waits for the importer");
	check(!cmd("unmap 0"), "unmap");
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	      !WEXITSTATUS(status), "then it ends");
	check_errno(cmd("map 0"), ENODEV, "map after unbinding");
	check(!cmd("detach 0"), "detach after unbinding");
	close(buf);
}

#define DRIVER		"/sys/kernel/debug/peerlane_p2p_test/"
#define DRAIN		"/sys/devices/virtual/workqueue/peerlane-gpu0-drain/max_active"

/* Of slot 0 of the other driver */
static bool callback_ran(void)
{
	char line[512] = "";
	FILE *f;
	int i;

	for (i = 0; i < 500; i++) {
		f = fopen(DRIVER "state", "r");
		need(f && fgets(line, sizeof(line), f), "state");
		fclose(f);
		if (strstr(line, " ended 1 "))
			return true;
		usleep(10000);
	}
	printf("# %s", line);
	return false;
}

/*
 * The GPU loses its memory while importers do not end their DMA, as many as can be told
 * at once.  Another driver's callback runs nevertheless.
 */
static void test_importers_hold(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a[3];
	int buf[2], i, max, status;
	char *p;
	FILE *f;
	pid_t pid;

	f = fopen(DRAIN, "r");
	need(f && fscanf(f, "%d", &max) == 1, "max_active");
	fclose(f);
	need(!shell("echo 1 >" DRAIN), "one work at once");
	/* Memory of the callback between the others': one of these comes before it */
	for (i = 0; i < 3; i++)
		a[i] = gpu_alloc(fd, UNIT);
	for (i = 0; i < 2; i++) {
		buf[i] = gpu_export(fd, a[2 * i].handle, 0, UNIT);
		need(!attach(i, buf[i], peer_pci, "hold"), "attach");
	}
	p = dev_map(fd, &a[1]);
	need(!order(DRIVER, "get 0 %llu %u plain",
		    (unsigned long long)(uintptr_t)p, UNIT), "get");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(shell("echo 1 >/sys/bus/pci/devices/%s/reset", gpu_pci) != 0);
	check(callback_ran(), "reset: importers wait, the callback runs");
	check(!cmd("go 0") && !cmd("go 1"), "the importers go on");
	need(waitpid(pid, &status, 0) == pid && !status, "reset");
	/* the second may be told only after the first one went on */
	for (i = 0; i < 500 && !state(1).invalidated; i++)
		usleep(10000);
	check(state(0).invalidated == 1 && state(1).invalidated == 1,
	      "both have been told");
	order(DRIVER, "free 0");
	munmap(p, UNIT);
	for (i = 0; i < 2; i++) {
		need(!cmd("detach %d", i), "detach");
		close(buf[i]);
	}
	for (i = 0; i < 3; i++)
		gpu_free(fd, a[i].handle);
	need(!shell("echo %d >" DRAIN, max), "as many as before");
	check(room_is(fd, &q), "nothing is left");
}

/* Memory is freed while an importer does not end its DMA.  A callback runs nevertheless. */
static void test_importer_holds_free(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	int buf = gpu_export(fd, a.handle, 0, UNIT), status;
	char *p = dev_map(fd, &a);
	pid_t pid;

	need(!attach(0, buf, peer_pci, "hold"), "attach");
	need(!order(DRIVER, "get 0 %llu %u plain",
		    (unsigned long long)(uintptr_t)p, UNIT), "get");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		gpu_free(fd, a.handle);
		_exit(0);
	}
	check(callback_ran(), "free: an importer waits, the callback runs");
	check(!cmd("go 0"), "the importer goes on");
	need(waitpid(pid, &status, 0) == pid && !status, "free");
	check(state(0).invalidated == 1, "it has been told");
	order(DRIVER, "free 0");
	munmap(p, UNIT);
	need(!cmd("detach 0"), "detach");
	close(buf);
	check(room_is(fd, &q), "nothing is left");
}

#include "pln_dmabuf_live.h"

int main(int argc, char **argv)
{
	int fd;

	need(argc == 5, "usage: pln_dmabuf GPU PEER FAR WAY");
	gpu_pci = argv[1];
	peer_pci = argv[2];
	far_pci = argv[3];
	way = argv[4];
	fd = gpu_open();
	test_refusals(fd);
	test_order(fd);
	test_data(fd);
	test_pages(fd);
	test_fast(fd);
	test_parts(fd);
	test_parts_within(fd);
	test_revoke(fd);
	test_fence(fd);
	test_close(fd);
	test_live(fd);
	test_careless(fd);
	test_careless_reset(fd);
	test_race(fd, false);
	test_race(fd, true);
	test_importers_hold(fd);
	test_importer_holds_free(fd);
	test_unbind(fd);
	close(fd);
	return test_end();
}

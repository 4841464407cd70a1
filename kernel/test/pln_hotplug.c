// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: the GPU is pulled out, or unplugged after asking, and plugged in
 * again, all through the PCIe slot.
 *
 *	pln_hotplug NAME PCI-ADDRESS DISK DISK-PCI-ADDRESS
 *
 * The module peerlane_dmabuf_test plays importers, on behalf of the disk.  The
 * host side knows "pull NAME", "unplug NAME" and "plug NAME".  The open
 * file of before answers ENODEV, nothing hangs, and the GPU that comes next
 * works, with data of the disk in it.
 */
#include "pln_victim.h"

#define DISK_BYTES	(4 * MIB)
#define SLOT_SECONDS	60	/* the attention button alone takes 5 */

static const char *gpu_name, *pci;
static uint32_t disk_crc;

static void fill_disk(void)
{
	char *data = aligned_alloc(4096, DISK_BYTES);
	int d = open(disk, O_WRONLY | O_DIRECT);

	need(data && d >= 0, "open %s", disk);
	pattern(data, DISK_BYTES, 7);
	need(pwrite(d, data, DISK_BYTES, 0) == DISK_BYTES, "write %s", disk);
	disk_crc = crc32c(0, data, DISK_BYTES);
	free(data);
	close(d);
}

/* The disk reads into new GPU memory, and the engine says what is there */
static bool disk_to_gpu(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, DISK_BYTES);
	struct pln_gpu_op op = op_crc(a.handle, 0, DISK_BYTES);
	int buf, d = open(disk, O_RDONLY | O_DIRECT);
	void *p = map_export(fd, a.handle, DISK_BYTES, &buf);
	uint64_t crc = 0;
	bool ok;

	ok = d >= 0 && pread(d, p, DISK_BYTES, 0) == DISK_BYTES &&
	     !gpu_run(fd, &op, 1, &crc) && crc == disk_crc;
	munmap(p, DISK_BYTES);
	close(buf);
	close(d);
	gpu_free(fd, a.handle);
	return ok;
}

static bool disk_to_host(void)
{
	char *data = aligned_alloc(4096, DISK_BYTES);
	int d = open(disk, O_RDONLY | O_DIRECT);
	bool ok;

	ok = data && d >= 0 && pread(d, data, DISK_BYTES, 0) == DISK_BYTES &&
	     crc32c(0, data, DISK_BYTES) == disk_crc;
	free(data);
	close(d);
	return ok;
}

static bool leaves_the_bus(void)
{
	char path[64];
	double end = now() + SLOT_SECONDS;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", pci);
	while (!access(path, F_OK)) {
		if (now() > end)
			return false;
		usleep(10000);
	}
	return true;
}

#define DIR "/sys/kernel/debug/peerlane_dmabuf_test/"

#include "pln_debugfs.h"

static bool importer_says(const char *what)
{
	return !shell("grep -q ' %s ' " DIR "state", what);
}

/*
 * It is pulled out while other drivers have its memory.  One that unmaps when
 * it is told holds nobody up; for the others the removal waits.
 */
static int test_importers(int fd, const char *peer)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, 16 * UNIT);
	int buf = gpu_export(fd, a.handle, 0, 4 * UNIT), i, next;
	char path[64];

	need(!cmd("attach 0 %d %s auto", buf, peer) && !cmd("map 0") &&
	     !cmd("attach 1 %d %s p2p", buf, peer) && !cmd("map 1"),
	     "importers");
	check(!shell("host pull %s | grep -qx ok", gpu_name),
	      "pulled out under importers");
	for (i = 0; i < 1000 && !importer_says("invalidated 1"); i++)
		usleep(10000);
	check(importer_says("invalidated 1") && importer_says("mapped 0"),
	      "importers: they are told, and one has unmapped");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", pci);
	check(!access(path, F_OK) && importer_says("mapped 1"),
	      "importers: the removal waits for the other");
	check_errno(cmd("map 0"), ENODEV, "importers: map again");
	check(!cmd("unmap 1") && leaves_the_bus(),
	      "importers: unmap, and the GPU leaves the bus");
	check(!cmd("detach 0") && !cmd("detach 1"), "importers: detach");
	close(buf);
	check(!shell("host plug %s | grep -qx ok", gpu_name), "plugged again");
	next = reopen();
	check(works(next), "importers: plugged again, it works");
	close(fd);
	return next;
}

/* Takes the GPU away from @fd by @how; returns a file of the next one */
static int test_removal(int fd, const char *how, const char *what)
{
	struct pln_gpu_alloc a = { .size = UNIT }, own = gpu_alloc(fd, UNIT);
	struct pln_gpu_query q = { 0 };
	struct pln_gpu_wait w;
	struct victim v;
	int next;

	victim_make(fd, &v);
	check(!shell("host %s %s | grep -qx ok", how, gpu_name), "%s", what);
	check(leaves_the_bus(), "%s: it leaves the bus", what);
	victim_check(fd, &v, what, ENODEV);
	check_errno(ioctl(fd, PLN_GPU_IOC_QUERY, &q), ENODEV, "query");
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &a), ENODEV, "alloc");
	check_errno(gpu_free(fd, own.handle), ENODEV, "free");
	check_errno(gpu_export(fd, own.handle, 0, UNIT), ENODEV, "export");
	check_errno(gpu_wait(fd, 77, 0, &w), ENOENT, "wait for no job");
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED &&
	      errno == ENODEV, "mmap: No such device");
	check(disk_to_host(), "%s: the disk goes on", what);

	check(!shell("host plug %s | grep -qx ok", gpu_name), "plugged again");
	next = reopen();
	check(works(next), "%s, plugged again: it works", what);
	check(disk_to_gpu(next), "and the disk's data reaches it");
	check_errno(ioctl(fd, PLN_GPU_IOC_QUERY, &q), ENODEV,
		    "the old file does not come back");
	close(fd);
	check(disk_to_gpu(next), "also after the old file is closed");
	return next;
}

int main(int argc, char **argv)
{
	int fd;

	need(argc == 5, "usage: pln_hotplug NAME PCI-ADDRESS DISK DISK-PCI-ADDRESS");
	gpu_name = argv[1];
	pci = argv[2];
	disk = argv[3];
	fill_disk();

	fd = gpu_open();
	check(works(fd), "the GPU works");
	check(disk_to_gpu(fd), "and the disk's data reaches it");
	fd = test_removal(fd, "pull", "pulled out");
	fd = test_removal(fd, "pull", "pulled out twice");
	fd = test_removal(fd, "unplug", "unplugged");
	fd = test_importers(fd, argv[4]);
	close(fd);
	return test_end();
}

// SPDX-License-Identifier: MIT
/* Where a file lies: its mount, its block device, and what is below that. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "unit.h"

#define NOT_DENIED	NULL
#define NO_MOUNT	"denylist of cufile.json has mounts or file systems, and the mount of the file is not to be found"

static char *g;

/* What a read of the file is told of its path, "" for p2p; @set: as the mock is then */
static const char *reason_of(const char *list, const char *item, const struct mock *set)
{
	static struct pln_file_stats s;
	char json[3 * PATH_MAX];
	CUfileHandle_t fh;
	int fd;

	snprintf(json, sizeof(json), "{\"denylist\":{\"%s\":[\"%s\"]}}", list, item);
	fresh(list ? json : NULL);
	fd = open(path, O_RDWR);
	if (fd < 0)
		abort();
	mock.mounts = set->mounts;
	mock.dev = set->dev;
	mock.block = set->block;
	mock.disk = set->disk;
	mock.disk_dev = set->disk_dev;
	mock.read_errno = set->read_errno;
	mock.read_name = set->read_name;
	mock.p2p_errno = set->p2p_errno;
	fh = reg(fd);
	mock.read_errno = 0;
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "a read");
	s = stats_of(fh);
	cuFileHandleDeregister(fh);
	close(fd);
	is(s.last_path, s.reason[0] ? PLN_PATH_BOUNCE : PLN_PATH_P2P, "by the path that its reason goes with");
	return s.reason;
}

/* ---- mounts ---- */

#define MOUNT(at, type)	"%1$d 1 8:1 / " at " rw,relatime shared:1 - " type " /dev/sda1 rw,errors=remount-ro"

/* %1$d: the number of the file's mount; %2$s: what is too long to be written here */
static const struct {
	const char *lines, *list, *item, *want;
} mountinfo[] = {
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/mnt", "denylist.mounts of cufile.json has its mount" },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/mnt/", "denylist.mounts of" },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/mnt///", "denylist.mounts of" },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/mn", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/mnt2", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/mmt", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "mounts", "/none\", \"/mnt", "denylist.mounts of" },
	{ MOUNT("/", "ext4") "\n", "mounts", "/", "denylist.mounts of" },
	{ MOUNT("/", "ext4") "\n", "mounts", "//", "denylist.mounts of" },
	{ MOUNT("/", "ext4") "\n", "mounts", "/mnt", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "filesystems", "ext4", "denylist.filesystems of cufile.json has its file system" },
	{ MOUNT("/mnt", "ext4") "\n", "filesystems", "ext", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "filesystems", "ext44", NOT_DENIED },
	{ MOUNT("/mnt", "ext4") "\n", "filesystems", "/dev/sda1", NOT_DENIED },
	{ MOUNT("/mnt", "fuse.sshfs") "\n", "filesystems", "fuse.sshfs", "denylist.filesystems of" },
	/* the kernel writes these characters so, in a subtype "#", too */
	{ MOUNT("/a\\040b", "ext4") "\n", "mounts", "/a b", "denylist.mounts of" },
	{ MOUNT("/a\\040b", "ext4") "\n", "mounts", "/a\\\\040b", NOT_DENIED },
	{ MOUNT("/t\\011n\\012b\\134s", "ext4") "\n", "mounts", "/t\\tn\\nb\\\\s", "denylist.mounts of" },
	{ MOUNT("/mnt", "fuse.a\\043b") "\n", "filesystems", "fuse.a#b", "denylist.filesystems of" },
	/* other mounts, before and after it */
	{ "1%1$d 1 8:1 / /x rw - ext4 a rw\n%1$d0 1 8:1 / /x rw - ext4 a rw\n" MOUNT("/mnt", "xfs") "\n"
	  "2%1$d 1 8:1 / /x rw - ext4 a rw\n", "mounts", "/x", NOT_DENIED },
	{ "1%1$d 1 8:1 / /x rw - ext4 a rw\n%1$d0 1 8:1 / /x rw - ext4 a rw\n" MOUNT("/mnt", "xfs") "\n"
	  "2%1$d 1 8:1 / /x rw - ext4 a rw\n", "filesystems", "xfs", "denylist.filesystems of" },
	/* on top of it, or below */
	{ "9 %1$d 8:1 / /x rw - ext4 a rw\n" MOUNT("/mnt", "xfs") "\n", "mounts", "/x", NOT_DENIED },
	/* of a part of another mount, and with all fields there can be */
	{ "%1$d 1 8:1 /x /mnt rw shared:1 master:2 propagate_from:3 unbindable - ext4 /dev/sda1 rw\n",
	  "mounts", "/x", NOT_DENIED },
	{ "%1$d 1 8:1 /x /mnt rw shared:1 master:2 propagate_from:3 unbindable - ext4 /dev/sda1 rw\n",
	  "filesystems", "ext4", "denylist.filesystems of" },
	{ "%1$d 1 8:1 / /mnt rw - ext4 /dev/sda1 rw\n", "filesystems", "ext4", "denylist.filesystems of" },
	{ "%1$d 1 8:1 / /mnt rw - tmpfs  rw\n", "filesystems", "tmpfs", "denylist.filesystems of" },
	/* lines that are none */
	{ "\n" MOUNT("/mnt", "ext4") "\n", "mounts", "/mnt", "denylist.mounts of" },
	{ "%1$d 1 8:1 / /x rw\n" MOUNT("/mnt", "ext4") "\n", "mounts", "/mnt", "denylist.mounts of" },
	{ "%1$d 1 8:1 / /x rw\n" MOUNT("/mnt", "ext4") "\n", "mounts", "/x", NOT_DENIED },
	{ "%1$d 1 8:1 / /x rw - ext4 /dev/sda1\n", "mounts", "/x", NO_MOUNT },
	{ "%1$d 1 8 / /x rw - ext4 /dev/sda1 rw\n", "mounts", "/x", NO_MOUNT },
	{ MOUNT("/mnt", "ext4"), "mounts", "/mnt", "denylist.mounts of" },
	{ "%1$d 1 8:1 / /mnt rw - ext4 /dev/sd", "mounts", "/mnt", NO_MOUNT },
	{ "1%1$d 1 8:1 / /mnt rw - ext4 /dev/sda1 rw\n", "mounts", "/mnt", NO_MOUNT },
	{ "", "filesystems", "ext4", NO_MOUNT },
	{ NULL, "filesystems", "ext4", NO_MOUNT },
	/* long ones: many layers of overlayfs; a mount point, and a type, that there is no room for */
	{ "1%1$d 1 0:9 / /x rw - overlay overlay rw,lowerdir=%2$.20000s\n" MOUNT("/mnt", "ext4") "\n",
	  "mounts", "/mnt", "denylist.mounts of" },
	{ "%1$d 1 0:9 / /mnt rw - overlay overlay rw,lowerdir=%2$.20000s\n", "filesystems", "overlay",
	  "denylist.filesystems of" },
	{ "%1$d 1 8:1 / /%2$.4094s rw - ext4 /dev/sda1 rw\n", "filesystems", "ext4", "denylist.filesystems of" },
	{ "%1$d 1 8:1 / /%2$.4095s rw - ext4 /dev/sda1 rw\n", "filesystems", "ext4", NO_MOUNT },
	{ "%1$d 1 8:1 / /mnt rw - fuse.%2$.58s /dev/sda1 rw\n", "mounts", "/mnt", "denylist.mounts of" },
	{ "%1$d 1 8:1 / /mnt rw - fuse.%2$.59s /dev/sda1 rw\n", "mounts", "/mnt", NO_MOUNT },
};

void test_mounts(void)
{
	const struct mock has = { .mounts = other };
	char *data = calloc(1, 8192), *filler;
	int fd = make(path, 0, data, 8192), id = mount_id(fd);
	const char *why;
	size_t i;
	FILE *f;

	close(fd);
	free(data);
	if (id < 0) {
		check(true, "# SKIP the mount of the file is not to be seen");
		return;
	}
	filler = malloc(20001);
	memset(filler, 'l', 20000);
	filler[20000] = '\0';
	g = gpu(8192);
	for (i = 0; i < sizeof(mountinfo) / sizeof(mountinfo[0]); i++) {
		unlink(other);
		f = mountinfo[i].lines ? fopen(other, "w") : NULL;
		if (f) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
			fprintf(f, mountinfo[i].lines, id, filler);
#pragma GCC diagnostic pop
			fclose(f);
		}
		why = reason_of(mountinfo[i].list, mountinfo[i].item, &has);
		if (!check(mountinfo[i].want ? !strncmp(why, mountinfo[i].want, strlen(mountinfo[i].want)) :
					      !why[0],
			   "denylist.%s: %.20s", mountinfo[i].list, mountinfo[i].item))
			printf("# got %s, want %s, for %.200s\n", why, mountinfo[i].want ?
			       mountinfo[i].want : "p2p", mountinfo[i].lines);
	}
	fresh(NULL);
	unlink(other);
	gpu_free(g);
	free(filler);
}

/* ---- block devices, in a process that has a /sys of its own ---- */

static void folders(const char *name)
{
	char dir[PATH_MAX], *slash;

	strcpy(dir, name);
	for (slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(dir, 0755) && errno != EEXIST)
			abort();
		*slash = '/';
	}
}

static void has_text(const char *name, const char *text)
{
	FILE *f;

	folders(name);
	f = fopen(name, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static void has_link(const char *name, const char *to)
{
	folders(name);
	if (symlink(to, name))
		abort();
}

/* A block device of this number, in this folder, with the links to it */
static void has_block(const char *folder, const char *number)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s/dev", folder);
	has_text(name, number);
	snprintf(name, sizeof(name), "/sys/dev/block/%.*s", (int)strcspn(number, "\n"), number);
	has_link(name, folder);
	snprintf(name, sizeof(name), "/sys/class/block/%s", strrchr(folder, '/') + 1);
	has_link(name, folder);
}

static void lies_on(const char *block, const char *slave)
{
	char name[PATH_MAX], target[PATH_MAX];

	snprintf(name, sizeof(name), "/sys/devices/virtual/block/%s/slaves/%s", block, slave);
	snprintf(target, sizeof(target), "/sys/class/block/%s", slave);
	has_link(name, target);
}

#define NVME0	"/sys/devices/pci0000:00/0000:00:04.0"
#define PORT	"/sys/devices/pci0000:00/0000:00:01.0"
#define NVME1	PORT "/0000:01:00.0"
#define NVME2	"/sys/devices/pci0000:00/0000:00:06.0"
#define HEAD	"/sys/devices/virtual/nvme-subsystem/nvme-subsys2"
#define VIRTUAL	"/sys/devices/virtual/block/"

/* The numbers that they have below, as of makedev(), which is no constant */
#define DEV(major, minor) ((uint64_t)(major) << 8 | (minor))
#define DISK0	DEV(259, 0)
#define PART1	DEV(259, 1)
#define DISK1	DEV(259, 2)
#define MULTI	DEV(259, 5)
#define MULTI1	DEV(259, 6)
#define MD0	DEV(9, 0)
#define DM0	DEV(253, 0)
#define LOOP0	DEV(7, 0)
#define NOBODYS	DEV(8, 0)

/*
 * Two drives, the first with a partition, the second behind a port of a switch; an array of the
 * partition and the second drive; the device mapper on the array; a drive by two ways, with
 * a partition; a file as a drive.
 */
static void machine(void)
{
	has_link("/sys/bus/pci/drivers/nvme/module", "nothing");
	has_link("/sys/bus/pci/drivers/pcieport/module", "nothing");
	has_block(NVME0 "/nvme/nvme0/nvme0n1", "259:0\n");
	has_block(NVME0 "/nvme/nvme0/nvme0n1/nvme0n1p1", "259:1\n");
	has_text(NVME0 "/nvme/nvme0/nvme0n1/nvme0n1p1/partition", "1\n");
	has_link(NVME0 "/driver", "../../../bus/pci/drivers/nvme");
	has_block(NVME1 "/nvme/nvme1/nvme1n1", "259:2\n");
	has_link(NVME1 "/driver", "../../../../bus/pci/drivers/nvme");
	has_link(PORT "/driver", "../../../bus/pci/drivers/pcieport");
	has_block(HEAD "/nvme2n1", "259:5\n");
	has_block(HEAD "/nvme2n1/nvme2n1p1", "259:6\n");
	has_text(HEAD "/nvme2n1/nvme2n1p1/partition", "1\n");
	has_text(NVME2 "/nvme/nvme2/state", "live\n");
	has_link(NVME2 "/driver", "../../../bus/pci/drivers/nvme-two");
	has_link(HEAD "/nvme2", NVME2 "/nvme/nvme2");
	has_link("/sys/class/nvme/nvme2", NVME2 "/nvme/nvme2");
	has_block(VIRTUAL "md0", "9:0\n");
	lies_on("md0", "nvme0n1p1");
	lies_on("md0", "nvme1n1");
	has_block(VIRTUAL "dm-0", "253:0\n");
	lies_on("dm-0", "md0");
	has_block(VIRTUAL "loop0", "7:0\n");
}

static const struct {
	const char *list, *item;
	uint64_t disk, dev;	/* of /dev/disk; of the file */
	const char *want;
	bool block;
	int err;		/* of who opens a file of /sys, whose name ends so */
	const char *name;
} denied[] = {
#define ITS	"denylist.devices of cufile.json has it"
#define BELOW	"denylist.devices of cufile.json has a device below it"
	{ "devices", "/dev/disk", DISK0, DISK0, .want = ITS },
	{ "devices", "/none\", \"/dev/disk", DISK0, DISK0, .want = ITS },
	{ "devices", "/dev/disk", DISK0, PART1, .want = ITS },
	{ "devices", "/dev/disk", PART1, PART1, .want = ITS },
	{ "devices", "/dev/disk", PART1, DISK0, .want = NOT_DENIED },
	{ "devices", "/dev/disk", DISK1, DISK0, .want = NOT_DENIED },
	{ "devices", "/dev/disk", DISK1, PART1, .want = NOT_DENIED },
	{ "devices", "/dev/disk", MULTI, MULTI1, .want = ITS },
	{ "devices", "/dev/disk", NOBODYS, MULTI1, .want = NOT_DENIED },
	{ "devices", "/dev/disk", DISK0, MD0, .want = BELOW },
	{ "devices", "/dev/disk", PART1, MD0, .want = BELOW },
	{ "devices", "/dev/disk", DISK1, MD0, .want = BELOW },
	{ "devices", "/dev/disk", MULTI, MD0, .want = NOT_DENIED },
	{ "devices", "/dev/disk", MD0, MD0, .want = ITS },
	{ "devices", "/dev/disk", MD0, DM0, .want = BELOW },
	{ "devices", "/dev/disk", PART1, DM0, .want = BELOW },
	{ "devices", "/dev/disk", DISK1, DM0, .want = BELOW },
	{ "devices", "/dev/disk", DM0, MD0, .want = NOT_DENIED },
	{ "devices", "/dev/disk", NOBODYS, DM0, .want = NOT_DENIED },
	{ "devices", "/dev/disk", DISK0, DEV(0, 40), .want = NOT_DENIED },
	/* a device of another kind that has the number */
	{ "devices", "/dev/null", 0, DEV(1, 3), .want = NOT_DENIED },
	{ "devices", "/dev/disk", DISK0, DISK0, .want = ITS, .block = true },
	{ "devices", "/dev/disk", DISK0, DISK1, .want = NOT_DENIED, .block = true },
#define DRIVER	"denylist.drivers of cufile.json has its driver"
#define LOWER	"denylist.drivers of cufile.json has the driver of a device below it"
	{ "drivers", "nvme", 0, DISK0, .want = DRIVER },
	{ "drivers", "virtio\", \"nvme", 0, PART1, .want = DRIVER },
	{ "drivers", "nvm", 0, DISK0, .want = NOT_DENIED },
	{ "drivers", "nvme0", 0, DISK0, .want = NOT_DENIED },
	{ "drivers", "nvme", 0, DISK1, .want = DRIVER },
	{ "drivers", "pcieport", 0, DISK1, .want = DRIVER },
	{ "drivers", "pcieport", 0, DISK0, .want = NOT_DENIED },
	{ "drivers", "nvme", 0, MD0, .want = LOWER },
	{ "drivers", "pcieport", 0, MD0, .want = LOWER },
	{ "drivers", "pcieport", 0, DM0, .want = LOWER },
	{ "drivers", "virtio", 0, DM0, .want = NOT_DENIED },
	{ "drivers", "nvme-two", 0, MULTI, .want = LOWER },
	{ "drivers", "nvme-two", 0, MULTI1, .want = LOWER },
	{ "drivers", "nvme-two", 0, MD0, .want = NOT_DENIED },
	{ "drivers", "nvme", 0, LOOP0, .want = NOT_DENIED },
	{ "drivers", "nvme", 0, NOBODYS, .want = NOT_DENIED },
	/* both: the first reason is the one told */
	{ "devices\":[\"/dev/disk\"],\"drivers", "nvme", DISK0, MD0, .want = BELOW },
	{ "devices\":[\"/dev/disk\"],\"drivers", "nvme", DISK1, MD0, .want = LOWER },
	{ "devices\":[\"/dev/disk\"],\"drivers", "nvme", DISK0, DISK1, .want = DRIVER },
	/* a block device lies on no file system, its node does */
	{ "filesystems", "ext4\", \"xfs\", \"btrfs\", \"tmpfs\", \"overlay", 0, DISK0, .want = NOT_DENIED, .block = true },
	/* what cannot be looked for may be denied; what is not there is not */
#define NO_LOOK	"denylist of cufile.json has devices or drivers, and what the file lies on cannot be looked for: memory or files ran out"
	{ "devices", "/dev/disk", DISK0, MD0, .want = NO_LOOK, .err = EMFILE },
	{ "devices", "/dev/disk", DISK0, MD0, .want = NO_LOOK, .err = ENFILE },
	{ "devices", "/dev/disk", DISK0, PART1, .want = NO_LOOK, .err = ENOMEM },
	{ "devices", "/dev/disk", DISK0, DISK0, .want = ITS, .err = EMFILE },
	{ "drivers", "virtio", 0, MD0, .want = NO_LOOK, .err = EMFILE },
	/* for a moment: at the last of all, and before */
	{ "devices", "/dev/disk", DISK1, MD0, .want = NO_LOOK, .err = EMFILE, .name = "nvme1n1/dev" },
	{ "devices", "/dev/disk", MULTI, MD0, .want = NO_LOOK, .err = EMFILE, .name = "nvme1n1/partition" },
	{ "devices", "/dev/disk", DISK0, MD0, .want = BELOW, .err = EMFILE, .name = "nvme1n1/partition" },
	{ "devices", "/dev/disk", DISK0, DISK1, .want = NOT_DENIED, .err = EACCES },
	{ "mounts", "/none", 0, MD0, .want = NOT_DENIED, .err = EMFILE },
};

static void drives(void)
{
	const char *why;
	size_t i;

	for (i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
		const struct mock has = {
			.disk = denied[i].disk ? "/dev/disk" : NULL, .disk_dev = denied[i].disk,
			.dev = denied[i].dev, .block = denied[i].block, .read_errno = denied[i].err,
			.read_name = denied[i].name,
		};

		why = reason_of(denied[i].list, denied[i].item, &has);
		if (!check(denied[i].want ? !strcmp(why, denied[i].want) : !why[0],
			   "denylist.%s %s of %u:%u, of a file on %u:%u", denied[i].list, denied[i].item,
			   major(denied[i].disk), minor(denied[i].disk), major(denied[i].dev),
			   minor(denied[i].dev)))
			printf("# got %s, want %s\n", why, denied[i].want ? denied[i].want : "p2p");
	}
}

static const struct {
	const char *level, *uuid, *name;	/* of the array, of the device mapper; NULL: none */
	uint64_t dev;
	int err;
	const char *want;
} layers[] = {
#define REFUSED	": the kernel refuses DMA between this storage device and this GPU"
#define CRYPT	"dm-crypt (dm-0, secret) is between file and drive: the processor must decrypt all data"
#define LVM	"the device mapper (dm-0, vg-data) is between file and drive"
#define DRIVES	"md (md0) is between file and drives: the drives refuse, or it does not pass"
	{ NULL, NULL, NULL, DISK0, EREMOTEIO, REFUSED },
	{ NULL, NULL, NULL, PART1, EINVAL, REFUSED },
	{ NULL, NULL, NULL, DISK0, EOPNOTSUPP, ": the storage driver does not do peer-to-peer DMA" },
	{ NULL, NULL, NULL, DEV(0, 40), EREMOTEIO, ": the file system takes no memory of devices" },
	{ NULL, NULL, NULL, DEV(0, 40), EINVAL, REFUSED },
	{ NULL, NULL, NULL, LOOP0, EINVAL, "loop0 is between file and drive: it has its own buffers" },
	{ "raid0", "CRYPT-LUKS2-0123-x", "secret", DM0, EREMOTEIO, CRYPT },
	{ "raid0", "CRYPT-LUKS2-0123-x", "secret", DM0, EINVAL, CRYPT },
	{ "raid5", "CRYPT-LUKS2-0123-x", "secret", DM0, EOPNOTSUPP, CRYPT },
	{ "raid0", "CRYPT-LUKS2-0123-x", "secret", DM0, EFAULT, ": the kernel cannot take pages of the GPU's mapping" },
	{ "raid0", "CRYPT-LUKS2-0123-x", "secret", MD0, EREMOTEIO, DRIVES },
	{ "raid5", "LVM-0123", "vg-data", DM0, EREMOTEIO, LVM },
	{ "raid5", "LVM-0123", NULL, DM0, EREMOTEIO, "the device mapper (dm-0, ) is between file and drive" },
	{ "raid5", NULL, "vg-data", DM0, EREMOTEIO, LVM },
	{ "raid5", NULL, NULL, MD0, EREMOTEIO, "md (md0, raid5) is between file and drives: only raid0, raid1 and" },
	{ "raid5", NULL, NULL, MD0, EINVAL, "md (md0, raid5) is between file and drives: only raid0, raid1 and" },
	/* of which nothing is known */
	{ "raid5", NULL, NULL, NOBODYS, EREMOTEIO, REFUSED },
	{ "linear", NULL, NULL, MD0, EINVAL, "md (md0, linear) is" },
	{ NULL, NULL, NULL, MD0, EREMOTEIO, "md (md0, of no level) is" },
	{ "raid0", NULL, NULL, MD0, EREMOTEIO, DRIVES },
	{ "raid1", NULL, NULL, MD0, EREMOTEIO, DRIVES },
	{ "raid10", NULL, NULL, MD0, EREMOTEIO, DRIVES },
	{ "raid0", NULL, NULL, MD0, EINVAL, REFUSED },
	{ "raid1", NULL, NULL, MD0, EINVAL, REFUSED },
	{ "raid10", NULL, NULL, MD0, EOPNOTSUPP, ": the storage driver does not do peer-to-peer DMA" },
	{ "raid0", NULL, NULL, MD0, EFAULT, ": the kernel cannot take pages of the GPU's mapping" },
	{ "raid0", NULL, NULL, NOBODYS, EREMOTEIO, REFUSED },
};

static void arrange(const char *name, const char *text)
{
	unlink(name);
	if (text)
		has_text(name, text);
}

static void between(void)
{
	const char *why;
	size_t i;

	for (i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		const struct mock has = { .dev = layers[i].dev, .p2p_errno = layers[i].err };

		arrange(VIRTUAL "md0/md/level", layers[i].level);
		arrange(VIRTUAL "dm-0/dm/uuid", layers[i].uuid);
		arrange(VIRTUAL "dm-0/dm/name", layers[i].name);
		why = reason_of(NULL, NULL, &has);
		if (!check(!strncmp(why, "p2p refused: ", 13) && strstr(why, layers[i].want),
			   "errno %d, on %u:%u: %s", layers[i].err, major(layers[i].dev),
			   minor(layers[i].dev), layers[i].want))
			printf("# got %s\n", why);
	}
}

/* The module's refusals: it says itself which are the device's */
static void between_module(void)
{
	static const struct {
		int err;
		unsigned int reason;
		const char *want;
	} how[] = {
		{ EOPNOTSUPP, PLN_REASON_DEVICE, "kernel refused: EOPNOTSUPP (95): " DRIVES },
		{ EINVAL, PLN_REASON_DEVICE, "kernel refused: EINVAL (22): " DRIVES },
		{ EOPNOTSUPP, PLN_REASON_MERGES, "kernel refused: EOPNOTSUPP (95): md lets the kernel merge" },
		{ EREMOTEIO, 0, "kernel refused: EREMOTEIO (121)" REFUSED },
		{ EIDRM, 0, "kernel refused: EFAULT (14): the GPU memory was freed, or lost in a reset" },
	};
	CUfileHandle_t fh;
	const char *why;
	unsigned int i;
	int fd;

	arrange(VIRTUAL "md0/md/level", "raid0\n");
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		fresh("{\"peerlane\":{\"use_pci_p2pdma\":false}}");
		cuFileDriverClose();
		mock.module = PLN_ABI_VERSION;
		if (cuFileDriverOpen().err)
			abort();
		fd = open(path, O_RDWR);
		mock.dev = MD0;
		fh = reg(fd);
		mock.module_errno = how[i].err;
		mock.module_reason = how[i].reason;
		is(cuFileRead(fh, g, 8192, 0, 0), 8192, "the module refuses");
		why = stats_of(fh).reason;
		check(!strncmp(why, how[i].want, strlen(how[i].want)), "why: %s", why);
		cuFileHandleDeregister(fh);
		close(fd);
	}
}

/* In a child with no threads but its own: false, if it can have no /sys */
static bool in_own_machine(void (*look)(void))
{
	unsigned int told[2] = { 0 };
	int status, up[2];
	pid_t pid;

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	fflush(stdout);
	if (pipe(up))
		abort();
	pid = fork();
	if (!pid) {
		if (!own_mounts() || mount("none", "/sys", "tmpfs", 0, NULL))
			_exit(9);
		machine();
		g = gpu(8192);
		look();
		told[0] = checks;
		told[1] = failed;
		_exit(write(up[1], told, sizeof(told)) != sizeof(told));
	}
	close(up[1]);
	status = read(up[0], told, sizeof(told)) == sizeof(told);
	close(up[0]);
	if (status) {
		checks = told[0];
		failed = told[1];
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
		return false;
	is(status, 0, "the process with a /sys of its own");
	return true;
}

void test_drives(void)
{
	char *data = calloc(1, 8192);

	close(make(path, 0, data, 8192));
	free(data);
	if (!in_own_machine(drives))
		check(true, "# SKIP no mount namespace for a /sys with other drives");
}

void test_layers(void)
{
	char *data = calloc(1, 8192);

	close(make(path, 0, data, 8192));
	free(data);
	if (!in_own_machine(between) || !in_own_machine(between_module))
		check(true, "# SKIP no mount namespace for a /sys with other drives");
}

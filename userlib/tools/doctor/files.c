// SPDX-License-Identifier: MIT
/* peerlane doctor: file systems and what lies between them and the drives. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dio.h"
#include "doctor.h"

static bool has_nvme(const struct mount *m)
{
	int i;

	for (i = 0; i < m->n_blocks; i++)
		if (!strcmp(m->block[i].kind, "nvme"))
			return true;
	return false;
}

/*
 * The mounts that matter: that of the question, or all that lie on an NVMe
 * drive, once for each device.
 */
static bool matters(struct doctor *d, int i)
{
	int k;

	if (d->path)
		return d->mount == &d->mounts[i];
	if (i >= d->n_mounts || !has_nvme(&d->mounts[i]))
		return false;
	for (k = 0; k < i; k++)
		if (!strcmp(d->mounts[k].device, d->mounts[i].device))
			return false;
	return true;
}

#define for_each_mount(d, m, i) \
	for (i = 0; i <= (d)->n_mounts && (m = &(d)->mounts[i]); i++) \
		if (matters(d, i))

static const char *place(struct doctor *d, const struct mount *m)
{
	return d->path ? d->path : m->point;
}

/* An answer needs to be exact; of a machine's many mounts one may be so. */
static enum severity one_of_many(struct doctor *d, const struct rule *r)
{
	return d->path ? r->severity : SEV_WARNING;
}

static bool one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

static bool in_memory(const struct mount *m)
{
	return dio_kind(m->type, 0) == DIO_IN_MEMORY;
}

static bool elsewhere(const struct mount *m)
{
	static const char *const types[] = { "nfs", "nfs4", "cifs", "smb3",
		"ceph", "lustre", "beegfs", "gpfs", "wekafs", "glusterfs", "9p",
		"virtiofs", "afs", "orangefs", NULL };

	return one_of(m->type, types) || !strncmp(m->type, "fuse", 4);
}

static const struct topo_block *block_of_kind(const struct mount *m,
					      const char *kind)
{
	int i;

	for (i = 0; i < m->n_blocks; i++)
		if (!strcmp(m->block[i].kind, kind))
			return &m->block[i];
	return NULL;
}

static void look_filesystem(struct doctor *d)
{
	const struct mount *m;
	int i;

	for_each_mount(d, m, i)
		doc_note(d, place(d, m), "%s on %s", m->type, m->source);
}

static void check_in_memory(struct doctor *d, const struct rule *r)
{
	if (d->mount && in_memory(d->mount))
		doc_where(doc_say(d, r, r->severity,
				  "%s is on %s, in host memory", d->path,
				  d->mount->type), d->mount->point);
}

static void check_elsewhere(struct doctor *d, const struct rule *r)
{
	if (d->mount && elsewhere(d->mount))
		doc_where(doc_say(d, r, r->severity, "%s is on %s", d->path,
				  d->mount->type), d->mount->point);
}

static void check_overlay(struct doctor *d, const struct rule *r)
{
	const struct mount *m;
	int i;

	for (i = 0; i <= d->n_mounts; i++) {
		m = &d->mounts[i];
		if (d->path ? d->mount != m :
		    i == d->n_mounts || strcmp(m->point, "/"))
			continue;
		if (!strcmp(m->type, "overlay"))
			doc_where(doc_say(d, r, d->path ? r->severity :
					  SEV_INFO, "%s is on overlayfs",
					  place(d, m)), m->point);
	}
}

static void check_no_drive(struct doctor *d, const struct rule *r)
{
	const struct mount *m = d->mount;
	const struct topo_block *b;
	bool far = false;
	int i;

	if (!m || in_memory(m) || elsewhere(m) || !strcmp(m->type, "overlay") ||
	    block_of_kind(m, "loop"))
		return;
	/* A non-NVMe member of a RAID or LVM volume counts too. */
	b = block_of_kind(m, "other");
	for (i = 0; i < m->n_blocks; i++) {
		if (strcmp(m->block[i].kind, "nvme-fabric"))
			continue;
		/* of such nvmeof.c has its say */
		if (doc_by_rdma(d, &m->block[i]))
			far = true;
		else
			b = &m->block[i];
	}
	if (!b && (far || has_nvme(m)))
		return;
	if (b)
		doc_where(doc_say(d, r, r->severity,
				  "%s is on %s, not on an NVMe drive on PCI",
				  d->path, b->name), b->name);
	else
		doc_where(doc_say(d, r, r->severity,
				  "no block device is known below %s (%s)",
				  d->path, m->source), m->point);
}

static void check_loop(struct doctor *d, const struct rule *r)
{
	const struct topo_block *b =
		d->mount ? block_of_kind(d->mount, "loop") : NULL;

	if (b)
		doc_where(doc_say(d, r, r->severity, "%s is on %s", d->path,
				  b->name), b->name);
}

static void check_crypt(struct doctor *d, const struct rule *r)
{
	const struct mount *m;
	int i, k;

	for_each_mount(d, m, i)
		for (k = 0; k < m->n_blocks; k++)
			if (!strcmp(m->block[k].detail, "CRYPT"))
				doc_where(doc_say(d, r, one_of_many(d, r),
						  "%s is encrypted (%s)",
						  place(d, m),
						  m->block[k].name),
					  m->block[k].name);
}

static void check_dm(struct doctor *d, const struct rule *r)
{
	const struct topo_block *b;
	const struct mount *m;
	int i, k;

	for_each_mount(d, m, i) {
		for (k = 0; k < m->n_blocks; k++) {
			b = &m->block[k];
			if (strcmp(b->kind, "dm") ||
			    !strcmp(b->detail, "CRYPT"))
				continue;
			doc_where(doc_say(d, r, one_of_many(d, r),
					  "%s is on the device mapper (%s%s%s)",
					  place(d, m), b->name,
					  b->detail[0] ? ", " : "", b->detail),
				  b->name);
		}
	}
}

static bool is_md(const struct topo_block *b)
{
	return !strcmp(b->kind, "md");
}

/* Of an md: does it pass peer memory on, if what is below takes it? */
static bool md_passes(const struct doctor *d, const struct topo_block *b)
{
	static const char *const levels[] = { "raid0", "raid1", "raid10",
					      NULL };

	return d->version >= 702 && one_of(b->detail, levels);
}

const struct topo_block *doc_passing_md(struct doctor *d, const struct mount *m)
{
	const struct topo_block *b, *md = NULL;
	int i;

	for (i = 0; i < m->n_blocks; i++) {
		b = &m->block[i];
		if (is_md(b) ? !md_passes(d, b) :
		    strcmp(b->kind, "nvme") && strcmp(b->kind, "nvme-head"))
			return NULL;
		if (is_md(b) && !md)
			md = b;
	}
	return md;
}

static void check_raid(struct doctor *d, const struct rule *r)
{
	const struct topo_block *b;
	const struct mount *m;
	int i, k;

	for_each_mount(d, m, i) {
		for (k = 0; k < m->n_blocks; k++) {
			b = &m->block[k];
			if (!is_md(b) || md_passes(d, b))
				continue;
			doc_where(doc_say(d, r, one_of_many(d, r),
					  "%s is on %s (%s), kernel %s",
					  place(d, m), b->name, b->detail,
					  d->release), b->name);
		}
	}
}

/* Are the addresses of its DMA others than those of memory? */
static bool translated(const struct doctor *d, const char *address)
{
	int i;

	for (i = 0; i < doc_drives(d); i++)
		if (!strcmp(doc_drive_at(d, i)->address, address))
			return doc_drive_at(d, i)->iommu ==
			       PLN_IOMMU_TRANSLATED;
	return false;
}

/* Does the queue merge?  What has none, as a partition, and what is not known does not. */
static bool merges(struct doctor *d, const char *name)
{
	long long how = doc_number(d, "/sys/class/block/%s/queue/nomerges",
				   name);

	return how >= 0 && how != 2;
}

/* The module peerlane does not know which drives are below md, so all on PCI count. */
bool doc_merges(struct doctor *d, char *drive, size_t size)
{
	char **names, path[128], link[512];
	int i, n = facts_list(d->f, "/sys/class/block", &names);
	bool found = false;

	for (i = 0; i < n && !found; i++) {
		if (strncmp(names[i], "nvme", 4))
			continue;
		snprintf(path, sizeof(path), "/sys/class/block/%.64s",
			 names[i]);
		/* multipath heads and drives of a network are virtual */
		found = !facts_link(d->f, path, link, sizeof(link)) &&
			strncmp(link, "/sys/devices/virtual/", 21) &&
			merges(d, names[i]);
		if (found)
			snprintf(drive, size, "%s", names[i]);
	}
	if (n >= 0)
		facts_list_free(names);
	return found;
}

static void check_raid_merges(struct doctor *d, const struct rule *r)
{
	const struct topo_block *md, *b;
	const struct mount *m;
	int i, k;

	for_each_mount(d, m, i) {
		md = doc_passing_md(d, m);
		for (k = 0; md && k < m->n_blocks; k++) {
			b = &m->block[k];
			if (strcmp(b->kind, "nvme") || !merges(d, b->name))
				continue;
			doc_where(doc_say(d, r, translated(d, b->address) &&
					  doc_direct(d, b->address) ?
					  r->severity : SEV_INFO,
					  "%s is below %s, and its queue merges "
					  "requests", b->name, md->name),
				  b->name);
		}
	}
}

static void check_journal_data(struct doctor *d, const struct rule *r)
{
	const struct mount *m;
	int i;

	for_each_mount(d, m, i)
		if (!strcmp(m->type, "ext4") &&
		    strstr(m->options, "data=journal"))
			doc_where(doc_say(d, r, one_of_many(d, r),
					  "%s has data=journal", m->point),
				  m->point);
}

static void check_journal_unsaid(struct doctor *d, const struct rule *r)
{
	const struct mount *m;
	int i;

	if (!d->nvidia[0])
		return;
	for_each_mount(d, m, i)
		if (!strcmp(m->type, "ext4") && !strstr(m->options, "data="))
			doc_where(doc_say(d, r, r->severity,
					  "%s does not say data=ordered",
					  m->point), m->point);
}

static void check_no_direct_io(struct doctor *d, const struct rule *r)
{
	const struct mount *m = d->mount;

	if (!m || in_memory(m) || elsewhere(m) || !strcmp(m->type, "overlay"))
		return;
	if (d->dio_known && (!d->dio_memory || !d->dio_offset))
		doc_where(doc_say(d, r, r->severity,
				  "%s does no direct IO on %s", m->type,
				  d->path), m->point);
	else if (!d->dio_known && strcmp(m->type, "block") &&
		 dio_kind(m->type, 0) == DIO_UNSAID)
		doc_where(doc_say(d, r, r->severity,
				  "%s is not known to do direct IO between "
				  "device and memory", m->type), m->point);
}

static void check_alignment(struct doctor *d, const struct rule *r)
{
	if (d->dio_known && d->dio_offset > 4096)
		doc_say(d, r, r->severity,
			"direct IO of %s is in units of %u bytes", d->path,
			d->dio_offset);
}

static void check_udev(struct doctor *d, const struct rule *r)
{
	enum severity s = d->nvidia[0] ? SEV_WARNING : SEV_INFO;
	const struct mount *m;
	char path[64], value[32];
	int i, err;

	if (doc_there(d, "/run/udev/data") == NO) {
		doc_where(doc_say(d, r, s, "there is no udev database"),
			  "/run/udev/data");
		return;
	}
	for_each_mount(d, m, i) {
		if (!m->n_blocks || !strncmp(m->device, "0:", 2))
			continue;
		snprintf(path, sizeof(path), "/run/udev/data/b%s", m->device);
		err = doc_value(d, path, "E:ID_FS_USAGE", value, sizeof(value));
		if (err == -ENOKEY || err == -ENOENT)
			doc_where(doc_say(d, r, s, "the udev database has no "
					  "entry for the file system"),
				  path);
	}
}

static const struct rule filesystem_rules[] = {
	{ "fs-in-memory", SEV_ERROR, "the file is in host memory",
	  "There is no drive to read from; the data is copied from host memory.",
	  "keep the file on ext4 or xfs on an NVMe drive", "none",
	  check_in_memory },
	{ "fs-network", SEV_ERROR, "the file is on another machine or in a "
	  "program",
	  "The data comes through the network stack and host memory. nvidia-fs "
	  "has direct ways for NFS over RDMA, Lustre, BeeGFS, Spectrum Scale "
	  "and Weka, with their vendors' modules.",
	  "copy the file to a local NVMe drive, or set up that file system's "
	  "GPUDirect support with nvidia-fs", "space on a drive, or modules "
	  "from outside of the kernel", check_elsewhere },
	{ "fs-overlay", SEV_WARNING, "the file is on overlayfs",
	  "A container's root is overlayfs: the drive below is not visible "
	  "inside the container. Peerlane's cuFile reads directly if it can do "
	  "so on the lower file system; NVIDIA's refuses the file (error "
	  "5027).",
	  "put data on a volume: docker run -v /mnt/nvme/data:/data",
	  "none", check_overlay },
	{ "fs-no-drive", SEV_ERROR, "the file is not on a local NVMe drive",
	  "Peer-to-peer DMA is between PCI devices; of the storage drivers only "
	  "NVMe's does it.",
	  "move the file to a file system on an NVMe drive",
	  "space on that drive", check_no_drive },
	{ "fs-loop", SEV_ERROR, "the file is on a loop device",
	  "The loop driver moves data with its own buffers in host memory.",
	  "mount the drive itself, not an image in a file", "none",
	  check_loop },
	{ "fs-crypt", SEV_ERROR, "dm-crypt is between file and drive",
	  "The processor must decrypt all data, so it comes to host memory "
	  "first.",
	  "use self-encrypting drives (sedutil-cli, nvme sed) for this data, or "
	  "an unencrypted partition", "the key is with the drive, or there is "
	  "none; the data has to be written again", check_crypt },
	{ "fs-device-mapper", SEV_ERROR, "LVM or another device mapper target "
	  "is between file and drive",
	  "The device mapper does not tell the block layer that the drives "
	  "below take peer memory, so the kernel refuses it.",
	  "put the file system on a partition of the drive; for several drives "
	  "use md RAID 0 on Linux 7.2 or newer", "the data has to be copied; no "
	  "snapshots and no resizing over drives", check_dm },
	{ "fs-raid", SEV_ERROR, "md RAID is between file and drives",
	  "Before Linux 7.2 md does not tell the block layer that its members "
	  "take peer memory; levels with parity need the data in host memory "
	  "on any kernel.",
	  "boot Linux 7.2 or newer (levels 0, 1, 10), or put one file system "
	  "on each drive and spread the files",
	  "a reboot, or the data has to be copied", check_raid },
	{ "fs-raid-merges", SEV_WARNING, "requests of drives below md are merged",
	  "md lets the kernel merge a request of GPU memory with an adjacent "
	  "one of host memory, and the kernel maps both like the first. If an "
	  "IOMMU translates and no switch redirects (ACS), data may be wrong "
	  "or IO may fail. Peerlane's kernel module refuses files on md until "
	  "no NVMe drive's queue merges.",
	  "for q in /sys/block/nvme*/queue/nomerges; do echo 2 >$q; done (a udev "
	  "rule keeps it)", "adjacent small IOs need a request each",
	  check_raid_merges },
	{ "fs-journal-data", SEV_ERROR, "ext4 journals file data",
	  "With data=journal all data goes through the journal and the page "
	  "cache; O_DIRECT is ignored.",
	  "umount and mount -o data=ordered (in /etc/fstab, too; tune2fs -o "
	  "^journal_data DEVICE)",
	  "after a crash recent data of a file may be old or missing; its "
	  "metadata is right", check_journal_data },
	{ "fs-journal-unsaid", SEV_INFO, "ext4's data mode is not written out",
	  "NVIDIA's cuFile goes direct on ext4 only when /proc/mounts says "
	  "data=ordered, which newer kernels leave out when it is the default.",
	  "umount and mount -o data=ordered (in /etc/fstab, too)", "none",
	  check_journal_unsaid },
	{ "fs-no-direct-io", SEV_ERROR, "the file does no direct IO",
	  "Encryption, compression, verity, inline data and some file systems "
	  "need the page cache: the data goes through host memory.",
	  "keep the file on ext4 or xfs, without these features",
	  "the file has to be copied", check_no_direct_io },
	{ "fs-alignment", SEV_INFO, "direct IO is in large units",
	  "An end of a transfer that is less than a unit is staged in host "
	  "memory.",
	  "begin and end transfers at multiples of the unit", "none",
	  check_alignment },
	{ "udev-no-database", SEV_WARNING,
	  "the udev database does not know the file system",
	  "NVIDIA's cuFile asks it what the file system is, and fails with "
	  "error 5027 without an answer, even in compatibility mode. Peerlane's "
	  "cuFile does not need it.",
	  "in a container: docker run -v /run/udev:/run/udev:ro; on a host: "
	  "systemctl start systemd-udevd; udevadm trigger --subsystem-match="
	  "block", "the container sees which devices the host has",
	  check_udev },
};

const struct section doc_filesystem = {
	"filesystem", "file systems, mounts and block devices",
	look_filesystem, filesystem_rules,
	sizeof(filesystem_rules) / sizeof(struct rule), true
};

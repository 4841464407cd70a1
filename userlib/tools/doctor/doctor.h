/* SPDX-License-Identifier: MIT */
/*
 * peerlane doctor, inside.  A rule is one thing that can be wrong: its texts
 * and the function that looks for it, side by side in a table.  The rules of one
 * subject are a section.  Everything is read through the facts layer, so that
 * rules judge a record like the machine itself.
 */
#ifndef PEERLANE_DOCTOR_H
#define PEERLANE_DOCTOR_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "facts.h"
#include "topo.h"

#define DOC_TRY_SECONDS	30	/* --try may take, when not told otherwise */

enum severity { SEV_INFO, SEV_WARNING, SEV_ERROR };

/* Yes, no, or it could not be found out. */
enum tri { NO, YES, UNKNOWN };

struct doctor;

struct rule {
	const char *id;
	enum severity severity;	/* the worst that it can be */
	const char *what;	/* in general; a finding says more */
	const char *why;
	const char *cure;	/* in general; a finding may be more exact */
	const char *cost;
	void (*check)(struct doctor *d, const struct rule *r);
};

struct section {
	const char *name;
	const char *title;
	/* Collects what the rules need and notes what there is; may be NULL. */
	void (*look)(struct doctor *d);
	const struct rule *rules;
	size_t n_rules;
	bool of_a_file;		/* has a say in a question about a file */
};

/* A rule that holds here. */
struct finding {
	const struct rule *rule;
	const struct section *section;
	enum severity severity;
	char *what;
	char *cure, *cost;	/* more exact than the rule's, or NULL */
	char **where;		/* devices and places, each once */
	int n_where;
	bool stops;		/* the GPU it names, or if it names none all: an
				 * error, but a warning where another GPU is free */
};

/* The block devices below a file system, from top to bottom. */
#define DOC_MAX_BLOCKS	32

struct mount {
	long long id;
	char device[32];	/* major:minor */
	char point[512];
	char type[32];
	char source[512];
	char options[1024];	/* of the mount and of the file system */
	struct topo_block block[DOC_MAX_BLOCKS];
	int n_blocks;
};

struct doctor {
	struct facts *f;
	struct topo *t;
	struct finding **findings;
	int n_findings;
	struct json_object *missing, *sections, *answer;
	const struct section *now;
	unsigned int count[SEV_ERROR + 1];

	/* a question about one file, one GPU, or both; else NULL and -1 */
	const char *path;
	int gpu;		/* index into the topology's list of GPUs */
	struct mount *mount;	/* the path's */
	bool dio_known;		/* statx() told about direct IO: */
	uint32_t dio_memory, dio_offset;

	/* found out by sections, for others */
	char release[128];
	int version;		/* 6.12 is 612 */
	char container[32];	/* its kind, or empty */
	bool virtual;		/* a hypervisor is below */
	enum tri p2pdma;	/* the kernel has it, for user space memory */
	bool p2pdma_is_old;	/* it has it for itself only */
	enum tri dmabuf;
	enum tri multipath;	/* nvme_core.multipath */
	char nvidia[32];	/* version of NVIDIA's driver, or empty */
	enum tri nvidia_open;
	bool nvidia_fs;		/* loaded, and NVMe is hooked to it */
	bool trying;		/* --try */
	int timeout;		/* of --try, in seconds */
	bool undecided;		/* the question has no certain answer */
	struct mount *mounts;
	int n_mounts;
};

/* ---- doctor.c ---- */
extern const struct section doc_environment, doc_gpu, doc_bar1, doc_driver,
	doc_iommu, doc_acs, doc_errors, doc_host_bridge, doc_kernel, doc_nvme,
	doc_filesystem, doc_rdma, doc_limits, doc_containers;

/* @p; out of memory, the end of the program */
void *doc_need(void *p);
/* One finding; the general texts of the rule are its why, cure and cost.  What
 * says the same of the same rule again is the same finding. */
struct finding *doc_say(struct doctor *d, const struct rule *r,
			enum severity severity, const char *what, ...)
	__attribute__((format(printf, 4, 5)));
void doc_where(struct finding *finding, const char *place);
void doc_cure(struct finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void doc_cost(struct finding *finding, const char *cost);
/* Does it name that place? */
bool doc_names(const struct finding *f, const char *place);
/* The first finding that keeps data from going straight into a GPU, or any with
 * -1; of @section alone, and not of @but, if they are given; else NULL. */
const struct finding *doc_stop(const struct doctor *d, int gpu,
			       const char *section, const struct section *but);
/* Its own, or else the rule's */
const char *doc_cure_of(const struct finding *f);
const char *doc_cost_of(const struct finding *f);
/* Something that this machine has, for --verbose and --json. */
void doc_note(struct doctor *d, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A fact that could not be had: once for each @fact. */
void doc_missing(struct doctor *d, const char *fact, const char *path, int err);

/* ---- print.c ---- */
const char *doc_severity(enum severity s);
const char *doc_verdict(const struct doctor *d);
void doc_print(struct doctor *d, bool verbose);
void doc_print_json(struct doctor *d);
void doc_list(const struct section *const *sections, bool json);
bool doc_explain(const struct section *const *sections, const char *id);

/* ---- monitor.c ---- */
/* EXIT_OK, or complains: EXIT_NO_OUTPUT */
int doc_write_metrics(const struct doctor *d, const char *file);
void doc_print_nagios(const struct doctor *d);

/* ---- facts.c: the facts layer, with formatted paths ---- */
/* A text; on an error that means "may not know" the fact is missing. */
int doc_text(struct doctor *d, const char *fact, char *buf, size_t size,
	     const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A decimal number, or -errno. */
long long doc_number(struct doctor *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int doc_value(struct doctor *d, const char *path, const char *key, char *buf,
	      size_t size);
/* What was found by trying, below /peerlane/trial: 0, -ENOENT: that was not
 * tried; -ENODATA: nothing was */
int doc_trial(struct doctor *d, char *buf, size_t size, const char *key,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Is there such a folder? */
enum tri doc_there(struct doctor *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The last part of what a link leads to; empty when there is none. */
void doc_link_name(struct doctor *d, char *buf, size_t size, const char *fmt,
		   ...) __attribute__((format(printf, 4, 5)));
/* Is @name in the folder? */
enum tri doc_has(struct doctor *d, const char *folder, const char *name);
/* Is there an RDMA device? */
bool doc_has_rdma(struct doctor *d);
enum tri doc_kconfig(struct doctor *d, const char *option, const char *symbol);
/* "6.12.3-x" as 612; 0 when it is none */
int doc_version(const char *release);

/* ---- pairs.c: devices of the topology by kind and number ---- */
int doc_gpus(const struct doctor *d);
const struct topo_node *doc_gpu_at(const struct doctor *d, int i);
int doc_drives(const struct doctor *d);
const struct topo_node *doc_drive_at(const struct doctor *d, int i);
/* The GPUs that the question is about: all, or one. */
#define for_each_gpu(d, g, i) \
	for (i = 0; i < doc_gpus(d); i++) \
		if ((g = doc_gpu_at(d, i)) && \
		    ((d)->gpu < 0 || (d)->gpu == i))
/* Is that its driver? */
bool doc_has_driver(const struct topo_node *n, const char *driver);
/* "0", "GPU0", "0000:01:00.0", "01:00.0"; complains, and is -1, for others */
int doc_find_gpu(struct doctor *d, const char *what);
const char *doc_label(const struct doctor *d, const struct topo_node *n);
/* What the kernel calls a device: nvme0n1, mlx5_0; GPU0; or the kind of a port */
const char *doc_name(const struct doctor *d, const struct topo_node *n);
/* Is the drive one that the question is about?  All are without one. */
bool doc_drive_asked(const struct doctor *d, int i);
/* Is the GPU, or the device?  NICs are when there is no path. */
bool doc_gpu_asked(const struct doctor *d, int i);
bool doc_asked(const struct doctor *d, const struct topo_node *n);
/* The topology under the rules that would hold if the kernel had P2PDMA, so
 * that findings about PCI do not hide behind that about the kernel. */
struct topo doc_pci(const struct doctor *d);
/*
 * What PCI alone would do, whatever the kernel has: between GPU @gpu and the
 * drives, the best of them, or for a file the worst.  *@drive is which one.
 */
enum pln_verdict doc_pair(const struct doctor *d, int gpu, int *drive,
			  struct pln_topo_pair *pair);
/* Goes DMA between the drive of that address and a GPU of the question by a switch? */
bool doc_direct(const struct doctor *d, const char *drive);

/* From good to bad */
int doc_rank(uint32_t verdict);

/* ---- nvmeof.c: drives of other hosts, by NVMe over Fabrics with RDMA ---- */
/* Is the block device one, or its controller? */
bool doc_by_rdma(struct doctor *d, const struct topo_block *b);
/*
 * As doc_pair(), between the GPU and the RDMA devices of all such drives below the file.
 * *@card is the one that it is about, NULL: there is none, or none that is on PCI.
 */
enum pln_verdict doc_rdma_pair(struct doctor *d, int gpu,
			       const struct topo_node **card,
			       struct pln_topo_pair *pair);
/* Finds out which RDMA devices they have, and notes them. */
void doc_look_rdma_drives(struct doctor *d);
void doc_check_rdma_old(struct doctor *d, const struct rule *r);
void doc_check_rdma_apart(struct doctor *d, const struct rule *r);

/* ---- files.c ---- */
/* The md below the file system that passes peer memory on to NVMe drives, or NULL */
const struct topo_block *doc_passing_md(struct doctor *d, const struct mount *m);
/* Merges the queue of one of the machine's NVMe drives requests?  In @drive, which. */
bool doc_merges(struct doctor *d, char *drive, size_t size);

/* ---- bar1.c ---- */
/* Does BAR1 show a part of the memory only? */
bool doc_bar1_small(struct doctor *d, const struct topo_node *g);

/* ---- mounts.c ---- */
int doc_find_mount(struct doctor *d);
void doc_read_mounts(struct doctor *d);
void doc_read_blocks(struct doctor *d, struct mount *m);

/* ---- try.c ---- */
/* Tries registrations; false: it cannot, and has complained. */
bool doc_try(struct doctor *d);
/* Of the path: "trial" in the answer; false: it could not even begin */
bool doc_try_file(struct doctor *d);

/* ---- path.c ---- */
void doc_answer(struct doctor *d);

#endif

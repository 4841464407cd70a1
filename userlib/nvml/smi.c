// SPDX-License-Identifier: MIT
/*
 * nvidia-smi for emulated GPUs: what scripts ask the program of this name, from
 * NVML; how far devices are apart from userlib/core, as peerlane topo has it.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peerlane/topo.h"
#include "smi.h"

static const char usage[] =
"usage: nvidia-smi [-i GPU]              a table of the GPUs and of the\n"
"                                        processes that have memory\n"
"       nvidia-smi -L [-i GPU]           a line for each GPU, with its UUID\n"
"       nvidia-smi -q [-i GPU]           all that is known\n"
"       nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits]\n"
"                  [-i GPU]              some of it, for scripts\n"
"       nvidia-smi topo -m               how far GPUs and NICs are apart\n"
"\n"
"This is Peerlane's, for emulated GPUs, and not NVIDIA's program: it knows what\n"
"is listed here.\n"
"\n"
"  -i, --id GPU          a number, a UUID or an address on PCI, or several with\n"
"                        commas\n"
"  -L, --list-gpus\n"
"  -q, --query\n"
"      --query-gpu FIELDS  --help-query-gpu lists them\n"
"      --format FORMAT\n"
"      --help-query-gpu\n"
"  -h, --help\n"
"      --version\n"
"\n"
"Exit status: 0 success, 2 wrong usage, 6 there is no such GPU, 9 the driver is\n"
"not loaded; else the number of another error of NVML, or 255.\n";

void smi_complain(const char *fmt, ...)
{
	va_list ap;

	fputs("nvidia-smi: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static int wrong(void)
{
	smi_complain("nvidia-smi --help lists what this one can");
	return smi_status(NVML_ERROR_INVALID_ARGUMENT);
}

static const char *value(nvmlDevice_t gpu, const char *name)
{
	static char text[128];

	smi_value(gpu, name, true, text, sizeof(text));
	return text;
}

static void versions(void)
{
	char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "?";
	int cuda = 0;

	nvmlSystemGetDriverVersion(driver, sizeof(driver));
	nvmlSystemGetCudaDriverVersion(&cuda);
	printf("Peerlane's nvidia-smi, driver %s, CUDA %d.%d\n", driver,
	       NVML_CUDA_DRIVER_VERSION_MAJOR(cuda),
	       NVML_CUDA_DRIVER_VERSION_MINOR(cuda));
}

/* ---- commands ---- */

/* Any user may put what a terminal takes for a command into a name */
static const char *process_name(unsigned int pid)
{
	static char name[128];

	if (nvmlSystemGetProcessName(pid, name, sizeof(name)))
		return "[N/A]";
	for (char *c = name; *c; c++)
		if ((unsigned char)*c < 32 || *c == 127)
			*c = '?';
	return name;
}

#define MAX_PROCESSES	256

/* The processes that have memory of a GPU; -1: not known */
static int processes(nvmlDevice_t gpu, nvmlProcessInfo_t *info)
{
	unsigned int n = MAX_PROCESSES;

	return nvmlDeviceGetComputeRunningProcesses(gpu, &n, info) ? -1 : (int)n;
}

static void process_table(const struct smi_gpus *gpus)
{
	nvmlProcessInfo_t info[MAX_PROCESSES];

	printf("\n%-5s%10s%12s  %s\n", "GPU", "PID", "Used", "Process");
	for (unsigned int i = 0; i < gpus->n; i++) {
		int n = processes(gpus->gpu[i], info);

		if (n < 0)
			printf("%-5s%10s\n", value(gpus->gpu[i], "index"),
			       "[N/A]");
		for (int j = 0; j < n; j++)
			printf("%-5s%10u%8llu MiB  %s\n",
			       value(gpus->gpu[i], "index"), info[j].pid,
			       info[j].usedGpuMemory >> 20,
			       process_name(info[j].pid));
	}
}

static void table(const struct smi_gpus *gpus)
{
	versions();
	printf("\n%-5s%-24s%-18s%12s%12s\n", "GPU", "Name", "Bus-Id", "Used",
	       "Total");
	for (unsigned int i = 0; i < gpus->n; i++) {
		nvmlDevice_t gpu = gpus->gpu[i];

		printf("%-5s", value(gpu, "index"));
		printf("%-24s", value(gpu, "name"));
		printf("%-18s", value(gpu, "pci.bus_id"));
		printf("%12s", value(gpu, "memory.used"));
		printf("%12s\n", value(gpu, "memory.total"));
	}
	process_table(gpus);
}

static void list(const struct smi_gpus *gpus)
{
	for (unsigned int i = 0; i < gpus->n; i++) {
		printf("GPU %s: ", value(gpus->gpu[i], "index"));
		printf("%s ", value(gpus->gpu[i], "name"));
		printf("(UUID: %s)\n", value(gpus->gpu[i], "uuid"));
	}
}

static void query_processes(nvmlDevice_t gpu)
{
	nvmlProcessInfo_t info[MAX_PROCESSES];
	int n = processes(gpu, info);

	if (n <= 0) {
		printf("    %-26s: %s\n", "Processes", n ? "[N/A]" : "None");
		return;
	}
	printf("    Processes\n");
	for (int i = 0; i < n; i++) {
		printf("        %-22s: %u\n", "Process ID", info[i].pid);
		printf("            %-18s: C\n", "Type");
		printf("            %-18s: %s\n", "Name",
		       process_name(info[i].pid));
		printf("            %-18s: %llu MiB\n", "Used GPU Memory",
		       info[i].usedGpuMemory >> 20);
	}
}

static void all(const struct smi_gpus *gpus)
{
	static const struct {
		const char *words, *field;
	} lines[] = {
		{ "Product Name", "name" },
		{ "GPU UUID", "uuid" },
		{ "Serial Number", "serial" },
		{ "Minor Number", "minor_number" },
		{ "Compute Capability", "compute_cap" },
		{ "Bus Id", "pci.bus_id" },
		{ "Device Id", "pci.device_id" },
		{ "Sub System Id", "pci.sub_device_id" },
		{ "PCIe Generation Max", "pcie.link.gen.max" },
		{ "PCIe Generation Current", "pcie.link.gen.current" },
		{ "Link Width Max", "pcie.link.width.max" },
		{ "Link Width Current", "pcie.link.width.current" },
		{ "Memory Total", "memory.total" },
		{ "Memory Used", "memory.used" },
		{ "Memory Free", "memory.free" },
		{ "GPU Utilization", "utilization.gpu" },
		{ "GPU Temperature", "temperature.gpu" },
		{ "Power Draw", "power.draw" },
	};
	nvmlBAR1Memory_t bar1;

	versions();
	for (unsigned int i = 0; i < gpus->n; i++) {
		nvmlDevice_t gpu = gpus->gpu[i];

		printf("\nGPU %s\n", value(gpu, "pci.bus_id"));
		for (size_t j = 0; j < sizeof(lines) / sizeof(lines[0]); j++)
			printf("    %-26s: %s\n", lines[j].words,
			       value(gpu, lines[j].field));
		if (!nvmlDeviceGetBAR1MemoryInfo(gpu, &bar1)) {
			printf("    %-26s: %llu MiB\n", "BAR1 Total",
			       bar1.bar1Total >> 20);
			printf("    %-26s: %llu MiB\n", "BAR1 Used",
			       bar1.bar1Used >> 20);
		}
		query_processes(gpu);
	}
}

/* ---- topo -m ---- */

struct row {
	unsigned int index;	/* in the tree */
	char label[16], name[32];
	nvmlDevice_t gpu;	/* or NULL: a NIC */
};

/* The GPUs of NVML by its numbers, then the NICs; how many, or -1 */
static int rows_of(const struct pln_topo *topo, const struct smi_gpus *gpus,
		   struct row *rows, int max)
{
	struct pln_topo_device d = { .size = sizeof(d) };
	unsigned int nics = 0;
	nvmlPciInfo_t pci;
	nvmlReturn_t err;
	int n = 0;

	for (unsigned int i = 0; i < gpus->n; i++) {
		err = nvmlDeviceGetPciInfo(gpus->gpu[i], &pci);
		if (err) {
			smi_complain("topo: GPU %u: %s", i,
				     nvmlErrorString(err));
			return -1;
		}
		for (unsigned int j = 0; !pln_topo_info(topo, j, &d); j++) {
			/* NVML has eight digits of the domain, Linux four or five */
			if (strcasecmp(d.address, pci.busId +
				       (pci.domain > 0xffff ? 3 : 4)) ||
			    n == max)
				continue;
			rows[n] = (struct row){ .index = j,
						.gpu = gpus->gpu[i] };
			snprintf(rows[n++].label, sizeof(rows[0].label),
				 "GPU%u", i);
		}
	}
	for (unsigned int j = 0; !pln_topo_info(topo, j, &d); j++) {
		if (d.kind != PLN_TOPO_NIC || n == max)
			continue;
		rows[n] = (struct row){ .index = j };
		strcpy(rows[n].name, d.name[0] ? d.name : d.address);
		snprintf(rows[n++].label, sizeof(rows[0].label), "NIC%u",
			 nics++);
	}
	return n;
}

/* A set of bits as a list: 0-3,8 */
static void print_set(nvmlReturn_t err, const unsigned long *set,
		      unsigned int size)
{
	const unsigned int bits = 8 * sizeof(*set), end = size * bits;
	const char *comma = "";

	if (err) {
		printf("\tN/A");
		return;
	}
	putchar('\t');
	for (unsigned int i = 0, last; i < end; i = last + 1) {
		last = i;
		if (!(set[i / bits] >> i % bits & 1))
			continue;
		while (last + 1 < end &&
		       set[(last + 1) / bits] >> (last + 1) % bits & 1)
			last++;
		printf(last > i ? "%s%u-%u" : "%s%u", comma, i, last);
		comma = ",";
	}
}

static int topo_matrix(const struct smi_gpus *gpus)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	struct row rows[4 * SMI_MAX];
	unsigned long cpus[128], nodes[16];
	struct pln_topo *topo;
	nvmlReturn_t err;
	int n, r = pln_topo_open(&topo, NULL);

	if (r) {
		smi_complain("topo: /sys: %s", strerror(-r));
		return EXIT_SMI_OTHER;
	}
	n = rows_of(topo, gpus, rows, sizeof(rows) / sizeof(rows[0]));
	if (n < 0) {
		pln_topo_close(topo);
		return EXIT_SMI_OTHER;
	}
	for (int i = 0; i < n; i++)
		printf("\t%s", rows[i].label);
	printf("\tCPU Affinity\tNUMA Affinity\n");
	for (int i = 0; i < n; i++) {
		printf("%s", rows[i].label);
		for (int j = 0; j < n; j++) {
			pair.size = sizeof(pair);
			r = pln_topo_between(topo, rows[i].index, rows[j].index,
					     &pair);
			printf("\t%s", r ? "?" :
			       pln_relation_name(pair.relation));
		}
		if (rows[i].gpu) {
			err = nvmlDeviceGetCpuAffinity(rows[i].gpu, 128, cpus);
			print_set(err, cpus, 128);
			err = nvmlDeviceGetMemoryAffinity(rows[i].gpu, 16,
				nodes, NVML_AFFINITY_SCOPE_NODE);
			print_set(err, nodes, 16);
		}
		putchar('\n');
	}
	printf("\n"
	       "  X     the device itself\n"
	       "  PIX   one switch, or one slot, lies between\n"
	       "  PXB   more than one switch, but no host bridge\n"
	       "  PHB   one host bridge\n"
	       "  NODE  two host bridges of one NUMA node\n"
	       "  SYS   the link between NUMA nodes\n"
	       "\n"
	       "Peerlane's nvidia-smi; peerlane topo has the drives and the "
	       "paths, too.\n");
	for (int i = 0; i < n; i++)
		if (!rows[i].gpu)
			printf("  %s: %s\n", rows[i].label, rows[i].name);
	pln_topo_close(topo);
	return 0;
}

/* ---- which GPUs ---- */

static nvmlReturn_t one_gpu(const char *what, nvmlDevice_t *gpu)
{
	char *end;
	unsigned long n = strtoul(what, &end, 10);

	if (!strncmp(what, "GPU-", 4))
		return nvmlDeviceGetHandleByUUID(what, gpu);
	if (strchr(what, ':'))
		return nvmlDeviceGetHandleByPciBusId(what, gpu);
	if (*what < '0' || *what > '9' || *end || n >= SMI_MAX ||
	    nvmlDeviceGetHandleByIndex((unsigned int)n, gpu))
		return NVML_ERROR_NOT_FOUND;
	return NVML_SUCCESS;
}

/* Those that @ids has, or all if it is NULL.  Exit status. */
static int choose(struct smi_gpus *gpus, const char *ids)
{
	char text[1024], *rest = text, *one;
	nvmlReturn_t err;

	gpus->n = 0;
	while (!ids && gpus->n < SMI_MAX &&
	       !nvmlDeviceGetHandleByIndex(gpus->n, &gpus->gpu[gpus->n]))
		gpus->n++;
	if (!ids)
		return 0;
	if (strlen(ids) >= sizeof(text))
		return wrong();
	strcpy(text, ids);
	while ((one = strsep(&rest, ","))) {
		if (gpus->n == SMI_MAX)
			return wrong();
		err = one_gpu(one, &gpus->gpu[gpus->n++]);
		if (err) {
			smi_complain("-i: there is no GPU \"%s\"; nvidia-smi "
				     "-L lists them", one);
			return smi_status(NVML_ERROR_NOT_FOUND);
		}
	}
	return 0;
}

/* ---- start ---- */

static int not_ready(nvmlReturn_t err)
{
	if (err == NVML_ERROR_DRIVER_NOT_LOADED)
		smi_complain("the driver is not loaded: modprobe peerlane_gpu. "
			     "This is Peerlane's nvidia-smi, for emulated GPUs");
	else if (err == NVML_ERROR_NO_PERMISSION)
		smi_complain("the user needs read and write permission on "
			     "/dev/peerlane-gpu*");
	else if (err == NVML_ERROR_GPU_NOT_FOUND)
		smi_complain("no GPU: the driver is loaded and has none");
	else
		smi_complain("%s (NVML error %d)", nvmlErrorString(err),
			     (int)err);
	return smi_status(err);
}

enum { LIST = 'L', QUERY = 'q', ID = 'i', HELP = 'h', TOPO_MATRIX = 'm',
       QUERY_GPU = 256, FORMAT, HELP_FIELDS, VERSION };

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "list-gpus", no_argument, NULL, LIST },
		{ "query", no_argument, NULL, QUERY },
		{ "id", required_argument, NULL, ID },
		{ "query-gpu", required_argument, NULL, QUERY_GPU },
		{ "format", required_argument, NULL, FORMAT },
		{ "matrix", no_argument, NULL, TOPO_MATRIX },
		{ "help-query-gpu", no_argument, NULL, HELP_FIELDS },
		{ "help", no_argument, NULL, HELP },
		{ "version", no_argument, NULL, VERSION },
		{ 0 }
	};
	const char *ids = NULL, *fields = NULL, *format = NULL;
	bool topo = argc > 1 && !strcmp(argv[1], "topo");
	struct smi_gpus gpus;
	int c, what = 0, r;
	nvmlReturn_t err;

	optind = topo ? 2 : 1;
	while ((c = getopt_long(argc, argv, "Lqi:hm", options, NULL)) != -1) {
		switch (c) {
		case HELP:
			fputs(usage, stdout);
			return 0;
		case HELP_FIELDS:
			smi_list_fields();
			return 0;
		case ID: ids = optarg; break;
		case FORMAT: format = optarg; break;
		case QUERY_GPU:
			fields = optarg;
			/* fall through */
		case LIST: case QUERY: case TOPO_MATRIX: case VERSION:
			if (what && what != c) {
				smi_complain("one command at a time");
				return wrong();
			}
			what = c;
			break;
		default:
			return wrong();
		}
	}
	if (optind < argc) {
		smi_complain("there is no command \"%s\"", argv[optind]);
		return wrong();
	}
	if (topo != (what == TOPO_MATRIX) || (topo && (ids || format))) {
		smi_complain("topo goes with -m, and -m with topo");
		return wrong();
	}
	if (format && what != QUERY_GPU)
		return smi_query(NULL, NULL, format);
	if (what == VERSION) {
		char text[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];

		if (!nvmlSystemGetNVMLVersion(text, sizeof(text)))
			printf("Peerlane's nvidia-smi, NVML %s\n", text);
		return 0;
	}
	err = nvmlInit();
	if (err)
		return not_ready(err);
	r = choose(&gpus, ids);
	if (!r)
		switch (what) {
		case LIST: list(&gpus); break;
		case QUERY: all(&gpus); break;
		case QUERY_GPU: r = smi_query(&gpus, fields, format); break;
		case TOPO_MATRIX: r = topo_matrix(&gpus); break;
		default: table(&gpus);
		}
	nvmlShutdown();
	if (fflush(stdout) || ferror(stdout)) {
		smi_complain("the output could not be written");
		return EXIT_SMI_OTHER;
	}
	return r;
}

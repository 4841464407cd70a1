/* SPDX-License-Identifier: MIT */
/* Between smi.c and smi_query.c: the program nvidia-smi. */
#ifndef PEERLANE_NVML_SMI_H
#define PEERLANE_NVML_SMI_H

#include <stdbool.h>

#include "exit_status.h"
#include "nvml.h"

#define SMI_MAX	32	/* GPUs */

/* The GPUs that a command is about */
struct smi_gpus {
	nvmlDevice_t gpu[SMI_MAX];
	unsigned int n;
};

static inline int smi_status(nvmlReturn_t err)
{
	return (int)err < EXIT_SMI_OTHER ? (int)err : EXIT_SMI_OTHER;
}

void smi_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The value of field @name, with its unit, and "[N/A]" if nobody knows.  False:
 * there is no such field. */
bool smi_value(nvmlDevice_t gpu, const char *name, bool units, char *out,
	       unsigned int size);

/* --query-gpu=@fields --format=@format; both can be NULL.  Exit status. */
int smi_query(const struct smi_gpus *gpus, const char *fields,
	      const char *format);
void smi_list_fields(void);

#endif

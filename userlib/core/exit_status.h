/* SPDX-License-Identifier: MIT */
/*
 * The exit statuses of programs here, and of programs that a library here ends.
 */
#ifndef PEERLANE_CORE_EXIT_STATUS_H
#define PEERLANE_CORE_EXIT_STATUS_H

/* Of all commands of peerlane; documented in peerlane(1) */
enum {
	EXIT_OK = 0,
	EXIT_IO = 1,		/* a transfer failed */
	EXIT_NO_GPU = 3,	/* no driver, no GPU, no memory on it, settings */
	EXIT_REFUSED = 4,	/* strict mode refused to fall back */
	EXIT_MISMATCH = 5,	/* data is not what it must be */

	/* what doctor found */
	EXIT_DEGRADED = 1,
	EXIT_BROKEN = 2,
	EXIT_NAGIOS_UNKNOWN = 3,	/* with --nagios, for what is above 2 */

	/* as sysexits(3) has them */
	EXIT_USAGE = 64,
	EXIT_BAD_RECORD = 65,
	EXIT_NO_INPUT = 66,	/* a record, machine or process that cannot be read */
	EXIT_NO_OUTPUT = 73,	/* a record, file or output that cannot be written */

	/* run, as a shell; and a CUDA program that a library cannot serve */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/*
 * Of nvidia-smi, as of NVIDIA's program: the number of NVML's error, such as
 * NVML_ERROR_INVALID_ARGUMENT for wrong usage; for larger ones, and what is no error
 * of NVML, this one.
 */
enum smi_exit_status {
	EXIT_SMI_OTHER = 255,
};

#endif

// SPDX-License-Identifier: MIT
/* peerlane: the commands. */
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
"usage: peerlane COMMAND [OPTION...]\n"
"\n"
"  io      move data between files and GPU memory, and say which way it went\n"
"  stats   counters of the emulated GPUs and PCIe switches in this machine\n"
"  topo    how GPUs, NICs and drives are connected, and which way data goes\n"
"  doctor  what keeps data from going straight, and what to do about it\n"
"  perf    latency, bandwidth and message rate of RDMA from and to GPU memory\n"
"  run     a program of NVIDIA's CUDA runtime, on Peerlane's\n"
"\n"
"peerlane COMMAND --help tells more.  Exit status: 0 good, 1 a transfer\n"
"failed, 2 wrong usage, 3 no usable GPU, 4 strict mode refused to fall back,\n"
"5 data differs; topo has others, run the program's.\n";

int main(int argc, char **argv)
{
	if (argc > 1 && (!strcmp(argv[1], "io") || !strcmp(argv[1], "perf") ||
			 !strcmp(argv[1], "run"))) {
#ifdef PEERLANE_STATIC
		complain("this is the program in one file, which cannot load a "
			 "GPU's driver library: install the other one");
		return EXIT_USAGE;
#else
		return *argv[1] == 'i' ? cmd_io(argc - 1, argv + 1) :
			*argv[1] == 'r' ? cmd_run(argc - 1, argv + 1) :
			cmd_perf(argc - 1, argv + 1);
#endif
	}
	if (argc > 1 && !strcmp(argv[1], "stats"))
		return cmd_stats(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "topo"))
		return cmd_topo(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "doctor"))
		return cmd_doctor(argc - 1, argv + 1);
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
			 !strcmp(argv[1], "help"))) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	if (argc > 1)
		complain("there is no command \"%s\"", argv[1]);
	fputs(usage, stderr);
	return EXIT_USAGE;
}

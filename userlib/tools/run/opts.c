// SPDX-License-Identifier: MIT
/* peerlane run: its help. */
#include "run.h"
#include "tool.h"

static const char usage[] =
"usage: peerlane run PROGRAM [ARG...]\n"
"\n"
"Runs a program of NVIDIA's CUDA runtime, 12 or 13, on Peerlane's, whether nvcc\n"
"linked the runtime in or not, and on whatever libcuda.so.1 the loader finds.\n"
"Programs that it starts run so, too.  Within another run, also of another\n"
"installation, what that one set is taken out first.\n"
"\n"
"It sets three variables, each before what is there, and runs PROGRAM:\n"
"  LD_PRELOAD       " RUN_LIBRARY ", which has the runtime in it\n"
"  LD_AUDIT         the same, which leads programs and libraries there\n"
"  LD_LIBRARY_PATH  the folder of that, for libcudart.so.12 and .13\n"
"\n"
"The exit status is PROGRAM's; 126: it cannot be run, 127: it is not there.\n";

static const struct opt no_options[] = { { 0 } };

const struct command run_command = {
	.name = "run", .operands = "COMMAND",
	.what = "run a program of NVIDIA's CUDA runtime on Peerlane's runtime",
	.usage = usage, .options = no_options,
};

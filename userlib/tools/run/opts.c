// SPDX-License-Identifier: MIT
/* peerlane run: its help. */
#include "run.h"
#include "tool.h"

static const char usage[] =
"usage: peerlane run PROGRAM [ARG...]\n"
"\n"
"Runs a program of NVIDIA's CUDA runtime, 12 or 13, on Peerlane's runtime.  nvcc\n"
"may have linked the runtime statically or shared.  The program uses the\n"
"libcuda.so.1 that the loader finds.  Programs that it starts run in the same\n"
"way.  Inside another run, it first removes the entries of that run.\n"
"\n"
"It adds an entry at the front of three variables, and runs PROGRAM:\n"
"  LD_PRELOAD       " RUN_LIBRARY ", which contains the runtime\n"
"  LD_AUDIT         the same, which redirects programs and libraries to it\n"
"  LD_LIBRARY_PATH  its folder, for libcudart.so.12 and .13\n"
"\n"
"The exit status is PROGRAM's; 126: it cannot be run, 127: it does not exist.\n";

static const struct opt no_options[] = { { 0 } };

const struct command run_command = {
	.name = "run", .operands = "COMMAND",
	.what = "run a program of NVIDIA's CUDA runtime on Peerlane's runtime",
	.usage = usage, .options = no_options,
};

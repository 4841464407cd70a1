#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each block of commands of README.md works as printed in a new clone, and the report of the demo is complete
# tags: harness build guest rdma
# tier: nightly
# timeout: 1800
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
. "$TOP/tests/build/lib.sh"
need_tool cpio flock jq cc make
need_file "$BUILD/userlib/libcuda.so.1"

# a clone, which builds from the cache
copy_tree tree
at_exit 'rm -rf "$OUT/tree"'
# the reader's own program
cc -x c -o tree/my-program -I"$TOP/userlib/cuda" - -L"$BUILD/userlib" -l:libcuda.so.1 <<'END'
#include <cuda.h>
#include <stdio.h>

int main(void)
{
	int gpus = 0;
	int failed = cuInit(0) || cuDeviceGetCount(&gpus);

	printf("my program sees %d GPU\n", gpus);
	return failed;
}
END
# The report is that of the first step
guide_steps ../README.md 3
check "the program ran in the machine" grep -q '^my program sees 1 GPU' step1.said
check "... and on both hosts" test "$(grep -c '^[ab]: my program sees 1 GPU' step3.said)" -eq 2
check_eq "no command is outside of these steps" "" "$(awk '/^ *```/ { code = !code } !code && /^    [^ ]/' "$TOP/README.md")"
guide_report tree/build/report.html copy
finish

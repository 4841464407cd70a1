#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: programs of the CUDA driver interface are built with our cuda.h, in C and C++, and run on our libcuda
# tags: cuda
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool cc c++

src=$TOP/userlib/cuda
lib=$BUILD/userlib/libcuda.so.1
need_file "$lib"

# What any client does, by the names of CUDA's documentation
cat >program.c <<'PROGRAM'
#include <cuda.h>
#include <cuda.h>

#if CUDA_VERSION < 12000
#error "too old"
#endif

int main(void)
{
	CUmemRangeHandleType type = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
	CUdevice_attribute attr = CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
	CUmemAllocationProp prop;
	CUstream stream = CU_STREAM_PER_THREAD;
	CUcontext ctx;
	CUdeviceptr p = 0;
	CUevent event;
	size_t size = sizeof(prop);
	int fd, value;

	/* without a GPU all of them fail, and none of them crashes */
	return cuInit(0) == CUDA_SUCCESS ||
	       cuCtxCreate(&ctx, CU_CTX_MAP_HOST, 0) == CUDA_SUCCESS ||
	       cuDeviceGetAttribute(&value, attr, 0) == CUDA_SUCCESS ||
	       cuMemAlloc(&p, size) == CUDA_SUCCESS ||
	       cuMemcpyHtoDAsync(p, &prop, size, stream) == CUDA_SUCCESS ||
	       cuMemGetHandleForAddressRange(&fd, p, size, type, 0) == CUDA_SUCCESS ||
	       cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ||
	       cuMemFree(p) == CUDA_SUCCESS || cuCtxDestroy(0) == CUDA_SUCCESS;
}
PROGRAM
warn="-Wall -Wextra -Werror -pedantic"
# shellcheck disable=SC2086
check "C99" cc -std=c99 $warn -I"$src" -o c99 program.c "$lib"
# shellcheck disable=SC2086
check "C++17" c++ -x c++ -std=c++17 $warn -I"$src" -o c++17 program.c -x none "$lib"
for program in c99 c++17; do
	check "$program: runs, where there is no GPU" \
		env LD_LIBRARY_PATH="$BUILD/userlib" PEERLANE_LOG=0 "./$program"
done

# A function whose only symbol has a version in its name needs the plain name.
cc -E -P -x c "$src/cuda_proto.h" | grep -oE 'CUresult cu[A-Za-z0-9_]+' | sed 's/CUresult //' | sort >declared
sed -n 's/_v[0-9]*$//p' declared | sort -u | comm -23 - declared >plain
sed -n 's/^#define \(cu[A-Za-z0-9]*\)[ 	].*/\1/p' "$src/cuda.h" | sort >named
check "there are such functions" test -s plain
comm -23 plain named >missing
check_false "all of them have their plain name" test -s missing || diag "$(cat missing)"
sed -n 's/^#define cu[A-Za-z0-9]*[ 	]*\(cu.*\)/\1/p' "$src/cuda.h" | sort | comm -23 - declared >dangling
check_false "every name stands for a function that there is" test -s dangling || diag "$(cat dangling)"

echo '#include <cuda.h>' >include.c
check_fails "a program that wants per-thread default streams throughout is told what to do instead" \
	'name CU_STREAM_PER_THREAD in the calls' \
	cc -DCUDA_API_PER_THREAD_DEFAULT_STREAM -I"$src" -c -o include.o include.c
check_fails "so is one that has NVIDIA's header before" "NVIDIA's cuda.h is included already" \
	cc -D__cuda_cuda_h__ -I"$src" -c -o include.o include.c
finish

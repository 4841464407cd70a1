#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libnvidia-ml exports what programs load, with NVIDIA's numbers and layouts; its header is enough in C and C++
# tags: nvml
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool readelf cc c++

src=$TOP/userlib/nvml
# its sizes are asserted when it is compiled
build_userlib nvml tests
lib=$BUILD/userlib/libnvidia-ml.so.1

readelf -d "$lib" >dynamic
check "its name is libnvidia-ml.so.1" grep -q "SONAME.*\[libnvidia-ml.so.1\]" dynamic
grep NEEDED dynamic | grep -vE "\[(libc\.so\.6|ld-linux-x86-64\.so\.2|libz\.so\.1)\]" >foreign
check_false "it needs the C library and libz alone" test -s foreign
check "the link to link with is there" test "$(readlink "$BUILD/userlib/libnvidia-ml.so")" = libnvidia-ml.so.1
readelf --dyn-syms -W "$lib" | awk '$7 != "UND" && $7 ~ /[0-9]/ { print $8 }' | sort >exported
check_false "symbols carry no version" grep @ exported
check_false "only nvml* is exported" grep -v '^nvml[A-Z]' exported
# every function of the header, by its own name
declared() { # FILE…
	cc -E -P -DNVML_NO_UNVERSIONED_FUNC_DEFS -I"$src" "$src/nvml.h" | tr '\n' ' ' |
		grep -oE '(nvmlReturn_t|const char \*) ?nvml[A-Za-z0-9_]+\([^)]*\);'
}
declared >declarations
sed 's/(.*//; s/.*[ *]//' declarations | sort >declared
check "what is declared is exported, and nothing else" diff declared exported

# What these load, by their sources: UCX (9466d104), libfabric (af8ddbe9), NCCL 2.30
# (5067397c; what it takes as optional, too, but one)
cat >loaded <<'LOADED'
nvmlDeviceGetCount
nvmlDeviceGetCount_v2
nvmlDeviceGetCudaComputeCapability
nvmlDeviceGetCurrPcieLinkGeneration
nvmlDeviceGetCurrPcieLinkWidth
nvmlDeviceGetFieldValues
nvmlDeviceGetGpuFabricInfo
nvmlDeviceGetGpuFabricInfoV
nvmlDeviceGetHandleByIndex
nvmlDeviceGetHandleByPciBusId
nvmlDeviceGetIndex
nvmlDeviceGetNvLinkCapability
nvmlDeviceGetNvLinkRemotePciInfo
nvmlDeviceGetNvLinkState
nvmlDeviceGetP2PStatus
nvmlDeviceGetPciInfoExt
nvmlDeviceGetPciInfo_v3
nvmlDeviceGetPlatformInfo
nvmlErrorString
nvmlInit
nvmlInit_v2
nvmlShutdown
nvmlSystemGetConfComputeSettings
nvmlSystemGetConfComputeState
LOADED
check_eq "UCX, libfabric and NCCL find what they load" "" "$(comm -23 loaded exported)"

cat >program.c <<'PROGRAM'
#include <nvml.h>
#include <nvml.h>

int main(void)
{
	nvmlPciInfo_t pci;
	nvmlDevice_t gpu;
	unsigned int n;

	/* without a driver, all of them fail */
	return nvmlInit() != NVML_ERROR_DRIVER_NOT_LOADED ||
	       nvmlDeviceGetCount(&n) != NVML_ERROR_UNINITIALIZED ||
	       nvmlDeviceGetHandleByIndex(0, &gpu) != NVML_ERROR_UNINITIALIZED ||
	       nvmlDeviceGetPciInfo(0, &pci) != NVML_ERROR_UNINITIALIZED ||
	       nvmlShutdown() != NVML_ERROR_UNINITIALIZED;
}
PROGRAM
warn="-Wall -Wextra -Werror -pedantic"
# shellcheck disable=SC2086 # words
check "C99" cc -std=c99 $warn -I"$src" -o c99 program.c -L"$BUILD/userlib" -lnvidia-ml -Wl,-z,now
# shellcheck disable=SC2086 # words
check "C++17" c++ -x c++ -std=c++17 $warn -I"$src" -o c++17 program.c -x none -L"$BUILD/userlib" -lnvidia-ml
for program in c99 c++17; do
	check "$program: runs, where there is no GPU" env LD_LIBRARY_PATH="$BUILD/userlib" "./$program"
	readelf --dyn-syms -W "$program" >symbols
	check "$program: asks for the newest of each" sh -c \
		'for f in Init_v2 DeviceGetCount_v2 DeviceGetHandleByIndex_v2 DeviceGetPciInfo_v3; do
			grep -q " nvml$f\$" symbols || exit 1; done'
done
env LD_LIBRARY_PATH="$BUILD/userlib" ./c99 2>said
check_false "and says nothing" test -s said
check_fails "two headers are refused" "NVIDIA's nvml.h is included already" \
	cc -D__nvml_nvml_h__ -I"$src" -c -o program.o program.c

# NVIDIA's own header, where the machine has one
header=
for dir in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include /usr/local/cuda/targets/*/include /usr/include; do
	[ -f "$dir/nvml.h" ] && { header=$dir; break; }
done
if [ -z "$header" ]; then
	skip_part "NVIDIA's nvml.h is not here: numbers and signatures are not compared with it"
	finish
fi
{
	echo '#include <stddef.h>'
	echo '#include <nvml.h>'
	"$BUILD/userlib/tests/host/nvml_sizes"
} >numbers.c
check "numbers and sizes as in nvml.h" cc -I"$header" -c -o numbers.o numbers.c
{
	echo '#define NVML_NO_UNVERSIONED_FUNC_DEFS'
	echo '#include <nvml.h>'
	cat declarations
} >types.c
check "signatures as in nvml.h" cc -I"$header" -c -o types.o types.c
# the same checks see what is wrong
sed 's/NVML_ERROR_NOT_FOUND) == 6/NVML_ERROR_NOT_FOUND) == 7/' numbers.c >wrong.c
check_fails "a wrong number is seen" "static assertion failed.*NVML_ERROR_NOT_FOUND" cc -I"$header" -c -o wrong.o wrong.c
sed 's/nvmlDeviceGetCount_v2(unsigned int/nvmlDeviceGetCount_v2(int/' types.c >wrong.c
check_fails "a wrong signature is seen" "conflicting types for .nvmlDeviceGetCount_v2" cc -I"$header" -c -o wrong.o wrong.c
finish

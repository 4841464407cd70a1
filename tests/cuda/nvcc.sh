#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: programs that nvcc built: driver interface, refused kernels, NVIDIA's runtime
# tags: cuda
# tier: all
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
PATH=$PATH:/usr/local/cuda/bin # where images/build/in-root puts the host's
command -v nvcc >/dev/null || skip "no nvcc: neither CUDA_HOME nor /usr/local/cuda of this machine has bin/nvcc"

build_userlib cuda tests
src=$TOP/tests/cuda/nvcc
fake=$BUILD/userlib/tests/host/fake
nvcc -o driver "$src/driver.cu" -lcuda -L"$fake" >nvcc.log 2>&1 &&
	nvcc -o static "$src/runtime.cu" >>nvcc.log 2>&1 &&
	nvcc -cudart shared -o shared "$src/runtime.cu" >>nvcc.log 2>&1
check "nvcc builds" test $? -eq 0
for form in ptx cubin fatbin; do
	nvcc "-$form" -o "kernel.$form" "$src/kernel.cu" >>nvcc.log 2>&1
done
# a fat binary of several GPUs, compressed
nvcc -fatbin -Xfatbin -compress-all -gencode arch=compute_80,code=sm_80 \
	-gencode arch=compute_90,code=sm_90 -o kernel.fat2 \
	"$src/kernel.cu" >>nvcc.log 2>&1

libs=$(dirname "$(command -v nvcc)")/../lib64
export LD_LIBRARY_PATH="$fake:$libs"
for form in ptx cubin fatbin fat2; do
	./driver "kernel.$form" pln_add_one >"$form.out" 2>"$form.err"
	check "$form: the program ends well" test $? -eq 0
	check "$form: copies are right" grep -q "copied right" "$form.out"
	check "$form: the launch is refused" grep -q "^launch 801$" "$form.out"
	check "$form: and says which" \
		grep -q "kernel pln_add_one was not launched" "$form.err"
done
./driver kernel.ptx pln_add_two >none.out 2>&1
check "a kernel that is not in the text is not found" \
	grep -q "cuModuleGetFunction.*: 500" none.out

# NVIDIA's runtime is not served: libcuda-peerlane(7) says why
for kind in static shared; do
	"./$kind" >"$kind.out" 2>"$kind.err"
	check_eq "$kind runtime: the program ends" 126 $?
	check_false "$kind runtime: before it has done anything" grep -q "^malloc" "$kind.out"
	check "$kind runtime: says why" \
		grep -q "works on NVIDIA's driver alone; the program ends here" "$kind.err"
done
finish

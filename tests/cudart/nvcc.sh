#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: programs that nvcc built run in a guest: driver interface, shared runtime, static ones: ours, and led to ours
# tags: guest cuda
# tier: nightly
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
PATH=$PATH:/usr/local/cuda/bin # where images/build/in-root puts the host's
command -v nvcc >/dev/null || skip "no nvcc: neither CUDA_HOME nor /usr/local/cuda of this machine has bin/nvcc"
need_file "$BUILD/userlib/libcudart.so.13"
need_file "$BUILD/userlib/libcuda.so"
release=$(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
need_file "$BUILD/userlib/cuda-$release/libcudart_static.a"

src=$TOP/tests/cuda/nvcc
case=$OUT/case
mkdir -p "$case"
{
	nvcc -o "$case/driver" "$src/driver.cu" -lcuda -L"$BUILD/userlib" &&
		nvcc -cudart shared -o "$case/shared" "$src/shared.cu" &&
		nvcc -cudart shared --default-stream per-thread -o "$case/per-thread" "$src/shared.cu" &&
		nvcc -o "$case/alone" "$src/runtime.cu" &&
		nvcc -o "$case/static" "$src/shared.cu" &&
		nvcc --default-stream per-thread -o "$case/static-per-thread" "$src/shared.cu" &&
		nvcc -o "$case/linked" "$src/shared.cu" -L"$BUILD/userlib/cuda-$release" &&
		strip -o "$case/linked-stripped" "$case/linked" &&
		nvcc -rdc=true -o "$case/static-rdc" "$src/shared.cu" &&
		nvcc -shared -Xcompiler -fPIC -DLIBRARY -o "$case/libstatic.so" "$src/static.cu" &&
		nvcc -o "$case/many" "$src/static.cu" -L"$case" -lstatic -Xlinker -rpath,/case -lpthread &&
		cc -o "$case/late" "$src/late.c" -ldl &&
		strip -o "$case/stripped" "$case/many" &&
		nvcc -ptx -o "$case/kernel.ptx" "$src/kernel.cu"
} >nvcc.log 2>&1
check "nvcc builds" test $? -eq 0
readelf -d "$case/shared" >dynamic
check "with the shared runtime" grep -qE 'NEEDED.*libcudart\.so\.1[23]' dynamic
cp "$TOP/tests/cudart/guest/nvcc" "$case/run"
chmod +x "$case/run"
echo peerlane_gpu >"$case/modules"
echo cxx >"$case/extras"
vm_run guest no-drive 7.2 "$case" 110
check "the guest ended well" test $? -eq 0
said=$OUT/guest/result.log
check "driver: copies are right" grep -q '^driver: .*copied right' "$said"
check "driver: the launch is refused" grep -q '^driver: launch 801' "$said"
for name in shared per-thread both static static-per-thread static-rdc linked linked-stripped; do
	check "$name: it ends well" grep -q "^$name: ended 0" "$said"
	check "$name: the properties are the GPU's" \
		grep -q "^$name: count 1, Peerlane emulated GPU, compute 9\.0" "$said"
	check "$name: copies are right" grep -q "^$name: copied right" "$said"
	check "$name: the launch is refused" grep -q "^$name: launch 801 cudaErrorNotSupported" "$said"
	check "$name: and says which" grep -q "^$name: .*kernel .*add_three.* was not launched" "$said"
done
# NVIDIA's runtime, linked statically: not served, libcuda-peerlane(7) says why, and led to ours
check "alone: the program ends" grep -q '^alone: ended 126' "$said"
check "alone: says why, and what to do" grep -q "^alone: .*NVIDIA's driver alone.*\"peerlane run\"" "$said"
nm "$case/static" | awk '$2 ~ /[tT]/ && $3 ~ /^(__)?cuda[A-Z]/ && $3 !~ /BinaryUtil$/' >inside
for name in static static-per-thread static-rdc; do
	check "$name: every function of the runtime in it is led to ours" \
		grep -q "^$name: libpeerlane-cudart: /case/$name: $(wc -l <inside) functions of its CUDA 13 runtime .*, 0 unknown" "$said"
done
nm "$case/libstatic.so" | awk '$2 ~ /[tT]/ && $3 ~ /^(__)?cuda[A-Z]/ && $3 !~ /BinaryUtil$/' >inside-library
check "late: a plugin's runtime is led to ours, too" grep -q \
	"^late: libpeerlane-cudart: .*/libstatic.so: $(wc -l <inside-library) functions of its CUDA 13 runtime .*, 0 unknown" "$said"
check "late: its constructor is served" grep -q "^late: library: before main: 0, Peerlane emulated GPU" "$said"
check_eq "late: four threads, streams, events" 4 "$(grep -c "^late: library: thread: copied right, event 0" "$said")"
check "late: it ends well" grep -q '^late: ended 0' "$said"
check "late: without peerlane run it ends" grep -q '^late-alone: ended 126' "$said"
check "late: and says why" grep -q "^late-alone: .*NVIDIA's driver alone.*\"peerlane run\"" "$said"
for who in program library; do
	check "many: $who: a call before main" grep -q "^many: $who: before main: 0, Peerlane emulated GPU" "$said"
	check_eq "many: $who: four threads, streams, events" 4 "$(grep -c "^many: $who: thread: copied right, event 0" "$said")"
	check "many: $who: managed memory" grep -q "^many: $who: managed right" "$said"
	check "many: $who: a managed variable" grep -q "^many: $who: variable 5" "$said"
	check "many: $who: the launch is refused" grep -q "^many: $who: launch 801 cudaErrorNotSupported" "$said"
	check "many: $who: and says which" grep -q "^many: .*kernel .*${who}_kernel.* was not launched" "$said"
	check "many: $who: what is not there, too" grep -q "^many: $who: graph 801" "$said"
done
check "many: what is not there by its name" grep -q '^many: libcudart (Peerlane): cudaGraphCreate is not supported' "$said"
check "many: nothing is said of other libraries" test "$(grep -c '^many: libpeerlane-cudart' "$said")" -eq 2
check "many: it ends well" grep -q '^many: ended 0' "$said"
check "stripped: it is stopped" grep -q '^stripped: ended 126' "$said"
check "stripped: and says why" grep -q '^stripped: libpeerlane-cudart: /case/stripped: .*no symbol table' "$said"
finish

#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: programs that nvcc built run in a guest: driver interface, shared runtime
# tags: guest cuda
# timeout: 240
. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
PATH=$PATH:/usr/local/cuda/bin # where images/in-root puts the host's
command -v nvcc >/dev/null || skip "no nvcc: neither CUDA_HOME nor /usr/local/cuda of this machine has bin/nvcc"
need_file "$BUILD/userlib/libcudart.so.13"
need_file "$BUILD/userlib/libcuda.so"

src=$TOP/tests/cuda/nvcc
case=$OUT/case
mkdir -p "$case"
{
	nvcc -o "$case/driver" "$src/driver.cu" -lcuda -L"$BUILD/userlib" &&
		nvcc -cudart shared -o "$case/shared" "$src/shared.cu" &&
		nvcc -cudart shared --default-stream per-thread -o "$case/per-thread" "$src/shared.cu" &&
		nvcc -o "$case/static" "$src/runtime.cu" &&
		nvcc -ptx -o "$case/kernel.ptx" "$src/kernel.cu"
} >nvcc.log 2>&1
check "nvcc builds" test $? -eq 0
readelf -d "$case/shared" >dynamic
check "with the shared runtime" grep -qE 'NEEDED.*libcudart\.so\.1[23]' dynamic
cat >"$case/run" <<'SCRIPT'
#!/bin/sh
# say NAME COMMAND…: what it prints, and how it ends
say() {
	name=$1
	shift
	"$@" >"/tmp/$name" 2>&1
	status=$?
	sed "s/^/$name: /" "/tmp/$name"
	echo "$name: ended $status"
}
cd /case || exit 1
say driver ./driver kernel.ptx pln_add_one
say shared ./shared
say per-thread ./per-thread
say static ./static
SCRIPT
chmod +x "$case/run"
echo peerlane_gpu >"$case/modules"
echo cxx >"$case/extras"
vm_run guest no-drive 7.2 "$case" 110
check "the guest ended well" test $? -eq 0
said=$OUT/guest/result.log
check "driver: copies are right" grep -q '^driver: .*copied right' "$said"
check "driver: the launch is refused" grep -q '^driver: launch 801' "$said"
for name in shared per-thread; do
	check "$name: it ends well" grep -q "^$name: ended 0" "$said"
	check "$name: the properties are the GPU's" \
		grep -q "^$name: count 1, Peerlane emulated GPU, compute 9\.0" "$said"
	check "$name: copies are right" grep -q "^$name: copied right" "$said"
	check "$name: the launch is refused" grep -q "^$name: launch 801 cudaErrorNotSupported" "$said"
	check "$name: and says which" grep -q "^$name: .*kernel .*add_three.* was not launched" "$said"
done
# NVIDIA's runtime, linked statically, is not served: libcuda-peerlane(7) says why
check "static: refused" grep -q '^static: malloc 801 ' "$said"
check "static: says why" grep -q "^static: .*proof that the driver is NVIDIA's" "$said"
finish

# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Cases of the tool on the mock of the CUDA driver.

tool=$BUILD/userlib/peerlane
mock=$BUILD/userlib/tests/mock
faults=$BUILD/userlib/tests/host/io_faults.so
need_tool jq
need_file "$tool" "$mock/libcuda.so.1" "$faults"
unset PEERLANE_STRICT CUFILE_ENV_PATH_JSON CUFILE_FORCE_COMPAT_MODE
# what is staged is so by bounce, but where a case says otherwise
export PEERLANE_PAGE_CACHE=0

# status WANT ARGS…: run the tool, keep what it says
status() {
	want=$1
	shift
	"$tool" "$@" >out 2>err
	got=$?
	check_eq "status $want: peerlane $*" "$want" "$got" || sed 's/^/# /' err
}
preload=
gpu() {
	preload=$mock/libcuda.so.1 on_gpu "$@"
}
# with FAULT_… of userlib/tools/test/io_faults.c; the mock's own calls come after them
faulty() {
	preload=$mock/libcuda.so.1:$faults on_gpu "$@"
}
on_gpu() {
	want=$1
	shift
	LD_LIBRARY_PATH=$mock LD_PRELOAD=$preload PEERLANE_KMSG=/none "$tool" "$@" >out 2>err
	got=$?
	check_eq "status $want: peerlane $*" "$want" "$got" || sed 's/^/# /' err
}
said() { check "says: $1" grep -q -e "$1" out err; }
json() { check "$1" jq -se "$2" out; }

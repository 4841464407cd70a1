#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcuda between processes and between GPUs: memory, events, peer access
# tags: guest cuda
# timeout: 240
. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
need_file "$BUILD/userlib/tests/cuda_procs"

# boot NAME TOPOLOGY KVER GPUS: the program's lines are this case's lines
boot() {
	mkdir -p "$OUT/$1.case"
	{
		echo '#!/bin/sh'
		echo "exec /usr/lib/peerlane/tests/cuda_procs $4"
	} >"$OUT/$1.case/run"
	echo peerlane_gpu >"$OUT/$1.case/modules"
	chmod +x "$OUT/$1.case/run"
	vm_run "$1" "$2" "$3" "$OUT/$1.case" 110
	status=$?
	while IFS= read -r line; do
		case $line in
		'not ok '*) fail "$1: ${line#* - }" ;;
		'ok '*) pass "$1: ${line#* - }" ;;
		'# '*) printf '%s\n' "$line" ;;
		esac
	done <"$OUT/$1/result.log"
	check "$1: the guest ended well (status $status)" test "$status" -eq 0
	check "$1: with a plan" grep -q '^1\.\.[1-9]' "$OUT/$1/result.log"
}

boot window "$TOP/tests/cuda/two-gpus-window.topo" 7.2 2
boot plain "$TOP/tests/cuda/two-gpus.topo" 6.12 1
finish

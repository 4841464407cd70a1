#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the CUDA runtime, 12 and 13, on the emulated GPU, with a window and without
# tags: guest cuda
# timeout: 240
. "$TOP/tests/lib/case.sh"
. "$TOP/scenarios/lib/vm.sh"
need_file "$BUILD/userlib/tests/cudart_guest_13"

# boot NAME TOPOLOGY KVER: the programs' lines are this case's lines
boot() {
	mkdir -p "$OUT/$1.case"
	cat >"$OUT/$1.case/run" <<SCRIPT
#!/bin/sh
for major in 12 13; do
	/usr/lib/peerlane/tests/cudart_guest_\$major $1 || exit 1
done
SCRIPT
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
	check_eq "$1: with two plans" 2 "$(grep -c '^1\.\.[1-9]' "$OUT/$1/result.log")"
}

boot coherent no-drive 7.2
boot plain "$TOP/tests/cuda/two-gpus.topo" 6.12
finish
